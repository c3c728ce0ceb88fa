"""Bad input: an error that says what was given and names the way out.

A row is an error, what is given, and the parts that the message must hold: what was
given, what is right, what to do. The rows for layers are tried on every layer that the
package exports, so a new one is held by them without a line here.
"""

import pytest
import torch

from tests.attention.public import (
    CAUSAL,
    FUNCTIONS,
    LAYERS,
    PUBLIC,
    WITH_DROPOUT,
    make,
    message_of,
    sizes,
)

pytestmark = pytest.mark.package

NAN = float("nan")
ADD_BATCH = "x.unsqueeze(0) makes a batch of one"
ADD_SEQUENCE = "x.unsqueeze(0) makes a sequence of one"
RESHAPE = "Use one dimension each for batch, tokens and features"


def zeros(*shape, dtype=torch.float32):
    return torch.zeros(shape, dtype=dtype)


# What whatever computes from tokens is called with.
ANY_INPUTS = [
    (TypeError, [1.0], ["got list", "dtype=torch.float32"]),
    (TypeError, zeros(2, 6, 3, dtype=torch.long),
     ["x must", "torch.int64", "embedding", "x.float()"]),
    (TypeError, zeros(2, 6, 3, dtype=torch.complex64), ["torch.complex64"]),
    (ValueError, torch.tensor(1.0), ["()", "0 dimensions", RESHAPE]),
    (ValueError, zeros(1, 2, 6, 3), ["(1, 2, 6, 3)", "4 dimensions", RESHAPE]),
    (ValueError, zeros(2, 0, 3), ["at least one token", "(2, 0, 3)"]),
]  # fmt: skip
# And a layer with d_in = 3.
INPUTS = [
    *ANY_INPUTS,
    (ValueError, zeros(2, 6, 4),
     ["d_in=3", "got 4", "(2, 6, 4)", "width 3", "build the layer with d_in=4"]),
    (TypeError, zeros(2, 6, 3, dtype=torch.float64),
     ["torch.float32, but got torch.float64", "x.to(torch.float32)"]),
    (ValueError, zeros(2, 6, 3).to("meta"), ["cpu, but is on meta", "x.to('cpu')"]),
]  # fmt: skip
# Layers with a mask take batches alone, as many tokens as it covers.
CAUSAL_INPUTS = [
    (ValueError, zeros(6, 3), ["(b, t, d_in), but", "(6, 3)", ADD_BATCH]),
    (ValueError, zeros(3), ["(3,)", RESHAPE]),
    (ValueError, zeros(2, 7, 3),
     ["x has 7 tokens", "context_length=6", "x[:, -6:]", "context_length=7"]),
]  # fmt: skip
OTHER_INPUTS = [
    (ValueError, zeros(3), ["(t, d_in) or (b, t, d_in)", "(3,)", ADD_SEQUENCE]),
    (ValueError, zeros(0, 3), ["at least one token", "(0, 3)"]),
]
# What a layer is built with, in one argument; the others are right.
BAD_SIZES = [
    (TypeError, 2.0, ["got 2.0 (float)"]),
    (TypeError, True, ["got True (bool)"]),
    (TypeError, torch.tensor(2), ["got tensor(2) (Tensor)"]),
    (ValueError, 0, ["got 0", "at least 1"]),
]
BAD_RATES = [
    (ValueError, 1.0, ["got 1.0", "0.0 drops none"]),
    (ValueError, -0.1, ["got -0.1"]),
    (ValueError, NAN, ["got nan"]),
    (TypeError, "0.1", ["got '0.1' (str)", "Pass 0.0 for no dropout"]),
    (TypeError, True, ["got True (bool)"]),
]
BAD_HEADS = [
    (ValueError, (6, 4), ["d_out=6 and num_heads=4", "remainder of 2", "1, 2, 3, 6."]),
]
SPLIT = [name for name in LAYERS if hasattr(make(name), "head_dim")]
FUNCTION_INPUTS = {
    "softmax_naive": [
        (TypeError, [0.5, 1.0], ["x must be a tensor of scores", "got list"]),
        (TypeError, zeros(3, dtype=torch.long), ["torch.int64", "x.float()"]),
        (ValueError, torch.tensor(1.0), ["dimension 0", "()", "Pass a vector"]),
        (ValueError, zeros(0), ["at least one score", "(0,)"]),
    ],
    "simple_self_attention": [
        *ANY_INPUTS,
        *OTHER_INPUTS,
        (ValueError, zeros(6, 0), ["one coordinate", "(6, 0)"]),
    ],
}


def without_numbers(x):
    with torch.device("meta"):
        layer = make("CausalAttention")
    return layer(x)


def rows():
    """Give a name, a function, and the row that it is called with."""
    for name in LAYERS:
        for row in INPUTS + (CAUSAL_INPUTS if name in CAUSAL else OTHER_INPUTS):
            yield name, lambda x, n=name: make(n)(x), row
        for size in sizes(name):
            for error, value, parts in BAD_SIZES:
                row = (error, value, [f"{size} must", *parts])
                yield f"{name}.{size}", lambda v, n=name, s=size: make(n, **{s: v}), row
        for row in BAD_RATES if name in WITH_DROPOUT else ():
            yield f"{name}.dropout", lambda v, n=name: make(n, dropout=v), row
        for row in BAD_HEADS if name in SPLIT else ():
            yield name, lambda v, n=name: make(n, d_out=v[0], num_heads=v[1]), row
    for name in FUNCTIONS:
        for row in FUNCTION_INPUTS.get(name, ()):
            yield name, PUBLIC[name], row
    yield "empty", without_numbers, (ValueError, zeros(2, 6, 3), ["assign=True"])


ROWS = list(rows())


@pytest.mark.parametrize(
    ("call", "row"),
    [row[1:] for row in ROWS],
    ids=[f"{name} {' '.join(parts)}" for name, _, (_, _, parts) in ROWS],
)
def test_message_names_what_was_given_and_what_to_do(call, row):
    error, value, parts = row
    message = message_of(lambda: call(value), error)
    missing = [part for part in parts if part not in message]
    assert not missing, f"{missing} not in: {message}"


X = torch.rand(2, 6, 3)
# Which classes hide the future, for a call that nn.MultiheadAttention would take.
TAUGHT = [name for name in LAYERS if not name.startswith("Fused")]


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda layer: layer(X, X, X), ["3 positional arguments", "memory=other"]),
        (lambda layer: layer(), ["0 positional arguments"]),
        (lambda layer: layer(X, attn_mask=None), ["attn_mask=", "key_padding_mask"]),
        (lambda layer: layer(X, need_weights=True), ["attention_weights"]),
    ],
    ids=["three tensors", "none", "a mask", "weights"],
)
@pytest.mark.parametrize("name", TAUGHT)
def test_a_call_as_of_another_layer_says_what_to_write(name, call, parts):
    message = message_of(lambda: call(make(name)), TypeError)
    missing = [part for part in (name, *parts) if part not in message]
    assert not missing, f"{missing} not in: {message}"


def test_a_type_error_from_inside_stays_as_it_is():
    layer = make("MultiHeadAttention")
    layer.out_proj.forward = lambda context: context + "text"
    with pytest.raises(TypeError, match="unsupported operand"):
        layer(X)


def test_autocast_converts_and_nothing_is_refused():
    layer = make("MultiHeadAttention")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(X.bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize("dropout", [0, 0.0, 0.999])
@pytest.mark.parametrize("name", WITH_DROPOUT)
def test_the_ends_of_the_allowed_range_are_allowed(name, dropout):
    x = zeros(2, 6, 3)
    assert make(name, dropout=dropout)(x).shape[:2] == (2, 6)
    assert make(name, context_length=1)(x[:, :1]).shape[:2] == (2, 1)
