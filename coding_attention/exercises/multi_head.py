"""Exercises on multi-head attention: sizes, parameters, a class to repair."""

import re

from torch import nn

from attention.multi_head import MultiHeadAttention, MultiHeadAttentionWrapper
from coding_attention.exercises.classes import check_class
from coding_attention.exercises.core import (
    Exercise,
    NotRight,
    described,
    number,
    of_length,
)
from coding_attention.exercises.table import Field, Table, right, wrong

PAGE = "05_multi_head_attention"
GPT2 = {"smallest": (12, 768, 12), "largest": (25, 1600, 48)}  # heads, d, layers


OTHERS = {"d_in": 3, "context_length": 6, "dropout": 0.0, "qkv_bias": False}


def _read_two_wide(answer):
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
    sizes = {"d_out": 2, "num_heads": 2, "other": "none"}
    for name, value in changed.items():
        if name in OTHERS:
            if value != OTHERS[name]:
                sizes["other"] = f"{name}={value}"
        elif name not in sizes:
            raise NotRight(f"The wrapper has no argument {name!r}.")
        elif isinstance(value, bool) or not isinstance(value, int | float):
            raise NotRight(f"{name} must be a number, but got {described(value)}.")
        else:
            sizes[name] = value
    whole = sizes["d_out"] % 1 == 0
    return sizes | {"whole": "yes" if whole else "no", "width": 2 * sizes["d_out"]}


_TWO_WIDE = Table(
    "One argument and its value",
    (
        Field(
            "argument",
            "choice",
            "The argument",
            tuple((name, name) for name in ("d_out", "num_heads", *OTHERS)),
        ),
        Field("value", "number", "Its value"),
    ),
    (
        right(
            "In the wrapper d_out is the width of one head: two heads make two.",
            other=("none",),
            num_heads=(2,),
            d_out=(1,),
        ),
        wrong("d_out must be a whole number, but got {d_out}.", whole=("no",)),
        wrong(
            "With d_out=2 each head gives two numbers, so two heads make four.",
            other=("none",),
            num_heads=(2,),
            d_out=(2,),
        ),
        wrong(
            "With d_out={d_out}, two heads make a result {width} wide.",
            other=("none",),
            num_heads=(2,),
        ),
        wrong(
            "The result is two wide, but one head is left. Two are to stay.",
            other=("none",),
            num_heads=(1,),
            d_out=(2,),
        ),
        wrong("There are to be two heads, not {num_heads}.", other=("none",)),
        wrong("{other} was changed. It does not touch the width of the result."),
    ),
    read=_read_two_wide,
    derived=(
        Field("d_out", "number"),
        Field("num_heads", "number"),
        Field("width", "number"),
        Field("whole", "text"),
        Field("other", "text"),
    ),
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


_PAIR = "A pair, for the smallest and the largest GPT-2,"


def _read_counts(answer):
    if isinstance(answer, dict):
        answer = tuple(answer.values())
    parts = of_length(answer, 2, _PAIR)
    counts = dict(zip(GPT2, (_parameters(part) for part in parts), strict=True))
    if not _exchanged(counts):
        for part, size in zip(parts, GPT2, strict=True):
            _look_at_settings(part, size)
    return counts


def _right_counts(d):
    return 4 * d * d + d, 4 * d * d + 4 * d


SMALLEST, LARGEST = (_right_counts(d) for _, d, _ in GPT2.values())


def _exchanged(counts):
    return counts["smallest"] in LARGEST and counts["largest"] in SMALLEST


def _parameters(part):
    if isinstance(part, nn.Module):
        return sum(p.numel() for p in part.parameters())
    return number(part, _PAIR)


def _look_at_settings(part, size):
    if not isinstance(part, MultiHeadAttention):
        return
    heads, d, _ = GPT2[size]
    settings = part.num_heads, part.d_out, len(part.mask)
    names = "num_heads", "d_out", "context_length"
    for name, given, wanted in zip(names, settings, (heads, d, 1024), strict=True):
        if given != wanted:
            raise NotRight(
                f"The {size} GPT-2 has {name}={wanted}, but your layer has {given}."
            )


def _wrong_counts(size):
    """Return pairs (a wrong count, words), likely ones first."""
    heads, d, layers = GPT2[size]
    square, counts = d * d, _right_counts(d)
    no_out_proj = "out_proj is missing: a fourth matrix and its bias."
    pairs = [
        *(
            (c + 1024**2, "The mask is counted. It is a buffer and not trained.")
            for c in counts
        ),
        *(
            (
                c * layers,
                "This counts the layers of the whole model. One attention layer is "
                "asked for.",
            )
            for c in counts
        ),
        *(
            (
                c * heads,
                "The heads share the width d_out, so their number does not enter.",
            )
            for c in counts
        ),
        (4 * square, "The bias of out_proj is missing: it has one, whatever qkv_bias."),
        (3 * square, no_out_proj),
        (3 * square + 3 * d, no_out_proj),
        (square, "This is one of the four matrices."),
    ]
    # The smallest GPT-2 has as many layers as heads: the first words count.
    return list(dict(reversed(pairs)).items())[::-1]


def _rules_of(size, **others):
    """Make the rules for one size; ``others`` is what must hold besides."""
    d = GPT2[size][1]
    return [
        *(
            wrong(f"The {size} one: {say}", **others, **{size: (count,)})
            for count, say in _wrong_counts(size)
        ),
        wrong(
            f"The {size} one does not have {{{size}}} parameters. Count the four "
            f"layers W_query, W_key, W_value and out_proj, each {d} wide.",
            **others,
        ),
    ]


def _counted(biases):
    return (
        f"You counted four square matrices and the bias of out_proj, {biases} those "
        f"of queries, keys and values. One head is 64 wide in both."
    )


_GPT2 = Table(
    _PAIR,
    tuple(
        Field(size, "count", f"Parameters of one layer, {size} GPT-2") for size in GPT2
    ),
    (
        wrong(
            "These are the right counts the other way round.",
            smallest=LARGEST,
            largest=SMALLEST,
        ),
        right(_counted("but not"), smallest=SMALLEST[:1], largest=LARGEST[:1]),
        right(_counted("and"), smallest=SMALLEST[1:], largest=LARGEST[1:]),
        wrong(
            "One of the two has biases in its query, key and value layers, the other "
            "has none. Count both alike.",
            smallest=SMALLEST,
            largest=LARGEST,
        ),
        *_rules_of("largest", smallest=SMALLEST),
        *_rules_of("smallest"),
    ),
    read=_read_counts,
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
    Exercise("3.2", PAGE, "One argument and its value", _TWO_WIDE),
    Exercise("3.3", PAGE, "A pair of layers or counts", _GPT2),
    Exercise("repair", PAGE, "A class derived from nn.Module", _repaired),
]  # fmt: skip
