"""Bad input to a figure: what is raised, and that its message names the way out.

One row of ``TABLE`` is a call and every part that the message must hold.
"""

import pytest
import torch

from attention import MultiHeadAttention
from attention.chapter import figures
from tests.chapter.figures.test_artists import random, random_weights

INF, NAN = float("inf"), float("nan")
V3, M33, M32 = random(3), random(3, 3), random(3, 2)
ABC = ["a", "b", "c"]
HOLES = torch.tensor([0.5, NAN, -INF])
PICK = "Pick one sequence or head, such as"
OWN = "Draw the others in a figure of their own"
W3 = M33.softmax(dim=-1)
KEEP = W3 > 0
ENTRIES = torch.arange(12).view(2, 3, 2)
WEIGHTS = [0.2, 0.3, 0.5]
OFF = "would cut the others off: scale them first"
BY_NAME = "Pass what is to be drawn by its name"
EMPTY = "Pass what is to be drawn"


def layer(num_heads, d_out=12):
    return MultiHeadAttention(3, d_out, 6, 0.0, num_heads=num_heads)


def mechanism(*weights, **others):
    texts = dict.fromkeys(("name", "section", "adds", "computes"), "")
    return texts | {"name": "one", "weights": list(weights)} | others


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
    "line with a NaN": (
        lambda: figures.growth([2, 4], {"a": [1.0, float("nan")]}, "y"),
        ["lines['a'] must hold finite numbers", "1 of 2"],
    ),
    "zero on a logarithmic axis": (
        lambda: figures.growth([2, 4], {"a": [1.0, 0.0]}, "y", log=True),
        ["lines must hold numbers above 0", "smallest is 0.0", "log=False"],
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
        lambda: figures.mechanisms([mechanism(M32)]),
        ["weights of 'one' must have the shape (t, t) with t=3", "(3, 2)"],
    ),
    "map of a vector": (
        lambda: figures.mechanisms([mechanism(V3)]), ["(t, t)"]
    ),
    "map of a batch": (
        lambda: figures.mechanisms([mechanism(random(2, 3, 3))]),
        ["weights of 'one' must have the shape (t, t) and", "(2, 3, 3)", PICK],
    ),
    "map of nothing": (
        lambda: figures.mechanisms([]),
        ["steps must hold at least 1 entry", "got 0", EMPTY],
    ),
    "mechanism without a text": (
        lambda: figures.mechanisms([{"name": "one", "weights": [W3], "adds": ""}]),
        ["steps[0] must hold the entries name, section, adds, computes, weights",
         "got only name, weights, adds", "Add section, computes"],
    ),
    "mechanism without weights": (
        lambda: figures.mechanisms([mechanism()]),
        ["weights of 'one' must hold 1 to 4 entries", "got 0", EMPTY],
    ),
    "mechanism of too many heads": (
        lambda: figures.mechanisms([mechanism(*[W3] * 8)]),
        ["1 to 4 entries, for there is no room for more", "got 8", "Leave some out"],
    ),
    "mechanism with infinite weights": (
        lambda: figures.mechanisms([mechanism(W3 / 0)]),
        ["weights of 'one' must hold finite numbers", "9 of 9", "Use matrix"],
    ),
    "bars without labels": (
        lambda: figures.bars({"a": V3}, []),
        ["labels must hold at least 1 entry", "got 0", EMPTY],
    ),
    "sight of no token": (
        lambda: figures.sight([]),
        ["tokens must hold at least 1 entry", "got 0", EMPTY],
    ),
    "steps of no token": (
        lambda: figures.steps({"a": V3}, []), ["tokens must hold at least 1", "got 0"]
    ),
    "no steps": (
        lambda: figures.steps({}, ABC), ["rows must hold an entry", "empty", BY_NAME]
    ),
    "steps with a short row": (
        lambda: figures.steps({"a": V3, "b": V3[:2]}, ABC),
        ["rows['b'] must have the shape (t,) with t=3", "(2,)", "the same tokens"],
    ),
    "dropout of no token": (
        lambda: figures.dropped(W3, KEEP, [], 0.5), ["tokens must hold at least 1"]
    ),
    "dropout of a batch": (
        lambda: figures.dropped(random(2, 3, 3), KEEP, ABC, 0.5),
        ["weights must have the shape (t, t) with t=3", "(2, 3, 3)", PICK],
    ),
    "dropout with a mask of another shape": (
        lambda: figures.dropped(W3, KEEP[:2], ABC, 0.5),
        ["keep must have the shape (t, t) with t=3", "(2, 3)", "the same tokens"],
    ),
    "dropout of everything": (
        lambda: figures.dropped(W3, KEEP, ABC, 1),
        ["rate must be a finite number from 0 on and below 1", "got 1. ",
         "Pass the share that dropout drops, such as 0.5"],
    ),
    "dropout of less than nothing": (
        lambda: figures.dropped(W3, KEEP, ABC, -0.1), ["below 1, but got -0.1. Pass"]
    ),
    "dropout of NaN": (
        lambda: figures.dropped(W3, KEEP, ABC, NAN), ["below 1, but got nan. Pass"]
    ),
    "mask that is not square": (
        lambda: figures.cropped_mask(M32, 2),
        ["mask must have the shape (context_length, context_length)",
         "context_length=3", "(3, 2)", f"{PICK} mask[0]"],
    ),
    "input longer than its mask": (
        lambda: figures.cropped_mask(M33, 4),
        ["num_tokens must be from 1 to 3, the tokens that the mask covers", "got 4",
         "Pass one of these"],
    ),
    "input of no token": (
        lambda: figures.cropped_mask(M33, 0), ["num_tokens must be from 1", "got 0"]
    ),
    "lanes of a batch": (
        lambda: figures.lanes(random(2, 6, 3), layer(2)),
        ["x must have the shape (t, d_in) with d_in=3", "(2, 6, 3)", f"{PICK} x[0]"],
    ),
    "lanes of another width": (
        lambda: figures.lanes(M32, layer(2)), ["(t, d_in) with d_in=3", "(3, 2)"]
    ),
    "more lanes than fit": (
        lambda: figures.lanes(M33, layer(4)),
        ["layer.num_heads must be from 1 to 3, the lanes that fit a phone", "got 4",
         "Pass one of these"],
    ),
    "tagged matrix": (
        lambda: figures.tagged(ENTRIES[0], 4, 2, "x", ["a"]),
        ["entries must have the shape (blocks, rows, columns)", "(3, 2)"],
    ),
    "tagged negative numbers": (
        lambda: figures.tagged(ENTRIES - 1, 4, 2, "x", ["a", "b"]),
        ["entries must hold whole numbers from 0 on", "smallest is -1", "torch.arange"],
    ),
    "tagged with heads that do not divide": (
        lambda: figures.tagged(ENTRIES, 4, 3, "x", ["a", "b"]),
        ["d_out must be divisible by num_heads", "d_out=4 and num_heads=3",
         "num_heads can be 1, 2, 4"],
    ),
    "tagged with more heads than colors": (
        lambda: figures.tagged(ENTRIES, 6, 6, "x", ["a", "b"]),
        ["num_heads must be from 1 to 4, one for each color", "got 6", "Pass one of"],
    ),
    "tagged without features": (
        lambda: figures.tagged(ENTRIES, 0, 1, "x", ["a", "b"]),
        ["d_out must be a positive integer", "got 0", "at least 1"],
    ),
    "tagged with too few names": (
        lambda: figures.tagged(ENTRIES, 4, 2, "x", ["a"]),
        ["names must hold one entry for each of the 2 blocks", "got 1", "Pass 2"],
    ),
    "tagged wider than a page": (
        lambda: figures.tagged(torch.arange(8).view(1, 1, 8), 4, 2, "x", ["a"]),
        ["the row of blocks would be 4.1 inches wide", "3.6", "Pass fewer columns"],
    ),
    "no memory": (
        lambda: figures.memory({}, 4, 2),
        ["strips must hold an entry", "is empty", BY_NAME],
    ),
    "memory of a matrix": (
        lambda: figures.memory({"a": ENTRIES[0]}, 4, 2),
        ["strips['a'] must have the shape (n,)", "(3, 2)", PICK],
    ),
    "memory of negative numbers": (
        lambda: figures.memory({"a": -torch.arange(4)}, 4, 2),
        ["strips['a'] must hold whole numbers from 0 on", "-3", "torch.arange"],
    ),
    "memory with heads that do not divide": (
        lambda: figures.memory({"a": torch.arange(4)}, 4, 3),
        ["d_out=4 and num_heads=3", "num_heads can be 1, 2, 4"],
    ),
    "alignment of no word": (
        lambda: figures.alignment([], ABC, []),
        ["top must hold at least 1 entry", "got 0", EMPTY],
    ),
    "alignment with no word": (
        lambda: figures.alignment(ABC, [], []), ["bottom must hold at least 1 entry"]
    ),
    "link to a word that is missing": (
        lambda: figures.alignment(ABC, ABC[:2], [(0, 2)]),
        ["the bottom word in links must be from 0 to 1", "got 2", "Pass one of these"],
    ),
    "link from a word that is missing": (
        lambda: figures.alignment(ABC, ABC, [(-1, 2)]),
        ["the top word in links must be from 0 to 2", "got -1", "Pass one of these"],
    ),
    "highlight that is no link": (
        lambda: figures.alignment(ABC, ABC, [(0, 1)], [(1, 0)]),
        ["highlight must hold pairs of links", "got (1, 0)", "Add the pair to links"],
    ),
    "highlight outside": (
        lambda: figures.alignment(ABC, ABC, [(0, 1)], [(3, 0)]),
        ["the top word in highlight must be from 0 to 2", "got 3"],
    ),
    "bottleneck of nothing": (
        lambda: figures.bottleneck([], ABC),
        ["source must hold 1 to 10 entries", "got 0", EMPTY],
    ),
    "bottleneck that writes nothing": (
        lambda: figures.bottleneck(ABC, []), ["target must hold 1 to 10", "got 0"]
    ),
    "bottleneck of too many words": (
        lambda: figures.bottleneck(ABC * 4, ABC),
        ["1 to 10 entries, for there is no room", "got 12", "Leave some out"],
    ),
    "look back of nothing": (
        lambda: figures.look_back([], ABC, 0, []), ["source must hold", "got 0", EMPTY]
    ),
    "look back of a missing step": (
        lambda: figures.look_back(ABC, ABC, 3, WEIGHTS),
        ["step must be from 0 to 2", "3 words of target", "got 3", "Pass one of these"],
    ),
    "look back with too few weights": (
        lambda: figures.look_back(ABC, ABC, 0, WEIGHTS[:2]),
        ["weights must hold one entry for each of the 3 words", "got 2", "Pass 3"],
    ),
    "look back with a matrix": (
        lambda: figures.look_back(ABC, ABC, 0, W3), ["(n,) with n=3", "(3, 3)", PICK]
    ),
    "look back with scores": (
        lambda: figures.look_back(ABC, ABC, 0, [0.5, -1.0, 2.0]),
        ["weights must hold numbers from 0 to 1", "from -1 to 2", OFF],
    ),
    "look back with holes": (
        lambda: figures.look_back(ABC, ABC, 0, HOLES),
        ["weights must hold finite", "2 of 3"],
    ),
    "no one": (
        lambda: figures.everyone([]),
        ["words must hold at least 1 entry", "got 0", EMPTY],
    ),
    "no lengths": (
        lambda: figures.against_length([], {"a": [[]]}, "y"),
        ["lengths must hold at least 1 entry", "got 0", EMPTY],
    ),
    "infinite length": (
        lambda: figures.against_length([INF], {"a": [[1]]}, "y"),
        ["lengths must hold finite numbers", "1 of 1"],
    ),
    "four groups against length": (
        lambda: figures.against_length([2], {key: [[1]] for key in "abcd"}, "y"),
        ["groups must hold 1 to 3 entries", "got 4", OWN],
    ),
    "no group against length": (
        lambda: figures.against_length([2], {}, "y"), ["1 to 3 entries", "got 0"]
    ),
    "group without a series": (
        lambda: figures.against_length([2], {"a": []}, "y"),
        ["groups['a'] must hold at least 1 entry", "got 0", EMPTY],
    ),
    "short series against length": (
        lambda: figures.against_length([2, 4], {"a": [[1, 1], [1]]}, "y"),
        ["groups['a'][1] must hold one entry for each of the 2 lengths", "got 1",
         "Pass 2 of them"],
    ),
    "percent against length": (
        lambda: figures.against_length([2, 4], {"a": [[20, 98]]}, "y"),
        ["groups['a'][0] must hold numbers from 0 to 1", "from 20 to 98", OFF],
    ),
    "two stages": (
        lambda: figures.stages(ABC[:2], [["x"], ["y"]]),
        ["names must hold one entry for each of the 3 stages", "got 2", "Pass 3"],
    ),
    "texts for two stages": (
        lambda: figures.stages(ABC, [["x"], ["y"]]),
        ["inside must hold one entry for each of the 3 stages", "got 2", "Pass 3"],
    ),
    "stage with four texts": (
        lambda: figures.stages(ABC, [["x"], list("wxyz"), ["y"]]),
        ["inside[1] must hold 1 to 3 entries", "got 4", "Leave some out"],
    ),
    "pattern of a batch": (
        lambda: figures.pattern(random_weights(2, 3, 3), ABC, ABC),
        ["weights must have the shape (t_q, t_k)", "(2, 3, 3)", f"{PICK} weights[0]"],
    ),
    "pattern with too few rows": (
        lambda: figures.pattern(W3, ABC[:2], ABC),
        ["rows must hold one entry for each of the 3 rows", "got 2", "Pass 3"],
    ),
    "pattern with too many columns": (
        lambda: figures.pattern(W3, ABC, [*ABC, "d"]),
        ["columns must hold one entry for each of the 3 columns", "got 4", "Pass 3"],
    ),
    "pattern of scores": (
        lambda: figures.pattern(torch.tensor([[-1.0, 2.0]]), ["a"], ABC[:2]),
        ["weights must hold numbers from 0 to 1", "from -1 to 2", OFF],
    ),
    "pattern with holes": (
        lambda: figures.pattern(HOLES.expand(2, 3), ABC[:2], ABC),
        ["weights must hold finite numbers", "4 of 6", "Use matrix"],
    ),
    "mark outside of a pattern": (
        lambda: figures.pattern(W3, ABC, ABC, marked=[(0, 3)]),
        ["the column in marked must be from 0 to 2", "got 3", "Pass one of these"],
    ),
    "curves over no step": (
        lambda: figures.curves([], {"a": [[]]}, "x", "y"),
        ["steps must hold at least 1 entry", "got 0", EMPTY],
    ),
    "curves over infinite steps": (
        lambda: figures.curves([0, INF], {"a": [[1, 2]]}, "x", "y"),
        ["steps must hold finite numbers", "1 of 2"],
    ),
    "six groups of curves": (
        lambda: figures.curves([1], {key: [[1]] for key in "abcdef"}, "x", "y"),
        ["groups must hold 1 to 5 entries", "got 6", OWN],
    ),
    "curve of another length": (
        lambda: figures.curves([1, 2], {"a": [[1, 2, 3]]}, "x", "y"),
        ["groups['a'][0] must hold one entry for each of the 2 steps", "got 3",
         "Pass 2 of them"],
    ),
    "curve below zero": (
        lambda: figures.curves([1, 2], {"a": [[1, -2]]}, "x", "y"),
        ["groups['a'][0] must hold numbers from 0 on", "from -2 to 1", OFF],
    ),
    "curve with holes": (
        lambda: figures.curves([1, 2], {"a": [[1, NAN]]}, "x", "y"),
        ["groups['a'][0] must hold finite numbers", "1 of 2"],
    ),
    "level below zero": (
        lambda: figures.curves([1], {"a": [[1]]}, "x", "y", {"low": -1}),
        ["levels['low'] must be a finite number from 0 on", "got -1",
         "The axis begins at 0"],
    ),
    "circuit of two words": (
        lambda: figures.circuit(["a", "b"]),
        ["words must hold one entry for each of the 3 tokens", "got 2", "Pass 3"],
    ),
    "negative decimals": (
        lambda: figures.amounts({"a": 1}, decimals=-1),
        ["decimals must be from 0 to 9", "got -1", "Pass one of these"],
    ),
    "by no tokens": (
        lambda: figures.by_tokens([], {"a": []}, "y"),
        ["tokens must hold at least 1 entry", "got 0", EMPTY],
    ),
    "by zero tokens": (
        lambda: figures.by_tokens([0, 1], {"a": [1, 2]}, "y"),
        ["tokens must hold positive numbers", "got [0, 1]", "leave them out"],
    ),
    "cut of another kind": (
        lambda: figures.shards({"a": "diagonal"}, 2),
        ['cuts[\'a\'] must be "rows" or "columns"', "got 'diagonal'", "Name what is"],
    ),
    "one rank": (
        lambda: figures.shards({"a": "rows"}, 1),
        ["ranks must be from 2 to 4, one for each color", "got 1", "Pass one of these"],
    ),
}  # fmt: skip


BRACKETS = "Write its entries in brackets"
WRAP = "Wrap numbers in torch.tensor(...)"
# Rows of input that is of no use whatever its size.
OF_ANOTHER_KIND = {
    "matrix of words": (
        lambda: figures.matrix("abc"), ["values must be a tensor", "got 'abc'", WRAP]
    ),
    "outline that is no pair": (
        lambda: figures.matrix(M33, outline=[1]),
        ["outline must hold pairs (row, column)", "got 1", "such as (0, 1)"],
    ),
    "list of bars": (
        lambda: figures.bars([V3], ABC), ["groups must be a dict", "list", BY_NAME]
    ),
    "sight of a text": (
        lambda: figures.sight("one step"),
        ["tokens must be a list", "got 'one step' (str)", BRACKETS],
    ),
    "sight of a number": (
        lambda: figures.sight(3), ["tokens must be a list", "got 3 (int)", BRACKETS]
    ),
    "steps in a list": (
        lambda: figures.steps([V3], ABC), ["rows must be a dict", "list", BY_NAME]
    ),
    "steps as numbers": (
        lambda: figures.steps({"a": WEIGHTS}, ABC),
        ["rows['a'] must be a Tensor", "list", "Wrap the numbers"],
    ),
    "mask of numbers": (
        lambda: figures.dropped(W3, KEEP.float(), ABC, 0.5),
        ["keep must hold True and False", "torch.float32", "keep.bool()"],
    ),
    "rate as a text": (
        lambda: figures.dropped(W3, KEEP, ABC, "0.5"),
        ["rate must be a finite number from 0 on and below 1", "'0.5' (str)",
         "Pass the share"],
    ),
    "half a token": (
        lambda: figures.cropped_mask(M33, 1.5),
        ["num_tokens must be from 1 to 3", "got 1.5 (float)", "Pass an integer"],
    ),
    "ragged mask": (
        lambda: figures.cropped_mask([[0, 1], [0]], 1),
        ["mask must be a tensor", "[[0, 1], [0]] (list)", WRAP],
    ),
    "lanes of no layer": (
        lambda: figures.lanes(M33, torch.nn.Linear(3, 4)),
        ["layer must be a MultiHeadAttention", "Linear without num_heads, head_dim",
         "Pass a layer such as MultiHeadAttention(3, 4"],
    ),
    "tagged floats": (
        lambda: figures.tagged(ENTRIES.float(), 4, 2, "x", ["a", "b"]),
        ["entries must hold whole numbers", "torch.float32", "entries.int()"],
    ),
    "tagged masks": (
        lambda: figures.tagged(ENTRIES > 0, 4, 2, "x", ["a", "b"]),
        ["entries must hold whole numbers", "torch.bool", "entries.int()"],
    ),
    "tagged with half a head": (
        lambda: figures.tagged(ENTRIES, 4, 2.0, "x", ["a", "b"]),
        ["num_heads must be a positive integer", "2.0 (float)", "Pass a whole number"],
    ),
    "memory of floats": (
        lambda: figures.memory({"a": V3}, 4, 2),
        ["strips['a'] must hold whole numbers", "torch.float32", "strips['a'].int()"],
    ),
    "memory without names": (
        lambda: figures.memory([torch.arange(4)], 4, 2),
        ["strips must be a dict", "list", BY_NAME],
    ),
    "alignment of texts": (
        lambda: figures.alignment("Can you", ABC, []),
        ["top must be a list", "got 'Can you' (str)", BRACKETS],
    ),
    "links that are no pairs": (
        lambda: figures.alignment(ABC, ABC, [0, 1]),
        ["links must hold pairs (top word, bottom word)", "got 0", "such as (0, 1)"],
    ),
    "link by word": (
        lambda: figures.alignment(ABC, ABC, [("a", "b")]),
        ["the top word in links must be from 0 to 2", "'a' (str)", "Pass an integer"],
    ),
    "look back at half a step": (
        lambda: figures.look_back(ABC, ABC, 0.5, WEIGHTS),
        ["step must be from 0 to 2", "got 0.5 (float)", "Pass an integer"],
    ),
    "look back with words": (
        lambda: figures.look_back(ABC, ABC, 0, ABC),
        ["weights must be a tensor", "['a', 'b', 'c'] (list)", WRAP],
    ),
    "everyone in a text": (
        lambda: figures.everyone("you"), ["words must be a list", "'you'", BRACKETS]
    ),
    "one series against length": (
        lambda: figures.against_length([2, 4], {"a": [1.0, 0.5]}, "y"),
        ["groups['a'][0] must be a list", "got 1.0 (float)", BRACKETS],
    ),
    "stage with a text": (
        lambda: figures.stages(ABC, [["x"], "training", ["y"]]),
        ["inside[1] must be a list", "got 'training' (str)", BRACKETS],
    ),
    "pattern of words": (
        lambda: figures.pattern([ABC], ["a"], ABC), ["weights must be a tensor", WRAP]
    ),
    "pattern with a text as labels": (
        lambda: figures.pattern(W3, "abc", ABC),
        ["rows must be a list", "got 'abc' (str)", BRACKETS],
    ),
    "marks that are no pairs": (
        lambda: figures.pattern(W3, ABC, ABC, marked=[(0, 1, 2)]),
        ["marked must hold pairs (row, column)", "(0, 1, 2)", "such as (0, 1)"],
    ),
    "one curve": (
        lambda: figures.curves([1, 2], {"a": [1.0, 0.5]}, "x", "y"),
        ["groups['a'][0] must be a list", "got 1.0 (float)", BRACKETS],
    ),
    "curves in a list": (
        lambda: figures.curves([1, 2], [[1.0, 0.5]], "x", "y"),
        ["groups must be a dict", "list", BY_NAME],
    ),
    "levels in a list": (
        lambda: figures.curves([1], {"a": [[1]]}, "x", "y", [0.5]),
        ["levels must be a dict", "list", BY_NAME],
    ),
    "level as a text": (
        lambda: figures.curves([1], {"a": [[1]]}, "x", "y", {"low": "0.5"}),
        ["levels['low'] must be a finite number from 0 on", "'0.5' (str)", "begins at"],
    ),
    "circuit of a text": (
        lambda: figures.circuit("abc"), ["words must be a list", "'abc'", BRACKETS]
    ),
    "tokens kept as a number": (
        lambda: figures.kept(4, 2), ["tokens must be a list", "4 (int)", BRACKETS]
    ),
    "amounts in a list": (
        lambda: figures.amounts([1.0]), ["values must be a dict", "list", BY_NAME]
    ),
    "amount as a text": (
        lambda: figures.amounts({"a": "1"}),
        ["values['a'] must be a finite number from 0 on", "'1' (str)", "leave it out"],
    ),
    "line by tokens as a text": (
        lambda: figures.by_tokens([1, 2], {"a": ["1", "2"]}, "y"),
        ["lines['a'] must be a tensor", "['1', '2'] (list)", WRAP],
    ),
    "half a rank": (
        lambda: figures.shards({"a": "rows"}, 2.5),
        ["ranks must be from 2 to 4", "got 2.5 (float)", "Pass an integer"],
    ),
    "shards in a list": (
        lambda: figures.shards(["W_query"], 2), ["cuts must be a dict", "list", BY_NAME]
    ),
    "look of half a query": (
        lambda: figures.look(W3[0], ABC, 0.5),
        ["query must be from 0 to 2", "got 0.5 (float)", "Pass an integer"],
    ),
    "mechanism that is no dict": (
        lambda: figures.mechanisms([W3]),
        ["steps[0] must be a dict", "Tensor", "Pass the entries name, section"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("call", "parts"), TABLE.values(), ids=TABLE)
def test_message(call, parts):
    with pytest.raises(ValueError, match=r"\.$") as error:
        call()
    assert [part for part in parts if part not in str(error.value)] == []


@pytest.mark.parametrize(
    ("call", "parts"), OF_ANOTHER_KIND.values(), ids=OF_ANOTHER_KIND
)
def test_message_for_another_kind(call, parts):
    with pytest.raises(TypeError, match=r"\.$") as error:
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
        lambda x: figures.growth([2, 4, 8], {"a": x[0]}, "y"),
        lambda x: figures.look(x[0], ABC, 0),
        lambda x: figures.mechanisms([mechanism(x)]),
        lambda x: figures.steps({"a": x[0]}, ABC),
        lambda x: figures.cropped_mask(x, 2),
        lambda x: figures.dropped(x, KEEP, ABC, 0.5),
        lambda x: figures.lanes(x, layer(2)),
        lambda x: figures.look_back(ABC, ABC, 0, x[0]),
        lambda x: figures.pattern(x, ABC, ABC),
        lambda x: figures.curves([1, 2, 3], {"a": x}, "x", "y"),
        lambda x: figures.against_length([1, 2, 3], {"a": x}, "y"),
        lambda x: figures.by_tokens([1, 2, 3], {"a": x[0]}, "y"),
    ],
)
def test_tensors_of_a_model_in_training_are_drawn_alike(draw):
    """With a gradient or without: a figure needs no detach, and warns of nothing."""
    x = random_weights(3, 3)

    def svg(x):
        return figures.show(draw(x), caption="c", alt="a").svgs

    assert svg(x.clone().requires_grad_()) == svg(x)
