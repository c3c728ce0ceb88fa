"""What the package exports, found in ``__all__``, and what its tests share.

A layer that is added to ``__all__`` runs through every test over ``LAYERS`` (and over
``CAUSAL``, if it takes a ``context_length``).
"""

import inspect

import pytest
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

# Marks of tests over these lists.
EVERY_LAYER = pytest.mark.parametrize("name", LAYERS)
EVERY_NAME = pytest.mark.parametrize("name", [*FUNCTIONS, *LAYERS])
BIASES = pytest.mark.parametrize(
    ("name", "bias"),
    [
        (name, bias)
        for name in LAYERS
        for bias in (False, True)[: 1 + (name in WITH_BIAS)]
    ],
)

# Two ways to compute in float32 round differently.
CLOSE = {"atol": 2e-6, "rtol": 1e-5}


# Layers ------------------------------------------------------------------------------

# What a test gives for each argument that has no default; any other whole number is 2.
GIVEN = {"d_in": 3, "d_out": 4, "context_length": 6, "dropout": 0.0, "num_heads": 2}


def make(name, **given):
    """Build a layer from ``given``, and from ``GIVEN`` where it says nothing."""
    return PUBLIC[name](**{n: _given(name, n) for n in _required(name)} | given)


def _required(name):
    return [n for n, p in arguments(name).items() if p.default is p.empty]


def _given(name, argument):
    if argument not in GIVEN:
        assert argument in sizes(name), (
            f"{name} has an argument that no test knows: give {argument} a value in "
            f"GIVEN in tests/attention/public.py."
        )
    return GIVEN.get(argument, 2)


def build(name, d_in=3, d_head=2, context_length=6, dropout=0.0, h=2, bias=False):
    """Build a layer with heads d_head wide."""
    joins = {"num_heads"} <= set(arguments(name)) and "Wrapper" not in name
    given = {
        "d_in": d_in,
        "d_out": h * d_head if joins else d_head,
        "context_length": context_length,
        "dropout": dropout,
        "num_heads": h,
        "qkv_bias": bias,
    }
    return make(name, **{n: v for n, v in given.items() if n in arguments(name)})


def build_drawn(name, seed=7, **options):
    """Build a layer whose parameters are drawn after a seed."""
    torch.manual_seed(seed)
    return build(name, **options)


def sizes(name):
    """Name the arguments that must be positive integers."""
    return [n for n, p in arguments(name).items() if p.annotation in (int, "int")]


def parts_of(layer):
    """Give the modules that hold projections: the heads of a wrapper, or itself."""
    return list(getattr(layer, "heads", [layer]))


def tokens(*shape, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


# What is refused ---------------------------------------------------------------------


def message_of(call, error):
    """Give the message of the error that a call must raise."""
    with pytest.raises(error) as caught:
        call()
    return caught.value.args[0]
