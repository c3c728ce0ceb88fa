"""The mistakes as changes of one recipe, and the lists of them to try."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

from attncheck.layer import OPTIONS, Layer
from attncheck.mistakes import MISTAKES
from attncheck.reference import PLAIN, RIGHT, Recipe

Row = tuple[str, Mapping[str, Any], str]  # mistake, change, what the output equals
Named = tuple[tuple[str, ...], Recipe, str]  # mistakes, recipe, words
FILLS = [-1.0, -math.e, -2.0, -3.0, -5.0, -8.0, -10.0, -20.0]
MASKING = {"mask", "fill", "mask_by"}


def _rows(option: str) -> list[Row]:
    """Return (mistake, change of the recipe, what the output then equals)."""
    return [
        (mistake.name, recipe.change, recipe.equals)
        for mistake in MISTAKES.values()
        for recipe in mistake.recipes
        if recipe.option == option
    ]


CHANGES = _rows("")
# What can go wrong where the layer does more: by the option that declares it.
LAYER_CHANGES = {option: _rows(option) for option in OPTIONS}


def base_recipe(causal: bool, layer: Layer = PLAIN) -> Recipe:
    """Return what is right."""
    right = RIGHT if layer.scale is None else replace(RIGHT, scale=layer.scale)
    return right if causal else replace(right, mask="none")


def table(causal: bool, layer: Layer) -> list[Row]:
    """Return the changes that make sense for this layer."""
    rows = [row for row in CHANGES if causal or not MASKING & set(row[1])]
    if layer.scale is not None:
        rows = [row for row in rows if row[1].get("scale") != layer.scale]
    for option, changes in LAYER_CHANGES.items():
        if getattr(layer, option):
            rows += [row for row in changes if not _is_meant(row, layer)]
    return rows


def _is_meant(row: Row, layer: Layer) -> bool:
    """Whether a change only repeats what was declared."""
    how = row[1].get("rotated", "")
    meant = (layer.rope.pairing, f"base {layer.rope.base:g}") if layer.rope else ()
    return how in meant


def recipes(causal: bool, d_head: int, layer: Layer) -> list[Named]:
    """Return (mistake names, recipe, words) for all single mistakes."""
    base = base_recipe(causal, layer)
    singles: list[Named] = [
        ((name,), replace(base, **change), words)
        for name, change, words in table(causal, layer)
    ]
    if not causal:
        causal_one = replace(base, mask=RIGHT.mask)
        return [*singles, (("mask_unwanted",), causal_one, "with a causal mask")]
    # The fill may come before or after the scores are scaled.
    for fill in FILLS:
        for value in (fill, fill / d_head**0.5):
            words = f"with hidden scores set to {fill:g}"
            singles.append((("mask_fill_finite",), replace(base, fill=value), words))
    # With a finite value, softmax over heads or the batch has no NaN.
    for name, axis in (("softmax_over_heads", 1), ("softmax_over_batch", 0)):
        recipe = replace(base, softmax=axis, fill=-1e9)
        singles.append(((name,), recipe, "normalized over another axis"))
    return singles


def _first_ways(causal: bool, layer: Layer) -> list[Row]:
    """Return a row for each mistake: its usual way, which comes first.

    Of 500 searches for several mistakes, 4 found some, all in their usual ways.
    """
    ways: dict[str, Row] = {}
    for row in table(causal, layer):
        ways.setdefault(row[0], row)
    return list(ways.values())


def pairs(causal: bool, layer: Layer) -> Iterator[Named]:
    """Yield (mistake names, recipe, words) for two mistakes at once."""
    base = base_recipe(causal, layer)
    rows = _first_ways(causal, layer)
    for (name, change, words), (other, second, more) in combinations(rows, 2):
        if not set(change) & set(second):
            recipe = replace(base, **change, **second)
            yield (name, other), recipe, f"{words} and {more}"
