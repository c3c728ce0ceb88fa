"""What other code relies on: names, orders, keys, draws, and how the layers behave.

The chapter's checkpoints load and its seeds print its values only as long as all of
this stays as it is.
"""

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import attention
from tests.attention import public
from tests.attention.public import (
    BIASES,
    EVERY_LAYER,
    EVERY_NAME,
    FUNCTIONS,
    LAYERS,
    WITH_DROPOUT,
    arguments,
    build,
    build_drawn,
)

pytestmark = pytest.mark.package

T = 6


def callable_named(name):
    return getattr(attention, name) if name in FUNCTIONS else build_drawn(name)


def tokens(dtype=torch.float32):
    return public.tokens(2, T, 3, dtype=dtype)


# Names and orders ---------------------------------------------------------------

# A new public name gets an entry here by hand: what the failing test shows as found.
# An entry that is there stays as it is, or the changelog says which promise is broken.
PROMISES = Path(__file__).with_name("promises.json")


def promise(name):
    """List arguments with their defaults, and for a layer the shapes of its weights."""
    plain = [p.replace(annotation=p.empty) for p in arguments(name).values()]
    promised = {"arguments": list(map(str, plain))}
    if name in LAYERS:
        weights = build(name, bias=True).state_dict().items()
        promised["state dict"] = [f"{key} {tuple(w.shape)}" for key, w in weights]
    return promised


def test_arguments_and_weights_keep_their_names_and_order():
    found = {name: promise(name) for name in (*FUNCTIONS, *LAYERS)}
    assert found == json.loads(PROMISES.read_text(encoding="utf-8"))


@EVERY_LAYER
def test_masks_are_buffers_and_the_rest_learns(name):
    layer = build(name)
    masks, learned = dict(layer.named_buffers()), dict(layer.named_parameters())
    assert set(layer.state_dict()) == {*masks, *learned}
    assert all(parameter.requires_grad for parameter in learned.values())
    # 1 hides: row i has zeros up to its own token and ones after it.
    expected = [[float(j > i) for j in range(T)] for i in range(T)]
    assert all(mask.tolist() == expected for mask in masks.values())


# Random draws -------------------------------------------------------------------


def draws_of(layer, bias):
    """Draw a layer's parameters by hand, in the order that the chapter draws them."""
    torch.manual_seed(7)
    if isinstance(layer, attention.SelfAttention_v1):
        return [torch.rand(3, 2) for _ in range(3)]
    made = []
    for part in public.parts_of(layer):
        width = part.W_query.out_features
        made += [nn.Linear(3, width, bias=bias) for _ in range(3)]
        if hasattr(part, "out_proj"):
            made.append(nn.Linear(width, width))
    return [parameter for linear in made for parameter in linear.parameters()]


@BIASES
def test_random_draws_come_in_order_and_there_are_no_others(name, bias):
    layer = build_drawn(name, bias=bias)
    after = torch.get_rng_state()
    pairs = zip(layer.parameters(), draws_of(layer, bias), strict=True)
    assert all(torch.equal(ours, by_hand) for ours, by_hand in pairs)
    assert torch.equal(torch.get_rng_state(), after)


@EVERY_NAME
def test_computing_draws_nothing_without_dropout(name):
    layer = callable_named(name)
    before = torch.get_rng_state()
    layer(tokens())
    assert torch.equal(torch.get_rng_state(), before)


# Copies, modes, memory ----------------------------------------------------------


@EVERY_LAYER
@pytest.mark.parametrize(
    "duplicate",
    [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))],
    ids=["deepcopy", "pickle"],
)
def test_a_copy_computes_the_same_and_is_independent(name, duplicate):
    layer, x = build_drawn(name, bias=True), tokens()
    expected = layer(x).detach()
    other = duplicate(layer)
    assert type(other) is type(layer)
    assert torch.equal(other(x), expected)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    assert torch.equal(layer(x), expected)
    assert not torch.equal(other(x), expected)


@EVERY_NAME
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_neither_input_nor_weights_are_changed(name, dropout):
    layer = callable_named(name)
    if name in WITH_DROPOUT:
        layer = build_drawn(name, dropout=dropout)
    x = tokens()
    before, version = x.clone(), x._version
    kept = copy.deepcopy(layer.state_dict()) if name in LAYERS else {}
    layer(x)
    assert torch.equal(x, before)
    assert x._version == version  # nothing was written, not even the same numbers
    assert all(torch.equal(layer.state_dict()[key], v) for key, v in kept.items())


@EVERY_NAME
def test_input_may_lie_anyhow_in_memory(name):
    layer, x = callable_named(name), tokens()
    scattered = x.transpose(0, 2).contiguous().transpose(0, 2)
    assert not scattered.is_contiguous()
    torch.testing.assert_close(layer(scattered), layer(x))


@pytest.mark.parametrize("name", ["simple_self_attention", *LAYERS])
def test_an_empty_batch_gives_an_empty_batch(name):
    out = callable_named(name)(torch.empty(0, T, 3))
    assert out.shape[:2] == (0, T)


# Devices, compilers -------------------------------------------------------------


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is available")
@EVERY_NAME
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_cuda(name, dtype):
    layer, x = callable_named(name), tokens(dtype)
    if name in LAYERS:
        layer = layer.to(dtype)
    expected = layer(x)
    if name in LAYERS:
        layer = layer.to("cuda")
        assert all(value.is_cuda for value in layer.state_dict().values())
    x = x.to("cuda").requires_grad_()
    out = layer(x)
    tolerance = 3e-2 if dtype == torch.bfloat16 else 1e-3
    torch.testing.assert_close(out.cpu(), expected, atol=tolerance, rtol=tolerance)
    out.square().sum().backward()
    assert x.grad.is_cuda
    assert x.grad.isfinite().all()


@EVERY_NAME
def test_compiled_whole_it_computes_the_same(name):
    # aot_eager traces and differentiates as the default does, without a C++ compiler.
    torch.compiler.reset()
    layer, x = callable_named(name), tokens()
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    traced, plain = x.clone().requires_grad_(), x.clone().requires_grad_()
    out, expected = compiled(traced), layer(plain)
    torch.testing.assert_close(out, expected)
    out.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(traced.grad, plain.grad)


# The package itself -------------------------------------------------------------


def test_import_needs_torch_alone():
    code = (
        "import sys, attention; "
        "names = 'matplotlib anywidget IPython coding_attention attncheck "
        "attention.convert attention.parallel'.split(); "
        "print([m for m in sys.modules if m.startswith(tuple(names))])"
    )
    root = Path(attention.__file__).parents[1]
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "[]"
