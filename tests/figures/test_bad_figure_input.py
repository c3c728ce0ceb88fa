"""Bad input to a figure: what is raised, and that its message names the way out.

One row of ``TABLE`` is a call and every part that the message must hold.
"""

import pytest
import torch

from attention import figures
from tests.figures.test_artists import random, random_weights

INF, NAN = float("inf"), float("nan")
V3, M33, M32 = random(3), random(3, 3), random(3, 2)
ABC = ["a", "b", "c"]
HOLES = torch.tensor([0.5, NAN, -INF])
PICK = "Pick one sequence or head, such as"
OWN = "Draw the others in a figure of their own"

TABLE = {
    "matrix of three dimensions": (
        lambda: figures.matrix(random(2, 3, 4)),
        ["values must be a vector or a matrix", "(2, 3, 4)", "such as values[0]"],
    ),
    "matrix of none": (
        lambda: figures.matrix(torch.tensor(1.0)), ["a vector or a matrix", "()"]
    ),
    "empty matrix": (
        lambda: figures.matrix(torch.empty(0, 3)), ["values must", "(0, 3)"]
    ),
    "too few row labels": (
        lambda: figures.matrix(M33, rows=["a"]),
        ["rows must hold one entry for each of the 3 rows", "got 1", "Pass 3 of them"],
    ),
    "too many column labels": (
        lambda: figures.matrix(M32, columns=ABC),
        ["columns must hold one entry for each of the 2 columns", "got 3"],
    ),
    "blank of another shape": (
        lambda: figures.matrix(M33, blank=torch.ones(3, 2).bool()),
        ["blank must have the shape (rows, columns)", "rows=3, columns=3", "(3, 2)"],
    ),
    "outline below the matrix": (
        lambda: figures.matrix(M32, outline=[(3, 0)]),
        ["the row in outline must be from 0 to 2", "got 3"],
    ),
    "outline beside the matrix": (
        lambda: figures.matrix(M32, outline=[(0, -1)]),
        ["the column in outline must be from 0 to 1", "got -1"],
    ),
    "weighted sum of a matrix of weights": (
        lambda: figures.weighted_sum(M33, M33, ABC),
        ["weights must have the shape (t,)", "(3, 3)", f"{PICK} weights[0]"],
    ),
    "weighted sum of too few vectors": (
        lambda: figures.weighted_sum(V3, random(2, 3), ABC),
        ["vectors must have the shape (t, d_in) with t=3", "(2, 3)"],
    ),
    "weighted sum with too few labels": (
        lambda: figures.weighted_sum(V3, M33, ABC[:2]),
        ["tokens must hold one entry for each of the 3 weights", "got 2"],
    ),
    "arrows of three numbers": (
        lambda: figures.arrows(M33, ABC, "x", "y"),
        ["vectors must have the shape (t, 2)", "(3, 3)"],
    ),
    "arrows with too few labels": (
        lambda: figures.arrows(M32, ABC[:1], "x", "y"),
        ["tokens must hold one entry for each of the 3 vectors"],
    ),
    "infinite arrows": (
        lambda: figures.arrows(M32 / 0, ABC, "x", "y"),
        ["vectors must hold finite numbers", "6 of 6", "Use matrix"],
    ),
    "no bars": (
        lambda: figures.bars({}, ABC), ["groups must hold 1 to 3 entries", "got 0"]
    ),
    "four groups of bars": (
        lambda: figures.bars(dict.fromkeys("abcd", V3), ABC),
        ["groups must hold 1 to 3 entries", "got 4", OWN],
    ),
    "bars with too many labels": (
        lambda: figures.bars({"a": V3}, [*ABC, "d"]),
        ["groups['a'] must have the shape (t,) with t=4", "(3,)"],
    ),
    "infinite bars": (
        lambda: figures.bars({"a": V3, "b": HOLES}, ABC),
        ["groups['b'] must hold finite numbers", "2 of 3 are infinite or NaN"],
    ),
    "product that does not fit": (
        lambda: figures.product(M32, M33, ABC),
        ["right must have the shape (m, k) with m=2", "(3, 3)"],
    ),
    "product of a vector": (
        lambda: figures.product(V3, M33, ABC), ["left must have the shape (n, m)"]
    ),
    "product with two names": (
        lambda: figures.product(M33, M32, ABC[:2]), ["the 3 matrices", "got 2"]
    ),
    "row outside of the product": (
        lambda: figures.product(M33, M32, ABC, row=3),
        ["row must be from 0 to 2", "rows of the result", "got 3"],
    ),
    "product wider than a page": (
        lambda: figures.product(random(4, 4), random(4, 4), ABC),
        ["the product would be 5.7 inches wide", "Pass fewer columns"],
    ),
    "running mean of another length": (
        lambda: figures.running_mean(V3, random(4), "y"),
        ["means must have the shape (t,) with t=3", "(4,)"],
    ),
    "running mean of nothing": (
        lambda: figures.running_mean(torch.empty(0), torch.empty(0), "y"),
        ["x must have the shape (t,)", "(0,)"],
    ),
    "running mean with holes": (
        lambda: figures.running_mean(V3, HOLES, "y"), ["means must hold finite"]
    ),
    "three groups in a spread": (
        lambda: figures.spread(dict.fromkeys("abc", M33)),
        ["groups must hold 1 to 2 entries", "got 3", OWN],
    ),
    "spread of a vector": (
        lambda: figures.spread({"a": V3}), ["groups['a'] must have the shape (n, m)"]
    ),
    "spread of single numbers": (
        lambda: figures.spread({"a": random(3, 1)}),
        ["at least two numbers a row", "no standard deviation"],
    ),
    "spread with holes": (
        lambda: figures.spread({"a": HOLES.expand(2, 3)}), ["finite", "4 of 6"]
    ),
    "flow of a batch": (
        lambda: figures.flow(random(2, 3, 3), M32, M32, M32),
        ["x must have the shape (t, d_in)", "(2, 3, 3)"],
    ),
    "flow with transposed weights": (
        lambda: figures.flow(M33, M32.T, M32, M32),
        ["W_query must have the shape (d_in, d_k) with d_in=3", "(2, 3)"],
    ),
    "flow with keys of another width": (
        lambda: figures.flow(M33, M32, M33, M32),
        ["W_key must have the shape (d_in, d_k) with d_in=3, d_k=2", "(3, 3)"],
    ),
    "flow with values of another input": (
        lambda: figures.flow(M33, M32, M32, random(4, 2)), ["W_value", "(4, 2)"]
    ),
    "one query that is a matrix": (
        lambda: figures.one_query(M32, M32, M32, ABC, "a"),
        ["query must have the shape (d_k,)", "(3, 2)", f"{PICK} query[0]"],
    ),
    "one query of another width": (
        lambda: figures.one_query(V3, M32, M32, ABC, "a"),
        ["keys must have the shape (t, d_k) with d_k=3", "(3, 2)"],
    ),
    "one query with too few values": (
        lambda: figures.one_query(random(2), M32, random(2, 2), ABC, "a"),
        ["values must have the shape (t, d_out) with t=3", "(2, 2)"],
    ),
    "one query with too few labels": (
        lambda: figures.one_query(random(2), M32, M32, ABC[:2], "a"),
        ["tokens must hold one entry for each of the 3 keys"],
    ),
    "four lines": (
        lambda: figures.growth([2], {key: [1.0] for key in "abcd"}, "y"),
        ["lines must hold 1 to 3 entries", "got 4"],
    ),
    "line of another length": (
        lambda: figures.growth([2, 4], {"a": [1.0]}, "y"),
        ["lines['a'] must hold one entry for each of the 2 widths", "got 1"],
    ),
    "three histograms": (
        lambda: figures.histogram(dict.fromkeys("abc", V3), "x"),
        ["groups must hold 1 to 2 entries", "got 3"],
    ),
    "histogram of equal numbers": (
        lambda: figures.histogram({"a": torch.ones(5)}, "x"),
        ["groups['a'] must hold at least two different numbers", "no width"],
    ),
    "histogram of nothing": (
        lambda: figures.histogram({"a": torch.empty(0)}, "x"), ["at least two"]
    ),
    "histogram with holes": (
        lambda: figures.histogram({"a": HOLES}, "x"), ["finite numbers", "2 of 3"]
    ),
    "look of a matrix": (
        lambda: figures.look(M33, ABC, 0), ["weights must have the shape (t,)"]
    ),
    "look with too few labels": (
        lambda: figures.look(V3.abs(), ABC[:2], 0), ["the 3 weights", "got 2"]
    ),
    "look of an unknown query": (
        lambda: figures.look(V3.abs(), ABC, 3),
        ["query must be from 0 to 2", "3 tokens", "got 3"],
    ),
    "look of negative weights": (
        lambda: figures.look(-V3.abs(), ABC, 0),
        ["weights must not be negative", "after softmax"],
    ),
    "look of zeros": (
        lambda: figures.look(torch.zeros(3), ABC, 0), ["one must be above 0"]
    ),
    "look with holes": (lambda: figures.look(HOLES, ABC, 0), ["finite", "2 of 3"]),
    "map of a matrix that is not square": (
        lambda: figures.mechanisms([{"name": "one", "weights": [M32]}]),
        ["weights of 'one' must have the shape (t, t) with t=3", "(3, 2)"],
    ),
    "map of a vector": (
        lambda: figures.mechanisms([{"name": "one", "weights": [V3]}]), ["(t, t)"]
    ),
}  # fmt: skip


@pytest.mark.parametrize(("call", "parts"), TABLE.values(), ids=TABLE)
def test_message(call, parts):
    with pytest.raises(ValueError, match=r"\.$") as error:
        call()
    assert [part for part in parts if part not in str(error.value)] == []


@pytest.mark.parametrize(
    "call",
    [
        lambda: figures.weighted_sum([0.5, 0.5], M33, ABC),
        lambda: figures.arrows([[1.0, 2.0]], ["a"], "x", "y"),
        lambda: figures.bars({"a": [1.0]}, ["a"]),
        lambda: figures.product(M33, [[1.0]], ABC),
        lambda: figures.look([1.0], ["a"], 0),
        lambda: figures.flow([[1.0]], M32, M32, M32),
    ],
)
def test_list_instead_of_a_tensor(call):
    with pytest.raises(
        TypeError, match=r"must be a Tensor, but got list.*torch\.tensor"
    ):
        call()


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: figures.matrix(x, ABC, ABC),
        lambda x: figures.weighted_sum(x[0], x, ABC),
        lambda x: figures.arrows(x[:, :2], ABC, "x", "y"),
        lambda x: figures.bars({"a": x[0]}, ABC),
        lambda x: figures.product(x, x[:, :2], ABC),
        lambda x: figures.running_mean(x[0], x[1], "y"),
        lambda x: figures.spread({"a": x}),
        lambda x: figures.one_query(x[0, :2], x[:, :2], x[:, :2], ABC, "a"),
        lambda x: figures.histogram({"a": x}, "x"),
        lambda x: figures.look(x[0], ABC, 0),
        lambda x: figures.mechanisms(
            [
                dict.fromkeys(("name", "section", "adds", "computes"), "")
                | {"weights": [x]}
            ]
        ),
        lambda x: figures.steps({"a": x[0]}, ABC),
        lambda x: figures.cropped_mask(x, 2),
    ],
)
def test_tensors_of_a_model_in_training_are_drawn_alike(draw):
    """With a gradient or without: a figure needs no detach, and warns of nothing."""
    x = random_weights(3, 3)

    def svg(x):
        return figures.show(draw(x), caption="c", alt="a").svgs

    assert svg(x.clone().requires_grad_()) == svg(x)
