"""README in its first thirty seconds: what stands there, and that it is so."""

import re

import pytest
import torch

from attncheck import commandline
from tests.book.pages import ROOT, slug

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
LINES = TEXT.splitlines()
# Of the class that README's checker speaks of.
MINE = '''"""Causal attention, as one writes it the first time."""

import torch
from torch import nn


class MyAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        mask = torch.triu(torch.ones(context_length, context_length), diagonal=1)
        self.register_buffer("mask", mask.bool())

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        t = x.shape[1]
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:t, :t], -torch.inf)
        weights = torch.softmax(scores, dim=-1)
        return weights @ values
'''


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def first(pattern):
    return next(n for n, line in enumerate(LINES, 1) if re.search(pattern, line))


def test_a_picture_three_doors_and_the_checker_come_first():
    assert LINES[0] == "# Coding attention"
    assert first(r"^!\[.{50,}\]\(") <= 5
    doors = LINES[first(r"\*\*\[Read") - 1]
    assert len(re.findall(r"\*\*\[.*?\]\(.*?\)\*\*", doors)) == 3
    assert first("attention-check") <= 30
    code = "".join(block for kind in ("console", "python") for block in blocks(kind))
    assert len(code.splitlines()) <= 12
    assert len(LINES) <= 70


def links():
    return re.findall(r"\]\(((?!https?:)[^)\s]+)\)", TEXT)


@pytest.mark.parametrize("link", links())
def test_every_link_leads_somewhere(link):
    name, _, place = link.partition("#")
    target = ROOT / (name or "README.md")
    assert target.exists()
    if place:
        headings = re.findall(r"^#+ (.+)$", target.read_text("utf-8"), re.MULTILINE)
        assert place in map(slug, headings)


def test_the_layer_returns_the_shape_that_readme_says():
    (code,) = blocks("python")
    names = {}
    exec(code, names)
    assert "(b, t, d_in) -> (b, t, d_out)" in code
    assert names["context"].shape == (2, 6, 2)
    assert torch.isfinite(names["context"]).all()


def test_the_checker_says_what_readme_shows(tmp_path, monkeypatch, capsys):
    (tmp_path / "my_attention.py").write_text(MINE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert commandline.main(["my_attention.py:MyAttention"]) == 1
    said = capsys.readouterr().out
    shown = blocks("console")[0].replace(" …", "").splitlines()[1:]
    assert len(shown) == 4
    for line in shown:
        assert line in said
