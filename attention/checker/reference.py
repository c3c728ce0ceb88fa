"""Attention computed step by step in float64, right or with one mistake at a time."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Recipe:
    """How to compute attention. The defaults are right; each change is a mistake.

    Attributes:
        source: what queries, keys and values are made with: "q", "k", "v" for the
            projections, "x" for the input itself.
        split: how queries, keys and values are cut into heads.
        join: how the heads are put together.
        attend: "tokens", or "heads" for attention among the heads of one token.
        scale: what the scores are multiplied with; see :func:`_factor`.
        mask: which scores are hidden; see :func:`hidden`.
        fill: the score of a hidden position.
        mask_by: "fill", "adding ones", or "after softmax".
        softmax: the axis that is normalized, or "none", "twice", "all", "safe".
        turned: "scores" or "weights" to transpose these.
        scale_weights: also divide the attention weights by √d_head.
        groups: "blocks" if neighboring query heads share a key, or "tiles".
        use_bias, use_out, add_input: what the layer adds around attention.
        merge: "concatenate" heads, or "sum" or "mean" them.
        one_head: not to split at all.
    """

    source: tuple = ("q", "k", "v")
    split: tuple = ("transpose", "transpose", "transpose")
    join: str = "transpose"
    attend: str = "tokens"
    scale: str = "1/√d_head"
    mask: str = "future"
    fill: float = -torch.inf
    mask_by: str = "fill"
    softmax: int | str = -1
    turned: str = ""
    scale_weights: bool = False
    groups: str = "blocks"
    use_bias: bool = True
    use_out: bool = True
    add_input: bool = False
    merge: str = "concatenate"
    one_head: bool = False


RIGHT = Recipe()


def attention(x, projections, recipe=RIGHT):
    """Compute the layer's output (b, t, width) for tokens ``x`` (b, t, d_in).

    Raises:
        RuntimeError: the recipe does not fit the shapes, so it is not the mistake.
    """
    x = x.double()
    h = 1 if recipe.one_head else projections.num_heads
    made = {name: _project(x, pair, recipe) for name, pair in _pairs(projections)}
    made["x"] = x
    factor = _factor(recipe.scale, projections, x.shape[1])
    parts = []
    for name, how in zip(recipe.source, recipe.split, strict=True):
        width = made[name].shape[-1]
        heads = 1 if recipe.one_head else width // projections.d_head
        parts.append(_split(made[name], max(heads, 1), how))
    q, k, v = parts  # each (b, h, t, d_head)
    k, v = (_share(part, h, recipe.groups) for part in (k, v))
    if recipe.attend == "heads":
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
    weights = _weights(q @ k.transpose(2, 3) * factor, recipe)
    if recipe.scale_weights:
        weights = weights * projections.d_head**-0.5
    context = weights @ v
    if recipe.attend == "heads":
        context = context.transpose(1, 2)
    context = _join(context, recipe)
    if projections.out is not None and recipe.use_out:
        context = _project_with(context, projections.out, use_bias=True)
    return context + x if recipe.add_input else context


def hidden(which, t_q, t_k):
    """Return the mask (t_q, t_k), True where a score is hidden."""
    i, j = torch.arange(t_q)[:, None], torch.arange(t_k)[None, :]
    return {
        "future": j > i,
        "none": (j > i) & False,
        "past": j < i,
        "future and self": j >= i,
        "past and self": j <= i,
        "beyond the next": j > i + 1,
    }[which]


def _pairs(projections):
    return [
        ("q", projections.query),
        ("k", projections.key),
        ("v", projections.value),
    ]


def _project(x, pair, recipe):
    return _project_with(x, pair, recipe.use_bias)


def _project_with(x, pair, use_bias):
    weight, bias = pair
    y = x @ weight.double().T
    return y + bias.double() if use_bias and bias is not None else y


def _factor(scale, projections, t):
    d_head, d_out = projections.d_head, projections.query[0].shape[0]
    return {
        "1/√d_head": d_head**-0.5,
        "1": 1.0,
        "1/√d_out": d_out**-0.5,
        "1/√d_in": projections.d_in**-0.5,
        "1/d_head": 1 / d_head,
        "1/d_out": 1 / d_out,
        "√d_head": d_head**0.5,
        "1/√t": t**-0.5,
        "1/√h": projections.num_heads**-0.5,
    }[scale]


def _split(x, h, how):
    """Cut (b, t, width) into heads (b, h, t, d_head), as meant or as mistaken."""
    b, t, width = x.shape
    if how == "view":  # straight to the target shape: mixes tokens
        return x.reshape(b, h, t, width // h)
    if how == "interleaved":  # heads and d_head exchanged
        return x.reshape(b, t, width // h, h).permute(0, 3, 1, 2)
    return x.reshape(b, t, h, width // h).transpose(1, 2)


def _share(x, h, groups):
    """Repeat the keys or values of grouped heads until there are h."""
    repeats = h // x.shape[1]
    if repeats <= 1:
        return x
    if groups == "tiles":
        return x.repeat(1, repeats, 1, 1)
    return x.repeat_interleave(repeats, dim=1)


def _weights(scores, recipe):
    mask = hidden(recipe.mask, *scores.shape[-2:])
    if recipe.turned == "scores":
        scores = scores.transpose(-2, -1)
    if recipe.mask_by == "adding ones":
        scores = scores + mask
    elif recipe.mask_by == "fill":
        scores = scores.masked_fill(mask, recipe.fill)
    weights = _normalize(scores, recipe.softmax)
    if recipe.mask_by == "after softmax":
        weights = weights.masked_fill(mask, 0.0)
    return weights.transpose(-2, -1) if recipe.turned == "weights" else weights


def _normalize(scores, how):
    if how == "none":
        return scores
    if how == "all":
        return torch.softmax(scores.flatten(1), dim=-1).view(scores.shape)
    if how == "twice":
        return torch.softmax(torch.softmax(scores, dim=-1), dim=-1)
    if how == "safe":  # as PyTorch's own: zeros where everything is hidden
        return torch.softmax(scores, dim=-1).nan_to_num(0.0)
    return torch.softmax(scores, dim=how)


def _join(context, recipe):
    """Put heads (b, h, t, d_head) together to (b, t, width)."""
    b, h, t, d_head = context.shape
    if recipe.merge != "concatenate":
        total = context.sum(dim=1)
        return total / h if recipe.merge == "mean" else total
    if recipe.join == "view":  # without moving the heads back: mixes tokens
        return context.reshape(b, t, h * d_head)
    if recipe.join == "interleaved":
        return context.permute(0, 2, 3, 1).reshape(b, t, h * d_head)
    return context.transpose(1, 2).reshape(b, t, h * d_head)
