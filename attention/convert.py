"""Weights of section 3.6 in the layouts of other libraries, and back.

A :class:`Layout` describes how a library stores one attention layer. Conversions go
through our own layout, the state dict that :class:`~attention.MultiHeadAttention` and
:class:`~attention.FusedMultiHeadAttention` share::

    layer = FusedMultiHeadAttention(768, 768, 1024, 0.0, 12, qkv_bias=True)
    state = to_ours(model.state_dict(), GPT2, prefix="transformer.h.0.attn.")
    layer.load_state_dict(state)

============= ============================================== ===============
layout        query, key and value weights                   output weight
============= ============================================== ===============
OURS          W_query, W_key, W_value, (d_out, d_in) each    out_proj
TORCH         in_proj_weight (3 · d_out, d_in), d_in = d_out out_proj
GPT2          c_attn (d_in, 3 · d_out), transposed           c_proj
combined(...) qkv (3 · d_out, d_in), by block or by head     out_proj
separate(...) q_proj, k_proj, v_proj, or other names         o_proj
wrapper(h)    heads.i.W_query and so on, (d_head, d_in) each none
============= ============================================== ===============

Weights with signs of rotary positions are rejected, unless you declare that the layer
loading them rotates its queries and keys too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import torch
from torch import nn

from attention import validate
from attention.functional import causal_mask

State = Mapping[str, torch.Tensor]
PROJECTIONS = ("W_query.", "W_key.", "W_value.")


# The table of layouts -----------------------------------------------------------------


class Layout(NamedTuple):
    """How a library stores one attention layer.

    Attributes:
        owner: whose layout it is, for messages.
        qkv: names without the final "weight" or "bias", for equal parts of all
            queries, then keys, then values: one name for everything, one for each of
            the three, or one per head of each.
        out: the name of the output projection, or ``None``.
        transposed: whether weights are (d_in, d_out); ``nn.Linear`` has (d_out, d_in).
        by_head: h if the rows are q, k and v of head 0, then of head 1, and so on.
        biases: whether to always write biases, as zeros if there are none.
        own_biases: whether one projection may have a bias while another has none.
        grouped: whether there may be fewer key and value heads than query heads.
        square: whether d_in must be d_out.
        ignored: names that aren't parameters, such as masks.
        within: after the prefix, where every name must be known.
    """

    owner: str
    qkv: tuple[str, ...]
    out: str | None
    transposed: bool = False
    by_head: int | None = None
    biases: bool = False
    own_biases: bool = False
    grouped: bool = False
    square: bool = False
    ignored: tuple[str, ...] = ()
    within: str = ""


#: The classes of section 3.6.2, and the fused one.
OURS = Layout("our layer", PROJECTIONS, "out_proj.", grouped=True, ignored=("mask",))
#: ``nn.MultiheadAttention``, always written with all biases.
TORCH = Layout(
    "nn.MultiheadAttention", ("in_proj_",), "out_proj.", biases=True, square=True
)
#: GPT-2 in ``transformers``, with the masks that some versions store.
GPT2 = Layout(
    "GPT-2", ("c_attn.",), "c_proj.", transposed=True, biases=True,
    ignored=("bias", "masked_bias"),
)  # fmt: skip


def combined(
    names: tuple[str, str] = ("qkv", "out_proj"), num_heads: int | None = None
) -> Layout:
    """Describe one linear layer for queries, keys and values, as in timm's ViT.

    Args:
        names: of the combined layer and the output layer.
        num_heads: ``None`` if all query rows come first, then all keys, then all
            values; h if rows are ordered by head: q, k, v of head 0, of head 1.

    Returns:
        The layout. With ``num_heads=None`` it may have grouped heads: after d_out query
        rows, half of the rest are keys, half values.

    Example:
        >>> import torch
        >>> from attention import MultiHeadAttention, convert
        >>> theirs = {"qkv.weight": torch.ones(18, 6), "proj.weight": torch.ones(6, 6)}
        >>> ours = convert.to_ours(theirs, convert.combined(names=("qkv", "proj")))
        >>> MultiHeadAttention(6, 6, 8, 0.0, num_heads=3).load_state_dict(ours)
        <All keys matched successfully>
    """
    qkv, out = (f"{name}." for name in names)
    if num_heads is None:
        return Layout("a combined layer", (qkv,), out, grouped=True)
    validate.sizes(num_heads=num_heads)
    return Layout("a layout head by head", (qkv,), out, by_head=num_heads)


def separate(
    names: tuple[str, str, str, str] = ("q_proj", "k_proj", "v_proj", "o_proj"),
) -> Layout:
    """Describe three linear layers with any names, such as those of BERT or ViT.

    Args:
        names: of the layers for queries, keys, values and the output, such as
            ``("self.query", "self.key", "self.value", "output.dense")``.

    Returns:
        The layout. It may have grouped heads, and biases in only some projections.

    Example:
        >>> import torch
        >>> from attention import FusedMultiHeadAttention, convert
        >>> names = ("q", "k", "v", "out")
        >>> encoder = torch.nn.ModuleDict({n: torch.nn.Linear(6, 6) for n in names})
        >>> layer = FusedMultiHeadAttention(6, 6, 8, 0.0, 3, True, causal=False)
        >>> layer.load_state_dict(convert.to_ours(encoder, convert.separate(names)))
        <All keys matched successfully>
    """
    *qkv, out = (f"{name}." for name in names)
    beside = names[0].rpartition(".")[0]
    return Layout(
        "a layer with three projections", tuple(qkv), out, own_biases=True,
        grouped=True, within=f"{beside}." if beside else "",
    )  # fmt: skip


def wrapper(num_heads: int) -> Layout:
    """Describe :class:`~attention.MultiHeadAttentionWrapper`.

    It has no output projection, so ours becomes the identity; only the identity can be
    converted back.

    Args:
        num_heads: h, the number of heads.

    Returns:
        The layout.

    Example:
        >>> from attention import MultiHeadAttention, MultiHeadAttentionWrapper, convert
        >>> heads = MultiHeadAttentionWrapper(3, 2, 8, 0.0, num_heads=3).state_dict()
        >>> ours = convert.to_ours(heads, convert.wrapper(3))
        >>> MultiHeadAttention(3, 6, 8, 0.0, num_heads=3).load_state_dict(ours)
        <All keys matched successfully>
    """
    validate.sizes(num_heads=num_heads)
    heads = [f"heads.{i}." for i in range(num_heads)]
    qkv = tuple(head + name for name in PROJECTIONS for head in heads)
    masks = tuple(f"{head}mask" for head in heads)
    return Layout("the wrapper", qkv, None, ignored=masks)


# From one layout to another -----------------------------------------------------------


def to_ours(
    state: State | nn.Module,
    layout: Layout,
    context_length: int | None = None,
    qkv_bias: bool | None = None,
    prefix: str = "",
    rotary: bool = False,
) -> dict[str, torch.Tensor]:
    """Convert the weights of another layout into ours.

    Libraries' state dicts show no sign of rotary positions, but their layers do. Pass
    the model or the layer itself, and such weights are rejected; with ``rotary``, only
    those rotated in another way are.

    Args:
        state: a state dict, or a module that has one.
        layout: how it stores the layer.
        context_length: the size of the mask that the chapter's own classes require;
            ``None`` for the classes of this package, which don't.
        qkv_bias: ``False`` drops biases that are zero; ``None`` keeps them.
        prefix: the start of this layer's names; other names are ignored.
        rotary: ``True`` declares that the layer loading the weights has the
            ``rope_theta`` of the original.

    Returns:
        A state dict in our layout, with copies of the weights. If the output projection
        has no bias, ours is zero.

    Raises:
        KeyError: a name is missing or unknown.
        TypeError, ValueError: a weight is not a tensor or has the wrong shape, a bias
            to be dropped is not zero, or the layer has rotary positions that ours
            wouldn't have.

    Example:
        >>> import torch
        >>> from attention import MultiHeadAttention, convert
        >>> theirs = torch.nn.MultiheadAttention(6, 3)
        >>> ours = MultiHeadAttention(6, 6, 8, 0.0, num_heads=3, qkv_bias=True)
        >>> ours.load_state_dict(convert.to_ours(theirs, convert.TORCH))
        <All keys matched successfully>
    """
    _check_layout(layout)
    _check_rotary(state, rotary)
    parts = _read(layout, state, prefix)
    if qkv_bias is False and parts.bias is not None:
        largest = parts.bias.abs().max().item()
        if largest != 0:  # NaN, too
            names = ", ".join(f"{name}bias" for name in layout.qkv)
            raise ValueError(
                f"{names} must be zero to be dropped, but the largest entry is "
                f"{largest:.3g}. Build the layer with qkv_bias=True and leave out "
                f"qkv_bias here."
            )
        parts = parts._replace(bias=None)
    ours = _write(OURS, parts)
    if context_length is None:
        return ours
    validate.sizes(context_length=context_length)
    return {"mask": causal_mask(context_length).to(parts.weight), **ours}


def from_ours(
    state: State | nn.Module, layout: Layout, prefix: str = ""
) -> dict[str, torch.Tensor]:
    """Convert our weights into another layout.

    Args:
        state: a state dict in our layout, or a layer of ours.
        layout: how to store the layer.
        prefix: put before each name.

    Returns:
        A state dict with copies of the weights.

    Raises:
        KeyError, TypeError, ValueError: ``state`` is not in our layout, or the other
            one doesn't support grouped heads, d_in ≠ d_out, or an output projection.

    Example:
        ``nn.MultiheadAttention`` has no mask of its own: pass one in each call.

        >>> import torch
        >>> from attention import MultiHeadAttention, convert
        >>> ours = MultiHeadAttention(6, 6, 8, 0.0, num_heads=3)
        >>> theirs = torch.nn.MultiheadAttention(6, 3)
        >>> theirs.load_state_dict(convert.from_ours(ours, convert.TORCH))
        <All keys matched successfully>
    """
    _check_layout(layout)
    return _write(layout, _read(OURS, state), prefix)


def _check_layout(layout: object) -> None:
    if not isinstance(layout, Layout):
        raise TypeError(
            f"layout must be a Layout, but got {layout!r}. Pass convert.OURS, TORCH or "
            f"GPT2, or what combined(), separate() or wrapper() returns."
        )


class _Parts(NamedTuple):
    """One layer without its layout: rows are queries, then keys, then values."""

    weight: torch.Tensor
    bias: torch.Tensor | None
    out_weight: torch.Tensor
    out_bias: torch.Tensor

    def widths(self) -> tuple[int, int]:
        """Return d_out and d_kv."""
        d_out = len(self.out_weight)
        return d_out, (len(self.weight) - d_out) // 2


def _read(layout: Layout, state: State | nn.Module, prefix: str = "") -> _Parts:
    given = _take_tensors(layout, _get_state(state), prefix)
    for name, tensor in given.items():
        if name.endswith("weight"):
            if tensor.dim() != 2:
                raise ValueError(
                    f"{name} must be a matrix, but got shape {tuple(tensor.shape)}. "
                    f"Pass the weights as the layer stores them."
                )
            given[name] = tensor.t() if layout.transposed else tensor
    weights = [given[f"{name}weight"] for name in layout.qkv]
    packed = _stack(layout, weights, weights, "weight")
    d_out = len(packed) // 3
    out_weight, out_bias = torch.eye(d_out).to(packed), packed.new_zeros(d_out)
    if layout.out is not None:
        out_weight = given[f"{layout.out}weight"]
        _check_rows(layout, packed, out_weight)
        out_bias = _fill_bias(given.get(f"{layout.out}bias"), out_weight)
        _check_shape(f"{layout.out}bias", out_bias, (len(out_weight),))
    biases, bias = [given.get(f"{name}bias") for name in layout.qkv], None
    if any(b is not None for b in biases):
        full = [_fill_bias(b, w) for b, w in zip(biases, weights, strict=True)]
        bias = _stack(layout, weights, full, "bias")
    return _Parts(packed, bias, out_weight, out_bias)


def _write(layout: Layout, parts: _Parts, prefix: str = "") -> dict[str, torch.Tensor]:
    (d_out, d_kv), d_in = parts.widths(), parts.weight.shape[1]
    if not layout.grouped and d_kv != d_out:
        raise ValueError(
            f"{layout.owner} must have as many key heads as query heads, but here "
            f"d_out={d_out} and the keys are {d_kv} wide. Call ungroup_heads(state, "
            f"num_heads) first."
        )
    _check_square(layout, d_in, d_out)
    if len(layout.qkv) == 1:
        rows = [len(parts.weight)]
    else:  # as many names for the queries as for the keys and for the values
        names = len(layout.qkv) // 3
        rows = [width // names for width in (d_out, d_kv, d_kv) for _ in range(names)]
    bias = parts.bias
    if bias is None and layout.biases:
        bias = parts.weight.new_zeros(len(parts.weight))
    written = {}
    for kind, packed in (("weight", parts.weight), ("bias", bias)):
        if packed is not None:
            if layout.by_head is not None:
                packed = _swap_blocks(layout, packed, 3, layout.by_head)
            for name, part in zip(layout.qkv, torch.split(packed, rows), strict=True):
                written[name + kind] = part
    if layout.out is None:
        identity = torch.eye(d_out).to(parts.out_weight)
        if not torch.equal(parts.out_weight, identity) or parts.out_bias.any():
            raise ValueError(
                f"{layout.owner} has no output projection, so out_proj must be the "
                f"identity with zero bias, but it is not, and the heads alone would "
                f"compute something else. Keep MultiHeadAttention for these weights."
            )
    else:
        written[f"{layout.out}weight"] = parts.out_weight
        written[f"{layout.out}bias"] = parts.out_bias
    if layout.transposed:
        written = {n: w.t() if w.dim() == 2 else w for n, w in written.items()}
    return {prefix + name: _copy(tensor) for name, tensor in written.items()}


def _get_state(state: State | nn.Module) -> State:
    state = state.state_dict() if isinstance(state, nn.Module) else state
    if not isinstance(state, Mapping):
        raise TypeError(
            f"state must be a state dict, but got {type(state).__name__}. Pass "
            f"layer.state_dict()."
        )
    return state


def _take_tensors(layout: Layout, state: State, prefix: str) -> dict[str, torch.Tensor]:
    """Take the tensors of one layer out of a state dict, without prefix."""
    names = [*layout.qkv, *([] if layout.out is None else [layout.out])]
    required, biases = [f"{n}weight" for n in names], [f"{n}bias" for n in names]
    known = {*required, *biases, *layout.ignored}
    given = {k[len(prefix) :]: v for k, v in state.items() if k.startswith(prefix)}
    given = {
        k: v for k, v in given.items() if k in known or k.startswith(layout.within)
    }
    of_qkv = biases[: len(layout.qkv)]
    if not layout.own_biases and any(name in given for name in of_qkv):
        required += of_qkv
        # Where the layout always has biases, the output's is missing by mistake:
        # zeros in its place would compute something else.
        required += biases[len(of_qkv) :] if layout.biases else []
    missing = [name for name in required if name not in given]
    unknown = [name for name in given if name not in known]
    if missing or unknown:
        advice = "Pass the state dict of one layer in this layout, or its prefix."
        if prefix and any(key.startswith(f"{prefix}.") for key in state):
            advice = f"A prefix ends in a dot: prefix='{prefix}.'."
        raise KeyError(
            f"the state dict must contain {_join(required, prefix)}. Missing: "
            f"{_join(missing, prefix)}. Unknown: {_join(unknown, prefix)}. {advice}"
        )
    for name, tensor in given.items():
        advice = "Pass layer.state_dict()."
        validate.instance(prefix + name, tensor, torch.Tensor, advice)
    return {name: given[name] for name in given if name not in layout.ignored}


def _stack(
    layout: Layout, weights: list[torch.Tensor], each: list[torch.Tensor], kind: str
) -> torch.Tensor:
    """Join the parts of queries, keys and values, in the order of our rows."""
    first_key = len(each) // 3  # before it are queries
    for i, (name, part) in enumerate(zip(layout.qkv, each, strict=True)):
        like = weights[0 if i < first_key else first_key]
        expected = (len(like), weights[0].shape[1])
        _check_shape(name + kind, part, expected if kind == "weight" else expected[:1])
    packed = torch.cat(each).detach()
    if layout.by_head is not None:
        packed = _swap_blocks(layout, packed, layout.by_head, 3)
    return packed


def _check_rows(layout: Layout, packed: torch.Tensor, out_weight: torch.Tensor) -> None:
    (rows, d_in), d_out = packed.shape, len(out_weight)
    out = f"{layout.out}weight"
    _check_shape(out, out_weight, (d_out, d_out))
    d_kv, odd = divmod(rows - d_out, 2)
    groups = 0 < d_kv <= d_out and d_out % d_kv == 0
    if odd or not (groups if layout.grouped else d_kv == d_out):
        names = ", ".join(f"{name}weight" for name in layout.qkv)
        fewer = ", or fewer with grouped heads" if layout.grouped else ""
        raise ValueError(
            f"{names} must stack d_out queries and as many keys as values, but {rows} "
            f"outputs do not split for d_out={d_out}, the width of {out}: {3 * d_out} "
            f"would{fewer}. Check the layout and whether the matrix is transposed."
        )
    _check_square(layout, d_in, d_out)


def _check_square(layout: Layout, d_in: int, d_out: int) -> None:
    if layout.square and d_in != d_out:
        raise ValueError(
            f"{layout.owner} must have equal input and output widths, but these weights"
            f" have d_in={d_in} and d_out={d_out}. Only layers with d_in = d_out can be"
            f" converted."
        )


def _check_shape(name: str, tensor: torch.Tensor, expected: tuple[int, ...]) -> None:
    if tensor.shape != expected:
        raise ValueError(
            f"{name} must have shape {expected} to fit the other weights, but got "
            f"{tuple(tensor.shape)}. Check that all come from the same layer."
        )


def _swap_blocks(
    layout: Layout, rows: torch.Tensor, outer: int, inner: int
) -> torch.Tensor:
    """Reorder rows from ``outer`` × ``inner`` blocks into ``inner`` × ``outer``."""
    if len(rows) % (outer * inner) != 0:
        raise ValueError(
            f"{layout.qkv[0]}weight must split into equal blocks of rows, 3 for each "
            f"of {layout.by_head} heads, but got shape {tuple(rows.shape)}. Check "
            f"num_heads."
        )
    return _split_rows(rows, outer, inner).transpose(0, 1).flatten(0, 2)


def _split_rows(rows: torch.Tensor, *blocks: int) -> torch.Tensor:
    # (n, d_in) -> (*blocks, n / their product, d_in); a bias has no d_in
    return rows.reshape(*blocks, -1, *rows.shape[1:])


def _join(names: Iterable[str], prefix: str) -> str:
    return ", ".join(prefix + name for name in names) or "none"


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone(memory_format=torch.contiguous_format)


def _fill_bias(bias: torch.Tensor | None, weight: torch.Tensor) -> torch.Tensor:
    return weight.new_zeros(len(weight)) if bias is None else bias


# Grouped heads ------------------------------------------------------------------------


def ungroup_heads(state: State, num_heads: int) -> dict[str, torch.Tensor]:
    """Copy the shared key and value heads, one for each query head.

    The function stays the same. Layouts without grouped heads need this first.

    Args:
        state: a state dict of ``FusedMultiHeadAttention`` with ``num_kv_heads``.
        num_heads: h, the number of query heads.

    Returns:
        A state dict with h key and h value heads.

    Raises:
        KeyError, TypeError, ValueError: ``state`` is not in our layout, or its rows
            don't split into heads.

    Example:
        >>> from attention import FusedMultiHeadAttention, MultiHeadAttention, convert
        >>> grouped = FusedMultiHeadAttention(6, 8, 8, 0.0, num_heads=4, num_kv_heads=2)
        >>> state = convert.ungroup_heads(grouped.state_dict(), num_heads=4)
        >>> MultiHeadAttention(6, 8, 8, 0.0, num_heads=4).load_state_dict(state)
        <All keys matched successfully>
    """
    num_kv_heads = _count_kv_heads(state, num_heads)

    def repeat(heads: torch.Tensor) -> torch.Tensor:
        return heads.repeat_interleave(num_heads // num_kv_heads, dim=0)

    return _change_kv_heads(state, num_kv_heads, repeat)


def group_heads(
    state: State, num_heads: int, num_kv_heads: int
) -> dict[str, torch.Tensor]:
    """Replace groups of key and value heads by their mean.

    Ainslie et al. (2023), section 2.1: a starting point for further training. The
    function changes unless the heads of a group are equal.

    Args:
        state: a state dict in our layout.
        num_heads: h, the number of query heads.
        num_kv_heads: how many key and value heads to keep, a divisor of the current
            number.

    Returns:
        A state dict for ``FusedMultiHeadAttention`` with ``num_kv_heads``.

    Raises:
        KeyError, TypeError, ValueError: ``state`` is not in our layout, or its heads
            don't split into groups.

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
    validate.divisible(key_heads=given, num_kv_heads=num_kv_heads)

    def mean(heads: torch.Tensor) -> torch.Tensor:
        return _split_rows(heads, num_kv_heads).mean(dim=1)

    return _change_kv_heads(state, given, mean)


def _count_kv_heads(state: State, num_heads: int) -> int:
    d_out, d_kv = _read(OURS, state).widths()
    validate.sizes(num_heads=num_heads)
    validate.divisible(d_out=d_out, num_heads=num_heads)
    d_head = d_out // num_heads
    if d_kv % d_head != 0:
        raise ValueError(
            f"W_key.weight must split into equal blocks of rows, {d_head} in each, but "
            f"got shape {tuple(state['W_key.weight'].shape)}. Check num_heads."
        )
    return d_kv // d_head


def _change_kv_heads(
    state: State,
    num_kv_heads: int,
    change: Callable[[torch.Tensor], torch.Tensor],
) -> dict[str, torch.Tensor]:
    changed = {name: _copy(tensor) for name, tensor in state.items()}
    for name in changed:
        if name.startswith(PROJECTIONS[1:]):
            heads = _split_rows(changed[name], num_kv_heads)
            changed[name] = change(heads).flatten(0, 1)
    return changed


# Rotary positions ---------------------------------------------------------------------


def _check_rotary(state: State | nn.Module, rotary: bool) -> None:
    """Require no rotary positions, or with ``rotary`` only those of our layer."""
    signs = []
    if isinstance(state, nn.Module):
        if scaled := _list_scaled(state):
            raise ValueError(
                f"these weights belong to rotary positions of another kind "
                f"({', '.join(scaled)}), but our layer turns all coordinates, by "
                f"rope_theta only. Keep the original layer."
            )
        signs = _list_rotary(state)
    signs += [name for name in _get_state(state) if _sounds_rotary(name)]
    if signs and not rotary:
        raise ValueError(
            f"these weights belong to a layer with rotary positions "
            f"({', '.join(signs)}), which rotates queries and keys before the scores. "
            f"A layer without would compute something else. Load them into "
            f"FusedMultiHeadAttention(..., rope_theta=...), with the base of the "
            f"model's config, and pass rotary=True here."
        )


def _list_rotary(model: nn.Module) -> list[str]:
    """List the signs that a model rotates its queries and keys."""
    found = [
        f"{name or 'it'} is a {type(part).__name__}"
        for name, part in model.named_modules()
        if _sounds_rotary(type(part).__name__)
    ]
    found += [f"config.{k}" for k, v in _read_configs(model) if v and _sounds_rotary(k)]
    return list(dict.fromkeys(found))


# A config's settings for plain rotary positions, with one base.
PLAIN = {
    "rope_type": "default", "rope_scaling": None,
    "partial_rotary_factor": 1.0, "rotary_pct": 1.0,
}  # fmt: skip


def _list_scaled(model: nn.Module) -> list[str]:
    """List the signs of scaled frequencies or of rotating only part of a head."""
    found = [
        f"config.{key} = {value!r}"
        for key, value in _read_configs(model)
        if key in PLAIN and value not in (None, PLAIN[key])
    ]
    return list(dict.fromkeys(found))


def _read_configs(model: nn.Module) -> Iterable[tuple[str, Any]]:
    for part in model.modules():
        config = getattr(part, "config", None)
        for key, value in getattr(config, "__dict__", {}).items():
            yield key, value
            if _sounds_rotary(key) and isinstance(value, Mapping):
                yield from value.items()


def _sounds_rotary(name: str) -> bool:
    return re.search(r"rotary|inv_freq|(^|[._])rope", name.lower()) is not None
