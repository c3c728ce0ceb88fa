"""Weights of section 3.6 in the layouts of other libraries, and back.

Every function takes a state dict and returns a new one with copies of the weights.
In the middle stands our own layout, the state dict that
:class:`~attention.MultiHeadAttention` and :class:`~attention.FusedMultiHeadAttention`
share::

    layer = FusedMultiHeadAttention(768, 768, 1024, 0.0, 12, qkv_bias=True)
    state = from_gpt2(model.state_dict(), 1024, prefix="transformer.h.0.attn.")
    layer.load_state_dict(state)

============ ============================================== ===============
layout       query, key and value weights                   output weight
============ ============================================== ===============
ours         W_query, W_key, W_value, (d_out, d_in) each    out_proj
torch        in_proj_weight (3 · d_out, d_in), d_in = d_out out_proj
GPT-2        c_attn (d_in, 3 · d_out), transposed           c_proj
combined     qkv (3 · d_out, d_in), by block or by head     out_proj
separate     q_proj, k_proj, v_proj, or other names         o_proj
wrapper      heads.i.W_query and so on, (d_head, d_in) each none
============ ============================================== ===============

Layouts that always have biases get zeros where ours has none. On the way back the
zeros stay unless ``qkv_bias=False`` drops them, which refuses any other number.

An encoder sees everything: leave ``context_length`` out, and the result holds no
mask, as ``FusedMultiHeadAttention(..., causal=False)`` expects.

No layer of this package has rotary positions. Weights that show them are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import nn

from attention import validate

PROJECTIONS = ("W_query", "W_key", "W_value")
SEPARATE = ("q_proj", "k_proj", "v_proj", "o_proj")


def from_torch(
    state: Mapping[str, torch.Tensor],
    context_length: int | None = None,
    qkv_bias: bool | None = None,
    prefix: str = "",
) -> dict[str, torch.Tensor]:
    """Convert the weights of ``nn.MultiheadAttention`` into ours.

    Args:
        state: its state dict, with the packed ``in_proj_weight``. Where it has no
            biases (``bias=False``), ours has none but a zero one in ``out_proj``.
        context_length: the size of the mask that our layout holds; ``None`` for an
            encoder, without one.
        qkv_bias: ``False`` drops biases that are zero; ``None`` keeps what is there.
        prefix: what the names of this layer start with; other names are ignored.

    Returns:
        A state dict in our layout.

    Raises:
        KeyError: a name is missing, or there is one that our layer has no place for.
        TypeError, ValueError: a weight is no tensor or has the wrong shape, or a
            bias that should be dropped is not zero.

    Example:
        >>> import torch
        >>> from attention import MultiHeadAttention, convert
        >>> theirs = torch.nn.MultiheadAttention(6, 3)
        >>> ours = MultiHeadAttention(6, 6, 8, 0.0, num_heads=3, qkv_bias=True)
        >>> ours.load_state_dict(convert.from_torch(theirs.state_dict(), 8))
        <All keys matched successfully>
    """
    names = ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")
    given = validate.checkpoint(state, prefix, names[::2], names[1::2])
    validate.matrix(names[2], given[names[2]])
    d_out = len(given[names[2]])
    validate.weight_shape(names[0], given[names[0]], (3 * d_out, d_out))
    return _from_packed(given, names, context_length, qkv_bias)


def to_torch(
    state: Mapping[str, torch.Tensor], prefix: str = ""
) -> dict[str, torch.Tensor]:
    """Convert our weights into those of ``nn.MultiheadAttention``.

    Give that layer ``bias=True``, and in each call a causal mask: it has none.

    Args:
        state: a state dict in our layout, with d_in = d_out and as many key heads
            as query heads.
        prefix: what to put before each name.

    Returns:
        The state dict of ``nn.MultiheadAttention(d_out, num_heads)``.

    Raises:
        KeyError, TypeError, ValueError: ``state`` is not in our layout, or has
            widths that ``nn.MultiheadAttention`` cannot have.

    Example:
        >>> import torch
        >>> from attention import MultiHeadAttention, convert
        >>> ours = MultiHeadAttention(6, 6, 8, 0.0, num_heads=3)
        >>> theirs = torch.nn.MultiheadAttention(6, 3)
        >>> theirs.load_state_dict(convert.to_torch(ours.state_dict()))
        <All keys matched successfully>
    """
    weight, bias, out_weight, out_bias = _to_packed(state, "nn.MultiheadAttention")
    d_out, d_in = len(out_weight), weight.shape[1]
    if d_in != d_out:
        raise ValueError(
            f"nn.MultiheadAttention has one width for its input and output, but these "
            f"weights have d_in={d_in} and d_out={d_out}. Only layers with "
            f"d_in = d_out can be converted."
        )
    theirs = {
        "in_proj_weight": weight,
        "in_proj_bias": _or_zeros(bias, weight),
        "out_proj.weight": out_weight,
        "out_proj.bias": out_bias,
    }
    return {prefix + name: tensor for name, tensor in theirs.items()}


def from_gpt2(
    state: Mapping[str, torch.Tensor],
    context_length: int,
    qkv_bias: bool | None = None,
    prefix: str = "",
) -> dict[str, torch.Tensor]:
    """Convert the attention weights of GPT-2 into ours.

    GPT-2 multiplies x @ weight (its class is called Conv1D), so its matrices are the
    transpose of those of ``nn.Linear``.

    Args:
        state: a state dict with ``c_attn`` and ``c_proj``. The masks that some
            versions store as ``bias`` and ``masked_bias`` are ignored.
        context_length: the size of the mask that our layout holds; 1024 for GPT-2.
        qkv_bias: ``False`` drops biases that are zero; ``None`` keeps what is there.
        prefix: what the names of this layer start with, such as ``"h.0.attn."``.

    Returns:
        A state dict in our layout.

    Raises:
        KeyError, TypeError, ValueError: as in :func:`from_torch`.

    Example:
        >>> import torch
        >>> from attention import MultiHeadAttention, convert
        >>> theirs = {"c_attn.weight": torch.ones(6, 18), "c_attn.bias": torch.ones(18)}
        >>> theirs |= {"c_proj.weight": torch.ones(6, 6), "c_proj.bias": torch.ones(6)}
        >>> model = {f"transformer.h.0.attn.{name}": w for name, w in theirs.items()}
        >>> state = convert.from_gpt2(model, 8, prefix="transformer.h.0.attn.")
        >>> ours = MultiHeadAttention(6, 6, 8, 0.0, num_heads=3, qkv_bias=True)
        >>> ours.load_state_dict(state)
        <All keys matched successfully>
    """
    names = ("c_attn.weight", "c_attn.bias", "c_proj.weight", "c_proj.bias")
    given = validate.checkpoint(state, prefix, names, ("bias", "masked_bias"))
    for name in names[::2]:
        validate.matrix(name, given[name])
    (d_in, _), d_out = given["c_attn.weight"].shape, len(given["c_proj.weight"])
    validate.weight_shape("c_attn.weight", given["c_attn.weight"], (d_in, 3 * d_out))
    given |= {name: given[name].t() for name in names[::2]}
    return _from_packed(given, names, context_length, qkv_bias)


def to_gpt2(
    state: Mapping[str, torch.Tensor], prefix: str = ""
) -> dict[str, torch.Tensor]:
    """Convert our weights into GPT-2's ``c_attn`` and ``c_proj``.

    Args:
        state: a state dict in our layout, with as many key heads as query heads.
        prefix: what to put before each name.

    Returns:
        The four tensors of GPT-2, both matrices transposed.

    Raises:
        KeyError, TypeError, ValueError: ``state`` is not in our layout.

    Example:
        >>> from attention import MultiHeadAttention, convert
        >>> ours = MultiHeadAttention(6, 6, 8, 0.0, num_heads=3)
        >>> convert.to_gpt2(ours.state_dict())["c_attn.weight"].shape
        torch.Size([6, 18])
    """
    weight, bias, out_weight, out_bias = _to_packed(state, "GPT-2's layout")
    theirs = {
        "c_attn.weight": weight.t().contiguous(),
        "c_attn.bias": _or_zeros(bias, weight),
        "c_proj.weight": out_weight.t().contiguous(),
        "c_proj.bias": out_bias,
    }
    return {prefix + name: tensor for name, tensor in theirs.items()}


def from_combined(
    state: Mapping[str, torch.Tensor],
    context_length: int | None = None,
    names: tuple[str, str] = ("qkv", "out_proj"),
    num_heads: int | None = None,
    qkv_bias: bool | None = None,
    prefix: str = "",
) -> dict[str, torch.Tensor]:
    """Convert one linear layer for queries, keys and values into our three.

    Args:
        state: a state dict with the two linear layers called ``names``. Grouped
            heads are recognized: the rows that are left after d_out queries are
            half keys, half values.
        context_length: the size of the mask that our layout holds; ``None`` for an
            encoder, without one.
        names: what the combined layer and the output layer are called.
        num_heads: ``None`` when all query rows come first, then all keys, then all
            values; h when the rows stand head by head: q, k, v of head 0, of head 1.
        qkv_bias: ``False`` drops biases that are zero; ``None`` keeps what is there.
        prefix: what the names of this layer start with.

    Returns:
        A state dict in our layout.

    Raises:
        KeyError, TypeError, ValueError: as in :func:`from_torch`.

    Example:
        >>> import torch
        >>> from attention import MultiHeadAttention, convert
        >>> theirs = {"qkv.weight": torch.ones(18, 6), "proj.weight": torch.ones(6, 6)}
        >>> state = convert.from_combined(theirs, 8, names=("qkv", "proj"))
        >>> MultiHeadAttention(6, 6, 8, 0.0, num_heads=3).load_state_dict(state)
        <All keys matched successfully>
    """
    full = [f"{name}.{kind}" for name in names for kind in ("weight", "bias")]
    given = validate.checkpoint(state, prefix, full[::2], full[1::2])
    for name in full[:2]:
        if num_heads is not None and name in given:
            given[name] = _swap_blocks(name, given[name], num_heads, 3)
    return _from_packed(given, full, context_length, qkv_bias)


def to_combined(
    state: Mapping[str, torch.Tensor],
    names: tuple[str, str] = ("qkv", "out_proj"),
    num_heads: int | None = None,
    prefix: str = "",
) -> dict[str, torch.Tensor]:
    """Convert our three linear layers into one.

    Args:
        state: a state dict in our layout.
        names: what to call the combined layer and the output layer.
        num_heads: ``None`` for all queries, then all keys, then all values; h for
            rows that stand head by head, which needs as many key as query heads.
        prefix: what to put before each name.

    Returns:
        The weights and biases of both linear layers; no bias for the combined one
        where ours has none.

    Raises:
        KeyError, TypeError, ValueError: ``state`` is not in our layout.

    Example:
        >>> from attention import MultiHeadAttention, convert
        >>> ours = MultiHeadAttention(6, 6, 8, 0.0, num_heads=3)
        >>> list(convert.to_combined(ours.state_dict()))
        ['qkv.weight', 'out_proj.weight', 'out_proj.bias']
    """
    ungrouped = None if num_heads is None else "a layout head by head"
    weight, bias, out_weight, out_bias = _to_packed(state, ungrouped)
    qkv, out = names
    combined = {f"{qkv}.weight": weight}
    if bias is not None:
        combined[f"{qkv}.bias"] = bias
    if num_heads is not None:
        for name, rows in combined.items():
            # (3, h, …) -> (h, 3, …), where from_combined swaps (h, 3, …) -> (3, h, …)
            combined[name] = _swap_blocks(name, rows, 3, num_heads)
    combined |= {f"{out}.weight": out_weight, f"{out}.bias": out_bias}
    return {prefix + name: tensor for name, tensor in combined.items()}


def from_separate(
    state: Mapping[str, torch.Tensor] | nn.Module,
    context_length: int | None = None,
    names: tuple[str, str, str, str] = SEPARATE,
    qkv_bias: bool | None = None,
    prefix: str = "",
) -> dict[str, torch.Tensor]:
    """Convert three linear layers of any names into ours, such as those of BERT or ViT.

    A state dict of today's libraries holds no trace of rotary positions, their layers
    do: pass the model or the layer itself, and such weights are refused.

    Args:
        state: a state dict, or a module that has one. Grouped heads may have fewer
            rows in keys and values.
        context_length: the size of the mask that our layout holds; ``None`` for an
            encoder, without one.
        names: what the layers for queries, keys, values and the output are called,
            such as ``("self.query", "self.key", "self.value", "output.dense")``.
        qkv_bias: ``False`` drops biases that are zero; ``None`` keeps what is there,
            with zeros for a projection that alone has none.
        prefix: what the names of this layer start with; other names are ignored.

    Returns:
        A state dict in our layout.

    Raises:
        KeyError, TypeError: as in :func:`from_torch`.
        ValueError: as in :func:`from_torch`, or the layer has rotary positions.

    Example:
        >>> import torch
        >>> from attention import FusedMultiHeadAttention, convert
        >>> encoder = torch.nn.ModuleDict(
        ...     {name: torch.nn.Linear(6, 6) for name in ("q", "k", "v", "out")}
        ... )
        >>> state = convert.from_separate(encoder, names=("q", "k", "v", "out"))
        >>> layer = FusedMultiHeadAttention(6, 6, 8, 0.0, 3, True, causal=False)
        >>> layer.load_state_dict(state)
        <All keys matched successfully>
    """
    if isinstance(state, nn.Module):
        validate.no_rotary(_rotary_parts(state))
        state = state.state_dict()
    validate.state_dict(state)
    validate.no_rotary([name for name in state if _sounds_rotary(name)])
    weights = [f"{name}.weight" for name in names]
    biases = [f"{name}.bias" for name in names]
    beside = names[0].rpartition(".")[0]  # where no other weight may be
    within = f"{beside}." if beside else ""
    given = validate.checkpoint(state, prefix, weights, biases, within)
    for name in weights:
        validate.matrix(name, given[name])
    d_in, d_kv = given[weights[0]].shape[1], len(given[weights[1]])
    validate.weight_shape(weights[1], given[weights[1]], (d_kv, d_in))
    validate.weight_shape(weights[2], given[weights[2]], (d_kv, d_in))
    full = ("queries, keys and values", "their biases", weights[3], biases[3])
    packed = {full[0]: torch.cat([given[name] for name in weights[:3]])}
    if any(name in given for name in biases[:3]):
        pairs = zip(biases[:3], weights[:3], strict=True)
        parts = [_or_zeros(given.get(bias), given[weight]) for bias, weight in pairs]
        packed[full[1]] = torch.cat(parts)
    packed |= {name: given[name] for name in full[2:] if name in given}
    return _from_packed(packed, full, context_length, qkv_bias)


def to_separate(
    state: Mapping[str, torch.Tensor],
    names: tuple[str, str, str, str] = SEPARATE,
    prefix: str = "",
) -> dict[str, torch.Tensor]:
    """Convert our weights into three linear layers and an output layer of any names.

    Args:
        state: a state dict in our layout.
        names: what to call the layers for queries, keys, values and the output.
        prefix: what to put before each name.

    Returns:
        The weights and biases of the four layers; no biases where ours has none.

    Raises:
        KeyError, TypeError, ValueError: ``state`` is not in our layout.

    Example:
        >>> from attention import MultiHeadAttention, convert
        >>> layer = MultiHeadAttention(6, 6, 8, 0.0, num_heads=3)
        >>> list(convert.to_separate(layer.state_dict(), prefix="attn."))[:2]
        ['attn.q_proj.weight', 'attn.k_proj.weight']
    """
    _to_packed(state)
    separate = {}
    for kind in ("weight", "bias"):
        for ours, theirs in zip((*PROJECTIONS, "out_proj"), names, strict=True):
            if f"{ours}.{kind}" in state:
                separate[f"{prefix}{theirs}.{kind}"] = _copy(state[f"{ours}.{kind}"])
    return separate


def from_wrapper(
    state: Mapping[str, torch.Tensor], prefix: str = ""
) -> dict[str, torch.Tensor]:
    """Convert the heads of :class:`~attention.MultiHeadAttentionWrapper` into ours.

    The wrapper has no output projection. Ours becomes the identity, so that both
    compute the same.

    Args:
        state: its state dict.
        prefix: what the names of this layer start with.

    Returns:
        A state dict in our layout, with d_out = h · d_head.

    Raises:
        KeyError, TypeError, ValueError: as in :func:`from_torch`.

    Example:
        >>> from attention import MultiHeadAttention, MultiHeadAttentionWrapper, convert
        >>> wrapper = MultiHeadAttentionWrapper(3, 2, 8, 0.0, num_heads=3)
        >>> state = convert.from_wrapper(wrapper.state_dict())
        >>> MultiHeadAttention(3, 6, 8, 0.0, num_heads=3).load_state_dict(state)
        <All keys matched successfully>
    """
    validate.state_dict(state)
    num_heads = 0
    while f"{prefix}heads.{num_heads}.W_query.weight" in state:
        num_heads += 1
    kinds = (
        ["weight", "bias"] if f"{prefix}heads.0.W_query.bias" in state else ["weight"]
    )
    layers = [f"{name}.{kind}" for kind in kinds for name in PROJECTIONS]
    heads = [f"heads.{i}." for i in range(max(num_heads, 1))]
    required = [head + name for head in heads for name in (*layers, "mask")]
    given = validate.checkpoint(state, prefix, required)
    for head in heads:
        for name in layers:
            shape = tuple(given[heads[0] + name].shape)
            validate.weight_shape(head + name, given[head + name], shape)

    ours = {"mask": given["heads.0.mask"].clone()}
    for name in layers:
        ours[name] = torch.cat([given[head + name] for head in heads])
    weight = ours["W_query.weight"]
    ours["out_proj.weight"] = torch.eye(len(weight)).to(weight)
    ours["out_proj.bias"] = weight.new_zeros(len(weight))
    return ours


def to_wrapper(
    state: Mapping[str, torch.Tensor], num_heads: int
) -> dict[str, torch.Tensor]:
    """Convert our weights into h heads of the wrapper.

    Args:
        state: a state dict in our layout with its mask, whose ``out_proj`` is the
            identity, since the wrapper has none.
        num_heads: h, a divisor of d_out.

    Returns:
        The state dict of ``MultiHeadAttentionWrapper(d_in, d_out // num_heads, …)``.

    Raises:
        KeyError, TypeError, ValueError: ``state`` is not in our layout, or its
            ``out_proj`` changes anything.

    Example:
        >>> from attention import MultiHeadAttentionWrapper, convert
        >>> wrapper = MultiHeadAttentionWrapper(3, 2, 8, 0.0, num_heads=3)
        >>> state = convert.from_wrapper(wrapper.state_dict())
        >>> wrapper.load_state_dict(convert.to_wrapper(state, num_heads=3))
        <All keys matched successfully>
    """
    _, _, out_weight, out_bias = _to_packed(state, "the wrapper", mask_required=True)
    validate.sizes(num_heads=num_heads)
    validate.divisible(len(out_weight), num_heads)
    identity = torch.eye(len(out_weight)).to(out_weight)
    if not torch.equal(out_weight, identity) or out_bias.any():
        raise ValueError(
            "the wrapper has no output projection, but out_proj here is not the "
            "identity with a bias of zero, so its heads would compute something else. "
            "Keep MultiHeadAttention for these weights."
        )
    wrapper = {}
    for i in range(num_heads):
        wrapper[f"heads.{i}.mask"] = state["mask"].clone()
        for name, tensor in state.items():
            if name.startswith(PROJECTIONS):
                wrapper[f"heads.{i}.{name}"] = tensor.chunk(num_heads)[i].clone()
    return wrapper


def ungroup_heads(
    state: Mapping[str, torch.Tensor], num_heads: int
) -> dict[str, torch.Tensor]:
    """Give each query head its own copy of the key and value head that it shares.

    The function stays the same. Every other layout here but the combined one needs
    this before it can take grouped heads.

    Args:
        state: a state dict of ``FusedMultiHeadAttention`` with ``num_kv_heads``.
        num_heads: h, the number of query heads.

    Returns:
        A state dict with h key and h value heads.

    Raises:
        KeyError, TypeError, ValueError: ``state`` is not in our layout, or its rows
            do not split into heads.

    Example:
        >>> from attention import FusedMultiHeadAttention, MultiHeadAttention, convert
        >>> grouped = FusedMultiHeadAttention(6, 8, 8, 0.0, num_heads=4, num_kv_heads=2)
        >>> state = convert.ungroup_heads(grouped.state_dict(), num_heads=4)
        >>> MultiHeadAttention(6, 8, 8, 0.0, num_heads=4).load_state_dict(state)
        <All keys matched successfully>
    """
    num_kv_heads = _count_kv_heads(state, num_heads)

    def repeat(heads: torch.Tensor) -> torch.Tensor:
        # (h_kv, d_head, …) -> (h, d_head, …)
        return heads.repeat_interleave(num_heads // num_kv_heads, dim=0)

    return _change_kv_heads(state, num_kv_heads, repeat)


def group_heads(
    state: Mapping[str, torch.Tensor], num_heads: int, num_kv_heads: int
) -> dict[str, torch.Tensor]:
    """Replace groups of key and value heads by their mean.

    Ainslie et al. (2023), section 2.1: a starting point for further training. Unless
    the heads of a group are equal, the function changes.

    Args:
        state: a state dict in our layout.
        num_heads: h, the number of query heads.
        num_kv_heads: how many key and value heads to leave, a divisor of those there.

    Returns:
        A state dict for ``FusedMultiHeadAttention`` with ``num_kv_heads``.

    Raises:
        KeyError, TypeError, ValueError: ``state`` is not in our layout, or its heads
            do not split into groups.

    Example:
        >>> from attention import FusedMultiHeadAttention, MultiHeadAttention, convert
        >>> state = MultiHeadAttention(6, 8, 8, 0.0, num_heads=4).state_dict()
        >>> grouped = convert.group_heads(state, num_heads=4, num_kv_heads=2)
        >>> layer = FusedMultiHeadAttention(6, 8, 8, 0.0, num_heads=4, num_kv_heads=2)
        >>> layer.load_state_dict(grouped)
        <All keys matched successfully>
    """
    given = _count_kv_heads(state, num_heads)
    validate.sizes(num_kv_heads=num_kv_heads)
    validate.kv_heads(given, num_kv_heads)

    def mean(heads: torch.Tensor) -> torch.Tensor:
        # (h_given, d_head, …) -> (h_kv, group, d_head, …) -> (h_kv, d_head, …)
        return _in_blocks(heads, num_kv_heads).mean(dim=1)

    return _change_kv_heads(state, given, mean)


def _from_packed(
    given: Mapping[str, torch.Tensor],
    names: Sequence[str],
    context_length: int | None,
    qkv_bias: bool | None,
) -> dict[str, torch.Tensor]:
    """Split a packed weight and bias by rows and put our names on the parts."""
    weight, out_weight = given[names[0]], given[names[2]]
    bias, out_bias = given.get(names[1]), given.get(names[3])
    validate.packed(names, weight, bias, out_weight, out_bias)
    d_out = len(out_weight)
    d_kv = (len(weight) - d_out) // 2
    rows = [d_out, d_kv, d_kv]
    if qkv_bias is False and bias is not None:
        validate.zero(names[1], bias)
        bias = None
    ours: dict[str, torch.Tensor] = {}
    if context_length is not None:
        validate.sizes(context_length=context_length)
        ours["mask"] = torch.ones(context_length, context_length).triu(1).to(weight)
    for kind, packed in (("weight", weight), ("bias", bias)):
        if packed is not None:
            for name, part in zip(PROJECTIONS, torch.split(packed, rows), strict=True):
                ours[f"{name}.{kind}"] = _copy(part)
    ours["out_proj.weight"] = _copy(out_weight)
    ours["out_proj.bias"] = _copy(_or_zeros(out_bias, out_weight))
    return ours


def _to_packed(
    state: Mapping[str, torch.Tensor],
    ungrouped: str | None = None,
    mask_required: bool = False,
) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor, torch.Tensor]:
    """Stack our three projections; say who cannot take grouped heads, if so."""
    weights = [f"{name}.weight" for name in PROJECTIONS]
    biases = [f"{name}.bias" for name in PROJECTIONS]
    required = [*weights, "out_proj.weight", "out_proj.bias"]
    required += ["mask"] if mask_required else []
    given = validate.checkpoint(state, "", required, ("mask", *biases))
    has_bias = any(name in given for name in biases)
    if has_bias:
        validate.checkpoint(state, "", [*required, *biases], ("mask",))
    validate.our_layout(given, ungrouped)
    weight = torch.cat([given[name] for name in weights]).detach()
    bias = torch.cat([given[name] for name in biases]).detach() if has_bias else None
    return weight, bias, _copy(given["out_proj.weight"]), _copy(given["out_proj.bias"])


def _swap_blocks(name: str, rows: torch.Tensor, outer: int, inner: int) -> torch.Tensor:
    # (outer, inner, d_head, …) -> (inner, outer, d_head, …), all but … in one axis
    validate.block_rows(name, rows, outer, inner)
    return _in_blocks(rows, outer, inner).transpose(0, 1).flatten(0, 2)


def _count_kv_heads(state: Mapping[str, torch.Tensor], num_heads: int) -> int:
    _to_packed(state)
    validate.sizes(num_heads=num_heads)
    d_out, d_kv = len(state["W_query.weight"]), len(state["W_key.weight"])
    validate.divisible(d_out, num_heads)
    validate.block_rows("W_key.weight", state["W_key.weight"], 1, d_out // num_heads)
    return d_kv // (d_out // num_heads)


def _change_kv_heads(
    state: Mapping[str, torch.Tensor],
    num_kv_heads: int,
    change: Callable[[torch.Tensor], torch.Tensor],
) -> dict[str, torch.Tensor]:
    changed = {name: _copy(tensor) for name, tensor in state.items()}
    for name in changed:
        if name.startswith(PROJECTIONS[1:]):
            heads = _in_blocks(changed[name], num_kv_heads)
            changed[name] = change(heads).flatten(0, 1)
    return changed


def _in_blocks(rows: torch.Tensor, *blocks: int) -> torch.Tensor:
    # (n · …, d_in) -> (blocks, the rest of n, d_in); a bias has no d_in
    return rows.reshape(*blocks, -1, *rows.shape[1:])


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone(memory_format=torch.contiguous_format)


def _or_zeros(bias: torch.Tensor | None, weight: torch.Tensor) -> torch.Tensor:
    return weight.new_zeros(len(weight)) if bias is None else bias


def _rotary_parts(model: nn.Module) -> list[str]:
    """Name what shows that a model rotates its queries and keys."""
    found = []
    for name, part in model.named_modules():
        if _sounds_rotary(type(part).__name__):
            found.append(f"{name or 'it'} is a {type(part).__name__}")
        settings = getattr(part, "config", None)
        for key, value in getattr(settings, "__dict__", {}).items():
            if _sounds_rotary(key) and value:
                found.append(f"config.{key}")
    return list(dict.fromkeys(found))


def _sounds_rotary(name: str) -> bool:
    return re.search(r"rotary|inv_freq|(^|[._])rope", name.lower()) is not None
