"""Gradients against finite differences, and what dropout does to the weights."""

import pytest
import torch
from torch import nn
from torch.func import functional_call

import attention
from tests.attention import public
from tests.attention.public import BIASES, WITH_DROPOUT

pytestmark = pytest.mark.package

D_IN, D_HEAD, T, H = 3, 2, 4, 2
SEEN = torch.ones(T, T).tril().bool()  # (t, t), True = present or past
DROPS = pytest.mark.parametrize("name", WITH_DROPOUT)


def build(name, dropout=0.0, bias=False, t=T + 1, d_head=D_HEAD):
    options = {"dropout": dropout, "bias": bias, "context_length": t, "d_head": d_head}
    return public.build_drawn(name, 5, d_in=D_IN, h=H, **options).double()


def tokens(batch=2, seed=0):
    return public.tokens(batch, T, D_IN, seed=seed)


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


@BIASES
def test_gradients(name, bias):
    assert gradients_are_right(build(name, bias=bias), tokens())


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


def showing_weights(name, dropout):
    """Build a layer whose output is its attention weights: values = identity."""
    layer = build(name, dropout, t=T, d_head=T)
    give_values(layer, torch.eye(T, dtype=torch.float64))
    if hasattr(layer, "out_proj"):
        layer.out_proj = nn.Identity()
    return layer


def give_values(layer, values):
    for part in public.parts_of(layer):
        part.W_value = Fixed(values.repeat(1, getattr(part, "num_heads", 1)))


def weights_of(layer, x):
    """Give the attention weights that a layer applies, (b, heads, t, t)."""
    return layer(x).unflatten(-1, (-1, T)).transpose(1, 2)


@pytest.fixture
def pair(name):
    """Weights without dropout, and with it in DRAWS independent draws."""
    x = tokens(batch=1).expand(DRAWS, -1, -1)
    with torch.no_grad():
        exact = weights_of(showing_weights(name, 0.0), x[:1])[0]  # (heads, t, t)
        torch.manual_seed(11)
        dropped = weights_of(showing_weights(name, RATE), x)  # (DRAWS, heads, t, t)
    return exact, dropped


@DROPS
def test_dropout_keeps_its_share_of_the_weights(pair):
    _, dropped = pair
    kept = (dropped[..., SEEN] != 0).double()
    standard_error = (RATE * (1 - RATE) / kept.numel()) ** 0.5
    assert abs(kept.mean() - (1 - RATE)) < Z * standard_error
    # Each weight by itself, too.
    per_weight = (RATE * (1 - RATE) / DRAWS) ** 0.5
    assert ((kept.mean(dim=0) - (1 - RATE)).abs() < Z * per_weight).all()


@DROPS
def test_dropout_rescales_what_it_keeps(pair):
    exact, dropped = pair
    # Dropping scores instead would give rows that sum to 1 and no zero at all.
    expected = torch.where(dropped == 0, 0.0, exact / (1 - RATE))
    torch.testing.assert_close(dropped, expected, atol=1e-12, rtol=1e-12)
    assert (dropped[..., ~SEEN] == 0).all()
    assert (exact[..., SEEN] > 0).all()


@DROPS
def test_dropout_draws_for_each_weight_by_itself(pair):
    _, dropped = pair
    # Shared draws (one for a row, a column, all heads) would show as correlation.
    kept = (dropped[..., SEEN] != 0).double().flatten(1)  # (DRAWS, heads · seen)
    apart = torch.corrcoef(kept.T) - torch.eye(kept.shape[1])
    assert apart.abs().max() < Z / DRAWS**0.5
    # Nor do two sequences of a batch share one draw.
    assert len(kept.unique(dim=0)) > 200


@DROPS
def test_dropout_is_on_the_weights_not_on_the_output(name):
    layer = showing_weights(name, RATE)
    give_values(layer, torch.ones(T, T, dtype=torch.float64))
    torch.manual_seed(2)
    # With equal values, all numbers of one context vector are the same row sum.
    sums = weights_of(layer, tokens(batch=50))
    torch.testing.assert_close(sums, sums[..., :1].expand_as(sums))
    assert ((sums - 1).abs() > 1e-6).any()


@DROPS
def test_dropout_is_off_in_eval(name):
    with_dropout, without = build(name, 0.5), build(name, 0.0)
    x = tokens()
    assert not torch.allclose(with_dropout(x), without(x))
    with_dropout.eval()
    assert torch.equal(with_dropout(x), without(x))
    assert torch.equal(without.eval()(x), build(name, 0.0).train()(x))
