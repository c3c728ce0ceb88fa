"""Figures of section 3.4: one query, and growth with the width."""

import pytest
import torch
from matplotlib.colors import to_hex

from coding_attention import figures
from coding_attention.figures import base
from tests.coding_attention.figures.artists import (
    cells,
    luminance,
    random,
    ticks,
)


@pytest.mark.parametrize(("t", "d_k", "d_out"), [(6, 2, 2), (3, 1, 3), (1, 3, 1)])
def test_one_query_holds_every_number_of_the_computation(t, d_k, d_out):
    query, keys = random(d_k, seed=t), random(t, d_k, seed=1)
    values, words = random(t, d_out, seed=2), [f"w{i}" for i in range(t)]
    rows = {}
    for cell in cells(figures.one_query(query, keys, values, words, "w0")):
        rows.setdefault(cell.y, []).append((cell.x, float(cell.text)))
    lines = [[number for _, number in sorted(rows[y])] for y in sorted(rows)]
    scores = [
        sum(float(q * k) for q, k in zip(query, key, strict=True)) for key in keys
    ]
    exponentials = [torch.tensor(s / d_k**0.5).exp().item() for s in scores]
    alphas = [e / sum(exponentials) for e in exponentials]
    expected = [query.tolist()]
    for i in range(t):
        expected.append([*keys[i].tolist(), scores[i], alphas[i], *values[i].tolist()])
    expected.append(
        [
            sum(a * float(v[j]) for a, v in zip(alphas, values, strict=True))
            for j in range(d_out)
        ]
    )
    assert len(lines) == t + 2
    for line, numbers in zip(lines, expected, strict=True):
        assert line == pytest.approx(numbers, abs=6e-4)


def test_one_query_colors_weights_and_frames_the_context_vector():
    ax = figures.one_query(random(2), random(4, 2), random(4, 2), list("abcd"), "a")
    weights = [cell for cell in cells(ax) if cell.x == pytest.approx(3.2)]
    pairs = sorted((float(cell.text), luminance(cell.color)) for cell in weights)
    assert [bright for _, bright in pairs] == sorted(
        (b for _, b in pairs), reverse=True
    )
    shares = [base.WEIGHTS(float(cell.text)) for cell in weights]
    assert [cell.color for cell in weights] == [to_hex(share) for share in shares]
    framed = {cell.y for cell in cells(ax) if cell.edge == base.VERMILION}
    assert framed == {max(cell.y for cell in cells(ax))}


@pytest.mark.parametrize("log", [False, True])
def test_growth_draws_the_given_lines(log):
    lines = {"a": [1.0, 2.5, 0.5], "b": [3.0, 2.0, 1.0], "c": [1.0, 1.0, 1.0]}
    ax = figures.growth([2, 8, 64], lines, "what", log=log)
    for drawn, (name, numbers) in zip(ax.lines, lines.items(), strict=True):
        assert drawn.get_label() == name
        assert list(drawn.get_xdata()) == [2, 8, 64]
        assert list(drawn.get_ydata()) == numbers
    assert ticks(ax.xaxis) == [(2, "2"), (8, "8"), (64, "64")]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log" if log else "linear")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("width d_k", "what")
