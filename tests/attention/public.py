"""What the package exports, found in ``__all__``: a new name is held by every contract.

A layer that is added to ``__all__`` runs through every test over ``LAYERS`` (and over
``CAUSAL``, if it takes a ``context_length``); where a test needs facts about it that
only a person can write down, ``test_contract`` names what is missing.
"""

import inspect

import torch
from torch import nn

import attention

PUBLIC = {name: getattr(attention, name) for name in attention.__all__}


def arguments(name):
    return inspect.signature(PUBLIC[name]).parameters


LAYERS = [
    name
    for name, value in PUBLIC.items()
    if inspect.isclass(value) and issubclass(value, nn.Module)
]
FUNCTIONS = [
    name
    for name, value in PUBLIC.items()
    if inspect.isfunction(value) and list(arguments(name)) == ["x"]
]
CAUSAL = [name for name in LAYERS if "context_length" in arguments(name)]
WITH_DROPOUT = [name for name in LAYERS if "dropout" in arguments(name)]
WITH_BIAS = [name for name in LAYERS if "qkv_bias" in arguments(name)]
REST = [name for name in PUBLIC if name not in {*LAYERS, *FUNCTIONS}]


def build(name, d_in=3, d_head=2, context_length=6, dropout=0.0, h=2, bias=False):
    """Build a layer with heads d_head wide, its required arguments by position."""
    joins = {"num_heads"} <= set(arguments(name)) and "Wrapper" not in name
    given = {
        "d_in": d_in,
        "d_out": h * d_head if joins else d_head,
        "context_length": context_length,
        "dropout": dropout,
        "num_heads": h,
        "qkv_bias": bias,
    }
    required = [n for n, p in arguments(name).items() if p.default is p.empty]
    unknown = set(required) - set(given)
    assert not unknown, f"tests/attention/public.py has no value for {name}'s {unknown}"
    chosen = [n for n in arguments(name) if n in given]
    assert chosen[: len(required)] == required
    return PUBLIC[name](*(given[n] for n in chosen))


def parts_of(layer):
    """Give the modules that hold projections: the heads of a wrapper, or itself."""
    return list(getattr(layer, "heads", [layer]))


def tokens(*shape, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)
