"""The measures of a head: its weights, its scores, and its absence."""

import pytest
import torch

from attention.chapter.models import heads
from attention.chapter.models.tiny_gpt import GPTConfig, TinyGPT


@pytest.fixture
def model():
    torch.manual_seed(0)
    sizes = GPTConfig(9, 10, d_model=8, num_heads=2, num_blocks=2)
    return TinyGPT(sizes).eval()


def tokens(b=4, t=10, seed=0):
    return torch.randint(9, (b, t), generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def test_weights_are_those_of_the_layers(model):
    given = tokens()
    weights = heads.attention_weights(model, given)
    assert weights.shape == (4, 2, 2, 10, 10)
    seen = []
    for block in model.blocks:
        block.attention.register_forward_hook(lambda *args: seen.append(args[1:]))
    model(given)
    for i, block in enumerate(model.blocks):
        layer, ((x,), out) = block.attention, seen[i]
        values = layer.W_value(x).view(4, 10, 2, 4).transpose(1, 2)
        context = (weights[:, i] @ values).transpose(1, 2).flatten(2)
        torch.testing.assert_close(layer.out_proj(context), out)


def test_weights_leave_no_hook(model):
    heads.attention_weights(model, tokens())
    assert not any(block.attention._forward_pre_hooks for block in model.blocks)


def test_after_copy_by_hand():
    found = heads.after_copy(torch.tensor([[5, 6, 7, 5, 6, 5]]))[0]
    pairs = [
        (i, j) for i, row in enumerate(found.tolist()) for j, x in enumerate(row) if x
    ]
    # Token 5 at 3 and at 5 asks for what followed earlier 5s: 6 at 1, and 6 at 4.
    assert pairs == [(3, 1), (4, 2), (5, 1), (5, 4)]


def test_two_equal_neighbors_count_as_a_copy():
    found = heads.after_copy(torch.tensor([[5, 5]]))[0]
    assert found.tolist() == [[False, False], [False, True]]


def test_scores_of_perfect_heads():
    given = torch.tensor([[1, 2, 3, 1, 2, 3]])
    weights = torch.zeros(1, 1, 3, 6, 6)
    back, copy, both = weights[0, 0]
    for i in range(6):
        back[i, max(i - 1, 0)] = 1
        copy[i, i - 2 if i >= 3 else i] = 1
    both[:] = (back + copy) / 2
    previous = heads.previous_token_score(weights, given)[0]
    found = heads.induction_score(weights, given)[0]
    assert previous.tolist() == pytest.approx([1, 0, 0.5])
    assert found.tolist() == pytest.approx([0, 1, 0.5])


def test_scores_are_means_over_all_tokens_of_the_batch():
    given = torch.tensor([[1, 2, 3, 1], [1, 2, 1, 2]])  # 1 and 2 repeated tokens
    weights = torch.full((2, 1, 1, 4, 4), 0.1)
    weights[1] = 0.4
    assert heads.induction_score(weights, given).item() == pytest.approx(0.9 / 3)
    assert heads.previous_token_score(weights, given).item() == pytest.approx(0.6 / 3)


@torch.no_grad()
def test_without_a_head_its_numbers_are_missing(model):
    given = tokens()
    before = model(given)
    layer = model.blocks[1].attention
    kept = layer.out_proj.weight.clone()
    inputs = []
    layer.register_forward_pre_hook(lambda _, args: inputs.append(*args))
    with heads.without_head(model, 1, 0):
        out = layer(torch.ones(1, 3, 8))
    x = inputs[0]
    values = layer.W_value(x).view(1, 3, 2, 4).transpose(1, 2)
    values[:, 0] = 0  # the mean of equal values is the value itself
    context = values.transpose(1, 2).flatten(2)
    torch.testing.assert_close(out, layer.out_proj(context))
    assert torch.equal(layer.out_proj.weight, kept)
    assert torch.equal(model(given), before)


def test_a_head_comes_back_after_an_error(model):
    kept = model.blocks[0].attention.out_proj.weight.clone()

    def fail():
        with heads.without_head(model, 0, 1):
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert torch.equal(model.blocks[0].attention.out_proj.weight, kept)
