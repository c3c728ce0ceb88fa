"""The colors of the book: apart for all eyes, legible, with a form for dark pages."""

import itertools
import re

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb

from coding_attention.figures import base, multi_head, palette
from tests.coding_attention.figures.artists import contrast, linear
from tests.coding_attention.figures.test_on_pages import BOOK

# Linear RGB as it is seen without one kind of cone: Machado, Oliveira and Fernandes
# (2009), "A Physiologically-based Model for Simulation of Color Vision Deficiency".
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


def see(color, vision):
    """Give CIE L*a*b* of a color as it is seen with one of ``VISIONS``."""
    rgb = torch.tensor([linear(channel) for channel in to_rgb(color)]).double()
    seen = (torch.tensor(VISIONS[vision]).double() @ rgb).clamp(0, 1)
    to_xyz = torch.tensor(XYZ).double()
    ratio = (to_xyz @ seen) / to_xyz.sum(dim=1)  # white is (1, 1, 1)
    root = torch.where(
        ratio > (6 / 29) ** 3, ratio ** (1 / 3), ratio * 841 / 108 + 4 / 29
    )
    x, y, z = root.tolist()
    return torch.tensor([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISIONS)
def test_colors_that_mean_different_things_look_different_to_all(vision):
    lines = [base.BLUE, base.ORANGE, base.GREEN, base.VERMILION, base.PURPLE]
    pairs = [*itertools.combinations(lines, 2), multi_head.HEADS[:2]]
    for scale in (base.WEIGHTS, base.SIGNED):  # what a frame stands out from
        pairs += [(base.VERMILION, scale(i / 10)) for i in range(11)]
    for one, other in pairs:
        assert (see(one, vision) - see(other, vision)).norm() >= APART, (one, other)


@pytest.mark.parametrize("name", ["WEIGHTS", "SIGNED"])
def test_numbers_can_be_read_on_every_color_of_a_map(name):
    colors = getattr(base, name)
    worst = min(contrast(base.DARK, colors(i / 1000)) for i in range(1001))
    assert worst >= 4.5


def test_style_sheet_sets_the_dark_form_of_every_color():
    css = (BOOK.parent / "theme" / "static" / "book.css").read_text()
    (rule,) = re.findall(r'data-theme="dark"\] \.attention-figure \{(.*?)\}', css, re.S)
    found = dict(re.findall(r"--af-(\w+): (#[0-9a-f]{6})", rule))
    assert found == {color.name: color.dark for color in palette.BOOK.values()}


def test_a_mixture_is_the_color_that_it_stands_for():
    one = r"var\(--af-\w+,(#[0-9a-f]{6})\)"
    mixture = re.compile(rf"color-mix\(in srgb,{one} ([\d.]+)%,{one}\)")
    found = [(color, mixture.fullmatch(css)) for color, css in palette.FOR_CSS.items()]
    mixed = [(color, match.groups()) for color, match in found if match]
    assert len(mixed) > 300
    for color, (end, percent, start) in mixed:
        share = float(percent) / 100
        made = share * np.array(to_rgb(end)) + (1 - share) * np.array(to_rgb(start))
        assert np.abs(made - to_rgb(color)).max() < 1.01 / 255, color


def test_no_color_stands_for_two_things():
    for mode in ("light", "dark"):
        colors = [getattr(color, mode) for color in palette.BOOK.values()]
        assert len(set(colors)) == len(colors)
    assert len({color.name for color in palette.BOOK.values()}) == len(palette.BOOK)
