"""The picture of one head: its numbers and bars are those of the tensors."""

import torch
from matplotlib.colors import to_hex

from coding_attention.figures import one_head
from coding_attention.figures.palette import BLUE
from tests.coding_attention.figures.artists import cells, random, written

WORDS, ASKED = ["[CLS]", "one", "two", "[SEP]"], 2
VECTORS = {name: random(4, 20, seed=i) for i, name in enumerate("xqkv")}
SCORES = 30 * random(4, seed=5)
WEIGHTS = torch.tensor([0.04, 0.7, 0.25, 0.01])


def draw():
    scaled = SCORES / 32**0.5
    return one_head.one_head(WORDS, ASKED, VECTORS, SCORES, scaled, WEIGHTS)


def read_bars(image, name, row):
    """Give how far the bars of a vector reach, as shares of half a row."""
    top = one_head.HEAD + one_head.ROW * row
    left, half = one_head.LEFT[name], one_head.ROW // 2
    strip = image[top : top + one_head.ROW, left : left + one_head.DRAWN, 3] > 0.2
    return (
        torch.tensor(strip[:half]).sum(0) - torch.tensor(strip[half:]).sum(0)
    ) / half


def test_each_word_has_its_score_its_scaled_score_and_its_weight():
    texts = [cell.text for cell in cells(draw())]
    wanted = []
    for score, weight in zip(SCORES, WEIGHTS, strict=True):
        wanted += [f"{score:.1f}", f"{score / 32**0.5:.2f}", f"{weight:.2f}"]
    assert texts == wanted
    assert [text for text in written(draw()) if text in WORDS] == WORDS


def test_bars_are_as_long_as_the_numbers():
    image = draw().images[0].get_array()
    mix = WEIGHTS[:, None] * VECTORS["v"]
    drawn = VECTORS | {"mix": mix, "z": mix.sum(dim=0)[None]}
    for name, rows in drawn.items():
        # What is made of values is drawn on the scale of values.
        most = 0.6 * VECTORS[name if name in VECTORS else "v"].abs().max()
        for i, row in enumerate(rows):
            bars = read_bars(image, name, ASKED if name == "z" else i)
            wanted = (row[: one_head.DRAWN] / most).clamp(-1, 1)
            torch.testing.assert_close(bars, wanted, atol=0.09, rtol=0)


def test_curves_to_z_are_as_thick_as_the_weights():
    curves = [
        patch for patch in draw().patches if to_hex(patch.get_edgecolor()) == BLUE
    ]
    starts = [curve.get_path().vertices[0][1] for curve in curves]
    # The last word gives too little to be seen.
    assert starts == [one_head._middle(i) for i in range(3)]
    first, second, third = (curve.get_linewidth() for curve in curves)
    slope = (second - first) / (WEIGHTS[1] - WEIGHTS[0])
    assert slope > 1
    assert abs(third - first - slope * (WEIGHTS[2] - WEIGHTS[0])) < 0.02
