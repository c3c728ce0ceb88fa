"""Sentences about drawings, made from the numbers that are drawn.

Where a drawing tells about itself, a word such as "left" or "largest" is chosen here,
so that it cannot say anything else than the drawing does.
"""

import torch

from coding_attention.number_words import spell_number

PLACES = {-1: "left of", 0: "on", 1: "right of"}


def count(number, noun):
    """Write a number of things: six rows, one column."""
    return f"{spell_number(number)} {noun}{'' if number == 1 else 's'}"


def line(name, values, decimals=1):
    """Say where a line begins and ends, and whether it rises or falls on the way.

    Trainings end alike on all processors to one decimal, and not to many more.
    """
    first, last = (round(float(value), decimals) for value in (values[0], values[-1]))
    way = "stays at" if first == last else "rises" if last > first else "falls"
    told = f"from {first:.{decimals}f} to {last:.{decimals}f}"
    return f"{name} {way} {told if first != last else f'{first:.{decimals}f}'}"


def at_least(values, decimals=2):
    """Say what none of some numbers is below."""
    return f"at least {min(float(value) for value in values):.{decimals}f}"


def peaks(values, rows, columns, blank=None, decimals=3):
    """Say where the largest entry of each row is: along a diagonal, or by name.

    Args:
        values: (rows, columns).
        rows: a label for each row, or None.
        columns: a label for each column, or None.
        blank: boolean (rows, columns), True where nothing is drawn.
        decimals: digits to which two entries of a row must differ.

    Returns:
        A clause without a stop.
    """
    values = values.double()
    if blank is not None:
        values = values.masked_fill(blank.bool(), -torch.inf)
    values = values.round(decimals=decimals)
    best = values.max(dim=1, keepdim=True)
    single = (values == best.values).sum(dim=1) == 1
    if not bool(single.any()):
        return "each row has one value throughout"
    found = {i: int(best.indices[i]) for i in range(len(values)) if single[i]}
    off = {j - i for i, j in found.items() if i or len(found) == 1}
    square = values.shape[0] == values.shape[1] > 2
    if square and len(off) == 1 and abs(next(iter(off))) <= 1 < len(found):
        place = PLACES[off.pop()]
        clause = f"in each row the largest is {place} the diagonal"
        if 0 in found and place != PLACES.get(found[0]):
            clause += f", and in the first row in {_named(columns, found[0], 'column')}"
        return clause
    if len(set(found.values())) == 1:
        return (
            f"the largest of a row is in {_named(columns, best.indices[0], 'column')}"
        )
    parts = ", ".join(
        f"{_named(rows, i, 'row')} in {_named(columns, j, 'column')}"
        for i, j in found.items()
    )
    return f"the largest of each row: {parts}"


def _named(labels, index, noun):
    # Numbers that are labels ("0") are told as labels are: column 0.
    index = int(index)
    if labels is None or index >= len(labels):
        return f"{noun} {index + 1}"
    label = str(labels[index])
    return f"{noun} {label}" if label.isdigit() else label


def shape_of(values, blank=None):
    """Say how many rows and columns a drawing has, and what of it is empty."""
    n, m = values.shape
    text = f"{count(n, 'row')} and {count(m, 'column')}"
    if blank is not None and bool(blank.any()):
        text += f", empty {_where(blank.bool())}"
    return text


def _where(marked):
    above = torch.ones_like(marked).triu(1)
    return "above the diagonal" if bool((marked == above).all()) else "in places"


def matrix(values, rows, columns, title, blank, decimals):
    """The text alternative of a matrix of numbers."""
    text = f"{title or 'A matrix'}: {shape_of(values, blank)}"
    if bool(((values == 0) | (values == 1)).all()) and decimals == 0:
        ones = [[j for j, v in enumerate(row) if v == 1] for row in values.tolist()]
        told = "; ".join(
            f"{_named(rows, i, 'row')} {_span(columns, js)}"
            for i, js in enumerate(ones)
        )
        return f"{text}. Ones: {told}."
    seen = values if blank is None else values[~blank.bool()]
    seen = seen[seen.isfinite()]
    if not seen.numel():
        return f"{text}."
    hidden = values == -torch.inf
    if bool(hidden.any()):
        text += f", minus infinity {_where(hidden)}"
    if values.shape[1] > 1:
        text += f"; {peaks(values, rows, columns, blank)}"
    low, high = float(seen.min()), float(seen.max())
    told = f"from {low:.{decimals}f} to {high:.{decimals}f}"
    return (
        f"{text}; numbers {told if low != high else f'{low:.{decimals}f} throughout'}."
    )


def _span(columns, places):
    if not places:
        return "in no column"
    if len(places) > 1 and places == list(range(places[0], places[-1] + 1)):
        first, last = (_named(columns, p, "column") for p in (places[0], places[-1]))
        return f"from {first} to {last}"
    return "in " + " and ".join(_named(columns, p, "column") for p in places)


def pattern(weights, rows, columns, title, marked):
    """The text alternative of a pattern of weights without numbers."""
    text = f"{title or 'A pattern'}: {shape_of(weights)}, darker for more weight"
    text += f"; {peaks(weights, rows, columns, decimals=2)}"
    best = weights.double().max(dim=1).values
    text += f", from {float(best.min()):.2f} to {float(best.max()):.2f}"
    if marked:
        hits = sum(bool(weights[i, j] == weights[i].max()) for i, j in marked)
        text += f". {hits} of {len(marked)} framed cells are the largest of their row"
    return f"{text}."


def bars(groups, labels):
    """The text alternative of bars: every number."""
    told = [
        f"{name}: "
        + ", ".join(
            f"{a} {v:.4f}" for a, v in zip(labels, values.tolist(), strict=True)
        )
        for name, values in groups.items()
    ]
    return f"Horizontal bars. {'. '.join(told)}."


def curves(steps, groups, ylabel, levels):
    """The text alternative of lines over training: how each begins and ends."""
    told = [line(name, values) for name, series in groups.items() for values in series]
    dashed = [
        f"a dashed line{f' for {name}' if name else ''} at {level:.2f}"
        for name, level in (levels or {}).items()
    ]
    return (
        f"{ylabel}, over steps {steps[0]} to {steps[-1]}: {'; '.join(told + dashed)}."
    )
