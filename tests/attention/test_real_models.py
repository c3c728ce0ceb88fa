"""Our layers in the models of two libraries, built from a config: no download.

Each test swaps an attention layer, or all of them, and compares outputs. A layer that
is not the same function is refused in words. The libraries are no part of the extras:

    pip install transformers timm
    python -m pytest tests/attention/test_real_models.py
"""

import importlib
import importlib.util

import pytest
import torch
from torch import nn

from attention import (
    FusedMultiHeadAttention,
    KeyValueCache,
    MultiHeadAttention,
    convert,
)
from attention.functional import rotary_angles, rotate

pytestmark = [pytest.mark.package, pytest.mark.filterwarnings("ignore")]

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
WIDTH, HEADS, CONTEXT = 32, 4, 24
SMALL = {
    "hidden_size": WIDTH,
    "num_attention_heads": HEADS,
    "num_hidden_layers": 2,
    "intermediate_size": 48,
}


def needs(library):
    """Skip where a library is absent, or cannot be loaded with this PyTorch."""
    if importlib.util.find_spec(library) is None:
        return pytest.mark.skip(
            f"{library} is not installed: its models were not tried"
        )
    try:
        importlib.import_module(library)
    except (ImportError, RuntimeError) as error:
        reason = f"{library} cannot be imported here ({error}): not tried"
        return pytest.mark.skip(reason)
    return lambda test: test


transformers = needs("transformers")
timm = needs("timm")


class Swapped(nn.Module):
    """Calls our layer with the first argument alone, and gives a tuple as they do."""

    def __init__(self, layer, **options):
        super().__init__()
        self.layer, self.options = layer, options

    def forward(self, hidden_states, *arguments, **named):
        return self.layer(hidden_states, **self.options), None


def spread(model):
    """Draw weights wide enough to tell layers apart, biases too."""
    torch.manual_seed(0)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model.eval()


@transformers
@pytest.mark.parametrize("kind", [MultiHeadAttention, FusedMultiHeadAttention])
@torch.no_grad()
def test_every_attention_of_a_gpt2_can_be_swapped(kind):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        n_layer=2, n_head=HEADS, n_embd=WIDTH, n_positions=CONTEXT, vocab_size=50,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = spread(GPT2LMHeadModel(config))
    ids = torch.randint(50, (2, CONTEXT))
    expected, weights = model(ids, use_cache=False).logits, model.state_dict()
    for i, block in enumerate(model.transformer.h):
        ours = kind(WIDTH, WIDTH, CONTEXT, 0.0, HEADS, qkv_bias=True).eval()
        prefix = f"transformer.h.{i}.attn."
        ours.load_state_dict(convert.to_ours(weights, convert.GPT2, prefix=prefix))
        back = convert.from_ours(ours, convert.GPT2, prefix)
        assert all(torch.equal(tensor, weights[name]) for name, tensor in back.items())
        block.attn = Swapped(ours)
    torch.testing.assert_close(model(ids, use_cache=False).logits, expected, **CLOSE)


ENCODERS = {
    "BertModel": (
        "encoder.layer.{}.attention.",
        ("self.query", "self.key", "self.value", "output.dense"),
    ),
    "ViTModel": (
        "layers.{}.attention.",
        ("q_proj", "k_proj", "v_proj", "o_proj"),
    ),
}


def encoder(name):
    import transformers

    sizes = {
        "BertModel": {"vocab_size": 50, "max_position_embeddings": CONTEXT},
        "ViTModel": {"image_size": 16, "patch_size": 4},
    }
    config = getattr(transformers, name.replace("Model", "Config"))
    config = config(**SMALL, **sizes[name], attn_implementation="eager")
    return spread(getattr(transformers, name)(config))


def ours_for(model, name, i):
    prefix, names = ENCODERS[name]
    layout = convert.separate(names)
    state = convert.to_ours(model, layout, prefix=prefix.format(i))
    layer = FusedMultiHeadAttention(WIDTH, WIDTH, CONTEXT, 0, HEADS, True, causal=False)
    layer.load_state_dict(state)
    back = convert.from_ours(state, layout, prefix.format(i))
    weights = model.state_dict()
    assert all(torch.equal(tensor, weights[key]) for key, tensor in back.items())
    return layer.eval()


@transformers
@torch.no_grad()
def test_a_vit_with_our_layers_is_the_same_model():
    model, images = encoder("ViTModel"), torch.randn(2, 3, 16, 16)
    expected = model(images).last_hidden_state
    for i, block in enumerate(model.layers):
        block.attention = Swapped(ours_for(model, "ViTModel", i))
    torch.testing.assert_close(model(images).last_hidden_state, expected, **CLOSE)


@transformers
@pytest.mark.parametrize("padded", [False, True])
@torch.no_grad()
def test_an_attention_of_bert_and_ours_agree_with_and_without_padding(padded):
    model, x = encoder("BertModel"), torch.randn(2, CONTEXT, WIDTH)
    attention = model.encoder.layer[1].attention
    padding = torch.zeros(2, CONTEXT, dtype=torch.bool)
    padding[1, 9:] = padded
    hide = torch.zeros(2, 1, 1, CONTEXT).masked_fill(padding[:, None, None], -1e30)
    attended = attention.self(x, attention_mask=hide)[0]
    expected = attention.output.dense(attended)
    layer = ours_for(model, "BertModel", 1)
    torch.testing.assert_close(layer(x, key_padding_mask=padding), expected, **CLOSE)
    assert not torch.allclose(ours_for(model, "BertModel", 0)(x), expected)


def llama(**options):
    """Build a model with rotary positions, grouped heads, and maybe a window."""
    import transformers

    name = "Mistral" if "sliding_window" in options else "Llama"
    config = getattr(transformers, f"{name}Config")(
        **SMALL, **options, vocab_size=50, num_key_value_heads=2,
        attn_implementation="eager",
    )  # fmt: skip
    return spread(getattr(transformers, f"{name}Model")(config))


@transformers
@pytest.mark.parametrize("part", ["model", "layer"])
def test_rotary_positions_are_refused_in_words(part):
    model = llama()
    prefix = "layers.0.self_attn." if part == "model" else ""
    given = model if part == "model" else model.layers[0].self_attn
    with pytest.raises(ValueError, match="rotary positions") as caught:
        convert.to_ours(given, convert.separate(), prefix=prefix)
    assert "rope" in str(caught.value).lower()
    assert "rotary=True" in str(caught.value)


@transformers
def test_scaled_rotary_positions_are_refused_whatever_is_said():
    scaled = {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}
    model = llama(rope_parameters=scaled)
    options = {"prefix": "layers.0.self_attn.", "rotary": True}
    with pytest.raises(ValueError, match="of another kind"):
        convert.to_ours(model, convert.separate(), **options)


@transformers
@pytest.mark.parametrize("theta", [100.0, 1e4])
@torch.no_grad()
def test_our_rotary_positions_are_those_of_llama(theta):
    from transformers.models.llama import modeling_llama

    model = llama(rope_parameters={"rope_type": "default", "rope_theta": theta})
    queries, keys = torch.randn(2, 2, HEADS, CONTEXT, WIDTH // HEADS)
    places = torch.arange(CONTEXT)
    turned = modeling_llama.apply_rotary_pos_emb(
        queries, keys, *model.rotary_emb(queries, places[None])
    )
    angles = rotary_angles(places, WIDTH // HEADS, theta)
    for ours, theirs in zip((queries, keys), turned, strict=True):
        torch.testing.assert_close(rotate(ours, angles), theirs, **CLOSE)


@transformers
@pytest.mark.parametrize("window", [None, 5])
@torch.no_grad()
def test_a_llama_and_a_mistral_with_our_layers_decode_the_same(window):
    rope = {"rope_type": "default", "rope_theta": 100.0}
    windowed = {} if window is None else {"sliding_window": window}
    model = llama(rope_parameters=rope, **windowed)
    for parameter in model.parameters():  # wider ones make weights of 0 and 1
        parameter.mul_(0.5)
    ids = torch.randint(50, (2, CONTEXT))
    expected = model(ids, use_cache=False).last_hidden_state
    caches = []
    for i, block in enumerate(model.layers):
        prefix = f"layers.{i}.self_attn."
        layout = convert.separate()
        state = convert.to_ours(model, layout, prefix=prefix, rotary=True)
        layer = FusedMultiHeadAttention(
            WIDTH, WIDTH, CONTEXT, 0.0, HEADS, num_kv_heads=2, window=window,
            rope_theta=100.0,
        )  # fmt: skip
        layer.load_state_dict(state)
        caches.append(KeyValueCache())
        block.self_attn = Swapped(layer.eval(), cache=caches[-1])
    steps = [
        model(part, use_cache=False).last_hidden_state
        for part in ids.split([9, 1, 4, *[1] * (CONTEXT - 14)], dim=1)
    ]
    torch.testing.assert_close(torch.cat(steps, dim=1), expected, **CLOSE)
    kept = {cache.num_bytes for cache in caches}
    assert kept == {
        2 * 2 * WIDTH // 2 * 4 * (CONTEXT if window is None else window - 1)
    }


@transformers
def test_positions_inside_the_scores_are_refused():
    from transformers import T5Config, T5EncoderModel

    model = T5EncoderModel(
        T5Config(d_model=WIDTH, num_heads=HEADS, d_kv=8, num_layers=1, d_ff=48,
                 vocab_size=50)
    )  # fmt: skip
    prefix = "encoder.block.0.layer.0.SelfAttention."
    with pytest.raises(KeyError, match="relative_attention_bias"):
        convert.to_ours(model, convert.separate(("q", "k", "v", "o")), prefix=prefix)


@timm
@torch.no_grad()
def test_every_attention_of_a_timm_vit_can_be_swapped():
    from timm.models.vision_transformer import VisionTransformer

    model = spread(
        VisionTransformer(img_size=16, patch_size=4, embed_dim=WIDTH, depth=2,
                          num_heads=HEADS, num_classes=5)
    )  # fmt: skip
    images, weights = torch.randn(2, 3, 16, 16), model.state_dict()
    expected = model(images)
    for i, block in enumerate(model.blocks):
        ours = FusedMultiHeadAttention(
            WIDTH, WIDTH, CONTEXT, 0.0, HEADS, True, causal=False
        ).eval()
        prefix, layout = f"blocks.{i}.attn.", convert.combined(("qkv", "proj"))
        ours.load_state_dict(convert.to_ours(weights, layout, prefix=prefix))
        back = convert.from_ours(ours, layout, prefix)
        assert all(torch.equal(tensor, weights[name]) for name, tensor in back.items())
        block.attn = First(ours)
    torch.testing.assert_close(model(images), expected, **CLOSE)


@timm
def test_normalized_queries_of_timm_are_refused():
    from timm.models.vision_transformer import Attention

    layer = Attention(WIDTH, num_heads=HEADS, qk_norm=True, norm_layer=nn.LayerNorm)
    with pytest.raises(KeyError, match=r"Unknown: .*q_norm"):
        convert.to_ours(layer, convert.combined(("qkv", "proj")))


class First(nn.Module):
    """Calls our layer with the first argument alone."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, *arguments, **named):
        return self.layer(x)
