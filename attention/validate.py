"""Messages for people: what was given, what was expected, what to do.

The classes of the chapter call these before they compute. A shape that does not
fit would fail anyway, somewhere inside a matrix product, or worse, would not.
Each function returns where all is well, and raises where it is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from attention.cache import KeyValueCache
    from attention.fused import FusedMultiHeadAttention


# Sizes ------------------------------------------------------------------------


def sizes(**named: object) -> None:
    """Require every keyword argument to be a positive integer; ``True`` is none."""
    for name, value in named.items():
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise TypeError(
                f"{name} must be a positive integer, but got {value!r} "
                f"({type(value).__name__}). Pass a whole number such as {name}=2."
            )
        if value < 1:
            raise ValueError(
                f"{name} must be a positive integer, but got {value}. "
                f"Pass a whole number of at least 1."
            )


def dropout_rate(dropout: object) -> None:
    """Require ``dropout`` to be a number from 0 up to, but not including, 1."""
    if isinstance(dropout, bool) or not isinstance(dropout, Real):
        raise TypeError(
            f"dropout must be a number in [0, 1), but got {dropout!r} "
            f"({type(dropout).__name__}). Pass 0.0 for no dropout."
        )
    if not 0 <= float(dropout) < 1:
        raise ValueError(
            f"dropout must be a number in [0, 1), but got {dropout}. Pass the share "
            f"of weights to drop: 0.0 drops none, 0.1 a tenth."
        )


def divisible(d_out: int, num_heads: int) -> None:
    """Require ``num_heads`` to divide ``d_out``, so that all heads are equally wide."""
    if d_out % num_heads != 0:
        raise ValueError(
            f"d_out must be divisible by num_heads, but got d_out={d_out} and "
            f"num_heads={num_heads}, which leaves {d_out % num_heads} over. "
            f"For d_out={d_out}, num_heads can be {_divisors(d_out)}."
        )


def kv_heads(num_heads: int, num_kv_heads: int) -> None:
    """Require ``num_kv_heads`` to divide ``num_heads``, so that groups are equal."""
    if num_heads % num_kv_heads != 0:
        raise ValueError(
            f"num_kv_heads must divide num_heads, but got num_kv_heads={num_kv_heads} "
            f"and num_heads={num_heads}. For num_heads={num_heads}, num_kv_heads can "
            f"be {_divisors(num_heads)}."
        )


def heads_per_rank(name: str, num_heads: int, ranks: int) -> None:
    """Require every rank to get the same number of whole heads."""
    if num_heads % ranks != 0:
        raise ValueError(
            f"{name} must be divisible by the number of ranks, but got "
            f"{name}={num_heads} and {ranks} ranks. For {name}={num_heads}, the number "
            f"of ranks can be {_divisors(num_heads)}."
        )


def _divisors(number: int) -> str:
    return ", ".join(str(n) for n in range(1, number + 1) if number % n == 0)


# Tensors that are passed in -----------------------------------------------------


def instance(name: str, value: object, kind: type, advice: str) -> None:
    """Require ``value`` to be an object of the class ``kind``."""
    if not isinstance(value, kind):
        raise TypeError(
            f"{name} must be a {kind.__name__}, but got {type(value).__name__}. "
            f"{advice}"
        )


def _floats(name: str, x: torch.Tensor, advice: str) -> None:
    if not x.is_floating_point():
        raise TypeError(
            f"{name} must hold floating-point numbers, but its dtype is {x.dtype}. "
            f"{advice}"
        )


def scores(x: object) -> None:
    """Require ``x`` to hold at least one floating-point score along dimension 0."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(
            f"x must be a tensor of scores, but got {type(x).__name__}. "
            f"Wrap the numbers in torch.tensor(...)."
        )
    _floats("x", x, "Convert it with x.float().")
    if x.dim() == 0 or x.shape[0] == 0:
        raise ValueError(
            f"x must hold at least one score along dimension 0, but got the shape "
            f"{tuple(x.shape)}. Pass a vector such as torch.tensor([0.5, 1.0])."
        )


def tokens(
    x: object,
    d_in: int | None = None,
    dims: tuple[int, ...] = (3,),
    context_length: int | None = None,
) -> None:
    """Require ``x`` to hold token vectors that the caller can compute with.

    Args:
        x: what was passed in; right is a floating-point tensor (…, t, d_in).
        d_in: the width that the weights expect; ``None`` allows any.
        dims: the numbers of dimensions that are allowed.
        context_length: the most tokens allowed; ``None`` sets no limit.
    """
    layouts = {1: "(t,)", 2: "(t, d_in)", 3: "(b, t, d_in)"}
    expected = " or ".join(layouts[n] for n in dims)
    if not isinstance(x, torch.Tensor):
        raise TypeError(
            f"x must be a tensor of shape {expected}, but got {type(x).__name__}. "
            f"Wrap the numbers in torch.tensor(...)."
        )
    advice = "Token ids go through an embedding first; other numbers through x.float()."
    _floats("x", x, advice)
    shape = tuple(x.shape)
    if x.dim() not in dims:
        raise ValueError(
            f"x must have the shape {expected}, but got {shape} with {x.dim()} "
            f"dimensions. {_how_to_reshape(x.dim(), dims)}"
        )
    if d_in is not None and shape[-1] != d_in:
        raise ValueError(
            f"the last dimension of x must be d_in={d_in}, but got {shape[-1]} in the "
            f"shape {shape}. Pass token vectors {d_in} wide or build the layer with "
            f"d_in={shape[-1]}."
        )
    # The dimension before the last counts tokens; a lone vector is its own.
    num_tokens = shape[-2] if len(shape) > 1 else shape[0]
    if num_tokens == 0 or shape[-1] == 0:
        raise ValueError(
            f"x must hold at least one token and one number for each, but got the "
            f"shape {shape}. Softmax over nothing has no value."
        )
    if context_length is not None and num_tokens > context_length:
        raise ValueError(
            f"x holds {num_tokens} tokens, but context_length={context_length} is the "
            f"most that the mask covers. Pass x[:, -{context_length}:] or build the "
            f"layer with context_length={num_tokens}."
        )


def _how_to_reshape(given: int, allowed: tuple[int, ...]) -> str:
    if given == 2 and 3 in allowed:
        return "For one sequence, x.unsqueeze(0) makes a batch of one."
    if given == 1 and 2 in allowed:
        return "For one token, x.unsqueeze(0) makes a sequence of one."
    return "Use one dimension each for batch, tokens and features."


def memory(memory: torch.Tensor, x: torch.Tensor, d_in: int) -> None:
    """Require ``memory`` to hold the tokens that ``x`` can attend to."""
    instance("memory", memory, torch.Tensor, "Pass token vectors (b, t_k, d_in).")
    _floats("memory", memory, "Convert it with memory.float().")
    shape = tuple(memory.shape)
    right = len(shape) == 3 and shape[0] == x.shape[0] and shape[2] == d_in
    if not right or shape[1] == 0:
        raise ValueError(
            f"memory must have the shape (b, t_k, d_in) with b={x.shape[0]} as in x, "
            f"d_in={d_in} and at least one token, but got {shape}. Pass one sequence "
            f"of token vectors for each sequence of x."
        )


def key_padding(mask: torch.Tensor, b: int, t_k: int) -> None:
    """Require a mask that says of every key whether it is padding."""
    advice = "Pass booleans (b, t_k), True where a token is padding."
    instance("key_padding_mask", mask, torch.Tensor, advice)
    if mask.dtype != torch.bool:
        raise TypeError(
            f"key_padding_mask must hold booleans, but its dtype is {mask.dtype}. True "
            f"means padding, so a mask of 1 for real tokens becomes (mask == 0)."
        )
    if tuple(mask.shape) != (b, t_k):
        raise ValueError(
            f"key_padding_mask must have the shape (b, t_k) = ({b}, {t_k}), but got "
            f"{tuple(mask.shape)}. It covers every key: the tokens of x, of memory in "
            f"its place, or of the cache and then x."
        )


# What a layer keeps -------------------------------------------------------------


def cache_fits(
    cache: KeyValueCache,
    layer: FusedMultiHeadAttention,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> None:
    """Require a key-value cache to belong to ``layer`` and to have room."""
    if keys.requires_grad or values.requires_grad:
        raise RuntimeError(
            "a cache is for generation and keeps no gradients, but gradients are on. "
            "Call the layer under torch.no_grad(), or train it without cache."
        )
    past, num_tokens = cache.length, keys.shape[2]
    if past + num_tokens > layer.context_length:
        raise ValueError(
            f"the cache holds {past} tokens and x adds {num_tokens}, but "
            f"context_length={layer.context_length} is the most that the layer takes. "
            f"Stop here, or clear the cache and start again from the latest tokens."
        )
    if past == 0:
        return
    if cache.layer is not None and cache.layer is not layer:
        raise ValueError(
            "this cache was filled by another layer, and the two have different keys. "
            "Make one KeyValueCache() for each layer of a model."
        )
    if keys.shape[0] != cache.batch_size:
        raise ValueError(
            f"x must have the batch size of the cached tokens, {cache.batch_size}, but "
            f"got {keys.shape[0]}. Continue with the same sequences, or pass a new "
            f"KeyValueCache()."
        )
    if (keys.dtype, keys.device) != (cache.dtype, cache.device):
        raise ValueError(
            f"the cache holds {cache.dtype} on {cache.device}, but the new keys are "
            f"{keys.dtype} on {keys.device}. Move the model before the first "
            f"token, or pass a new KeyValueCache()."
        )


def mask_on_load(layer: torch.nn.Module) -> None:
    """From now on, a checkpoint without a mask leaves ``layer`` with a right one.

    A model that is built on the meta device has no numbers. Whatever a checkpoint
    does not bring stays empty, and an empty mask would let the future in.
    """
    register = layer._register_load_state_dict_pre_hook
    register(_restore_mask, with_module=True)  # type: ignore[no-untyped-call]


def _restore_mask(
    layer: torch.nn.Module,
    state: dict[str, Any],
    prefix: str,
    metadata: dict[str, Any],
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    key = prefix + "mask"
    if key not in state:
        missing_keys.append(key)  # so a strict load refuses, as it always has
        old = layer.get_buffer("mask")
        weight = state.get(prefix + "W_query.weight", old)
        ones = torch.ones(old.shape, device=weight.device, dtype=weight.dtype)
        state[key] = ones.triu(1)


def mask_is_there(mask: torch.Tensor, x: torch.Tensor) -> None:
    """Require a mask that holds numbers: PyTorch takes an empty one for no mask."""
    if mask.device.type == "meta" and x.device.type != "meta":
        raise ValueError(
            "the causal mask of this layer is on the meta device and holds no numbers, "
            "so nothing would hide the future. Load a state dict into the layer with "
            "load_state_dict(state, assign=True), which restores the mask."
        )


def saved_mask(key: str, mask: object, context_length: int, causal: bool) -> list[str]:
    """Say what is wrong with the mask of a checkpoint; no message if it is right."""
    expected = (context_length, context_length)
    if not causal:
        return [
            f"{key} hides the future, but causal=False makes this layer see it. Build "
            f"the layer with causal=True, or leave {key} out for an encoder."
        ]
    if not isinstance(mask, torch.Tensor) or tuple(mask.shape) != expected:
        given = tuple(mask.shape) if isinstance(mask, torch.Tensor) else type(mask)
        return [
            f"size mismatch for {key}: the checkpoint holds {given}, but "
            f"context_length={context_length} makes it {expected}. Build the layer "
            f"with the context_length of the checkpoint."
        ]
    if mask.is_meta:
        return []
    ones = torch.ones(expected, dtype=torch.bool, device=mask.device)
    if not torch.equal(mask.bool(), ones.triu(1)):
        return [
            f"{key} does not hide exactly the future: it must be 1 above the diagonal "
            f"and 0 elsewhere. This layer is causal and can apply no other mask."
        ]
    return []


# Weights in other layouts -------------------------------------------------------


def state_dict(state: object) -> None:
    """Require a mapping of names to tensors, such as ``layer.state_dict()``."""
    if not isinstance(state, Mapping):
        raise TypeError(
            f"state must be a state dict, but got {type(state).__name__}. "
            f"Pass layer.state_dict()."
        )


def checkpoint(
    state: Mapping[str, torch.Tensor],
    prefix: str,
    required: Sequence[str],
    optional: Sequence[str] = (),
    within: str = "",
) -> dict[str, torch.Tensor]:
    """Take the tensors of one layer out of a state dict, without prefix.

    Args:
        state: names and tensors.
        prefix: what the names of this layer start with; others are ignored.
        required: the names that must be there, without prefix.
        optional: the names that may be.
        within: where no other name may be, a start that follows the prefix.
    """
    state_dict(state)
    known = {*required, *optional}
    given = {k[len(prefix) :]: v for k, v in state.items() if k.startswith(prefix)}
    given = {k: v for k, v in given.items() if k in known or k.startswith(within)}
    missing = [prefix + name for name in required if name not in given]
    unknown = [prefix + name for name in given if name not in known]
    if missing or unknown:
        raise KeyError(
            f"the state dict must hold {', '.join(prefix + n for n in required)}. "
            f"Missing: {', '.join(missing) or 'none'}. "
            f"Unknown: {', '.join(unknown) or 'none'}. "
            f"Pass the state dict of one layer of the layout, or its prefix."
        )
    for name, tensor in given.items():
        instance(prefix + name, tensor, torch.Tensor, "Pass layer.state_dict().")
    return given


def no_rotary(traces: Sequence[str]) -> None:
    """Refuse weights whose queries and keys are meant to be rotated."""
    if traces:
        raise ValueError(
            f"these weights belong to rotary positions ({', '.join(traces)}): their "
            f"layer rotates queries and keys before the scores. No layer of this "
            f"package has rotary positions, so it would compute something else."
        )


def weight_shape(name: str, tensor: torch.Tensor, shape: Sequence[int]) -> None:
    """Require a weight to have exactly ``shape``."""
    if tuple(tensor.shape) != tuple(shape):
        raise ValueError(
            f"{name} must have the shape {tuple(shape)} to fit the other weights, but "
            f"got {tuple(tensor.shape)}. Check that all come from the same layer."
        )


def matrix(name: str, tensor: torch.Tensor) -> None:
    """Require a weight to have two dimensions."""
    if tensor.dim() != 2:
        raise ValueError(
            f"{name} must be a matrix, but got the shape {tuple(tensor.shape)}. "
            f"Pass the weights as the layer stores them."
        )


def packed(
    names: Sequence[str],
    weight: torch.Tensor,  # (d_out + 2 · d_kv, d_in)
    bias: torch.Tensor | None,  # (d_out + 2 · d_kv,)
    out_weight: torch.Tensor,  # (d_out, d_out)
    out_bias: torch.Tensor | None,  # (d_out,)
) -> None:
    """Require a packed layout, its tensors called ``names``, to split into q, k, v."""
    matrix(names[0], weight)
    matrix(names[2], out_weight)
    d_out, rows = out_weight.shape[0], weight.shape[0]
    weight_shape(names[2], out_weight, (d_out, d_out))
    keys_and_values = rows - d_out
    fits = 0 < keys_and_values <= 2 * d_out and keys_and_values % 2 == 0
    if not fits or d_out % (keys_and_values // 2) != 0:
        raise ValueError(
            f"{names[0]} must stack d_out queries and as many keys as values, but "
            f"{rows} outputs do not split for d_out={d_out}, the width of {names[2]}: "
            f"{3 * d_out} would, or fewer with grouped heads. Check the layout and "
            f"whether the matrix is transposed."
        )
    if bias is not None:
        weight_shape(names[1], bias, (rows,))
    if out_bias is not None:
        weight_shape(names[3], out_bias, (d_out,))


def our_layout(given: Mapping[str, torch.Tensor], ungrouped: str | None = None) -> None:
    """Require weights with our names to fit, and no grouped heads for ``ungrouped``."""
    matrix("W_query.weight", given["W_query.weight"])
    matrix("W_key.weight", given["W_key.weight"])
    d_out, d_in = given["W_query.weight"].shape
    d_kv = given["W_key.weight"].shape[0]
    widths = {"W_query": d_out, "W_key": d_kv, "W_value": d_kv}
    for name, width in widths.items():
        weight_shape(f"{name}.weight", given[f"{name}.weight"], (width, d_in))
        if f"{name}.bias" in given:
            weight_shape(f"{name}.bias", given[f"{name}.bias"], (width,))
    weight_shape("out_proj.weight", given["out_proj.weight"], (d_out, d_out))
    weight_shape("out_proj.bias", given["out_proj.bias"], (d_out,))
    if ungrouped is not None and d_kv != d_out:
        raise ValueError(
            f"{ungrouped} has as many key heads as query heads, but here d_out={d_out} "
            f"and the keys are {d_kv} wide. Call ungroup_heads(state, num_heads) first."
        )


def zero(name: str, bias: torch.Tensor) -> None:
    """Require a bias that is about to be dropped to be zero."""
    if bias.any():
        raise ValueError(
            f"{name} is to be dropped, but it is not zero: its largest entry is "
            f"{bias.abs().max().item():.3g}. Build the layer with qkv_bias=True and "
            f"leave qkv_bias out here."
        )


def block_rows(name: str, rows: torch.Tensor, outer: int, inner: int) -> None:
    """Require the first axis of a weight to split into outer · inner equal blocks."""
    sizes(num_heads=max(outer, inner))
    if rows.dim() == 0 or len(rows) % (outer * inner) != 0:
        raise ValueError(
            f"{name} must split into {outer} · {inner} blocks of equally many rows, "
            f"but got the shape {tuple(rows.shape)}. Check num_heads."
        )


# Several devices ----------------------------------------------------------------


def process_group(started: bool) -> None:
    """Require that ``torch.distributed`` has ``started`` a process group."""
    if not started:
        raise RuntimeError(
            "there is no process group. Start the program with torchrun "
            "--nproc-per-node=N program.py, and call "
            'torch.distributed.init_process_group("gloo") in it first.'
        )


def one_dimension(mesh: Any) -> None:
    """Require a ``DeviceMesh`` to have one dimension."""
    if mesh.ndim != 1:
        raise ValueError(
            f"mesh must have one dimension, along which heads are split, but got "
            f"{mesh.ndim}: {mesh.mesh_dim_names}. Pass one of them by its name, such "
            f'as mesh["heads"].'
        )
