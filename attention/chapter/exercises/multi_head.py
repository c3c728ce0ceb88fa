"""Exercises on multi-head attention: sizes, parameters, a class to repair."""

import re

from torch import nn

from attention.chapter.exercises.classes import check_class
from attention.chapter.exercises.core import (
    Exercise,
    NotRight,
    described,
    number,
    of_length,
)
from attention.multi_head import MultiHeadAttention, MultiHeadAttentionWrapper

PAGE = "05_multi_head_attention"
GPT2 = {"smallest": (12, 768, 12), "largest": (25, 1600, 48)}  # heads, d, layers


def _two_wide(answer):
    if isinstance(answer, MultiHeadAttention):
        raise NotRight(
            "This is MultiHeadAttention, whose d_out is the width of the whole result. "
            "The exercise is about the wrapper, where it is the width of one head."
        )
    if isinstance(answer, MultiHeadAttentionWrapper):
        head = answer.heads[0]
        changed = {"d_in": head.W_query.in_features, "d_out": head.d_out,
                   "context_length": len(head.mask),
                   "num_heads": len(answer.heads)}  # fmt: skip
    else:
        changed = _arguments(answer)
    d_out, num_heads = changed.get("d_out", 2), changed.get("num_heads", 2)
    others = {"d_in": 3, "context_length": 6, "dropout": 0.0, "qkv_bias": False}
    for name, value in changed.items():
        if name not in {*others, "d_out", "num_heads"}:
            raise NotRight(f"The wrapper has no argument {name!r}.")
        if name in others and value != others[name]:
            raise NotRight(
                f"{name}={value} was changed. It does not touch the width of the "
                f"result."
            )
    if (d_out, num_heads) == (1, 2):
        return "In the wrapper d_out is the width of one head: two heads make two."
    if num_heads == 1 and d_out == 2:
        raise NotRight("The result is two wide, but one head is left. Two are to stay.")
    if num_heads != 2:
        raise NotRight(f"There are to be two heads, not {num_heads}.")
    if d_out == 2:
        raise NotRight(
            "With d_out=2 each head gives two numbers, so two heads make four."
        )
    raise NotRight(
        f"With d_out={d_out}, two heads make a result {2 * d_out} wide."
        if isinstance(d_out, int)
        else f"d_out must be a whole number, but got {described(d_out)}."
    )


def _arguments(answer):
    """Read {"d_out": 1}, or the text "d_out=1"."""
    advice = 'Pass the argument and its value, as in {"num_heads": 3}.'
    if isinstance(answer, dict):
        return answer
    if isinstance(answer, str):
        match = re.fullmatch(r"\s*(\w+)\s*=\s*(\d+)\s*,?\s*", answer)
        if match:
            return {match[1]: int(match[2])}
        if answer.strip() == "d_out":
            raise NotRight(f"That is the argument. And to which value? {advice}")
    if isinstance(answer, int) and not isinstance(answer, bool):
        raise NotRight(f"Which argument gets the value {answer}? {advice}")
    raise NotRight(
        f"One argument and its value is asked for, but got {described(answer)}. "
        f"{advice}"
    )


def _gpt2(answer):
    wanted = "A pair, for the smallest and the largest GPT-2,"
    if isinstance(answer, dict):
        answer = tuple(answer.values())
    parts = of_length(answer, 2, wanted)
    counts = [_parameters(part, wanted) for part in parts]
    right = [_right_counts(d) for _, d, _ in GPT2.values()]
    if counts[0] in right[1] and counts[1] in right[0]:
        raise NotRight("These are the right counts the other way round.")
    for count, part, size in zip(counts, parts, GPT2, strict=True):
        _one_size(count, part, size)
    if (counts[0] == right[0][1]) != (counts[1] == right[1][1]):
        raise NotRight(
            "One of the two has biases in its query, key and value layers, the other "
            "has none. Count both alike."
        )
    biases = "and" if counts[0] == right[0][1] else "but not"
    return (
        f"You counted four square matrices and the bias of out_proj, {biases} those "
        f"of queries, keys and values. One head is 64 wide in both."
    )


def _right_counts(d):
    return 4 * d * d + d, 4 * d * d + 4 * d


def _parameters(part, wanted):
    if isinstance(part, nn.Module):
        return sum(p.numel() for p in part.parameters())
    return number(part, wanted)


def _one_size(count, part, size):
    heads, d, layers = GPT2[size]
    if isinstance(part, MultiHeadAttention):
        settings = part.num_heads, part.d_out, len(part.mask)
        names = "num_heads", "d_out", "context_length"
        for name, given, right in zip(names, settings, (heads, d, 1024), strict=True):
            if given != right:
                raise NotRight(
                    f"The {size} GPT-2 has {name}={right}, but your layer has {given}."
                )
    counts = _right_counts(d)
    if count in counts:
        return
    square = d * d
    hints = [
        (c + 1024**2, "The mask is counted. It is a buffer and not trained.")
        for c in counts
    ]
    hints += [
        (
            c * layers,
            "This counts the layers of the whole model. One attention "
            "layer is asked for.",
        )
        for c in counts
    ]
    hints += [
        (c * heads, "The heads share the width d_out, so their number does not enter.")
        for c in counts
    ]
    hints += [
        (4 * square, "The bias of out_proj is missing: it has one, whatever qkv_bias."),
        (3 * square, "out_proj is missing: a fourth matrix and its bias."),
        (3 * square + 3 * d, "out_proj is missing: a fourth matrix and its bias."),
        (square, "This is one of the four matrices."),
    ]  # fmt: skip
    for wrong, hint in hints:
        if count == wrong:
            raise NotRight(f"The {size} one: {hint}")
    raise NotRight(
        f"The {size} one does not have {count:,.0f} parameters. Count the four layers "
        f"W_query, W_key, W_value and out_proj, each {d} wide."
    )


def _repaired(answer):
    return check_class(
        answer,
        "Nothing is left. Shape checks would have passed all three mistakes.",
        d_in=8,
        d_out=8,
        context_length=8,
        dropout=0.0,
        num_heads=2,
    )


EXERCISES = [
    Exercise("3.2", PAGE, "One argument and its value", _two_wide),
    Exercise("3.3", PAGE, "A pair of layers or counts", _gpt2),
    Exercise("repair", PAGE, "A class derived from nn.Module", _repaired),
]  # fmt: skip
