"""Gradients against finite differences, and what dropout does to the weights."""

import pytest
import torch
from torch import nn
from torch.func import functional_call

import attention

pytestmark = pytest.mark.package

D_IN, D_HEAD, T, H = 3, 2, 4, 2
SEEN = torch.ones(T, T).tril().bool()  # (t, t), True = present or past
BIASES = pytest.mark.parametrize("bias", [False, True], ids=["no-bias", "bias"])


def causal(dropout=0.0, bias=False):
    return attention.CausalAttention(D_IN, D_HEAD, T + 1, dropout, bias)


def wrapper(dropout=0.0, bias=False):
    return attention.MultiHeadAttentionWrapper(D_IN, D_HEAD, T + 1, dropout, H, bias)


def multi_head(dropout=0.0, bias=False):
    return attention.MultiHeadAttention(D_IN, H * D_HEAD, T + 1, dropout, H, bias)


def v2(bias=False):
    return attention.SelfAttention_v2(D_IN, D_HEAD, bias)


WITH_DROPOUT = pytest.mark.parametrize("build", [causal, wrapper, multi_head])
WITH_BIAS = pytest.mark.parametrize("build", [v2, causal, wrapper, multi_head])


def tokens(batch=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, T, D_IN, generator=generator, dtype=torch.float64)


def seeded(build, *args, **kwargs):
    torch.manual_seed(5)
    return build(*args, **kwargs).double()


# Gradients ----------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5,), (3, 2)], ids=str)
def test_gradient_of_softmax_naive(shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0)).double()
    assert torch.autograd.gradcheck(attention.softmax_naive, x.requires_grad_())


@pytest.mark.parametrize("x", [tokens(), tokens()[0]], ids=["batch", "sequence"])
def test_gradient_of_simple_self_attention(x):
    x = x.clone().requires_grad_()
    assert torch.autograd.gradcheck(attention.simple_self_attention, x)


def gradients_are_right(layer, x):
    names = [name for name, _ in layer.named_parameters()]
    start = [p.detach().clone().requires_grad_() for p in layer.parameters()]

    def compute(x, *parameters):
        return functional_call(layer, dict(zip(names, parameters, strict=True)), x)

    return torch.autograd.gradcheck(compute, (x.clone().requires_grad_(), *start))


def test_gradients_of_v1():
    layer = seeded(attention.SelfAttention_v1, D_IN, D_HEAD)
    assert gradients_are_right(layer, tokens())
    assert gradients_are_right(layer, tokens()[0])


@BIASES
@WITH_BIAS
def test_gradients(build, bias):
    assert gradients_are_right(seeded(build, bias=bias), tokens())


def test_gradients_of_v1_reach_all_parameters():
    layer = seeded(attention.SelfAttention_v1, D_IN, D_HEAD)
    layer(tokens()).square().sum().backward()
    for name, parameter in layer.named_parameters():
        assert (parameter.grad != 0).all(), name


@BIASES
@WITH_BIAS
def test_gradients_reach_all_parameters(build, bias):
    layer = seeded(build, bias=bias)
    layer(tokens()).square().sum().backward()
    for name, parameter in layer.named_parameters():
        if name.endswith("W_key.bias"):
            # A key bias adds the same to all scores of a row; softmax ignores that.
            assert parameter.grad.abs().max() < 1e-12, name
        else:
            assert (parameter.grad.abs() > 1e-9).all(), name


@WITH_DROPOUT
def test_no_gradient_comes_from_the_future(build):
    layer = seeded(build)
    for i in range(T):
        x = tokens().requires_grad_()
        layer(x)[:, i].sum().backward()
        assert torch.equal(x.grad[:, i + 1 :], torch.zeros_like(x.grad[:, i + 1 :]))
        assert (x.grad[:, : i + 1] != 0).any(dim=-1).all()


# Dropout ------------------------------------------------------------------------

RATE = 0.3
DRAWS = 4000
# Bounds below are in standard errors. A fair draw leaves them less than once in
# 100 000 runs for all entries together, whatever the random stream.
Z = 6.0


class Fixed(nn.Module):
    """Stands in for W_value and gives the same values whatever the tokens are."""

    def __init__(self, values):
        super().__init__()
        self.values = values

    def forward(self, x):
        return self.values.expand(len(x), *self.values.shape)


def showing_weights(dropout):
    """Build layers whose output is their attention weights: values = identity."""
    one = torch.eye(T, dtype=torch.float64)
    single = seeded(attention.CausalAttention, D_IN, T, T, dropout)
    single.W_value = Fixed(one)
    concatenated = seeded(
        attention.MultiHeadAttentionWrapper, D_IN, T, T, dropout, num_heads=H
    )
    for head in concatenated.heads:
        head.W_value = Fixed(one)
    split = seeded(attention.MultiHeadAttention, D_IN, H * T, T, dropout, num_heads=H)
    split.W_value = Fixed(one.repeat(1, H))
    split.out_proj = nn.Identity()
    return {"causal": single, "wrapper": concatenated, "multi-head": split}


def weights_of(layer, x):
    """Give the attention weights that a layer applies, (b, heads, t, t)."""
    return layer(x).unflatten(-1, (-1, T)).transpose(1, 2)


NAMES = pytest.mark.parametrize("name", ["causal", "wrapper", "multi-head"])


@pytest.fixture
def pair(name):
    """Weights without dropout, and with it in DRAWS independent draws."""
    x = tokens(batch=1).expand(DRAWS, -1, -1)
    with torch.no_grad():
        exact = weights_of(showing_weights(0.0)[name], x[:1])[0]  # (heads, t, t)
        torch.manual_seed(11)
        dropped = weights_of(showing_weights(RATE)[name], x)  # (DRAWS, heads, t, t)
    return exact, dropped


@NAMES
def test_dropout_keeps_its_share_of_the_weights(pair):
    _, dropped = pair
    kept = (dropped[..., SEEN] != 0).double()
    standard_error = (RATE * (1 - RATE) / kept.numel()) ** 0.5
    assert abs(kept.mean() - (1 - RATE)) < Z * standard_error
    # Each weight by itself, too.
    per_weight = (RATE * (1 - RATE) / DRAWS) ** 0.5
    assert ((kept.mean(dim=0) - (1 - RATE)).abs() < Z * per_weight).all()


@NAMES
def test_dropout_rescales_what_it_keeps(pair):
    exact, dropped = pair
    # Dropping scores instead would give rows that sum to 1 and no zero at all.
    expected = torch.where(dropped == 0, 0.0, exact / (1 - RATE))
    torch.testing.assert_close(dropped, expected, atol=1e-12, rtol=1e-12)
    assert (dropped[..., ~SEEN] == 0).all()
    assert (exact[..., SEEN] > 0).all()


@NAMES
def test_dropout_keeps_the_expectation(pair):
    exact, dropped = pair
    standard_error = exact * (RATE / (1 - RATE) / DRAWS) ** 0.5
    assert ((dropped.mean(dim=0) - exact).abs() <= Z * standard_error).all()


@NAMES
def test_dropout_draws_for_each_weight_by_itself(pair):
    _, dropped = pair
    # Shared draws (one for a row, a column, all heads) would show as correlation.
    kept = (dropped[..., SEEN] != 0).double().flatten(1)  # (DRAWS, heads · seen)
    apart = torch.corrcoef(kept.T) - torch.eye(kept.shape[1])
    assert apart.abs().max() < Z / DRAWS**0.5
    # Nor do two sequences of a batch share one draw.
    assert len(kept.unique(dim=0)) > 200


@NAMES
def test_dropout_is_on_the_weights_not_on_the_output(name):
    layer = showing_weights(RATE)[name]
    ones = torch.ones(T, T, dtype=torch.float64)
    parts = getattr(layer, "heads", [layer])
    for part in parts:
        part.W_value = Fixed(ones.repeat(1, layer.num_heads if name[0] == "m" else 1))
    torch.manual_seed(2)
    # With equal values, all numbers of one context vector are the same row sum.
    sums = weights_of(layer, tokens(batch=50))
    torch.testing.assert_close(sums, sums[..., :1].expand_as(sums))
    assert ((sums - 1).abs() > 1e-6).any()


@WITH_DROPOUT
def test_dropout_is_off_in_eval(build):
    with_dropout, without = seeded(build, 0.5), seeded(build, 0.0)
    x = tokens()
    assert not torch.allclose(with_dropout(x), without(x))
    with_dropout.eval()
    assert torch.equal(with_dropout(x), without(x))
    assert torch.equal(without.eval()(x), seeded(build, 0.0).train()(x))


@WITH_DROPOUT
def test_dropout_repeats_after_a_seed(build):
    layer, x = seeded(build, 0.5), tokens()
    torch.manual_seed(3)
    first, second = layer(x), layer(x)
    torch.manual_seed(3)
    assert torch.equal(layer(x), first)
    assert not torch.equal(first, second)


@WITH_DROPOUT
def test_gradients_through_dropout_are_those_of_the_kept_weights(build):
    layer = seeded(build, 0.5)
    x = tokens(batch=1)

    def same_draw(x):
        torch.manual_seed(4)
        return layer(x)

    assert torch.autograd.gradcheck(same_draw, x.requires_grad_())
