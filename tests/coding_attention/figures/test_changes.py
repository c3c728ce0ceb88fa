"""The bars of changes are as high as the shares they stand for."""

import pytest
import torch
from matplotlib.colors import to_hex

from coding_attention import figures
from coding_attention.figures.base import VERMILION

SHARES = torch.tensor([[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.2, 0.5, 0.3]]).double()


def test_bars_are_as_high_as_shares():
    bars = figures.changes(SHARES, ["a", "b", "c"]).patches
    heights = torch.tensor([abs(bar.get_height()) for bar in bars]).view(3, 3)
    torch.testing.assert_close(heights / heights[0, 0], SHARES)


def test_largest_of_each_row_stands_out():
    bars = figures.changes(SHARES, ["a", "b", "c"]).patches
    stands_out = [to_hex(bar.get_facecolor()) == VERMILION for bar in bars]
    largest = torch.tensor(stands_out).view(3, 3).int().argmax(dim=1)
    assert largest.tolist() == SHARES.argmax(dim=1).tolist()
    assert sum(stands_out) == 3


def test_labels_must_fit():
    with pytest.raises(ValueError, match="tokens must have the shape"):
        figures.changes(SHARES, ["a", "b"])
