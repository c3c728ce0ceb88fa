"""Figures of section 3.6: lanes, tagged entries and memory."""

from itertools import pairwise

import pytest
import torch

from attention import MultiHeadAttention
from attention.chapter import figures
from attention.chapter.figures import base
from attention.chapter.figures.multi_head import HEADS
from tests.chapter.figures.test_artists import arrows, cells, contrast, place, random


@pytest.mark.parametrize(("t", "d_out", "h"), [(6, 4, 2), (3, 6, 3), (5, 4, 1)])
def test_lanes_write_the_shapes_that_the_layer_makes(t, d_out, h):
    layer = MultiHeadAttention(3, d_out, 8, 0.0, num_heads=h)
    ax = figures.lanes(random(t, 3), layer)
    texts, d_head = [cell.text for cell in cells(ax)], d_out // h
    assert texts[0] == f"inputs x\n({t}, 3)"
    for head in range(h):
        assert texts[1 + 4 * head : 5 + 4 * head] == [
            f"q, k, v of head {head}\neach ({t}, {d_head})",
            f"weights α\n({t}, {t})",
            f"weights @ v\n({t}, {d_head})",
            f"({t}, {d_head})",  # its part of the joined vector
        ]
    assert texts[-1] == f"context vectors z\n({t}, {d_out})"
    assert layer(random(1, t, 3)).shape == (1, t, d_out)


def test_lanes_keep_a_color_for_each_head_down_to_its_part():
    ax = figures.lanes(random(6, 3), MultiHeadAttention(3, 6, 6, 0.0, num_heads=3))
    middle = cells(ax)[1:-1]
    for head in range(3):
        own = middle[4 * head : 4 * head + 4]
        assert {cell.color for cell in own} == {HEADS[head]}
    parts = middle[3::4]
    for one, other in pairwise(parts):
        assert one.x + one.width == pytest.approx(other.x)  # side by side, in order
    assert len(arrows(ax)) == 4 * 3 + 1


def tagged_cells(ax):
    """(entry, tag, color, x, y) of every cell, by where its two texts stand."""
    found = []
    for cell in cells(ax):
        x = cell.x + cell.width / 2
        inside = sorted(
            (t.get_position()[1], t.get_text())
            for t in ax.texts
            if t.get_position()[0] == pytest.approx(x)
            and cell.y < t.get_position()[1] < cell.y + cell.height
        )
        (_, entry), (_, tag) = inside
        found.append((int(entry), tag, cell.color, cell.x, cell.y))
    return found


@pytest.mark.parametrize(
    ("tokens", "d_out", "h"), [(3, 4, 2), (2, 6, 3), (4, 2, 1), (2, 4, 4)]
)
def test_tagged_names_token_feature_and_head_of_every_entry(tokens, d_out, h):
    entries = torch.arange(tokens * d_out).view(tokens, h, -1).transpose(0, 1)
    names = [f"head {i}" for i in range(h)]
    found = tagged_cells(figures.tagged(entries, d_out, h, "a title", names))
    assert [entry for entry, *_ in found] == entries.flatten().tolist()
    for entry, tag, color, _, _ in found:
        feature = entry % d_out
        assert tag == f"t{entry // d_out} f{feature}"
        assert color == HEADS[feature // (d_out // h)]


def test_tagged_places_blocks_rows_and_columns():
    entries = torch.arange(12).view(2, 3, 2)
    ax = figures.tagged(entries, 4, 2, "a title", ["one", "two"])
    at = {entry: (x, y) for entry, _, _, x, y in tagged_cells(ax)}
    for block in range(2):
        for i in range(3):
            left, right = (at[int(entries[block, i, j])] for j in range(2))
            assert left[1] == right[1]  # a row
            assert right[0] - left[0] == pytest.approx(0.5)
            assert left[0] == at[int(entries[block, 0, 0])][0]  # a column
        name = place(ax, ["one", "two"][block])[0]
        assert name == pytest.approx(at[int(entries[block, 0, 1])][0])
    assert at[6][0] > at[1][0] + 0.5  # a gap between the blocks
    assert place(ax, "a title")[1] < place(ax, "one")[1] < at[0][1]


@pytest.mark.parametrize(("d_out", "h"), [(4, 2), (6, 3), (4, 1)])
def test_memory_writes_strips_in_order(d_out, h):
    shuffled = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    strips = {"plain": torch.arange(12), "shuffled": shuffled}
    ax = figures.memory(strips, d_out, h)
    found = cells(ax)
    for i, (name, strip) in enumerate(strips.items()):
        own = found[12 * i : 12 * i + 12]
        assert [int(cell.text) for cell in own] == strip.tolist()
        assert [cell.x for cell in own] == sorted(cell.x for cell in own)
        (top,) = {cell.y for cell in own}
        assert top - 0.3 < place(ax, name)[1] < top
        for cell in own:
            assert cell.color == HEADS[int(cell.text) % d_out // (d_out // h)]
    assert max(cell.x + cell.width for cell in found) <= 3.6


@pytest.mark.parametrize("color", HEADS)
def test_text_can_be_read_on_the_color_of_every_head(color):
    assert contrast(base.DARK, color) >= 4.5
