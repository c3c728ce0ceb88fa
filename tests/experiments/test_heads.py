"""The measures of a head: its weights, its scores, and its absence."""

import pytest
import torch

from coding_attention.models import heads, induction
from coding_attention.models.tiny_gpt import GPTConfig, TinyGPT

PARTS = ("key", "query", "value")


@pytest.fixture
def model():
    torch.manual_seed(0)
    sizes = GPTConfig(9, 10, d_model=8, num_heads=2, num_blocks=2)
    return TinyGPT(sizes).eval()


def tokens(b=4, t=10, seed=0):
    return torch.randint(9, (b, t), generator=torch.Generator().manual_seed(seed))


def test_after_copy_by_hand():
    found = heads.after_copy(torch.tensor([[5, 6, 7, 5, 6, 5]]))[0]
    pairs = [
        (i, j) for i, row in enumerate(found.tolist()) for j, x in enumerate(row) if x
    ]
    # Token 5 at 3 and at 5 asks for what followed earlier 5s: 6 at 1, and 6 at 4.
    assert pairs == [(3, 1), (4, 2), (5, 1), (5, 4)]


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
def test_sink_score_counts_what_new_tokens_give_to_the_first():
    given = torch.tensor([[1, 2, 3, 4, 3, 1]])  # 3 and 4 at places 2 and 3 are new
    weights = torch.zeros(1, 2, 6, 6)
    weights[0, 0, :, 0] = torch.tensor([1.0, 1.0, 0.25, 0.75, 1.0, 1.0])
    weights[0, 1, :, 1] = 1.0
    assert heads.sink_score(weights, given).tolist() == pytest.approx([0.5, 0])


@torch.no_grad()
@pytest.mark.parametrize(("block", "head"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_a_head_is_silenced_or_says_its_mean_and_comes_back(model, block, head):
    given = tokens()
    layer = model.blocks[block].attention
    seen = []
    hook = layer.register_forward_hook(lambda *args: seen.append(args[1:]))
    model(given)
    hook.remove()
    ((x,), _) = seen[0]
    weights = heads.attention_weights(model, given)[:, block]
    values = layer.W_value(x).view(4, 10, 2, 4).transpose(1, 2)
    context = weights @ values  # (b, h, t, d_head)
    mean = heads.mean_output(model, given, block, head)
    torch.testing.assert_close(mean, context[:, head].mean(dim=(0, 1)))
    before = model(given)
    for instead in (None, mean):
        context[:, head] = 0 if instead is None else mean
        expected = layer.out_proj(context.transpose(1, 2).flatten(2))
        with heads.without_head(model, block, head, instead):
            torch.testing.assert_close(layer(x), expected)
        assert torch.equal(model(given), before)


@torch.no_grad()
@pytest.mark.parametrize("parts", [(), ("key",), ("query", "value"), PARTS])
@pytest.mark.parametrize("head", [0, 1])
def test_a_cut_changes_what_its_parts_read_and_nothing_else(model, head, parts):
    given = tokens()
    layer = model.blocks[1].attention

    def read():
        """Give what each projection of block two reads, and the model's scores."""
        seen = {}
        hooks = [
            layer.get_submodule(f"W_{part}").register_forward_hook(
                lambda _, args, out, part=part: seen.update({part: out})
            )
            for part in PARTS
        ]
        scores = model(given)
        for hook in hooks:
            hook.remove()
        return seen, scores

    whole, before = read()
    with heads.without_head(model, 0, head):
        without, _ = read()
    with heads.cut(model, given, head, parts):
        mixed, during = read()
    for part in PARTS:
        expected = without if part in parts else whole
        torch.testing.assert_close(mixed[part], expected[part])
        assert not torch.allclose(without[part], whole[part])
    assert torch.equal(during, before) == (parts == ())
    assert torch.equal(model(given), before)  # and all is as it was


def test_a_head_that_always_says_the_same_is_no_loss_to_cut():
    """Its mean, which speaks in its place, is what it says."""
    torch.manual_seed(0)
    sizes = GPTConfig(9, 10, d_model=8, num_heads=2, num_blocks=2, qkv_bias=True)
    model = TinyGPT(sizes).eval()
    values = model.blocks[0].attention.W_value
    torch.nn.init.zeros_(values.weight)
    torch.nn.init.normal_(values.bias, std=3.0)
    given, periods = tokens(), torch.full((4,), 3)
    whole = induction.repeated_loss(model, given, periods)
    losses = induction.cuts(model, given, periods)
    for head in losses["mean"]:
        assert list(head.values()) == pytest.approx([whole] * 4, abs=1e-4)
    for head in losses["zero"]:
        assert abs(head["all"] - whole) > 0.005
