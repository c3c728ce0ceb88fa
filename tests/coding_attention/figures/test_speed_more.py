"""The roofline and the ring: their artists hold what the page says."""

import itertools
import math

import pytest
from matplotlib.colors import to_hex

from coding_attention import figures
from coding_attention.figures.speed import RANKS

PREFILL = {"projections": 139.6, "scores": 28.4, "mask": 0.13, "softmax": 0.62}
DECODE = {"12 key heads": 0.51, "4 key heads": 1.54, "1 key head": 6.1}


@pytest.mark.parametrize(("peak", "bandwidth"), [(150, 12), (60, 20), (2000, 30)])
def test_every_step_lies_on_the_roof(peak, bandwidth):
    ax = figures.roofline(peak, bandwidth, {"prefill": PREFILL, "token": DECODE})
    roof, *marks = ax.lines
    ridge = peak / bandwidth
    assert list(roof.get_xdata())[1] == pytest.approx(ridge)
    for line, steps in zip(marks, (PREFILL, DECODE), strict=True):
        assert list(line.get_xdata()) == list(steps.values())
        reached = [peak if x > ridge else x * bandwidth for x in steps.values()]
        assert list(line.get_ydata()) == pytest.approx(reached)
    start, corner, end = roof.get_ydata()
    goes = "rises" if start < corner else "falls"
    flat = "is flat" if corner == end else "goes on"
    assert f"which {goes} and {flat} from {ridge:.1f}" in ax.figure.words[1]


@pytest.mark.parametrize(("peak", "bandwidth"), [(150, 12), (90, 22), (60, 20)])
def test_names_on_the_roofline_stand_apart(peak, bandwidth):
    ax = figures.roofline(peak, bandwidth, {"prefill": PREFILL, "token": DECODE})
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent().expanded(1.2, 1) for text in ax.texts]
    assert len(boxes) == len(PREFILL) + len(DECODE)
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))


@pytest.mark.parametrize(("peak", "bandwidth"), [(150, 12), (60, 20), (2000, 30)])
def test_ticks_of_the_roofline_are_powers_of_ten_and_stand_apart(peak, bandwidth):
    ax = figures.roofline(peak, bandwidth, {"prefill": PREFILL, "token": DECODE})
    ax.figure.draw_without_rendering()
    for axis, across in ((ax.xaxis, True), (ax.yaxis, False)):
        low, high = sorted(axis.get_view_interval())
        shown = [
            tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high
        ]
        assert len(shown) >= 3
        for tick in shown:
            assert math.log10(tick.get_loc()) == pytest.approx(
                round(math.log10(tick.get_loc()))
            )
        boxes = [tick.label1.get_window_extent() for tick in shown]
        for a, b in itertools.pairwise(boxes):
            gap = b.x0 - a.x1 if across else b.y0 - a.y1
            # At least the height of a line between two of them.
            assert gap > a.height


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_blocks_go_round_the_ring_and_the_future_is_skipped(ranks):
    ax = figures.ring(ranks)
    cells = list(zip(ax.patches, ax.texts, strict=True))
    assert len(cells) == ranks**2
    for index, (patch, text) in enumerate(cells):
        rank, step = divmod(index, ranks)
        block = (rank - step) % ranks
        used = block <= rank
        assert text.get_text() == (f"block {block}" if used else "skipped")
        assert patch.get_fill() == used
        if used:
            assert to_hex(patch.get_facecolor()) == RANKS[block].lower()
