"""Heads of a trained model of English, small enough to travel with the book.

The model is all-MiniLM-L6-v2, which reads a whole sentence, with no mask. Layers and
heads are counted from zero: head "3.1" is the second of the fourth layer. Tokens are
the model's own, with [CLS] before the first word and [SEP] behind the last.
``python -m experiments.real`` makes what is stored; NOTICE names whose it is.
"""

import functools

import torch

from coding_attention.models import stored

WIDTH, HEAD_WIDTH = 384, 32
LAYER = 1  # the one of which all heads are stored


@functools.cache
def facts():
    """Read what was measured, and what is stored of which sentence."""
    return stored.load_results("real")


@functools.cache
def _tensors(name):
    return stored.load_weights(f"real_{name}")


def load_head(layer, name):
    """Copy the weights of a head into a layer of any class.

    Args:
        layer: has linear layers with biases called W_query, W_key and W_value, from
            384 numbers to 32, such as ``SelfAttention_v2(384, 32, qkv_bias=True)``.
        name: of the head, "0.2" or "3.1".

    Returns:
        The layer.
    """
    with torch.no_grad():
        for part in ("W_query", "W_key", "W_value"):
            linear = getattr(layer, part)
            for kind in ("weight", "bias"):
                given = _tensors("heads")[f"{name}.{part}.{kind}"]
                getattr(linear, kind).copy_(given)
    return layer


def sentences(name):
    """List the sentences whose input is stored for a head or for layer "1"."""
    return facts()["states"][name]


def pairs():
    """List 20 pairs: two times (sentence, query, target), with one word exchanged."""
    return facts()["pairs"]


def states(name, sentence):
    """Give what a head, or layer "1", reads of a sentence.

    Returns:
        Its tokens, and their states (t, 384).
    """
    tokens = facts()["tokens"].get(sentence)
    return tokens, _tensors("states")[_place(name, sentence)].float()


def output(name, sentence):
    """Give what the model's head (t, 32) or layer (t, 384) makes of :func:`states`."""
    return _tensors("states")[f"{_place(name, sentence)}.out"].float()


def _place(name, sentence):
    if sentence not in sentences(name):
        raise ValueError(
            f"No states of {sentence!r} are stored for {name}; sentences({name!r}) "
            "lists those that are."
        )
    return f"{name}.{sentences(name).index(sentence)}"


def layer_state():
    """Give the weights of all twelve heads of layer 1, as the model calls them."""
    return {name: tensor.float() for name, tensor in _tensors("layer").items()}


def find(words, word):
    """Give the place of a word; ``word#2`` is its second occurrence."""
    word, _, count = word.partition("#")
    places = [i for i, other in enumerate(words) if other == word]
    return places[int(count or 1) - 1]
