"""What the figures require of their input, and the messages when it does not fit."""

import torch

from attention import validate


def shape(name, tensor, layout, **sizes):
    """Require a tensor to have the dimensions of ``layout``, none of them empty.

    Args:
        name: what the argument is called.
        tensor: what was passed in.
        layout: one word a dimension, such as ``"t d_in"``; a digit is a fixed size.
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


def labels(name, given, count, what):
    """Require one label, or one number, for each of ``count`` things.

    Raises:
        ValueError: there are more, or fewer.
    """
    if len(given) != count:
        raise ValueError(
            f"{name} must hold one entry for each of the {count} {what}, but got "
            f"{len(given)}. Pass {count} of them."
        )


def groups(name, given, most):
    """Require a dict to hold at least one entry, and no more than there are colors.

    Raises:
        ValueError: it is empty, or has more than ``most`` entries.
    """
    if not 1 <= len(given) <= most:
        raise ValueError(
            f"{name} must hold 1 to {most} entries, one for each color of the figure, "
            f"but got {len(given)}. Draw the others in a figure of their own."
        )


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


def index(name, given, count, what):
    """Require an index to point at one of ``count`` things.

    Raises:
        ValueError: it is negative or too large.
    """
    if not 0 <= given < count:
        raise ValueError(
            f"{name} must be from 0 to {count - 1}, the index of one of the {count} "
            f"{what}, but got {given}."
        )


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
