"""Messages for people: what was given, what was expected, what to do.

The classes of the chapter call these before they compute. A shape that does not
fit would fail anyway, somewhere inside a matrix product, or worse, would not.
"""

from collections.abc import Mapping
from numbers import Integral, Real

import torch


def sizes(**named):
    """Require every keyword argument to be a positive integer.

    Raises:
        TypeError: a value is no integer (``True`` is not one either).
        ValueError: a value is zero or negative.
    """
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


def divisible(d_out, num_heads):
    """Require ``num_heads`` to divide ``d_out``, so that all heads are equally wide.

    Raises:
        ValueError: a remainder is left.
    """
    if d_out % num_heads != 0:
        fitting = [h for h in range(1, d_out + 1) if d_out % h == 0]
        raise ValueError(
            f"d_out must be divisible by num_heads, but got d_out={d_out} and "
            f"num_heads={num_heads}, which leaves {d_out % num_heads} over. "
            f"For d_out={d_out}, num_heads can be {', '.join(map(str, fitting))}."
        )


def dropout_rate(dropout):
    """Require ``dropout`` to be a number from 0 up to, but not including, 1.

    Raises:
        TypeError: no real number.
        ValueError: outside [0, 1), or NaN.
    """
    if isinstance(dropout, bool) or not isinstance(dropout, Real):
        raise TypeError(
            f"dropout must be a number in [0, 1), but got {dropout!r} "
            f"({type(dropout).__name__}). Pass 0.0 for no dropout."
        )
    if not 0 <= dropout < 1:
        raise ValueError(
            f"dropout must be a number in [0, 1), but got {dropout}. Pass the share "
            f"of weights to drop: 0.0 drops none, 0.1 a tenth."
        )


def scores(x):
    """Require ``x`` to hold at least one floating-point score along dimension 0.

    Raises:
        TypeError: no tensor, or one that holds no floating-point numbers.
        ValueError: no dimension, or no entry along dimension 0.
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError(
            f"x must be a tensor of scores, but got {type(x).__name__}. "
            f"Wrap the numbers in torch.tensor(...)."
        )
    if not x.is_floating_point():
        raise TypeError(
            f"x must hold floating-point numbers, but its dtype is {x.dtype}. "
            f"Convert it with x.float()."
        )
    if x.dim() == 0 or x.shape[0] == 0:
        raise ValueError(
            f"x must hold at least one score along dimension 0, but got the shape "
            f"{tuple(x.shape)}. Pass a vector such as torch.tensor([0.5, 1.0])."
        )


def tokens(x, d_in=None, dims=(3,), context_length=None):
    """Require ``x`` to hold token vectors that the caller can compute with.

    Args:
        x: what was passed in; right is a floating-point tensor (…, t, d_in).
        d_in: the width that the weights expect; ``None`` allows any.
        dims: the numbers of dimensions that are allowed.
        context_length: the most tokens allowed; ``None`` sets no limit.

    Raises:
        TypeError: no tensor, or one that holds no floating-point numbers.
        ValueError: wrong number of dimensions, wrong last dimension, no token,
            or more tokens than ``context_length``.
    """
    layouts = {1: "(t,)", 2: "(t, d_in)", 3: "(b, t, d_in)"}
    expected = " or ".join(layouts[n] for n in dims)
    if not isinstance(x, torch.Tensor):
        raise TypeError(
            f"x must be a tensor of shape {expected}, but got {type(x).__name__}. "
            f"Wrap the numbers in torch.tensor(...)."
        )
    if not x.is_floating_point():
        raise TypeError(
            f"x must hold floating-point numbers, but its dtype is {x.dtype}. "
            f"Token ids go through an embedding first; other numbers through x.float()."
        )
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


def _how_to_reshape(given, allowed):
    if given == 2 and 3 in allowed:
        return "For one sequence, x.unsqueeze(0) makes a batch of one."
    if given == 1 and 2 in allowed:
        return "For one token, x.unsqueeze(0) makes a sequence of one."
    return "Use one dimension each for batch, tokens and features."


def kv_heads(num_heads, num_kv_heads):
    """Require ``num_kv_heads`` to divide ``num_heads``, so that groups are equal.

    Raises:
        ValueError: a remainder is left.
    """
    if num_heads % num_kv_heads != 0:
        fitting = [n for n in range(1, num_heads + 1) if num_heads % n == 0]
        raise ValueError(
            f"num_kv_heads must divide num_heads, but got num_kv_heads={num_kv_heads} "
            f"and num_heads={num_heads}. For num_heads={num_heads}, num_kv_heads can "
            f"be {', '.join(map(str, fitting))}."
        )


def instance(name, value, kind, advice):
    """Require ``value`` to be an object of the class ``kind``.

    Raises:
        TypeError: it is not; the message ends with ``advice``.
    """
    if not isinstance(value, kind):
        raise TypeError(
            f"{name} must be a {kind.__name__}, but got {type(value).__name__}. "
            f"{advice}"
        )


def memory(memory, x, d_in):
    """Require ``memory`` to hold the tokens that ``x`` can attend to.

    Raises:
        TypeError: no floating-point tensor.
        ValueError: not (b, t_k, d_in) with the batch size of ``x``, or no token.
    """
    instance("memory", memory, torch.Tensor, "Pass token vectors (b, t_k, d_in).")
    if not memory.is_floating_point():
        raise TypeError(
            f"memory must hold floating-point numbers, but its dtype is "
            f"{memory.dtype}. Convert it with memory.float()."
        )
    shape = tuple(memory.shape)
    right = len(shape) == 3 and shape[0] == x.shape[0] and shape[2] == d_in
    if not right or shape[1] == 0:
        raise ValueError(
            f"memory must have the shape (b, t_k, d_in) with b={x.shape[0]} as in x, "
            f"d_in={d_in} and at least one token, but got {shape}. Pass one sequence "
            f"of token vectors for each sequence of x."
        )


def cache_fits(cache, layer, new_keys, new_values):
    """Require a key-value cache to belong to ``layer`` and to have room.

    Args:
        cache: a ``KeyValueCache``.
        layer: the layer about to add to it.
        new_keys: the keys to add, (b, h_kv, t, d_head).
        new_values: the values to add, of the same shape, dtype and device.

    Raises:
        RuntimeError: keys or values carry a gradient, which the cache would lose.
        ValueError: another layer's cache, no room, or another batch size, dtype or
            device than the keys in it.
    """
    if new_keys.requires_grad or new_values.requires_grad:
        raise RuntimeError(
            "a cache is for generation and keeps no gradients, but gradients are on. "
            "Call the layer under torch.no_grad(), or train it without cache."
        )
    past, num_tokens = cache.length, new_keys.shape[2]
    if past + num_tokens > layer.context_length:
        raise ValueError(
            f"the cache holds {past} tokens and x adds {num_tokens}, but "
            f"context_length={layer.context_length} is the most that the layer takes. "
            f"Stop here, or clear the cache and start again from the latest tokens."
        )
    if cache.layer is None:
        return
    if cache.layer is not layer:
        raise ValueError(
            "this cache was filled by another layer, and the two have different keys. "
            "Make one KeyValueCache() for each layer of a model."
        )
    if new_keys.shape[0] != cache.batch_size:
        raise ValueError(
            f"x must have the batch size of the cached tokens, {cache.batch_size}, but "
            f"got {new_keys.shape[0]}. Continue with the same sequences, or pass a new "
            f"KeyValueCache()."
        )
    if (new_keys.dtype, new_keys.device) != (cache.dtype, cache.device):
        raise ValueError(
            f"the cache holds {cache.dtype} on {cache.device}, but the new keys are "
            f"{new_keys.dtype} on {new_keys.device}. Move the model before the first "
            f"token, or pass a new KeyValueCache()."
        )


def saved_mask(key, mask, context_length):
    """Say what is wrong with the causal mask of a checkpoint.

    Args:
        key: its name in the checkpoint.
        mask: what stands there.
        context_length: the size that the layer expects.

    Returns:
        A list of messages, empty when the mask is right.
    """
    expected = (context_length, context_length)
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


def state_dict(state):
    """Require a mapping of names to tensors, such as ``layer.state_dict()``.

    Raises:
        TypeError: no mapping.
    """
    if not isinstance(state, Mapping):
        raise TypeError(
            f"state must be a state dict, but got {type(state).__name__}. "
            f"Pass layer.state_dict()."
        )


def checkpoint(state, prefix, required, optional=()):
    """Take the tensors of one layer out of a state dict.

    Args:
        state: names and tensors.
        prefix: what the names of this layer start with; others are ignored.
        required: the names that must be there, without prefix.
        optional: the names that may be.

    Returns:
        A new dict of the tensors, without prefix.

    Raises:
        KeyError: a name is missing or unknown.
        TypeError: ``state`` is no dict, or a value in it no tensor.
    """
    state_dict(state)
    given = {k[len(prefix) :]: v for k, v in state.items() if k.startswith(prefix)}
    missing = [prefix + name for name in required if name not in given]
    unknown = [prefix + name for name in given if name not in {*required, *optional}]
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


def weight_shape(name, tensor, shape):
    """Require a weight to have exactly ``shape``.

    Raises:
        ValueError: it has another one.
    """
    if tuple(tensor.shape) != tuple(shape):
        raise ValueError(
            f"{name} must have the shape {tuple(shape)} to fit the other weights, but "
            f"got {tuple(tensor.shape)}. Check that all come from the same layer."
        )


def matrix(name, tensor):
    """Require a weight to have two dimensions.

    Raises:
        ValueError: it has another number of them.
    """
    if tensor.dim() != 2:
        raise ValueError(
            f"{name} must be a matrix, but got the shape {tuple(tensor.shape)}. "
            f"Pass the weights as the layer stores them."
        )


def packed(names, weight, bias, out_weight, out_bias):
    """Require a packed layout to split into queries, keys and values.

    Args:
        names: what the four tensors are called.
        weight: (d_out + 2 · d_kv, d_in).
        bias: (d_out + 2 · d_kv,) or ``None``.
        out_weight: (d_out, d_out).
        out_bias: (d_out,) or ``None``.

    Raises:
        ValueError: a shape does not fit the others.
    """
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


def our_layout(given, ungrouped=None):
    """Require a state dict with our names to have weights of shapes that fit.

    Args:
        given: its tensors.
        ungrouped: who takes no grouped heads, ``None`` if they are welcome.

    Raises:
        ValueError: a shape does not fit the others, or heads are grouped.
    """
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


def zero(name, bias):
    """Require a bias that is about to be dropped to be zero.

    Raises:
        ValueError: a number in it is not.
    """
    if bias.any():
        raise ValueError(
            f"{name} is to be dropped, but it is not zero: its largest entry is "
            f"{bias.abs().max().item():.3g}. Build the layer with qkv_bias=True and "
            f"leave qkv_bias out here."
        )


def block_rows(name, rows, outer, inner):
    """Require the first axis of a weight to split into outer · inner equal blocks.

    Raises:
        TypeError: ``outer`` or ``inner`` is no integer.
        ValueError: a remainder is left.
    """
    sizes(num_heads=max(outer, inner))
    if rows.dim() == 0 or len(rows) % (outer * inner) != 0:
        raise ValueError(
            f"{name} must split into {outer} · {inner} blocks of equally many rows, "
            f"but got the shape {tuple(rows.shape)}. Check num_heads."
        )


def process_group(started):
    """Require that ``torch.distributed`` has ``started`` a process group.

    Raises:
        RuntimeError: it has not.
    """
    if not started:
        raise RuntimeError(
            "there is no process group. Start the program with torchrun "
            "--nproc-per-node=N program.py, and call "
            'torch.distributed.init_process_group("gloo") in it first.'
        )


def one_dimension(mesh):
    """Require a ``DeviceMesh`` to have one dimension.

    Raises:
        ValueError: it has several.
    """
    if mesh.ndim != 1:
        raise ValueError(
            f"mesh must have one dimension, along which heads are split, but got "
            f"{mesh.ndim}: {mesh.mesh_dim_names}. Pass one of them by its name, such "
            f'as mesh["heads"].'
        )


def heads_per_rank(name, num_heads, ranks):
    """Require every rank to get the same number of whole heads.

    Raises:
        ValueError: a remainder is left.
    """
    if num_heads % ranks != 0:
        fitting = [n for n in range(1, num_heads + 1) if num_heads % n == 0]
        raise ValueError(
            f"{name} must be divisible by the number of ranks, but got "
            f"{name}={num_heads} and {ranks} ranks. For {name}={num_heads}, the number "
            f"of ranks can be {', '.join(map(str, fitting))}."
        )
