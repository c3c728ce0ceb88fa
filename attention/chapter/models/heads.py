"""What a head does: its weights, two scores, and what is lost without it."""

from contextlib import contextmanager

import torch


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
    b, t, _ = x.shape
    split = (b, t, layer.num_heads, layer.head_dim)
    queries = layer.W_query(x).view(split).transpose(1, 2)  # (b, h, t, d_head)
    keys = layer.W_key(x).view(split).transpose(1, 2)
    scores = queries @ keys.transpose(2, 3) / layer.head_dim**0.5  # (b, h, t, t)
    future = torch.ones(t, t, dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(future, -torch.inf), dim=-1)


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


@contextmanager
def without_head(model, block, head):
    """Silence one head while the context lasts, and restore it afterwards.

    The numbers of head k reach the model through d_head columns of ``out_proj``.

    Args:
        model: a ``TinyGPT``.
        block: index of the block.
        head: index of the head.

    Yields:
        The model without that head.
    """
    layer = model.blocks[block].attention
    columns = slice(head * layer.head_dim, (head + 1) * layer.head_dim)
    weight = layer.out_proj.weight.data
    kept = weight[:, columns].clone()
    weight[:, columns] = 0
    try:
        yield model
    finally:
        weight[:, columns] = kept
