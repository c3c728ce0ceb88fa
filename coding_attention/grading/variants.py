"""Exercises whose sizes differ from student to student.

Where the answer is a number, it could be copied. Here the sizes come from a name,
"COURSE/STUDENT", by a hash: the same name always gives the same sizes, and nothing has
to be stored. A function or a class that is asked for needs no variants.
"""

import hashlib
import math
import random
from dataclasses import dataclass

import torch

from attention.multi_head import MultiHeadAttention, MultiHeadAttentionWrapper
from attention.trainable import SelfAttention_v2
from attncheck.build import first_line
from coding_attention.exercises import Verdict, check_exercise
from coding_attention.exercises.core import (
    NotRight,
    close,
    described,
    number,
    of_length,
    shape,
)


@dataclass(frozen=True)
class Task:
    """An exercise with one student's sizes.

    Attributes:
        title: of the task.
        text: the task in Markdown.
        code: the cell to write in.
        answer: the name that the cell gives to the answer.
        right: a right answer.
        check: function of the answer; returns the praise or raises ``NotRight``.
    """

    title: str
    text: str
    code: str
    answer: str
    right: object
    check: object


def task(name, variant):
    """Return the :class:`Task` of an exercise for "COURSE/STUDENT".

    Args:
        name: an entry of :data:`VARIED`.
        variant: whose sizes.
    """
    seed = hashlib.sha256(f"{variant}\n{name}".encode()).digest()
    return VARIED[name](random.Random(seed))


def check_exercise_of(variant):
    """Return ``check_exercise`` for the sizes of "COURSE/STUDENT".

    A notebook that was handed out calls this in its first cell. Without a name it is
    the check of the book.
    """
    if not variant:
        return check_exercise

    def check(name, answer=None):
        if str(name) not in VARIED:
            return check_exercise(name, answer)
        return _verdict(str(name), answer, task(str(name), variant))

    return check


def _verdict(name, answer, mine):
    label = f"Exercise {name}: "
    if answer is None:
        return Verdict(name, "nothing yet", f"{label}nothing to check yet.")
    try:
        praise = mine.check(answer)
    except NotRight as error:
        return Verdict(name, "not right", f"{label}not right yet. {error}")
    except Exception as error:
        kind = f"{type(answer).__name__} raised {type(error).__name__}"
        text = f"{label}could not be checked: using {kind}: {first_line(error)}."
        return Verdict(name, "unusable", text)
    return Verdict(name, "right", f"{label}right. {praise}")


def _first_that_fits(value, hints, otherwise, equal=close):
    """Raise the hint of the wrong answer that this one equals."""
    for wrong, hint in hints:
        if equal(value, wrong):
            raise NotRight(hint)
    raise NotRight(otherwise)


def _shapes(dice):
    b, t, d = dice.sample(range(2, 30), 3)
    scores, context = (b, t, t), (b, t, d)

    def check(answer):
        wanted = "A pair of shapes"
        given = tuple(shape(s, wanted) for s in of_length(answer, 2, wanted))
        if given == (scores, context):
            return "Each token is compared with each token of its own sequence."
        wrong = {
            (context, scores): "These are the right shapes the other way round.",
            (scores, scores): "The context vectors have the shape of the weights here. "
            "The weights are still multiplied with x.",
        }
        if given in wrong:
            raise NotRight(wrong[given])
        _first_that_fits(
            given[0],
            [
                ((b, d, d), "This compares features. Compared are tokens."),
                ((t, t), "There is more than one sequence: the batch axis is missing."),
                ((b * t, b * t), "Tokens of two sequences do not see each other."),
                (scores, "The scores are right. One context vector for each token, as "
                 "wide as a value: multiply the shapes of weights and x."),
            ],
            "Scores have one row for each query and one column for each key.",
            equal=lambda a, b: a == b,
        )  # fmt: skip

    return Task(
        "Two shapes",
        "A batch `x` goes through simple self-attention. What shape do the scores "
        "have, and what shape the context vectors?",
        f"x = torch.empty({b}, {t}, {d})  # (b, t, d_in)\n"
        "two_shapes = None  # a pair of shapes: scores, context vectors",
        "two_shapes",
        (scores, context),
        check,
    )


def _scale(dice):
    t, d_in, d_out = dice.sample(range(5, 90), 3)

    def check(answer):
        value = number(answer, "One number, what the scores are divided by,")
        if close(value, d_out**0.5):
            return "A score sums one product for each number of a key: its root."
        hints = [
            (d_out, "This is the width of a key. Divide by its root."),
            (d_in**0.5, "This is the root of d_in. The sum in a score runs over the "
             "numbers of a key, not over those of an input."),
            (t**0.5, "This is the root of the number of tokens. The weights of a token "
             "would then depend on how long the sequence is."),
            (d_out**-0.5, "This is what the scores are multiplied by. Asked for is the "
             "divisor."),
            (d_in, "This is d_in. The sum in a score runs over the numbers of a key."),
            (t, "This is the number of tokens. The width of a key is meant."),
            (d_out / 2, "Half of the width is not its root."),
            (d_out**0.25, "The root was taken twice."),
        ]  # fmt: skip
        _first_that_fits(
            value, hints, "Which sizes has a key, and over which does a score sum?"
        )

    return Task(
        "What are the scores divided by?",
        "Here are the sizes of a layer with one head. By which number does it divide "
        "its scores?",
        f'sizes = {{"t": {t}, "d_in": {d_in}, "d_out": {d_out}}}\n'
        "divisor = None  # a number",
        "divisor",
        d_out**0.5,
        check,
    )


def _count(dice):
    (d_in, d_out), bias = dice.sample(range(3, 90), 2), dice.random() < 0.5
    one, right = d_in * d_out, 3 * (d_in * d_out + bias * d_out)
    other = 3 * (one + (not bias) * d_out)

    def check(answer):
        if isinstance(answer, SelfAttention_v2):
            answer = sum(p.numel() for p in answer.parameters())
        value = number(answer, "One whole number, a count of parameters,")
        if value == right:
            return "Three layers, each with its weights and, if asked for, its biases."
        hints = [
            (other, "Look at qkv_bias: does this layer have biases?"),
            (right / 3, "This is one of the three layers."),
            (one, "This is the weight matrix of one layer."),
            (3 * (one + d_in), "A bias has one number for each output, not for each "
             "input."),
            (3 * one + d_out, "Each of the three layers has biases of its own."),
        ]  # fmt: skip
        _first_that_fits(
            value,
            hints,
            "Count one nn.Linear first: its weight and its bias.",
            equal=lambda a, b: a == b,
        )

    call = f"SelfAttention_v2(d_in={d_in}, d_out={d_out}, qkv_bias={bias})"
    return Task(
        "Count the parameters",
        "How many parameters does this layer have? Count them by hand.",
        f"# {call}\nparameter_count = None  # a whole number",
        "parameter_count",
        right,
        check,
    )


def _dropout(dice):
    weight = dice.choice(range(100, 900)) / 1000
    # At one half, several mistakes give the right number.
    rate = dice.choice([r for r in range(10, 82, 2) if r != 50]) / 100
    kept = weight / (1 - rate)

    def check(answer):
        wanted = "A pair of numbers, when kept and on average,"
        first, second = (number(x, wanted) for x in of_length(answer, 2, wanted))
        if close(first, kept) and close(second, weight):
            return "What is kept is divided by the share that is kept."
        if close(first, weight) and close(second, kept):
            raise NotRight("The other way round: first what is kept, then the mean.")
        if not close(first, kept):
            hints = [
                (weight, "PyTorch rescales what it keeps, so that the mean stays."),
                (weight / rate, "This divides by the share that is dropped. Divide by "
                 "the share that is kept."),
                (weight * (1 - rate), "This multiplies by the share that is kept. It "
                 "has to make up for what is dropped, so it gets larger."),
                (weight * (1 + rate), "Dividing by the share that is kept is not the "
                 "same as adding the share that is dropped."),
                (2 * weight, "It doubles at a rate of one half. The rate is another."),
                (0.0, "A weight is zero when it is dropped. What is it when kept?"),
            ]  # fmt: skip
            _first_that_fits(
                first, hints, "Which factor makes the mean equal to the weight itself?"
            )
        hints = [
            (weight * (1 - rate), "What is kept was not rescaled in this mean."),
            (kept, "This is the value when kept. In some of the draws it is zero."),
        ]
        _first_that_fits(
            second, hints, "Add up: how often it is kept times its value then."
        )

    return Task(
        "What dropout keeps",
        "An attention weight meets dropout, in training. Which value does it have when "
        "it is kept, and which on average over many draws?",
        f"weight, dropout_rate = {weight}, {rate}\n"
        "kept_and_average = None  # a pair of numbers",
        "kept_and_average",
        (kept, weight),
        check,
    )


def _scores(dice):
    parts = dice.sample(range(1, 40), 4)
    weights = torch.tensor(parts) / sum(parts)

    def check(answer):
        if isinstance(answer, tuple | list):
            answer = torch.tensor([number(x, "Four scores") for x in answer])
        if not isinstance(answer, torch.Tensor) or answer.shape != (4,):
            raise NotRight(f"Four scores are asked for, but got {described(answer)}.")
        answer = answer.detach().double()
        if torch.allclose(answer.softmax(0), weights.double(), rtol=2e-3):
            return "The logarithms of the weights do it, plus any number."
        hints = [
            (weights, "These are the weights. Which scores does softmax turn into "
             "them?"),
            (weights.exp(), "exp goes the same way as softmax. Undo it instead."),
            (-weights.log(), "The sign is wrong: the largest weight needs the largest "
             "score."),
            (weights.log2(), "Softmax takes powers of e, so take torch.log."),
            (weights.log10(), "Softmax takes powers of e, so take torch.log."),
            (weights.softmax(0), "This is softmax of the weights. The other direction "
             "is asked for."),
            (1 / weights, "The largest weight needs the largest score."),
        ]  # fmt: skip
        # Softmax does not see a shift.
        _first_that_fits(
            answer - answer[0],
            [(wrong - wrong[0], hint) for wrong, hint in hints],
            "Softmax of these gives other weights than those of the cell.",
            equal=lambda a, b: torch.allclose(a, b.double(), atol=2e-3),
        )

    return Task(
        "Which scores give these weights?",
        "Softmax turned four scores into the weights of this cell. Which scores can it "
        "have been?",
        f"wanted = torch.tensor({parts}) / {sum(parts)}\n"
        "scores_for_weights = None  # four scores",
        "scores_for_weights",
        weights.log().tolist(),
        check,
    )


def _wide(dice):
    heads, head_width = dice.sample(range(2, 25), 2)
    width = heads * head_width

    def check(answer):
        if isinstance(answer, str) and answer.replace(" ", "").startswith("d_out="):
            answer = answer.replace(" ", "").removeprefix("d_out=").rstrip(",")
            answer = int(answer) if answer.isdigit() else math.nan
        if isinstance(answer, MultiHeadAttentionWrapper):
            answer = {"d_out": answer.heads[0].d_out, "num_heads": len(answer.heads)}
        if isinstance(answer, dict):
            answer = {"num_heads": heads} | answer
            if answer.pop("num_heads") != heads:
                raise NotRight("The number of heads is to stay.")
            others = set(answer) - {"d_out"}
            if others or not answer:
                raise NotRight("One argument decides about the width. Which is it?")
            answer = answer["d_out"]
        value = number(answer, "The argument and its value")
        if value == head_width:
            return "In the wrapper d_out is the width of one head."
        hints = [
            (width, "This is the width of the result. d_out of the wrapper is the "
             "width of one head, and the heads are joined."),
            (heads, "This is the number of heads. It is to stay."),
        ]  # fmt: skip
        _first_that_fits(value, hints, "With this d_out the result has another width.")

    return Task(
        "A result of a given width",
        f"The result of a `MultiHeadAttentionWrapper` with {heads} heads is to be "
        f"{width} wide. Which one argument sets this, and to what?",
        f"# MultiHeadAttentionWrapper(..., num_heads={heads})\n"
        'changed = None  # the argument and its value, as in {"num_heads": 3}',
        "changed",
        {"d_out": head_width},
        check,
    )


def _sizes(dice):
    heads, head_width = dice.choice(range(5, 40)), dice.choice((32, 48, 64, 80, 96))
    d, square = heads * head_width, (heads * head_width) ** 2
    right = (4 * square + d, 4 * square + 4 * d)

    def check(answer):
        if isinstance(answer, MultiHeadAttention):
            if (answer.num_heads, answer.d_out) != (heads, d):
                raise NotRight("Your layer has another number of heads or width.")
            answer = sum(p.numel() for p in answer.parameters())
        value = number(answer, "A layer, or the count of its parameters,")
        if value in right:
            return "Four square matrices and the bias of out_proj."
        hints = [
            (4 * square, "The bias of out_proj is missing: it has one, whatever "
             "qkv_bias."),
            (3 * square, "out_proj is missing: a fourth matrix and its bias."),
            (3 * square + 3 * d, "out_proj is missing: a fourth matrix and its bias."),
            (square, "This is one of the four matrices."),
            *((c + 1024**2, "The mask is counted. It is a buffer and not trained.")
              for c in right),
            *((c * heads, "The heads share the width d_out, so their number does not "
               "enter.") for c in right),
        ]  # fmt: skip
        _first_that_fits(
            value,
            hints,
            "Count the four layers W_query, W_key, W_value and out_proj.",
            equal=lambda a, b: a == b,
        )

    return Task(
        "Count a large layer",
        f"A `MultiHeadAttention` layer has {heads} heads and a width of {d}, on the "
        "way in and on the way out; its context length is 1024. How many parameters "
        "has it? Hand in the layer or the count.",
        f'sizes = {{"num_heads": {heads}, "width": {d}, "context_length": 1024}}\n'
        "large_layer = None  # a layer, or a count",
        "large_layer",
        right[0],
        check,
    )


VARIED = {
    "shapes": _shapes,
    "scale": _scale,
    "count-weights": _count,
    "dropout": _dropout,
    "scores-for-weights": _scores,
    "3.2": _wide,
    "3.3": _sizes,
}
