"""Exercises on causal attention."""

import torch

from coding_attention.exercises.classes import check_class
from coding_attention.exercises.core import (
    Exercise,
    FunctionCheck,
    NotRight,
    described,
    of_length,
)
from coding_attention.exercises.table import Field, Table, hints, right, wrong

PAGE = "04_causal_attention"


def _hide(num_tokens, diagonal=1):
    return torch.ones(num_tokens, num_tokens).triu(diagonal).bool()


_MASK_MISTAKES = (
    (
        lambda t: _hide(t, 0),
        "It hides the diagonal too, so a token does not see itself and the first one "
        "sees nothing: softmax gives NaN. Start one place further to the right.",
    ),
    (
        lambda t: ~_hide(t),
        "True stands where a token may look. True = hide is asked for, as masked_fill "
        "wants it; scaled_dot_product_attention wants True = keep.",
    ),
    (
        lambda t: _hide(t).T,
        "It hides the past and shows the future. Rows are queries, columns are keys: "
        "hidden are the columns to the right of the diagonal.",
    ),
    (
        lambda t: _hide(t, 2),
        "Each token still sees the next one. The first hidden place is right next to "
        "the diagonal.",
    ),
    (
        lambda t: _hide(t).float(),
        "The places are right, but they hold numbers. masked_fill wants True and "
        "False: .bool().",
    ),
    (
        lambda t: torch.zeros(t, t).masked_fill(_hide(t), -torch.inf),
        "This is a mask to add to the scores. Asked for is True and False.",
    ),
    (
        lambda t: torch.ones(t, t).tril(),
        "Ones stand where a token may look, and they are numbers. True = hide is asked "
        "for.",
    ),
    (
        lambda t: _hide(6),
        "It is right for six tokens and has that size for all others too. Use "
        "num_tokens.",
    ),
    (
        lambda t: torch.zeros(t, t).bool(),
        "It hides nothing.",
    ),
)


_SAME_WEIGHTS = (
    "Both fills give the same weights here, since exp of either is zero beside "
    "a score that is kept. What if no score is kept, or the scores themselves "
    "are that low?"
)
_FILL = Table(
    "A pair (scores, hidden_places)",
    (
        Field("scores", "numbers", "Scores", length=3),
        Field("hidden", "flags", "Hidden places", length=3),
    ),
    (
        wrong("Nothing is hidden, so no fill value is ever used.", hides=("nothing",)),
        wrong(_SAME_WEIGHTS, differs=("no",)),
        right(
            "Everything is hidden. The finite fill spreads the attention evenly over "
            "tokens that must not be seen; minus infinity gives NaN, which you notice.",
            hides=("everything",),
        ),
        right(
            "The scores that are kept are as low as the fill, so hidden tokens get "
            "weight. Minus infinity lies below every score."
        ),
    ),
    read=lambda answer: _read_fill(answer),
    derived=(Field("hides", "text"), Field("differs", "text")),
)


def _read_fill(answer):
    wanted = _FILL.wanted
    scores, hidden = of_length(answer, 2, wanted)
    if not isinstance(scores, torch.Tensor) or not isinstance(hidden, torch.Tensor):
        other = hidden if isinstance(scores, torch.Tensor) else scores
        raise NotRight(f"{wanted} of tensors is asked for, but one is "
                       f"{described(other)}.")  # fmt: skip
    if hidden.dtype != torch.bool:
        raise NotRight(
            f"hidden_places holds {hidden.dtype}, but masked_fill wants True and "
            f"False, True for what is hidden. Is the pair the other way round?"
        )
    if scores.shape != hidden.shape or scores.dim() != 1 or not len(scores):
        raise NotRight(
            f"One row of scores and one entry of hidden_places for each is asked for, "
            f"but the shapes are {tuple(scores.shape)} and {tuple(hidden.shape)}."
        )
    if not scores.is_floating_point() or not scores.isfinite().all():
        raise NotRight("The scores must be finite floating-point numbers.")
    scores = scores.detach().float()
    finite, infinite = (
        torch.softmax(scores.masked_fill(hidden, fill), dim=0)
        for fill in (-1e9, -torch.inf)
    )
    hides = "everything" if hidden.all() else "something" if hidden.any() else "nothing"
    return {
        "scores": scores.tolist(),
        "hidden": hidden.tolist(),
        "hides": hides,
        "differs": "no" if torch.equal(finite, infinite) else "yes",
    }


def _padding_cases():
    lengths = torch.tensor([[6], [4], [1]])
    at_the_end = torch.arange(6) >= lengths  # (b, t)
    # At the end, the causal mask hides it from all real tokens anyway.
    between = torch.tensor([[0, 1, 0, 0], [0, 0, 1, 1]]).bool()
    return [(at_the_end,), (between,)]


def _padding_right(is_padding):
    return _hide(is_padding.shape[1]) | is_padding[:, None, :]


_PADDING_MISTAKES = (
    (
        lambda p: _hide(p.shape[1]) | p[:, :, None],
        "It hides the rows of padding, where padding asks. Hidden must be the columns, "
        "where it is asked. And a row with everything hidden gives NaN.",
    ),
    (
        lambda p: _hide(p.shape[1]) | p[:, None, :] | p[:, :, None],
        "The columns are right. But it hides the rows of padding as well, and a row "
        "with everything hidden gives NaN.",
    ),
    (
        lambda p: _hide(p.shape[1]).expand(len(p), -1, -1),
        "It hides the future, and no padding.",
    ),
    (lambda p: _hide(p.shape[1]), "It hides the future, and no padding."),
    (
        lambda p: p[:, None, :].expand(-1, p.shape[1], -1),
        "It hides the padding, but not the future.",
    ),
    (
        lambda p: _hide(p.shape[1]) & p[:, None, :],
        "It hides what is both future and padding. One of the two is enough: |, not &.",
    ),
    (
        lambda p: _hide(p.shape[1]) ^ p[:, None, :],
        "Where future and padding meet, nothing is hidden: | is meant, not ^.",
    ),
    (
        lambda p: ~_padding_right(p),
        "True stands where a token may look. True = hide is asked for.",
    ),
    (
        lambda p: _hide(p.shape[1]) | ~p[:, None, :],
        "The padding is the wrong way round: it hides the real tokens.",
    ),
    (
        lambda p: _padding_right(p).float(),
        "The places are right, but they hold numbers. masked_fill wants True and "
        "False: |, not +.",
    ),
    (
        lambda p: _hide(p.shape[1]) + p[:, None, :].float(),
        "True and False became numbers, some of them two. Join them with |, not +.",
    ),
    (
        lambda p: _padding_right(p)[:, None],
        "The places are right, with an axis for heads that was not asked for. In "
        "multi-head attention it belongs there.",
    ),
)


_KEPT = [
    (0.5, "PyTorch rescales what it keeps, so that the mean stays."),
    (
        0.6,
        "Dividing by the share that is kept is not the same as adding the share that "
        "is dropped.",
    ),
    (
        2.5,
        "This divides by the share that is dropped. What is kept counts for what is "
        "dropped: divide by the share that is kept.",
    ),
    (
        0.4,
        "This multiplies by the share that is kept. It has to make up for what is "
        "dropped, so it gets larger.",
    ),
    (1.0, "It doubles at a rate of one half. The rate here is another."),
    (0.0, "A weight is zero when it is dropped. What is it when kept?"),
]
_AVERAGE = [
    (0.4, "What is kept was not rescaled in this mean."),
    (0.625, "This is the value when kept. In some of the draws it is zero."),
    (0.125, "This is how often it is dropped, times its value when kept."),
]
_DROPOUT = Table(
    "A pair of numbers, when kept and on average,",
    (
        Field("kept", "number", "The weight when it is kept"),
        Field("average", "number", "The weight on average"),
    ),
    (
        right(
            "What is kept is divided by the share that is kept. So the mean stays, and "
            "nothing needs to change when dropout is off.",
            kept=(0.625,),
            average=(0.5,),
        ),
        wrong(
            "The other way round: first what is kept, then the mean.",
            kept=(0.5,),
            average=(0.625,),
        ),
        *hints("kept", _KEPT),
        *(wrong(say, kept=(0.625,), average=(mean,)) for mean, say in _AVERAGE),
        wrong(
            "Add up: how often it is kept times its value then, and zero for the rest.",
            kept=(0.625,),
        ),
        wrong(
            "Which factor makes the mean over many draws equal to the weight itself?"
        ),
    ),
)

_COMPARE = "Compare what the two ways give to softmax, row by row."
_MIXED = Table(
    "One of the letters a to e",
    (
        Field(
            "line",
            "choice",
            "The line to blame",
            tuple((letter, f"line {letter}") for letter in "abcde"),
        ),
    ),
    (
        right(
            "One way divides the scores, the other does not. The divisor is the root "
            "of another model's key width; with one scale in lines c and e, whichever, "
            "both agree.",
            line=("c", "e"),
        ),
        wrong(
            "These are scores of simple self-attention. They need no scale, and both "
            f"ways start from the same ones. {_COMPARE}",
            line=("a",),
        ),
        wrong(
            "The mask is right: the future becomes minus infinity before softmax. "
            + _COMPARE,
            line=("b",),
        ),
        wrong(
            "Renormalizing is right, and keepdim=True pairs each row with its sum. "
            + _COMPARE
        ),
    ),
)


def _causal_class(answer):
    return check_class(
        answer,
        "The checker finds nothing: no leak, no NaN, gradients for all, and the same "
        "output as attention with your weights.",
        d_in=6,
        d_out=4,
        context_length=8,
        dropout=0.0,
    )


EXERCISES = [
    Exercise(
        "causal-mask",
        PAGE,
        "A function causal_mask(num_tokens)",
        FunctionCheck(
            "causal_mask(num_tokens)",
            _hide,
            lambda: [(6,), (4,), (1,)],
            _MASK_MISTAKES,
            "Each row hides one place less than the row above, and no row hides all.",
        ),
    ),
    Exercise(
        "padding",
        PAGE,
        "A function hidden(is_padding)",
        FunctionCheck(
            "hidden(is_padding)",
            _padding_right,
            _padding_cases,
            _PADDING_MISTAKES,
            "The causal mask is the same for all sequences, the padding is not: "
            "(t, t) and (b, 1, t) broadcast to (b, t, t).",
        ),
    ),
    Exercise("fill", PAGE, "A pair (scores, hidden_places)", _FILL),
    Exercise("dropout", PAGE, "A pair of numbers", _DROPOUT),
    Exercise("mixed-scales", PAGE, "One of the letters a to e", _MIXED),
    Exercise("causal-class", PAGE, "A class derived from nn.Module", _causal_class),
]
