"""What other code relies on: names, orders, keys, draws, and how the layers behave.

The chapter's checkpoints load and its seeds print its values only as long as all of
this stays as it is.
"""

import copy
import inspect
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import attention
from tests.attention import promises, public
from tests.attention.public import FUNCTIONS, LAYERS, WITH_BIAS, WITH_DROPOUT, arguments

pytestmark = pytest.mark.package

D_IN, D_OUT, CONTEXT, H = 3, 4, 6, 2
ALL = pytest.mark.parametrize("name", [*FUNCTIONS, *LAYERS])
EVERY_LAYER = pytest.mark.parametrize("name", LAYERS)
BIASES = pytest.mark.parametrize("bias", [False, True], ids=["no-bias", "bias"])


def build(name, dropout=0.0, bias=False):
    """Build a layer with the small sizes of this file."""
    heads = 1 if name.startswith("MultiHeadAttentionWrapper") else H
    d_head = D_OUT // heads if "num_heads" in arguments(name) else D_OUT
    return public.build(name, D_IN, d_head, CONTEXT, dropout, H, bias)


def seeded(name, **options):
    torch.manual_seed(7)
    return build(name, **options)


def callable_named(name):
    return getattr(attention, name) if name in FUNCTIONS else seeded(name)


def tokens(dtype=torch.float32, t=CONTEXT, b=2):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(b, t, D_IN, generator=generator, dtype=torch.float64).to(dtype)


# Names and orders ---------------------------------------------------------------


@ALL
def test_arguments_and_weights_keep_their_names_and_order(name):
    written = promises.written()
    assert name in written, promises.MISSING.format(name)
    now = promises.promise(name)
    assert now == written[name], "seeds, checkpoints and programs rest on these"
    # Equal dictionaries may differ in their order, and positions are a promise, too.
    assert json.dumps(now) == json.dumps(written[name])
    kinds = {p.kind for p in arguments(name).values()}
    assert kinds == {inspect.Parameter.POSITIONAL_OR_KEYWORD}


def test_the_tables_name_what_is_public_and_no_more():
    assert list(attention.__all__) == sorted(attention.__all__)
    missing = {*FUNCTIONS, *LAYERS} - set(promises.written())
    assert not missing, promises.MISSING.format(missing)
    assert set(promises.written()) <= {*FUNCTIONS, *LAYERS}, "a promise is broken"
    for name in LAYERS:
        first, *others = inspect.signature(build(name).forward).parameters.values()
        assert first.name == "x"
        # **unknown is there to be refused: test_fused.py.
        others = [p for p in others if p.kind is not p.VAR_KEYWORD]
        assert {p.default for p in others} <= {None}


# Neither a layer nor a function of x: the tests that hold what they promise.
HELD_ELSEWHERE = {
    "KeyValueCache": "tests/attention/test_fused.py",
    "check": "tests/attncheck/test_commandline.py",
}


def test_whatever_is_no_layer_has_tests_of_its_own():
    assert set(public.REST) == set(HELD_ELSEWHERE), (
        "what is neither a layer nor a function of x has tests of its own: name their "
        "file in HELD_ELSEWHERE in tests/attention/test_contract.py"
    )
    root = Path(attention.__file__).parents[1]
    for name, where in HELD_ELSEWHERE.items():
        assert re.search(rf"\b{name}\b", (root / where).read_text(encoding="utf-8"))


@EVERY_LAYER
def test_masks_are_buffers_and_the_rest_learns(name):
    layer = build(name)
    masks, learned = dict(layer.named_buffers()), dict(layer.named_parameters())
    assert set(layer.state_dict()) == {*masks, *learned}
    assert all(parameter.requires_grad for parameter in learned.values())
    # 1 hides: row i has zeros up to its own token and ones after it.
    expected = [[float(j > i) for j in range(CONTEXT)] for i in range(CONTEXT)]
    assert all(mask.tolist() == expected for mask in masks.values())


def test_attributes():
    assert build("CausalAttention").d_out == D_OUT
    layer = build("MultiHeadAttention")
    assert (layer.d_out, layer.num_heads, layer.head_dim) == (D_OUT, H, D_OUT // H)
    heads = build("MultiHeadAttentionWrapper").heads
    assert isinstance(heads, nn.ModuleList)
    assert [type(head) for head in heads] == [attention.CausalAttention] * H
    for part in (layer, *heads, build("CausalAttention", dropout=0.25)):
        assert isinstance(part.dropout, nn.Dropout)
    assert build("CausalAttention", dropout=0.25).dropout.p == 0.25
    assert build("MultiHeadAttention", dropout=0.25).dropout.p == 0.25
    wrapper = build("MultiHeadAttentionWrapper", dropout=0.25)
    assert [head.dropout.p for head in wrapper.heads] == [0.25, 0.25]


# Random draws -------------------------------------------------------------------


def draws_of(name, bias):
    """Draw a class's parameters by hand, in the order that the chapter draws them."""
    bias = bias and name in WITH_BIAS

    def projections():
        made = [nn.Linear(D_IN, D_OUT, bias=bias) for _ in range(3)]
        return [p for layer in made for p in layer.parameters()]

    mixes = hasattr(build(name), "out_proj")
    torch.manual_seed(7)
    if name == "SelfAttention_v1":
        return [torch.rand(D_IN, D_OUT) for _ in range(3)]
    if name == "MultiHeadAttentionWrapper":
        return [p for _ in range(H) for p in projections()]
    if mixes:
        return [*projections(), *nn.Linear(D_OUT, D_OUT).parameters()]
    return projections()


@BIASES
@EVERY_LAYER
def test_random_draws_come_in_order_and_there_are_no_others(name, bias):
    ours = [p.detach() for p in seeded(name, bias=bias).parameters()]
    after = torch.get_rng_state()
    by_hand = [p.detach() for p in draws_of(name, bias)]
    assert [p.shape for p in ours] == [p.shape for p in by_hand], (
        f"{name} does not draw as other layers do: queries, keys, values, and out_proj "
        "if there is one. If it is meant, say so in draws_of."
    )
    assert all(torch.equal(a, b) for a, b in zip(ours, by_hand, strict=True))
    assert torch.equal(torch.get_rng_state(), after)


@ALL
def test_computing_draws_nothing_without_dropout(name):
    layer = callable_named(name)
    before = torch.get_rng_state()
    layer(tokens())
    assert torch.equal(torch.get_rng_state(), before)


# Checkpoints --------------------------------------------------------------------

SMALL_MASK = [[0.0, 1.0], [0.0, 0.0]]  # context_length 2
QUERY = [[1.0, 0.0, 0.5], [0.0, 2.0, -1.0]]
KEY = [[0.5, 1.0, 0.0], [-1.0, 0.0, 1.0]]
VALUE = [[2.0, 0.0, 1.0], [0.0, 3.0, -1.0]]


def tensors(entries):
    return {key: torch.tensor(value) for key, value in entries.items()}


def by_hand(x, query, key, value, causal):
    """Attention as the formula says, one query at a time."""
    q, k, v = (x @ torch.tensor(w).T for w in (query, key, value))
    rows = []
    for i in range(len(x)):
        seen = slice(0, i + 1) if causal else slice(None)
        weights = torch.softmax(k[seen] @ q[i] / k.shape[-1] ** 0.5, dim=0)
        rows.append(weights @ v[seen])
    return torch.stack(rows)


X = torch.tensor([[0.43, 0.15, 0.89], [0.55, 0.87, 0.66]])


def test_checkpoint_of_v1_loads():
    layer = attention.SelfAttention_v1(3, 2)
    query, key, value = (torch.tensor(w).T.tolist() for w in (QUERY, KEY, VALUE))
    weights = tensors({"W_query": query, "W_key": key, "W_value": value})
    layer.load_state_dict(weights, strict=True)
    torch.testing.assert_close(layer(X), by_hand(X, QUERY, KEY, VALUE, causal=False))


def test_checkpoint_of_v2_loads():
    layer = attention.SelfAttention_v2(3, 2)
    weights = tensors(
        {"W_query.weight": QUERY, "W_key.weight": KEY, "W_value.weight": VALUE}
    )
    layer.load_state_dict(weights, strict=True)
    torch.testing.assert_close(layer(X), by_hand(X, QUERY, KEY, VALUE, causal=False))


def test_checkpoint_of_causal_attention_loads():
    layer = attention.CausalAttention(3, 2, 2, 0.0, qkv_bias=True)
    weights = tensors(
        {
            "mask": SMALL_MASK,
            "W_query.weight": QUERY,
            "W_query.bias": [0.0, 0.0],
            "W_key.weight": KEY,
            "W_key.bias": [0.0, 0.0],
            "W_value.weight": VALUE,
            "W_value.bias": [10.0, 20.0],
        }
    )
    layer.load_state_dict(weights, strict=True)
    # Weights sum to 1, so a value bias passes through unchanged.
    expected = by_hand(X, QUERY, KEY, VALUE, causal=True) + torch.tensor([10.0, 20.0])
    torch.testing.assert_close(layer(X.unsqueeze(0))[0], expected)


def test_checkpoint_of_the_wrapper_loads():
    layer = attention.MultiHeadAttentionWrapper(3, 2, 2, 0.0, num_heads=2)
    weights = tensors(
        {
            "heads.0.mask": SMALL_MASK,
            "heads.0.W_query.weight": QUERY,
            "heads.0.W_key.weight": KEY,
            "heads.0.W_value.weight": VALUE,
            "heads.1.mask": SMALL_MASK,
            "heads.1.W_query.weight": KEY,
            "heads.1.W_key.weight": VALUE,
            "heads.1.W_value.weight": QUERY,
        }
    )
    layer.load_state_dict(weights, strict=True)
    first = by_hand(X, QUERY, KEY, VALUE, causal=True)
    second = by_hand(X, KEY, VALUE, QUERY, causal=True)
    torch.testing.assert_close(
        layer(X.unsqueeze(0))[0], torch.cat([first, second], dim=-1)
    )


def test_checkpoint_of_multi_head_attention_loads():
    layer = attention.MultiHeadAttention(3, 4, 2, 0.0, num_heads=2)
    swap = [[0.0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]]
    weights = tensors(
        {
            "mask": SMALL_MASK,
            "W_query.weight": QUERY + KEY,
            "W_key.weight": KEY + VALUE,
            "W_value.weight": VALUE + QUERY,
            "out_proj.weight": swap,
            "out_proj.bias": [1.0, 2.0, 3.0, 4.0],
        }
    )
    layer.load_state_dict(weights, strict=True)
    first = by_hand(X, QUERY, KEY, VALUE, causal=True)
    second = by_hand(X, KEY, VALUE, QUERY, causal=True)
    expected = torch.cat([first, second], dim=-1).flip(-1)
    torch.testing.assert_close(
        layer(X.unsqueeze(0))[0], expected + torch.tensor([1.0, 2.0, 3.0, 4.0])
    )


@EVERY_LAYER
def test_a_key_too_many_or_too_few_is_refused(name):
    good = build(name).state_dict()
    first = next(key for key in good if not key.endswith("mask"))
    with pytest.raises(RuntimeError, match="Missing key"):
        build(name).load_state_dict({k: v for k, v in good.items() if k != first})
    with pytest.raises(RuntimeError, match="Unexpected key"):
        build(name).load_state_dict({**good, "extra": torch.zeros(1)})


# Copies and modes ---------------------------------------------------------------


@EVERY_LAYER
@pytest.mark.parametrize(
    "duplicate",
    [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))],
    ids=["deepcopy", "pickle"],
)
def test_a_copy_computes_the_same_and_is_independent(name, duplicate):
    layer, x = seeded(name, bias=True), tokens()
    expected = layer(x).detach()
    other = duplicate(layer)
    assert type(other) is type(layer)
    assert torch.equal(other(x), expected)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    assert torch.equal(layer(x), expected)
    assert not torch.equal(other(x), expected)


@pytest.mark.parametrize("name", WITH_DROPOUT)
def test_eval_is_deterministic_and_train_is_not(name):
    layer, x = seeded(name, dropout=0.5), tokens()
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))
    layer.train()
    assert not torch.equal(layer(x), layer(x))


@ALL
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_neither_input_nor_weights_are_changed(name, dropout):
    layer = callable_named(name)
    if name in WITH_DROPOUT:
        layer = seeded(name, dropout=dropout)
    x = tokens()
    before, version = x.clone(), x._version
    kept = copy.deepcopy(layer.state_dict()) if name in LAYERS else {}
    layer(x)
    assert torch.equal(x, before)
    assert x._version == version  # nothing was written, not even the same numbers
    assert all(torch.equal(layer.state_dict()[key], v) for key, v in kept.items())


@ALL
def test_input_may_lie_anyhow_in_memory(name):
    layer, x = callable_named(name), tokens()
    scattered = x.transpose(0, 2).contiguous().transpose(0, 2)
    assert not scattered.is_contiguous()
    torch.testing.assert_close(layer(scattered), layer(x))


@ALL
def test_without_gradients_the_numbers_are_the_same(name):
    layer, x = callable_named(name), tokens()
    with_gradients = layer(x.clone().requires_grad_())
    assert with_gradients.requires_grad
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            assert torch.equal(layer(x), with_gradients)


# Dtypes, devices, lengths, compilation ------------------------------------------


@ALL
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-5), (torch.bfloat16, 3e-2)], ids=str
)
def test_dtypes(name, dtype, tolerance):
    expected = callable_named(name)(tokens())
    layer = callable_named(name)
    if name in LAYERS:
        layer = layer.to(dtype)
        assert {value.dtype for value in layer.state_dict().values()} == {dtype}
    out = layer(tokens(dtype))
    assert out.dtype == dtype
    torch.testing.assert_close(out.float(), expected, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("name", WITH_DROPOUT)
@pytest.mark.parametrize("t", range(1, CONTEXT))
def test_inputs_may_be_shorter_than_context_length(name, t):
    layer = seeded(name)
    torch.testing.assert_close(layer(tokens()[:, :t]), layer(tokens())[:, :t])


@pytest.mark.parametrize("name", ["simple_self_attention", *LAYERS])
def test_an_empty_batch_gives_an_empty_batch(name):
    out = callable_named(name)(torch.empty(0, CONTEXT, D_IN))
    assert out.shape[:2] == (0, CONTEXT)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is available")
@ALL
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


@ALL
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


def test_type_checkers_are_told_that_the_package_is_typed():
    assert (Path(attention.__file__).parent / "py.typed").is_file()


def section(docstring, title):
    """Cut one section, such as Args, out of a docstring; empty if there is none."""
    found = re.search(rf"^{title}:\n((?:[ ]{{4}}.*\n?|\n)*)", docstring, re.MULTILINE)
    return found.group(1) if found else ""


@ALL
def test_docstrings_name_section_arguments_results_and_errors(name):
    documented = getattr(attention, name)
    docstring = inspect.getdoc(documented)
    module = inspect.getmodule(documented).__doc__
    if re.match(r"Section 3\.\d: ", module):
        assert re.search(r"\b[Ss]ection 3\.[3-6]\.\d", docstring), (
            f"{name} is in the module of a section, so its docstring names the place"
        )
    for argument in arguments(name):
        assert re.search(rf"^ +{argument}: \S", section(docstring, "Args"), re.M)
    assert re.search(r"(Type|Value)Error", section(docstring, "Raises"))
    if name in LAYERS:
        for attribute, _ in build(name).named_children():
            if attribute != "dropout":
                assert attribute in section(docstring, "Attributes")
        docstring = inspect.getdoc(documented.forward)
        assert " x: " in section(docstring, "Args")
    assert section(docstring, "Returns").strip()
    raises = section(docstring, "Raises")
    assert "TypeError:" in raises
    assert "ValueError:" in raises
