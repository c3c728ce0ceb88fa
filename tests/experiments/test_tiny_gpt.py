"""The tiny GPT: causal, the same with a cache, and GPT-2 when it is large."""

import pytest
import torch

from attention import FusedMultiHeadAttention, KeyValueCache
from coding_attention.models.tiny_gpt import GPTConfig, TinyGPT, generate

SIZES = GPTConfig(
    vocab_size=11, context_length=12, d_model=8, num_heads=2, num_blocks=2
)


def make(attention=None, seed=0):
    torch.manual_seed(seed)
    return TinyGPT(SIZES, *([attention] if attention else [])).eval()


def tokens(b=3, t=12, seed=0):
    return torch.randint(11, (b, t), generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def test_position_matters():
    same = torch.full((1, 4), 3)
    scores = make()(same)[0]
    assert not torch.allclose(scores[0], scores[1], atol=1e-3)


@torch.no_grad()
def test_fused_layers_give_the_same():
    model, fused = make(), make(FusedMultiHeadAttention, seed=1)
    assert not torch.allclose(model(tokens()), fused(tokens()), atol=1e-2)
    fused.load_state_dict(model.state_dict())
    torch.testing.assert_close(model(tokens()), fused(tokens()))


@pytest.mark.parametrize("seed", [None, 5])
def test_generates_the_same_with_a_cache(seed):
    model = make(FusedMultiHeadAttention)
    start = tokens(t=3)

    def write(**how):
        if seed is not None:
            how["generator"] = torch.Generator().manual_seed(seed)
        return generate(model, start, 9, **how)

    slow = write()
    assert slow.shape == (3, 12)
    assert torch.equal(slow[:, :3], start)
    caches = [KeyValueCache() for _ in model.blocks]
    assert torch.equal(slow, write(caches=caches))
    assert [cache.length for cache in caches] == [11, 11]


def test_generates_the_likeliest_token():
    model = make()
    out = generate(model, tokens(t=3), 2)
    with torch.no_grad():
        assert torch.equal(out[:, 3], model(tokens(t=3))[:, -1].argmax(dim=1))
        assert torch.equal(out[:, 4], model(out[:, :4])[:, -1].argmax(dim=1))


def test_refuses_more_tokens_than_the_context():
    with pytest.raises(ValueError, match="takes 12 tokens, but got 13"):
        make()(tokens(t=13))


@pytest.mark.parametrize(
    ("d_model", "num_heads", "num_blocks", "published"),
    [(768, 12, 12, 124_439_808), (1600, 25, 48, 1_557_611_200)],
)
def test_gpt2_has_its_published_number_of_parameters(
    d_model, num_heads, num_blocks, published
):
    sizes = GPTConfig(50257, 1024, d_model, num_heads, num_blocks, qkv_bias=True)
    with torch.device("meta"):
        model = TinyGPT(sizes)
    everything = sum(p.numel() for p in model.parameters())
    assert everything - model.out.weight.numel() == published
