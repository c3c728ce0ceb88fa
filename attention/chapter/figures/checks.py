"""What the figures require of their input, and the messages when it does not fit."""

import operator
from numbers import Real

import torch

from attention import validate

INFINITY = float("inf")
BY_NAME = "Pass what is to be drawn by its name, such as {'one': ..., 'other': ...}."


def tensor(name, given):
    """Give numbers as a tensor without gradient, whatever they came in.

    Raises:
        TypeError: no tensor can hold them, such as rows of different lengths.
    """
    try:
        return torch.as_tensor(given).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"{name} must be a tensor, or numbers in rows of one length, but got "
            f"{given!r} ({type(given).__name__}). Wrap numbers in torch.tensor(...)."
        ) from error


def shape(name, tensor, layout, **sizes):
    """Require a tensor to have the dimensions of ``layout``, none of them empty.

    Args:
        name: what the argument is called.
        tensor: what was passed in.
        layout: one word a dimension, such as ``"t d_in"``; a digit is a fixed size,
            and dimensions of one word have one size.
        sizes: the sizes that other arguments have set.

    Returns:
        The shape, as a tuple of integers.

    Raises:
        TypeError: no tensor.
        ValueError: another number of dimensions, another size, or an empty one.
    """
    advice = "Wrap the numbers in torch.tensor(...)."
    validate.instance(name, tensor, torch.Tensor, advice)
    words, given = layout.split(), tuple(tensor.shape)
    sizes |= {word: int(word) for word in words if word.isdigit()}
    fits = len(words) == len(given) and 0 not in given
    if fits:
        for word, size in zip(words, given, strict=True):
            if words.count(word) > 1:
                sizes.setdefault(word, size)
    if not fits or any(sizes.get(w, n) != n for w, n in zip(words, given, strict=True)):
        known = [f"{w}={n}" for w, n in sizes.items() if w in words and w != str(n)]
        known = f" with {', '.join(known)}" if known else ""
        expected = f"({', '.join(words)}{',' if len(words) == 1 else ''})"
        raise ValueError(
            f"{name} must have the shape {expected}{known} and hold a number, but got "
            f"{given}. Pick one sequence or head, such as {name}[0], and check that "
            f"all arguments belong to the same tokens."
        )
    return given


def whole(name, tensor):
    """Require entries that count something: integers from 0 on.

    Raises:
        TypeError: the dtype is not one of integers.
        ValueError: an entry is negative.
    """
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(
            f"{name} must hold whole numbers, but its dtype is {tensor.dtype}. "
            f"Convert it with {name}.int(), once nothing stands after the points."
        )
    if tensor.min() < 0:
        raise ValueError(
            f"{name} must hold whole numbers from 0 on, but the smallest is "
            f"{int(tensor.min())}. Count as torch.arange does."
        )


def boolean(name, tensor):
    """Require a mask of True and False.

    Raises:
        TypeError: another dtype.
    """
    if tensor.dtype != torch.bool:
        raise TypeError(
            f"{name} must hold True and False, but its dtype is {tensor.dtype}. "
            f"Convert it with {name}.bool()."
        )


def length(name, given):
    """Give the number of entries of a list of labels or numbers.

    Raises:
        TypeError: no list, or something that is one only by accident: a text, a dict.
    """
    try:
        count = len(given)
    except TypeError:
        count = None
    if count is None or isinstance(given, (str, dict)):
        raise TypeError(
            f"{name} must be a list, but got {given!r} ({type(given).__name__}). "
            f"Write its entries in brackets, such as [first, second]."
        )
    return count


def labels(name, given, count, what):
    """Require one label, or one number, for each of ``count`` things.

    Raises:
        TypeError: no list.
        ValueError: there are more, or fewer.
    """
    if length(name, given) != count:
        raise ValueError(
            f"{name} must hold one entry for each of the {count} {what}, but got "
            f"{len(given)}. Pass {count} of them."
        )


def entries(name, given, most=None, reason="there is no room for more"):
    """Require a list of at least one entry, and no more than fit.

    Returns:
        How many there are.

    Raises:
        TypeError: no list.
        ValueError: it is empty, or has more than ``most`` entries.
    """
    count = length(name, given)
    if count == 0 or (most is not None and count > most):
        expected = "at least 1 entry" if most is None else f"1 to {most} entries"
        reason = f", for {reason}" if count else ""
        advice = "Leave some out." if count else "Pass what is to be drawn."
        raise ValueError(
            f"{name} must hold {expected}{reason}, but got {count}. {advice}"
        )
    return count


def named(name, given):
    """Require a dict with at least one entry.

    Raises:
        TypeError: no dict.
        ValueError: it is empty.
    """
    validate.instance(name, given, dict, BY_NAME)
    if not given:
        raise ValueError(f"{name} must hold an entry, but is empty. {BY_NAME}")


def groups(name, given, most):
    """Require a dict to hold at least one entry, and no more than there are colors.

    Raises:
        TypeError: no dict.
        ValueError: it is empty, or has more than ``most`` entries.
    """
    validate.instance(name, given, dict, BY_NAME)
    if not 1 <= len(given) <= most:
        raise ValueError(
            f"{name} must hold 1 to {most} entries, one for each color of the figure, "
            f"but got {len(given)}. Draw the others in a figure of their own."
        )


def number(name, given, low, below, advice):
    """Require one finite number from ``low`` up to, but not including, ``below``.

    Raises:
        TypeError: no number; the message ends with ``advice``.
        ValueError: outside, or NaN, likewise.
    """
    if isinstance(given, torch.Tensor) and given.dim() == 0:
        given = given.item()
    end = f" and below {below}" if below < INFINITY else ""
    expected = f"{name} must be a finite number from {low} on{end}"
    if isinstance(given, bool) or not isinstance(given, Real):
        raise TypeError(
            f"{expected}, but got {given!r} ({type(given).__name__}). {advice}"
        )
    if not low <= given < below:
        raise ValueError(f"{expected}, but got {given}. {advice}")


def numbers(name, given, count, what, low=-INFINITY, high=INFINITY):
    """Require one finite number for each of ``count`` things.

    Returns:
        The numbers as a list, without gradients.

    Raises:
        TypeError: no list or tensor of numbers.
        ValueError: there are more, or fewer, or one is outside of ``low`` to ``high``.
    """
    labels(name, given, count, what)
    if isinstance(given, torch.Tensor):
        given = given.tolist()
    plain = [x.item() if isinstance(x, torch.Tensor) else x for x in given]
    values = tensor(name, plain)
    shape(name, values, "n", n=count)
    between(name, values, low, high)
    return plain


def series(name, given, count, what, low=-INFINITY, high=INFINITY):
    """Require a list of series, each with a finite number for each of ``count`` things.

    Returns:
        The series as a list of lists.

    Raises:
        TypeError: no list of lists of numbers.
        ValueError: none, one of another length, or a number outside ``low`` to
            ``high``.
    """
    entries(name, given)
    return [
        numbers(f"{name}[{i}]", one, count, what, low, high)
        for i, one in enumerate(given)
    ]


def finite(name, tensor):
    """Require every number to have a place on an axis.

    Raises:
        ValueError: one is infinite or NaN.
    """
    if not tensor.isfinite().all():
        bad = int((~tensor.isfinite()).sum())
        raise ValueError(
            f"{name} must hold finite numbers, but {bad} of {tensor.numel()} are "
            f"infinite or NaN, which no length can show. Use matrix, which writes them."
        )


def between(name, tensor, low, high):
    """Require finite numbers, none of them below ``low`` or above ``high``.

    Raises:
        ValueError: one is outside, infinite or NaN.
    """
    finite(name, tensor)
    smallest, largest = tensor.min(), tensor.max()
    if smallest < low or largest > high + 1e-4:  # a sum may end a bit above one
        expected = f"from {low} " + ("on" if high == INFINITY else f"to {high}")
        raise ValueError(
            f"{name} must hold numbers {expected}, but they go from {smallest:.4g} to "
            f"{largest:.4g}. The figure would cut the others off: scale them first."
        )


def count(name, given, low, high, what):
    """Require an integer from ``low`` to ``high``.

    Raises:
        TypeError: no integer.
        ValueError: it is too small or too large.
    """
    expected = f"{name} must be from {low} to {high}, {what}"
    try:
        operator.index(given)
    except TypeError as error:
        raise TypeError(
            f"{expected}, but got {given!r} ({type(given).__name__}). "
            f"Pass an integer without a point."
        ) from error
    if not low <= given <= high:
        raise ValueError(f"{expected}, but got {given}. Pass one of these numbers.")


def index(name, given, size, what):
    """Require an index to point at one of ``size`` things.

    Raises:
        TypeError: no integer.
        ValueError: it is negative or too large.
    """
    count(name, given, 0, size - 1, f"the index of one of the {size} {what}")


def pairs(name, given, **counts):
    """Require pairs of indices, such as (row, column).

    Args:
        name: what the argument is called.
        given: what was passed in.
        counts: two words, such as ``row``, and how many of each there are.

    Returns:
        The pairs as a list of tuples.

    Raises:
        TypeError: no list of pairs of integers.
        ValueError: an index is negative or too large.
    """
    words = [word.replace("_", " ") for word in counts]
    length(name, given)
    found = []
    for pair in given:
        try:
            first, second = pair
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"{name} must hold pairs ({', '.join(words)}), but got {pair!r}. "
                f"Write each as two indices, such as (0, 1)."
            ) from error
        for word, at, size in zip(words, (first, second), counts.values(), strict=True):
            index(f"the {word} in {name}", at, size, f"{word}s")
        found.append((int(first), int(second)))
    return found


def fits_page(what, width):
    """Require a figure to be as narrow as a phone, since its numbers cannot shrink.

    Raises:
        ValueError: it is wider than 3.6 inches.
    """
    if width > 3.6 + 1e-9:
        raise ValueError(
            f"{what} would be {width:.1f} inches wide, but a phone shows 3.6. "
            f"Pass fewer columns, such as a slice of the first few."
        )
