"""General sentences of the page "Why attention", on random cases."""

import pytest
import torch

from attention import simple_self_attention
from coding_attention.models import bottleneck, stored
from coding_attention.models.seq2seq import LookBack, Translator
from coding_attention.models.tiny_gpt import GPTConfig, TinyGPT
from coding_attention.models.translation import reversal

SIZES = [(4, 6), (8, 10), (16, 32)]  # d_embed, d_hidden


@pytest.mark.parametrize(("d_embed", "d_hidden"), SIZES)
@pytest.mark.parametrize("attention", [False, True])
@torch.no_grad()
def test_the_width_of_the_state_does_not_depend_on_the_length(
    d_embed, d_hidden, attention
):
    torch.manual_seed(d_hidden)
    model = Translator(20, 20, d_embed, d_hidden, attention)
    for length in (1, 2, 5, 40):
        states, last = model.encoder(torch.randint(20, (3, length)))
        assert states.shape == (3, length, d_hidden)
        assert last.shape == (3, d_hidden)
        torch.testing.assert_close(last, states[:, -1])


@pytest.mark.parametrize(("d_embed", "d_hidden"), SIZES)
@pytest.mark.parametrize("seed", range(3))
@torch.no_grad()
def test_looking_back_is_score_softmax_weighted_sum(d_embed, d_hidden, seed):
    torch.manual_seed(seed)
    look_back = LookBack(d_hidden)
    s, h = torch.randn(d_hidden), torch.randn(5, d_hidden)
    context, weights = look_back(s.unsqueeze(0), h.unsqueeze(0), look_back.U(h)[None])
    W, U, v = (look_back.get_submodule(n).weight for n in "WUv")
    e = torch.stack([v[0] @ torch.tanh(W @ s + U @ h_j) for h_j in h])
    alpha = e.exp() / e.exp().sum()
    torch.testing.assert_close(weights[0], alpha)
    assert weights.sum().item() == pytest.approx(1)
    torch.testing.assert_close(
        context[0], sum(a * h_j for a, h_j in zip(alpha, h, strict=True))
    )


@torch.no_grad()
def test_without_attention_the_decoder_gets_nothing_but_the_last_state():
    torch.manual_seed(0)
    model = Translator(20, 20, 8, 12, attention=False)
    sources = torch.randint(20, (4, 9))
    states, last = model.encoder(sources)
    expected, _ = model(sources, 6)
    model.encoder.forward = lambda source: (torch.full_like(states, torch.nan), last)
    torch.testing.assert_close(model(sources, 6)[0], expected)


@pytest.mark.parametrize("t", [2, 5, 20, 80])
@pytest.mark.parametrize("d", [1, 3, 8])
def test_self_attention_reaches_the_first_token_whatever_lies_between(t, d):
    generator = torch.Generator().manual_seed(t * d)
    x = torch.randn(t, d, generator=generator, dtype=torch.float64, requires_grad=True)
    simple_self_attention(x)[-1].sum().backward()
    assert x.grad[0].abs().max() > 0
    # The tokens in between may trade places: nothing is handed through them.
    order = torch.randperm(t - 2, generator=generator) + 1 if t > 2 else torch.arange(0)
    moved = torch.cat([x[:1], x[order], x[-1:]])
    torch.testing.assert_close(
        simple_self_attention(moved)[-1], simple_self_attention(x)[-1]
    )


@pytest.mark.parametrize("seed", range(5))
@torch.no_grad()
def test_distance_dilutes_nothing_and_length_does(seed):
    """The first token is made a copy of the last, as on the page."""
    torch.manual_seed(seed)
    everything, weights = torch.randn(80, 8, dtype=torch.float64), []
    for t in (5, 20, 80):
        x = everything[-t:]  # with the same last token
        arrived = []
        for place in (0, t // 2, t - 2):  # where the first token stands
            moved = x.clone()
            moved[[0, place]] = moved[[place, 0]]
            before = simple_self_attention(moved)[-1]
            moved[place] = x[-1]
            arrived.append((simple_self_attention(moved)[-1] - before).norm().item())
            weight = torch.softmax(moved @ x[-1], dim=0)[place].item()
        assert arrived == pytest.approx(arrived[:1] * 3)
        weights.append(weight)
    # The copy takes the place of a token, so the others only grow in number.
    assert weights == sorted(weights, reverse=True)


@pytest.mark.parametrize("t", [2, 6, 30])
@torch.no_grad()
def test_no_token_waits_for_the_one_before(t):
    x = torch.randn(t, 4, generator=torch.Generator().manual_seed(t))
    whole = simple_self_attention(x)
    for i in reversed(range(t)):  # in any order, each from the inputs alone
        row = torch.softmax(x[i] @ x.T, dim=-1) @ x
        torch.testing.assert_close(whole[i], row)


@torch.no_grad()
def test_much_of_what_was_read_first_got_through_the_bottleneck():
    """Told the right letters so far, the decoder gets most of the last ones right.

    So one wrong letter throws off the next. The letters it is told say nothing of those
    to come: with another sequence's vector, it guesses.
    """
    model = bottleneck.build(bottleneck.Config(), "reversal", "without").eval()
    model.load_state_dict(stored.load_weights("bottleneck_reversal_without"))
    source, target, _ = reversal(500, 12, torch.Generator().manual_seed(7))

    def right(source, told):
        found = model(source, 12, told)[0].argmax(dim=2) == target
        return found[:, :3].double().mean(), found[:, -3:].double().mean()

    (first, last), (_, told) = right(source, None), right(source, target)
    assert last < 0.3 < 0.7 < first
    assert last + 0.2 < told < first
    assert right(source.roll(1, dims=0), target)[1] < 0.15


@pytest.mark.parametrize("seed", range(10))
@torch.no_grad()
def test_from_far_back_nothing_arrives_through_an_untrained_gru(seed):
    """As on the page: the first token becomes a copy of the last one."""
    torch.manual_seed(seed)
    gru = torch.nn.GRU(8, 8, batch_first=True)
    through, reached = {}, {}
    for t in (5, 80):
        x = torch.randn(1, t, 8)
        changed = x.clone()
        changed[0, 0] = x[0, -1]
        through[t] = (gru(changed)[0] - gru(x)[0])[0, -1].norm()
        change = simple_self_attention(changed) - simple_self_attention(x)
        reached[t] = change[0, -1].norm()
    assert through[80] < 5e-5 < 1e-3 < through[5]
    assert reached[80] > 100 * through[80]


@pytest.mark.parametrize("seed", range(3))
@torch.no_grad()
def test_in_a_gpt_attention_is_the_only_step_in_which_tokens_meet(seed):
    torch.manual_seed(seed)
    model = TinyGPT(GPTConfig(20, 10, 8, num_heads=2, num_blocks=2)).eval()
    tokens = torch.randint(20, (1, 10))
    other = tokens.clone()
    other[0, 3] = (other[0, 3] + 1) % 20

    def moved():
        return (model(tokens) != model(other)).any(dim=-1)[0].tolist()

    assert moved() == [False] * 3 + [True] * 7
    for block in model.blocks:
        block.attention.register_forward_hook(lambda _, args, z: torch.zeros_like(z))
    assert moved() == [i == 3 for i in range(10)]
