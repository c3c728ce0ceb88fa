"""Our layers, and the page on attention in models, against models of two libraries.

The models are built from a config, with random parameters: no download. Layers are
swapped, and outputs compared; a layer that is not the same function is refused in
words. The page's own cells are run, and get the parameters of a layer of the library.
The libraries are no part of the extras:

    pip install transformers timm
    python -m pytest tests/attention/test_real_models.py
"""

import importlib
import importlib.util
import re
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attention import (
    FusedMultiHeadAttention,
    KeyValueCache,
    MultiHeadAttention,
    convert,
)
from attention.functional import attend, causal_mask

pytestmark = [
    pytest.mark.package,
    pytest.mark.weekly,
    pytest.mark.filterwarnings("ignore"),
]

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
WIDTH, HEADS, KEY_HEADS, D_HEAD, CONTEXT = 32, 4, 2, 8, 24


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


# Their models, and our layers in them -------------------------------------------------

SMALL = {
    "hidden_size": WIDTH,
    "num_attention_heads": HEADS,
    "num_hidden_layers": 2,
    "intermediate_size": 48,
    "attn_implementation": "eager",
}
DECODER = SMALL | {
    "num_key_value_heads": KEY_HEADS,
    "head_dim": D_HEAD,
    "vocab_size": 50,
    "use_cache": False,
    # The parameters are far wider than trained ones. Nearly hard weights would make
    # the last digits of the scores visible.
    "rope_parameters": {"rope_type": "default", "rope_theta": 100.0},
}


def model_of(name, **options):
    import transformers

    config = getattr(transformers, f"{name}Config")(**options)
    return spread(getattr(transformers, f"{name}Model")(config))


def decoder(name, **options):
    """Build a model with rotary positions and grouped heads."""
    return model_of(name, **DECODER | options)


def spread(model):
    """Draw weights wide enough to tell layers apart, biases too."""
    torch.manual_seed(0)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model.eval()


def ours_from(model, layout, prefix, kind=FusedMultiHeadAttention, **options):
    """Build our layer with the weights of one of theirs, which come back the same."""
    weights = model.state_dict()
    layer = kind(WIDTH, WIDTH, CONTEXT, 0.0, HEADS, True, **options)
    layer.load_state_dict(convert.to_ours(model, layout, prefix=prefix))
    back = convert.from_ours(layer, layout, prefix)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in back.items())
    return layer.eval()


class Swapped(nn.Module):
    """Calls our layer with the first argument alone, and gives what theirs gives."""

    def __init__(self, layer, give=lambda z: (z, None), **options):
        super().__init__()
        self.layer, self.give, self.options = layer, give, options

    def forward(self, hidden_states, *arguments, **named):
        return self.give(self.layer(hidden_states, **self.options))


@transformers
@pytest.mark.parametrize("kind", [MultiHeadAttention, FusedMultiHeadAttention])
@torch.no_grad()
def test_every_attention_of_a_gpt2_can_be_swapped(kind):
    model = model_of(
        "GPT2", n_layer=2, n_head=HEADS, n_embd=WIDTH, n_positions=CONTEXT,
        vocab_size=50, bos_token_id=0, eos_token_id=0, use_cache=False,
    )  # fmt: skip
    ids = torch.randint(50, (2, CONTEXT))
    expected = model(ids).last_hidden_state
    for i, block in enumerate(model.h):
        block.attn = Swapped(ours_from(model, convert.GPT2, f"h.{i}.attn.", kind))
    torch.testing.assert_close(model(ids).last_hidden_state, expected, **CLOSE)


@transformers
@pytest.mark.parametrize("padded", [False, True])
@torch.no_grad()
def test_an_attention_of_bert_and_ours_agree_with_and_without_padding(padded):
    model = model_of("Bert", **SMALL, vocab_size=50, max_position_embeddings=CONTEXT)
    x, attention = torch.randn(2, CONTEXT, WIDTH), model.encoder.layer[1].attention
    padding = torch.zeros(2, CONTEXT, dtype=torch.bool)
    padding[1, 9:] = padded
    hide = torch.zeros(2, 1, 1, CONTEXT).masked_fill(padding[:, None, None], -1e30)
    attended = attention.self(x, attention_mask=hide)[0]
    expected = attention.output.dense(attended)
    layout = convert.separate(("self.query", "self.key", "self.value", "output.dense"))
    prefix = "encoder.layer.1.attention."
    layer = ours_from(model, layout, prefix, causal=False)
    torch.testing.assert_close(layer(x, key_padding_mask=padding), expected, **CLOSE)


@transformers
@pytest.mark.parametrize("window", [None, 5])
@torch.no_grad()
def test_a_llama_and_a_mistral_with_our_layers_decode_the_same(window):
    model = decoder("Mistral", sliding_window=window) if window else decoder("Llama")
    for parameter in model.parameters():  # wider ones make weights of 0 and 1
        parameter.mul_(0.5)
    ids = torch.randint(50, (2, CONTEXT))
    expected, caches = model(ids).last_hidden_state, []
    for i, block in enumerate(model.layers):
        layer = FusedMultiHeadAttention(
            WIDTH, WIDTH, CONTEXT, 0.0, HEADS, num_kv_heads=KEY_HEADS, window=window,
            rope_theta=100.0,
        )  # fmt: skip
        prefix, options = f"layers.{i}.self_attn.", {"rotary": True}
        state = convert.to_ours(model, convert.separate(), prefix=prefix, **options)
        layer.load_state_dict(state)
        caches.append(KeyValueCache())
        block.self_attn = Swapped(layer.eval(), cache=caches[-1])
    parts = ids.split([9, 1, 4, *[1] * (CONTEXT - 14)], dim=1)
    steps = [model(part).last_hidden_state for part in parts]
    torch.testing.assert_close(torch.cat(steps, dim=1), expected, **CLOSE)
    kept = CONTEXT if window is None else window - 1
    sizes = {cache.num_bytes for cache in caches}
    assert sizes == {2 * 2 * kept * KEY_HEADS * D_HEAD * 4}


@timm
@torch.no_grad()
def test_every_attention_of_a_timm_vit_can_be_swapped():
    from timm.models.vision_transformer import VisionTransformer

    model = spread(
        VisionTransformer(img_size=16, patch_size=4, embed_dim=WIDTH, depth=2,
                          num_heads=HEADS, num_classes=5)
    )  # fmt: skip
    images, layout = torch.randn(2, 3, 16, 16), convert.combined(("qkv", "proj"))
    expected = model(images)
    for i, block in enumerate(model.blocks):
        layer = ours_from(model, layout, f"blocks.{i}.attn.", causal=False)
        block.attn = Swapped(layer, give=lambda z: z)
    torch.testing.assert_close(model(images), expected, **CLOSE)


# What is not the same function --------------------------------------------------------


@transformers
@pytest.mark.parametrize("part", ["model", "layer"])
def test_rotary_positions_are_refused_in_words(part):
    model = decoder("Llama")
    prefix = "layers.0.self_attn." if part == "model" else ""
    given = model if part == "model" else model.layers[0].self_attn
    with pytest.raises(ValueError, match="rotary positions") as caught:
        convert.to_ours(given, convert.separate(), prefix=prefix)
    assert "rope" in str(caught.value).lower()
    assert "rotary=True" in str(caught.value)


# The cells of the page on attention in models -----------------------------------------

PAGE = Path(__file__).parents[2] / "book" / "10_attention_in_models.md"
T = 14


def cells(*names):
    """Run the functions of the page's cells; give them by name."""
    text, found = PAGE.read_text(encoding="utf-8"), {}
    found |= {"torch": torch, "F": F, "attend": attend}
    for name in names:
        pattern = (
            rf"```{{code-cell}} ipython3\n:name: {name}\n(?::[^\n]*\n)*\n(.*?)^```$"
        )
        (source,) = re.findall(pattern, text, re.M | re.S)
        # What follows the functions shows them on the numbers of the page.
        for part in re.findall(r"^def .+?(?=^\S|\Z)", source, re.M | re.S):
            exec(part, found)
    return found


def turned_by(page):
    return lambda x: page["turn"](x, torch.arange(x.shape[2]), 100.0)


def seen_by_layer(model, i=0, **inputs):
    """Run the model; give what went into one attention layer and what came out."""
    seen, layer = {}, model.layers[i].self_attn

    def note(module, arguments, named, result):
        given = named["hidden_states"] if "hidden_states" in named else arguments[0]
        seen.update(x=given, z=result[0])

    hook = layer.register_forward_hook(note, with_kwargs=True)
    try:
        inputs.setdefault("input_ids", torch.randint(50, (2, T)))
        model(**inputs)
    finally:
        hook.remove()
    return layer, seen["x"], seen["z"]


def project(page, layer, x):
    split = page["split"]
    return (
        split(layer.q_proj(x), HEADS),
        split(layer.k_proj(x), KEY_HEADS),
        split(layer.v_proj(x), KEY_HEADS),
    )


def repeated(*parts):
    """Repeat keys and values for the queries that share them."""
    return (part.repeat_interleave(HEADS // KEY_HEADS, dim=1) for part in parts)


def same(page, layer, z, expected):
    """Require heads, joined and mixed, to be what the library's layer gave."""
    ours = layer.o_proj(page["join"](z))
    torch.testing.assert_close(ours, expected, **CLOSE)


@transformers
@torch.no_grad()
def test_rotary_positions_and_grouped_heads_are_those_of_llama():
    page = cells("setup", "turn", "grouped")
    layer, x, expected = seen_by_layer(decoder("Llama"))
    turn, (q, k, v) = turned_by(page), project(page, layer, x)
    same(page, layer, page["grouped"](turn(q), turn(k), v, causal_mask(T)), expected)


@transformers
@torch.no_grad()
def test_a_window_is_that_of_mistral_all_at_once_and_with_a_bounded_cache():
    page = cells("setup", "turn", "grouped", "bounded-cache")
    layer, x, expected = seen_by_layer(decoder("Mistral", sliding_window=3))
    turn, (q, k, v) = turned_by(page), project(page, layer, x)
    q, k = turn(q), turn(k)
    z = page["grouped"](q, k, v, causal_mask(T, window=3))
    same(page, layer, z, expected)
    k, v = repeated(k, v)
    kept, results = None, []
    for i in range(T):
        new = (part[:, :, i : i + 1] for part in (q, k, v))
        result, kept = page["step"](*new, kept, 3)
        results.append(result)
    assert kept[0].shape[2] == 3
    same(page, layer, torch.cat(results, dim=2), expected)


@transformers
@pytest.mark.parametrize("i", [0, 1])  # with a window, and without
@torch.no_grad()
def test_sink_logits_are_those_of_gpt_oss(i):
    page = cells("setup", "turn", "sink-logit")
    model = decoder(
        "GptOss", sliding_window=3, num_local_experts=2, num_experts_per_tok=1,
        pad_token_id=0,
    )  # fmt: skip
    layer, x, expected = seen_by_layer(model, i)
    window = layer.sliding_window
    assert window == (3, None)[i]
    turn, (q, k, v) = turned_by(page), project(page, layer, x)
    hidden = causal_mask(T, window=window)
    z = page["attend_with_sink"](turn(q), *repeated(turn(k), v), hidden, layer.sinks)
    same(page, layer, z, expected)


@transformers
@torch.no_grad()
def test_packed_documents_are_those_of_llama():
    """Positions that start again tell the library where a document begins."""
    page = cells("setup", "turn", "grouped")
    positions = torch.tensor([[0, 1, 2, 3, 4, 0, 1, 2, 0, 1, 2, 3, 4, 5]])
    document = (positions[0] == 0).cumsum(0)
    inputs = {"input_ids": torch.randint(50, (1, T)), "position_ids": positions}
    layer, x, expected = seen_by_layer(decoder("Llama"), 1, **inputs)
    hidden = causal_mask(T) | (document[:, None] != document)
    q, k, v = project(page, layer, x)
    for places in (positions[0], torch.arange(T)):  # only the distance counts
        q_turned, k_turned = (page["turn"](part, places, 100.0) for part in (q, k))
        same(page, layer, page["grouped"](q_turned, k_turned, v, hidden), expected)


@transformers
@torch.no_grad()
def test_qk_norm_is_that_of_qwen3():
    page = cells("setup", "turn", "grouped", "normalized-queries")
    layer, x, expected = seen_by_layer(decoder("Qwen3"))
    turn, (q, k, v) = turned_by(page), project(page, layer, x)
    q, k = page["qk_norm"](q, k, layer.q_norm.weight, layer.k_norm.weight)
    same(page, layer, page["grouped"](turn(q), turn(k), v, causal_mask(T)), expected)


def deepseek():
    """Build a model whose queries are not made from a short vector of their own."""
    return decoder(
        "DeepseekV3", num_key_value_heads=HEADS, qk_nope_head_dim=6, qk_rope_head_dim=4,
        head_dim=4, v_head_dim=5, kv_lora_rank=7, q_lora_rank=None, n_routed_experts=2,
        n_group=1, topk_group=1, num_experts_per_tok=1, rope_interleave=False,
    )  # fmt: skip


@transformers
@torch.no_grad()
def test_latent_attention_is_that_of_deepseek():
    page = cells("setup", "turn", "decoupled-key")
    layer, x, expected = seen_by_layer(deepseek())
    turn = turned_by(page)
    q, q_turned = page["split"](layer.q_proj(x), HEADS).split([6, 4], dim=-1)
    c, k_turned = layer.kv_a_proj_with_mqa(x).split([7, 4], dim=-1)
    c, k_turned = layer.kv_a_layernorm(c), turn(k_turned[:, None])[:, 0]
    up = layer.kv_b_proj.weight.view(HEADS, 6 + 5, 7)  # (h, d_head + d_v, r)
    z = page["latent_with_positions"](
        q, turn(q_turned), c, k_turned, *up.split([6, 5], dim=1), causal_mask(T)
    )
    same(page, layer, z, expected)
