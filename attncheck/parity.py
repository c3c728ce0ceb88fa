"""Compares a class with attention that is right, or wrong in known ways.

Where the output equals a wrong way of computing it, on random numbers and to the
last digits, the mistake has a name. Nothing is read from the source code.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from math import isclose, isnan

import torch
from torch import Tensor

from attncheck.changes import base_recipe, pairs, recipes
from attncheck.layer import Layer
from attncheck.projections import Projections
from attncheck.reference import PLAIN, Computation, Recipe

TOLERANCE = 2e-5  # of the largest output; float32 is exact to about 1e-6
TRIES = 1200  # of mistakes in pairs: the same on all machines


@dataclass(frozen=True)
class Match:
    """What the output equals.

    Attributes:
        names: the mistakes.
        words: what the output equals, in words.
        gap: the distance that is left.
        others: single mistakes that give the same numbers with these sizes.
        recipe: the recipe of the mistakes.
        projections: the reading of the weights.
        layer: what acts besides attention.
    """

    names: tuple[str, ...]
    words: str
    gap: float
    others: list[str]
    recipe: Recipe
    projections: Projections
    layer: Layer = PLAIN


def distance(output: Tensor, expected: Tensor) -> float:
    """Return the largest difference, as a share of the largest expected value.

    Infinite unless shapes and non-finite entries agree and most entries are finite.
    """
    if output.shape != expected.shape:
        return float("inf")
    output, expected = output.cpu().double(), expected.cpu().double()
    finite = expected.isfinite()
    if not torch.equal(finite, output.isfinite()) or not finite.any():
        return float("inf")
    largest = expected[finite].abs().max().clamp_min(1e-12)
    return ((output - expected)[finite].abs().max() / largest).item()


def right_distance(
    x: Tensor,
    output: Tensor,
    candidates: Sequence[Projections],
    causal: bool,
    layer: Layer = PLAIN,
) -> float:
    """Return the distance to right attention, for the best reading of the weights."""
    gaps, base = [], base_recipe(causal, layer)
    for projections in candidates:
        try:
            expected = Computation(x, projections, layer).output(base)
        except RuntimeError:
            continue
        gaps.append(distance(output, expected))
    return min(gaps, default=float("inf"))


def recognize_layer(
    x: Tensor,
    output: Tensor,
    candidates: Sequence[Projections],
    causal: bool,
    layers: Iterable[Layer],
) -> tuple[Layer, Projections, float] | None:
    """Return the first of several layers that the output equals, or None.

    With it, the reading of the weights and the distance that is left.
    """
    x, output = x.double(), output.cpu().double()
    readings = [projections.double() for projections in candidates]
    for layer in layers:
        for place, projections in enumerate(readings):
            computation = Computation(x, projections, layer)
            gap = _gap(output, computation, base_recipe(causal, layer))
            if gap < TOLERANCE:
                return layer, candidates[place], gap
    return None


def name_mistake(
    x: Tensor,
    output: Tensor,
    candidates: Sequence[Projections],
    causal: bool,
    layer: Layer = PLAIN,
    several: bool | None = None,
) -> Match | None:
    """Return what the output equals as a :class:`Match`, or None.

    Args:
        x: tokens.
        output: what the class makes of them.
        candidates: readings of the weights.
        causal: whether tokens may not see the future.
        layer: what acts besides attention.
        several: look for single mistakes (False) or for two at once (True);
            None: for one after the other.
    """
    output = output.cpu().double()
    for projections in () if several else candidates:
        computation = Computation(x, projections, layer)
        matches = []
        for names, recipe, words in recipes(causal, projections.d_head, layer):
            gap = _gap(output, computation, recipe)
            if gap < TOLERANCE:
                matches.append((names, words, gap, recipe))
        if (
            matches
            and _gap(output, computation, base_recipe(causal, layer)) < TOLERANCE
        ):
            continue  # it is right by this reading, and these change nothing
        if matches:
            names, words, gap, recipe = matches[0]
            others = sorted({m[0][0] for m in matches} - set(names))
            return Match(names, words, gap, others, recipe, projections, layer)
    for projections in () if several is False else candidates[:1]:
        computation = Computation(x, projections, layer)
        for names, recipe, words in islice(pairs(causal, layer), TRIES):
            gap = _gap(output, computation, recipe)
            if gap < TOLERANCE:
                return Match(names, words, gap, [], recipe, projections, layer)
    return None


def with_weights(
    x: Tensor,
    projections: Projections,
    layer: Layer,
    order: Tensor | None,
    visible: Tensor,
) -> Tensor:
    """Return the output where each token sees others, or finds keys in another order.

    Args:
        x: tokens (b, t, d_in).
        projections: a reading of the weights.
        layer: what acts besides attention.
        order: (t, t), whose key each key is, or None.
        visible: (t, t), True where token i sees key j.
    """
    computation = Computation(x, projections, layer)
    scores = computation.weights(base_recipe(False, layer)).log()
    if order is not None:
        scores = scores.gather(-1, order.expand(scores.shape))
    weights = scores.masked_fill(~visible, -torch.inf).softmax(dim=-1)
    return computation.join_heads(
        weights @ computation.values(base_recipe(False, layer))
    )


def example(
    match: Match, x: Tensor, causal: bool, layer: Layer = PLAIN
) -> tuple[Tensor, Tensor] | None:
    """Return expected and actual weights of four tokens, each (4, 4), or None."""
    computation = Computation(x[:1, :4], match.projections, layer)
    try:
        expected = computation.weights(base_recipe(causal, layer))[0, 0]
        actual = computation.weights(match.recipe)[0, 0]
    except Exception:  # a declared bias may take one number of tokens alone
        return None
    square = expected.shape == actual.shape == (4, 4)
    if not square or torch.allclose(expected, actual, atol=1e-3, equal_nan=True):
        return None
    return expected, actual


def _gap(output: Tensor, computation: Computation, recipe: Recipe) -> float:
    """Return the distance, infinite where the recipe does not fit the shapes."""
    try:
        expected = computation.output(recipe)
    except RuntimeError:
        return float("inf")
    # Most recipes are far off, and one token is enough to see that.
    alike = expected.shape == output.shape
    if alike and not _near(expected[0, -1].tolist(), output[0, -1].tolist()):
        return float("inf")
    return distance(output, expected)


def _near(expected: list[float], output: list[float]) -> bool:
    """Whether a token's entries are alike; the first one that isn't ends it.

    In Python, since :func:`torch.allclose` took longer than the weights.
    """
    return all(
        isnan(two) if isnan(one) else isclose(one, two, rel_tol=2e-2, abs_tol=2e-3)
        for one, two in zip(expected, output, strict=True)
    )
