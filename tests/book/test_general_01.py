"""Claims of the page "Why attention" about its models."""

import pytest
import torch

from coding_attention.models.seq2seq import LookBack, Translator
from coding_attention.models.tiny_gpt import GPTConfig, TinyGPT


@pytest.mark.parametrize("seed", range(3))
@torch.no_grad()
def test_looking_back_is_score_softmax_weighted_sum(seed):
    torch.manual_seed(seed)
    look_back, s, h = LookBack(8), torch.randn(8), torch.randn(5, 8)
    context, weights = look_back(s.unsqueeze(0), h.unsqueeze(0), look_back.U(h)[None])
    W, U, v = (look_back.get_submodule(n).weight for n in "WUv")
    e = torch.stack([v[0] @ torch.tanh(W @ s + U @ h_j) for h_j in h])
    alpha = e.exp() / e.exp().sum()
    torch.testing.assert_close(weights[0], alpha)
    torch.testing.assert_close(context[0], alpha @ h)


@torch.no_grad()
def test_without_attention_the_decoder_gets_nothing_but_the_last_state():
    torch.manual_seed(0)
    model = Translator(20, 20, 8, 12, attention=False)
    sources = torch.randint(20, (4, 9))
    states, last = model.encoder(sources)
    expected, _ = model(sources, 6)
    model.encoder.forward = lambda source: (torch.full_like(states, torch.nan), last)
    torch.testing.assert_close(model(sources, 6)[0], expected)


@torch.no_grad()
def test_in_a_gpt_attention_is_the_only_step_in_which_tokens_meet():
    """And it takes in earlier tokens only."""
    torch.manual_seed(0)
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
