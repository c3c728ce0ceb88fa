"""Figures of section 3.6: lanes and tagged entries."""

import pytest
import torch

from attention import MultiHeadAttention, MultiHeadAttentionWrapper
from coding_attention import figures
from coding_attention.figures import base
from coding_attention.figures.multi_head import HEADS
from tests.coding_attention.figures.artists import cells, contrast, random


@pytest.mark.parametrize(("t", "d_out", "h"), [(6, 4, 2), (3, 6, 3), (5, 4, 1)])
def test_lanes_hold_what_the_layer_computes(t, d_out, h):
    layer = MultiHeadAttention(3, d_out, 8, 0.0, num_heads=h).requires_grad_(False)
    x, d_head = random(t, 3), d_out // h
    ax = figures.lanes(x, layer)
    drawn = [cell.color for cell in cells(ax)]
    q, k, v = (
        project(x).split(d_head, dim=1)
        for project in (layer.W_query, layer.W_key, layer.W_value)
    )
    hidden = torch.ones(t, t).triu(1).bool()
    heads = []
    for head in range(h):
        scores = q[head] @ k[head].T / d_head**0.5
        weights = scores.masked_fill(hidden, -torch.inf).softmax(dim=-1)
        heads += [q[head], k[head], v[head], weights, weights @ v[head]]
    for matrix in (*heads, layer(x[None])[0]):
        colors = [color for row in base.shade(matrix) for color in row]
        starts = range(len(drawn))
        assert colors in [drawn[i : i + len(colors)] for i in starts]


def test_lanes_of_the_wrapper_hold_each_head_and_nothing_that_mixes_them():
    wrapper = MultiHeadAttentionWrapper(3, 2, 6, 0.0, num_heads=2).requires_grad_(False)
    x = random(6, 3)
    ax = figures.lanes(x, wrapper)
    drawn = [cell.color for cell in cells(ax)]
    for head in wrapper.heads:
        for matrix in (head.W_query(x), head.W_value(x), head(x[None])[0]):
            colors = [color for row in base.shade(matrix) for color in row]
            starts = range(len(drawn))
            assert colors in [drawn[i : i + len(colors)] for i in starts]
    assert "out_proj" not in {text.get_text() for text in ax.texts}


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


@pytest.mark.parametrize("color", HEADS)
def test_text_can_be_read_on_the_color_of_every_head(color):
    assert contrast(base.DARK, color) >= 4.5
