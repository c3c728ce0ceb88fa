"""Every figure can be read: by its contrast, and without color vision."""

import inspect
import itertools
from functools import cache
from pathlib import Path

import matplotlib as mpl
import pytest
import torch
from matplotlib.colors import to_hex, to_rgb

from attention import MultiHeadAttention
from coding_attention import figures
from coding_attention.figures import base, heads, multi_head, one_head, why
from tests.coding_attention.figures.artists import (
    boxes,
    contrast,
    linear,
    random,
    random_weights,
    rectangles,
)

ROOT = Path(__file__).resolve().parents[3]
TOKENS = ["Your", "journey", "starts", "with", "one", "step"]
# The first two numbers of each token of the running example.
INPUTS = torch.tensor(
    [[0.43, 0.15], [0.55, 0.87], [0.57, 0.85], [0.22, 0.58], [0.77, 0.25], [0.05, 0.8]]
)
CAUSAL = random_weights(6, 6).tril()
ENTRIES = torch.arange(24).view(2, 3, 4)
KEEP = random(6, 6, seed=8) > 0
MECHANISMS = [
    {
        "name": "Simple", "section": "3.3", "adds": "begins with similarity",
        "computes": "softmax(x xᵀ) x", "weights": [random_weights(6, 6)],
    },
    {
        "name": "Multi-head", "section": "3.6", "adds": "adds heads",
        "computes": "heads, joined", "weights": [CAUSAL, CAUSAL],
    },
]  # fmt: skip

# One call or more of every function that draws, in the sizes of the book's pages.
CASES = {
    "arrows": lambda: figures.arrows(
        INPUTS, TOKENS, "first", "second", ["journey", "starts"]
    ),
    "arrows, all quadrants": lambda: figures.arrows(
        torch.tensor([[1.0, 1.0], [-1.0, 0.5], [-0.5, -1.0], [0.7, -0.9]]),
        TOKENS[:4], "first", "second",
    ),
    "bars": lambda: figures.bars(
        {"one way": CAUSAL[5], "other way": CAUSAL[4]}, TOKENS
    ),
    "bars, negative": lambda: figures.bars({"score": random(6, seed=1)}, TOKENS),
    "bars, far below zero": lambda: figures.bars(
        {"score": torch.tensor([-100.0, 0.5])}, TOKENS[:2]
    ),
    "bars, one": lambda: figures.bars({"score": torch.tensor([0.5])}, TOKENS[:1]),
    "bars, three groups": lambda: figures.bars(
        {name: random_weights(4, seed=i) for i, name in enumerate("abc")}, TOKENS[:4]
    ),
    "cropped_mask": lambda: figures.cropped_mask(torch.ones(6, 6).triu(1), 4, "mask"),
    "dropped": lambda: figures.dropped(CAUSAL, KEEP, TOKENS, 0.5, "after dropout"),
    "flow": lambda: figures.flow(
        random(6, 3), random(3, 2), random(3, 2), random(3, 2)
    ),
    "one_head": lambda: one_head.one_head(
        TOKENS, 1, {name: random(6, 4, seed=i) for i, name in enumerate("xqkv")},
        40 * random(6), 7 * random(6), CAUSAL[5],
    ),
    "one_path": lambda: figures.one_path(random(6, 3).abs(), TOKENS, 1),
    "stacked_projection": lambda: figures.stacked_projection(
        random(6, 3), [random(3, 2), random(3, 2, seed=1)]
    ),
    "online_softmax_tiles": lambda: figures.online_softmax_tiles(
        random(6, 6, scale=2), 2, query=3
    ),
    "plane": lambda: figures.plane(
        INPUTS, TOKENS, ("nature", "money"), CAUSAL @ INPUTS
    ),
    "runs": lambda: figures.runs(
        [0, 10, 20], {s: [3.0, 1.0 + s, 0.1 * s] for s in range(9)}, "step", "loss",
        highlight=[0], failed=[8], level=("guessing", 2.6),
    ),
    "growth": lambda: figures.growth(
        [2, 8, 32], {"plain": [2.0, 8.1, 31.5], "divided": [1.0, 1.0, 1.0]}, "variance"
    ),
    "growth, log": lambda: figures.growth(
        [2, 8, 32], {"plain": [2.0, 8.1, 31.5]}, "variance", log=True
    ),
    "lanes": lambda: figures.lanes(
        random(6, 3), MultiHeadAttention(3, 4, 6, 0.0, num_heads=2)
    ),
    "look": lambda: figures.look(CAUSAL[5], TOKENS, query=1),
    "matrix": lambda: figures.matrix(random(6, 6), TOKENS, TOKENS, "scores"),
    "matrix, eight columns": lambda: figures.matrix(random_weights(8, 8), title="α"),
    "matrix, infinite": lambda: figures.matrix(
        CAUSAL.log(), TOKENS, TOKENS, "-inf", outline=[(0, 0)]
    ),
    "matrix, integers": lambda: figures.matrix(ENTRIES[0], decimals=0),
    "mechanisms": lambda: figures.mechanisms(MECHANISMS),
    "memory": lambda: figures.memory(
        {"by head": ENTRIES[0].flatten(), "by token": ENTRIES[1].flatten()}, 4, 2
    ),
    "new_axes": figures.new_axes,
    "one_query": lambda: figures.one_query(
        random(2), random(6, 2), random(6, 2), TOKENS, "journey"
    ),
    "product": lambda: figures.product(
        random_weights(3, 3).tril(), random(3, 2), ["a", "b", "c"], row=2
    ),
    "running_mean": lambda: figures.running_mean(random(8), random(8, seed=1), "x"),
    "spread": lambda: figures.spread({"columns": random(32, 5), "rows": random(5, 32)}),
    "steps": lambda: figures.steps(
        {"scores": CAUSAL.log()[3], "softmax": CAUSAL[3]}, TOKENS, "masking"
    ),
    "tagged": lambda: figures.tagged(
        ENTRIES[0].view(3, 2, 2).transpose(0, 1), 4, 2, "split", ["head 0", "head 1"]
    ),
    "against_length": lambda: why.against_length(
        [4, 8, 16], {"RNN": [[0.9, 0.5, 0.2]] * 2, "attention": [[1, 0.99, 0.98]]}, "y"
    ),
    "alignment": lambda: why.alignment(
        ["Can", "you", "help", "me"], ["Kannst", "du", "mir", "helfen"],
        [(0, 0), (1, 1), (2, 3), (3, 2)], [(2, 3)],
    ),
    "bottleneck": lambda: why.bottleneck(["du", "mir", "helfen"], ["you", "help"]),
    "circuit": lambda: heads.circuit(["A", "B", "C"]),
    "curves": lambda: heads.curves(
        [0, 10, 20], {"loss": [[3.0, 2.0, 1.0]]}, "step", "loss", {"chance": 2.6}
    ),
    "look_back": lambda: why.look_back(TOKENS[:4], ["du", "mir"], 1, CAUSAL[3, :4]),
    "pattern": lambda: heads.pattern(CAUSAL, TOKENS, TOKENS, "head 0", [(1, 0)]),
    "writing": lambda: figures.writing(
        {
            "right": [[("your", True), ("journey", True), (".", True)]] * 4,
            "wrong": [[("your", True), ("journey", False), (".", False)]] * 4,
        }
    ),
    "amounts": lambda: figures.amounts(
        {"queries, keys and values": 0.45, "softmax": 0.3, "joining the heads": 0.0},
        "share of the time",
    ),
    "by_tokens": lambda: figures.by_tokens(
        [256, 1024, 4096], {"listing": [1.0, 9.0, 130], "fused": [1.0, 4, 16]}, "MB"
    ),
    "kept": lambda: figures.kept([256, 1024, 4096], 64),
    "ring": lambda: figures.ring(4),
    "roofline": lambda: figures.roofline(
        250, 20,
        {"prefill": {"mask": 0.1, "softmax": 0.6, "scores": 28, "projections": 140},
         "one more token": {"12 key heads": 0.5, "4 key heads": 1.5, "1 key head": 6}},
    ),
    "shards": lambda: figures.shards({"W_query": "rows", "out_proj": "columns"}, 2),
    "shards, four": lambda: figures.shards(
        {"W_query": "rows", "W_key": "rows", "W_value": "rows", "out_proj": "columns"},
        4,
    ),
}  # fmt: skip
# Drawn once for all tests, which only read.
CASES = {name: cache(draw) for name, draw in CASES.items()}
boxes = cache(boxes)
every_figure = pytest.mark.parametrize("draw", CASES.values(), ids=CASES)
# Not drawn from data: a text and the wrapper of finished figures.
DRAW_NOTHING = {"number", "show"}
PUBLIC = {name for name, _ in inspect.getmembers(figures, inspect.isfunction)}


def overlap(a, b):
    # The box of a text holds a little air around the letters: touching is no harm.
    width = min(a.x1, b.x1) - max(a.x0, b.x0)
    height = min(a.y1, b.y1) - max(a.y0, b.y0)
    return width > 1.5 and height > 1.5


@pytest.mark.parametrize("name", sorted(PUBLIC - DRAW_NOTHING))
def test_every_public_function_has_a_case(name):
    assert name in {case.split(",")[0] for case in CASES}, (
        f'add "{name}": lambda: figures.{name}(…), in the sizes of the page, to CASES '
        f"in {Path(__file__).relative_to(ROOT)}"
    )


@every_figure
def test_text_is_dark_on_cells_and_ink_elsewhere(draw):
    """Ink takes the page's color, which on a dark page is light: never on a cell."""
    ax = draw()
    written = boxes(ax)  # draws, so that positions are final
    areas = [
        (patch.get_window_extent(), patch.get_facecolor())
        for patch in rectangles(ax)
        if patch.get_fill()
    ]
    for text, box in written:
        color = to_hex(text.get_color())
        what = f"{text.get_text()!r} in {color}"
        # Among cells on top of each other, the last one drawn is seen.
        below = [fill for area, fill in areas if overlap(area, box)]
        if color == base.INK:
            assert not below, f"{what} on a filled cell"
        else:
            assert below, f"{what} on the bare page"
            assert all(contrast(color, fill) >= 4.5 for fill in below), what


# What stands for one thing among several; SKY and LIGHT are tints of the ground.
CATEGORIES = ("BLUE", "ORANGE", "GREEN", "VERMILION", "PURPLE")
# Machado, Oliveira and Fernandes (2009), "A Physiologically-based Model for Simulation
# of Color Vision Deficiency", IEEE TVCG 15(6), doi:10.1109/TVCG.2009.113: the matrices
# for severity 1, to be applied to linear RGB.
VISIONS = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
    "all cones": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
}
# From linear sRGB to CIE XYZ under D65 (IEC 61966-2-1).
XYZ = [
    [0.4124564, 0.3575761, 0.1804375],
    [0.2126729, 0.7151522, 0.0721750],
    [0.0193339, 0.1191920, 0.9503041],
]
# A difference of 2.3 in CIE L*a*b* is just noticeable side by side (Mahy et al.,
# 1994); marks that are apart on a page need several times that.
APART = 15


def lab(color, vision):
    """CIE L*a*b* of a color as it is seen with one of ``VISIONS``."""
    rgb = torch.tensor([linear(channel) for channel in to_rgb(color)]).double()
    seen = (torch.tensor(VISIONS[vision]).double() @ rgb).clamp(0, 1)
    to_xyz = torch.tensor(XYZ).double()
    ratio = (to_xyz @ seen) / to_xyz.sum(dim=1)  # white is (1, 1, 1)
    root = torch.where(
        ratio > (6 / 29) ** 3, ratio ** (1 / 3), ratio * 841 / 108 + 4 / 29
    )
    x, y, z = root.tolist()
    return torch.tensor([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(one, other, vision):
    """Delta E of 1976: the distance of two colors in CIE L*a*b*."""
    return float((lab(one, vision) - lab(other, vision)).norm())


def test_distance_is_that_of_cie_lab():
    assert lab("white", "all cones").tolist() == pytest.approx([100, 0, 0], abs=0.01)
    # Published coordinates of the pure sRGB red under D65.
    red = [53.24, 80.09, 67.20]
    assert lab("#ff0000", "all cones").tolist() == pytest.approx(red, abs=0.02)
    assert distance("white", "black", "all cones") == pytest.approx(100, abs=0.01)
    # What makes red and green the textbook's example: a dichromat mixes them up.
    seen = distance("#ac8b00", "#919600", "deuteranopia")
    assert seen < distance("#ac8b00", "#919600", "all cones") / 2


@pytest.mark.parametrize("vision", VISIONS)
def test_categories_stay_apart_without_one_kind_of_cone(vision):
    for one, other in itertools.combinations(CATEGORIES, 2):
        found = distance(getattr(base, one), getattr(base, other), vision)
        assert found >= APART, f"{one} and {other}: {found:.1f}"


@pytest.mark.parametrize("vision", VISIONS)
def test_the_two_heads_of_the_book_stay_apart(vision):
    assert distance(*multi_head.HEADS[:2], vision) >= APART


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("name", ["WEIGHTS", "SIGNED"])
def test_frames_are_apart_from_every_color_of_a_map(name, vision):
    colors = getattr(base, name)
    for i in range(11):
        assert distance(base.VERMILION, colors(i / 10), vision) >= APART


@pytest.mark.parametrize("name", ["WEIGHTS", "SIGNED"])
def test_numbers_can_be_read_on_every_color_of_a_map(name):
    colors = getattr(base, name)
    worst = min(contrast(base.DARK, colors(i / 1000)) for i in range(1001))
    assert worst >= 4.5


def test_style_does_not_leak():
    before = dict(mpl.rcParams)
    figures.show(figures.matrix(random(2, 2)), caption="c", alt="a")
    assert dict(mpl.rcParams) == before
