"""What a head does: its weights, three scores, and what is lost without it."""

from contextlib import contextmanager

import torch

from attention import functional


@torch.no_grad()
def attention_weights(model, tokens):
    """Give the attention weights of every head of a ``TinyGPT``.

    ``MultiHeadAttention`` does not hand out its weights. They follow from its input
    and its query and key weights, as in section 3.6.2.

    Args:
        model: a ``TinyGPT`` in ``eval()`` mode.
        tokens: integers (b, t).

    Returns:
        Weights (b, blocks, h, t, t).
    """
    inputs = []
    hooks = [
        block.attention.register_forward_pre_hook(lambda _, args: inputs.append(*args))
        for block in model.blocks
    ]
    try:
        model(tokens)
    finally:
        for hook in hooks:
            hook.remove()
    layers = [block.attention for block in model.blocks]
    pairs = zip(layers, inputs, strict=True)
    return torch.stack([_weights(layer, x) for layer, x in pairs], dim=1)


def _weights(layer, x):
    queries, keys = [
        projection(x).unflatten(-1, (layer.num_heads, -1)).transpose(1, 2)
        for projection in (layer.W_query, layer.W_key)
    ]  # (b, h, t, d_head)
    mask = functional.causal_mask(x.shape[1])
    return functional.attention_weights(queries, keys, mask)  # (b, h, t, t)


def previous_token_score(weights, tokens):
    """Give the mean weight from a new token to the one before it.

    Args:
        weights: (b, ..., t, t).
        tokens: the sequences that the weights were computed for, integers (b, t).

    Returns:
        Scores (...), from 0 to 1: means over tokens without an earlier copy, the
        first of each sequence aside.
    """
    new = ~after_copy(tokens).any(dim=2)[:, 1:]  # (b, t - 1)
    looked = weights.diagonal(offset=-1, dim1=-2, dim2=-1)  # (b, ..., t - 1)
    new = new.view(len(new), *(1,) * (weights.dim() - 3), -1)
    return (looked * new).sum(dim=(0, -1)) / new.sum()


def induction_score(weights, tokens):
    """Give the mean weight from a token to those that followed its earlier copies.

    In "A B C A B C", the second A looks at the first B. That is the token to say next.

    Args:
        weights: (b, ..., t, t).
        tokens: the sequences that the weights were computed for, integers (b, t).

    Returns:
        Scores (...), from 0 to 1: means over all tokens with an earlier copy.
    """
    copies = after_copy(tokens)  # (b, t, t)
    repeated = copies.any(dim=2).sum()
    copies = copies.view(len(copies), *(1,) * (weights.dim() - 3), *copies.shape[1:])
    return (weights * copies).sum(dim=(0, -2, -1)) / repeated


def sink_score(weights, tokens):
    """Give the mean weight from a new token to the first one of its sequence.

    A softmax has to give its weight to something. Where there is nothing to find, many
    heads give it to the first token (Xiao et al., 2023, call it an attention sink).

    Args:
        weights: (b, ..., t, t).
        tokens: the sequences that the weights were computed for, integers (b, t).

    Returns:
        Scores (...), from 0 to 1: means over tokens without an earlier copy, the
        first two of each sequence aside, which have little else to look at.
    """
    new = ~after_copy(tokens).any(dim=2)[:, 2:]  # (b, t - 2)
    looked = weights[..., 2:, 0]  # (b, ..., t - 2)
    new = new.view(len(new), *(1,) * (weights.dim() - 3), -1)
    return (looked * new).sum(dim=(0, -1)) / new.sum()


def after_copy(tokens):
    """Tell which keys come right after an earlier copy of which query.

    Args:
        tokens: integers (b, t).

    Returns:
        Booleans (b, t, t), True where key j follows a copy of query i, and j ≤ i.
    """
    b, t = tokens.shape
    found = torch.zeros(b, t, t, dtype=torch.bool)
    found[:, :, 1:] = tokens.unsqueeze(2) == tokens[:, :-1].unsqueeze(1)
    return found.tril()


@torch.no_grad()
def mean_output(model, tokens, block, head):
    """Give a head's mean output over all tokens, (d_head,)."""
    layer, seen = model.blocks[block].attention, []
    hook = layer.out_proj.register_forward_pre_hook(lambda _, args: seen.append(*args))
    try:
        model(tokens)
    finally:
        hook.remove()
    return seen[0][..., _columns(layer, head)].mean(dim=(0, 1))


def _columns(layer, head):
    return slice(head * layer.head_dim, (head + 1) * layer.head_dim)


@contextmanager
def without_head(model, block, head, instead=None):
    """Silence one head while the context lasts, and restore it afterwards.

    The numbers of head k reach the model through d_head columns of ``out_proj``.

    Args:
        model: a ``TinyGPT``.
        block: index of the block.
        head: index of the head.
        instead: what the head says in place of its output, (d_head,), the same for
            every token, such as its :func:`mean_output`; ``None`` means zeros.

    Yields:
        The model without that head.
    """
    layer = model.blocks[block].attention
    columns = _columns(layer, head)
    weight, bias = layer.out_proj.weight.data, layer.out_proj.bias.data
    kept = weight[:, columns].clone(), bias.clone()
    if instead is not None:
        bias += weight[:, columns] @ instead
    weight[:, columns] = 0
    try:
        yield model
    finally:
        weight[:, columns] = kept[0]
        bias.copy_(kept[1])


@contextmanager
def cut(model, tokens, head, parts, instead=None):
    """Take a head of block one out of what some parts of block two's attention read.

    The rest of the model, the other parts included, still gets that head's output.

    Args:
        model: a ``TinyGPT`` with two blocks.
        tokens: integers (b, t), which the model has to be called with afterwards.
        head: index of the head in block one.
        parts: which of "query", "key" and "value" are to do without it.
        instead: as in :func:`without_head`.

    Yields:
        The model with those wires cut.
    """
    layer, seen = model.blocks[1].attention, []
    hooks = [layer.register_forward_pre_hook(lambda _, args: seen.append(*args))]
    try:
        with without_head(model, 0, head, instead), torch.no_grad():
            model(tokens)
        hooks.pop().remove()
        for part in parts:
            projection = layer.get_submodule(f"W_{part}")
            hooks.append(projection.register_forward_pre_hook(lambda *_: (seen[0],)))
        yield model
    finally:
        for hook in hooks:
            hook.remove()
