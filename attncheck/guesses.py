"""What arguments of a constructor mean by their names, and values for them."""

import inspect
import re
from typing import Any

import torch
from torch import nn

DEFAULTS = {
    "d_in": 16,
    "d_out": 16,
    "context_length": 8,
    "dropout": 0.0,
    "num_heads": 4,
}
# What other authors call the chapter's arguments.
_WORDS = {
    "d_in": "d_in d_model embed_dim emb_dim n_embd embed_size hidden_size model_dim "
    "dim dim_in in_dim input_dim in_features embedding_dim embedding_size emb_size "
    "n_embed n_emb emb embed_dims hidden_dim dim_model model_size d_hid in_channels "
    "channels n_channels n_state d_token hid_dim input_size in_dim query_dim num_units "
    "nx n_in c_in d_embed inp",
    "d_out": "d_out dim_out out_dim output_dim out_features oup head_size",
    "context_length": "context_length block_size max_seq_len max_seq_length max_len "
    "seq_len n_positions max_length ctx_len n_ctx ctx_size seq_length max_seq "
    "context_window",
    "dropout": "dropout dropout_p dropout_rate attn_dropout attn_pdrop p_drop "
    "drop_rate attention_dropout attn_drop drop_prob dropout_prob drop p "
    "attn_dropout_p attn_drop_p attention_dropout_p attn_dropout_rate p_dropout "
    "d_rate drop_p attn_p p_attn attention_p attn_dropout_prob "
    "attention_probs_dropout_prob",
    "num_heads": "num_heads n_heads n_head heads nhead num_attention_heads h n_h "
    "nb_head head_num num_head heads_count number_of_heads no_heads nb_heads "
    "num_q_heads n_q_heads num_query_heads n_local_heads query_heads q_heads "
    "num_attn_heads n_attn_heads attn_heads attention_heads",
    "qkv_bias": "qkv_bias bias use_bias",
    "causal": "causal is_causal casual masked use_causal use_causal_mask is_decoder",
}
ALIASES = {name: others.split() for name, others in _WORDS.items()}
KV_HEADS = r"(kv|key_value).*head|num_kv|n_kv|query_groups|kv_groups|num_groups"
# Names of other arguments, and values to try.
GUESSES: list[tuple[str, Any]] = [
    (r"^vis|^log_|^return|^store|^debug|^keep", False),
    (KV_HEADS, "kv_heads"),
    (r"heads?_?(count|num|n)$|((^|_)n|^no|num|number|count)(_of)?_?(attn_|attention_|"
     r"q_|query_)?heads?$|^nhead|^heads?$|^n?h$", "num_heads"),
    (r"init\w*_(range|std)$|^std$", 0.02),
    (r"max_?pos|max_?rel|rel\w*_dist|max_dist|buckets?$", "context_length"),
    (r"soft_?cap|logits?_cap", 50.0),
    (r"^(en|de)coder$", False),
    (r"^act(?!ion)|_act(ivation)?(_fn|_func|_layer)?$", "gelu"),
    (r"norm_(layer|cls|class)$", nn.LayerNorm),
    (r"^d_(query|context|memory|cross|source)$", "d_in"),
    (r"^(dim|c)_?(q|k|v|kv)$|^(k|v|kv|q|key|value|context|cross)_?(in_)?(dim|channels)$"
     r"|_input_(dim|channels)$|^n?_?x$|^[cn]_?(in|out|x|state)$|^d_?cross$", "d_in"),
    (r"(head|qk|q|k|v|kv)_?(dim|size)|d_(head|k|v|q|kv|key)$|dim_(head|key)|dk$|dv$|"
     r"per_head|^d_(quer|key|value)", "d_head"),
    (r"lora\w*alpha", 1),
    (r"^lora\w*(dim|rank|_r)$", 0),
    (r"(rope|rot)\w*dim$", "d_head"),
    (r"(sr|reduction)_?(ratio|factor)$|^reduction$", 1),
    (r"drop", 0.0),
    (r"eps", 1e-5),
    (r"theta|(rope|rot\w*)_base|rope_freq", 10000.0),
    (r"layer_?(idx|id|index|number|num)|^layer$", 0),
    (r"_depth$", "d_in"),
    (r"layers?$|depth", 2),
    (r"vocab", 50),
    (r"rope_scaling|window", None),
    (r"rotary_(pct|percent|factor|fraction)|partial_rot|pretraining_tp", 1.0),
    (r"batch", 256),
    (r"dtype", torch.float32),
    (r"device", "cpu"),
    (r"implementation|attn_type|backend", "eager"),
    (r"_(mode|type)$", "standard"),
    (r"^scale_", True),
    (r"gamma|_init$", 1.0),
    (r"bias|flash|^use_|^is_|^do_|norm$|verbose|return|cache|output_att", False),
    (r"^(dim|d)_(attn|attention|inner|model)$|inner_dim|attn_dim", "d_in"),
    (r"len|ctx|position|seq|block|(agent|patch|patche|token|node|frame|point|slot|field)"
     r"s?$", "context_length"),
    (r"hid|embe?d|width|model|channels|features|input|^n_?dims?$|^in_d|^dims?$|units|"
     r"n_state|d_token|query_dim|feat|dim$|lora_rank|^c$|planes|size$", "d_in"),
    (UNSURE := r"^(n|num)_", 1),  # a number of something unknown: few
]  # fmt: skip
# These are no widths: they may change what is computed.
NO_WIDTH = re.compile(
    r"mask|caus|cross|rot|type|mode|flag|fn|func|act|norm|layer|att|name|path|scale|temp|"
    r"tau|factor|alpha|slope|rate|prob|gamma|beta|lambd|theta|ratio|win|span|radius|band|"
    r"stride|kernel|groups?|share|num_|^n_|pos|^p$|^k$|^ws$|block|unit|mem|rank|token|^is|"
    r"^use|^with|enc|dec|stage|group|rel|fac|init|train|bias|drop|concat|resid|module"
)


def guess(name: str, sizes: dict[str, Any]) -> tuple[bool, Any]:
    """Return (whether the name says what the argument is, its value)."""
    for pattern, value in GUESSES:
        if re.search(pattern, name.lower()):
            h, d_in = sizes["num_heads"] or 1, sizes["d_in"] or 16
            known = {"kv_heads": max(h // 2, 1), "d_head": d_in // h} | sizes
            told = isinstance(value, str) and value in known
            return True, known[value] if told else value
    return False, None


def meaning(name: str) -> Any:
    """Return what the name says that an argument is: a size's name, a value or None."""
    fits = (value for form, value in GUESSES if re.search(form, name.lower()))
    return next(fits, None)


def is_unsure(name: str) -> bool:
    """Whether a value is a mere guess, since the name says that it is a number."""
    fits = [form for form, _ in GUESSES if re.search(form, name.lower())]
    return fits[:1] == [UNSURE]


def is_kv_heads(name: str) -> bool:
    """Whether an argument is the number of heads of keys and values."""
    return re.search(KV_HEADS, name.lower()) is not None


def may_be_width(name: str, parameter: inspect.Parameter) -> bool:
    """Whether an argument whose name says nothing may be a width, to be tried."""
    kind = parameter.annotation
    return kind in (int, "int", parameter.empty) and not NO_WIDTH.search(name.lower())


def size_held(module: nn.Module, ours: str) -> int | None:
    """Return an integer that the module keeps under one of the known names."""
    configs = [getattr(module, name, None) for name in ("config", "cfg", "args")]
    for holder in (module, *configs):
        for name in ALIASES[ours]:
            value = getattr(holder, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None
