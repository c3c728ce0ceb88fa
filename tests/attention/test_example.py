"""The running example is the published one."""

import json
from pathlib import Path

import pytest
import torch

from coding_attention import example

pytestmark = pytest.mark.package

DATA = Path(__file__).parents[1] / "reference" / "printed_values.json"


def test_inputs_are_the_published_ones():
    entries = json.loads(DATA.read_text(encoding="utf-8"))
    published = next(e["values"] for e in entries if e["id"] == "inputs")
    expected = torch.tensor([[float(digits) for digits in row] for row in published])
    assert example.inputs().dtype == torch.float32
    assert torch.equal(example.inputs(), expected)


def test_each_call_gives_a_tensor_of_its_own():
    example.inputs().zero_()
    assert example.inputs().abs().sum() > 0


def test_tokens_are_the_sentence():
    assert " ".join(example.TOKENS) == "Your journey starts with one step"
