"""The page on attention in models, against layers of `transformers` from a config.

The page's own cells are run, and get the random parameters of a layer of the library.
"""

import re
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from attention import FusedMultiHeadAttention, KeyValueCache, convert
from attention.functional import attend, causal_mask
from tests.attention.test_real_models import spread, transformers

pytestmark = [pytest.mark.package, pytest.mark.filterwarnings("ignore")]

PAGE = Path(__file__).parents[2] / "book" / "10_attention_in_models.md"
WIDTH, HEADS, KEY_HEADS, D_HEAD, T = 32, 4, 2, 8, 14
SMALL = {
    "hidden_size": WIDTH,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KEY_HEADS,
    "head_dim": D_HEAD,
    "num_hidden_layers": 2,
    "intermediate_size": 48,
    "vocab_size": 50,
    "attn_implementation": "eager",
    "use_cache": False,
    # The parameters are far wider than trained ones. Nearly hard weights would make
    # the last digits of the scores visible.
    "rope_parameters": {"rope_type": "default", "rope_theta": 100.0},
}


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


def turned_by(page, theta=100.0):
    return lambda x, positions=None: page["turn"](
        x, torch.arange(x.shape[2]) if positions is None else positions, theta
    )


def model_of(name, **options):
    import transformers

    config = getattr(transformers, f"{name}Config")(**SMALL | options)
    return spread(getattr(transformers, f"{name}Model")(config))


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


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def parts_of(page, layer, x):
    split = page["split"]
    return (
        split(layer.q_proj(x), HEADS),
        split(layer.k_proj(x), KEY_HEADS),
        split(layer.v_proj(x), KEY_HEADS),
    )


@transformers
@torch.no_grad()
def test_rotary_positions_and_grouped_heads_are_those_of_llama():
    page = cells("setup", "turn", "grouped")
    layer, x, expected = seen_by_layer(model_of("Llama"))
    turn = turned_by(page)
    q, k, v = parts_of(page, layer, x)
    z = page["grouped"](turn(q), turn(k), v, causal_mask(T))
    close(layer.o_proj(page["join"](z)), expected)


@transformers
@torch.no_grad()
def test_a_window_is_that_of_mistral_all_at_once_and_with_a_bounded_cache():
    page = cells("setup", "turn", "grouped", "bounded-cache")
    layer, x, expected = seen_by_layer(model_of("Mistral", sliding_window=3))
    turn = turned_by(page)
    q, k, v = parts_of(page, layer, x)
    q, k = turn(q), turn(k)
    z = page["grouped"](q, k, v, causal_mask(T, window=3))
    close(layer.o_proj(page["join"](z)), expected)
    k, v = (part.repeat_interleave(HEADS // KEY_HEADS, dim=1) for part in (k, v))
    kept, results = None, []
    for i in range(T):
        new = (part[:, :, i : i + 1] for part in (q, k, v))
        result, kept = page["step"](*new, kept, 3)
        results.append(result)
    assert kept[0].shape[2] == 3
    close(layer.o_proj(page["join"](torch.cat(results, dim=2))), expected)


@transformers
@pytest.mark.parametrize("name", ["Llama", "Mistral"])
@torch.no_grad()
def test_the_class_is_the_layer_too_and_takes_it_with_a_cache(name):
    options = {"sliding_window": 3} if name == "Mistral" else {}
    layer, x, expected = seen_by_layer(model_of(name, **options))
    ours = FusedMultiHeadAttention(
        WIDTH, WIDTH, T, 0.0, HEADS, num_kv_heads=KEY_HEADS, rope_theta=100.0,
        window=options.get("sliding_window"),
    ).eval()  # fmt: skip
    # A state dict shows no trace of rotary positions, and is converted without them.
    ours.load_state_dict(convert.to_ours(layer.state_dict(), convert.separate()))
    close(ours(x), expected)
    cache = KeyValueCache()
    steps = [ours(token, cache=cache) for token in x.split(1, dim=1)]
    close(torch.cat(steps, dim=1), expected)


@transformers
@pytest.mark.parametrize("i", [0, 1])  # with a window, and without
@torch.no_grad()
def test_sink_logits_are_those_of_gpt_oss(i):
    page = cells("setup", "turn", "sink-logit")
    model = model_of(
        "GptOss", sliding_window=3, num_local_experts=2, num_experts_per_tok=1,
        pad_token_id=0,
    )  # fmt: skip
    layer, x, expected = seen_by_layer(model, i)
    window = layer.sliding_window
    assert window == (3, None)[i]
    turn = turned_by(page)
    q, k, v = parts_of(page, layer, x)
    k, v = (part.repeat_interleave(HEADS // KEY_HEADS, dim=1) for part in (turn(k), v))
    hidden = causal_mask(T, window=window)
    z = page["attend_with_sink"](turn(q), k, v, hidden, layer.sinks)
    close(layer.o_proj(page["join"](z)), expected)


@transformers
@torch.no_grad()
def test_packed_documents_are_those_of_llama():
    """Positions that start again tell the library where a document begins."""
    page = cells("setup", "turn", "grouped")
    positions = torch.tensor([[0, 1, 2, 3, 4, 0, 1, 2, 0, 1, 2, 3, 4, 5]])
    document = (positions[0] == 0).cumsum(0)
    ids = torch.randint(50, (1, T))
    layer, x, expected = seen_by_layer(
        model_of("Llama"), 1, input_ids=ids, position_ids=positions
    )
    hidden = causal_mask(T) | (document[:, None] != document)
    q, k, v = parts_of(page, layer, x)
    for places in (positions[0], torch.arange(T)):  # only the distance counts
        q_turned, k_turned = (page["turn"](part, places, 100.0) for part in (q, k))
        z = page["grouped"](q_turned, k_turned, v, hidden)
        close(layer.o_proj(page["join"](z)), expected)


@transformers
@torch.no_grad()
def test_qk_norm_is_that_of_qwen3():
    page = cells("setup", "turn", "grouped", "normalized-queries")
    layer, x, expected = seen_by_layer(model_of("Qwen3"))
    turn = turned_by(page)
    q, k, v = parts_of(page, layer, x)
    q, k = page["qk_norm"](q, k, layer.q_norm.weight, layer.k_norm.weight)
    z = page["grouped"](turn(q), turn(k), v, causal_mask(T))
    close(layer.o_proj(page["join"](z)), expected)


def deepseek():
    """Build a model whose queries are not made from a short vector of their own."""
    return model_of(
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
    close(layer.o_proj(page["join"](z)), expected)


@transformers
@pytest.mark.parametrize(
    ("name", "numbers"),
    [("Llama", 2 * KEY_HEADS * D_HEAD), ("DeepseekV3", 7 + 4)],
)
@torch.no_grad()
def test_the_library_keeps_as_many_numbers_of_a_token_as_the_page_says(name, numbers):
    model = deepseek() if name == "DeepseekV3" else model_of(name)
    cache = model(torch.randint(50, (1, T)), use_cache=True).past_key_values
    kept = cache.layers[0]
    assert kept.keys.numel() + kept.values.numel() == T * numbers
