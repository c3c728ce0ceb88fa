"""The one check of the figures: do the shapes of all arguments fit each other?

A reader changes a tensor in a visible cell, and the figure below it fails. The message
says which argument, what it was, and what the others let it be.
"""


def check(**given):
    """Require arguments to have the shapes of their layouts, none of them empty.

    Args:
        given: name -> (argument, layout). A layout has one word a dimension, such as
            ``"t d_in"``; a word has one size in all arguments, and a digit is a size.
            An argument is a tensor, or a list, of which the length counts.

    Returns:
        The size of each word.

    Raises:
        ValueError: a shape doesn't fit.
    """
    sizes, setters = {}, {}
    for name, (argument, layout) in given.items():
        words, shape = layout.split(), _shape(argument)
        fits = len(words) == len(shape) and 0 not in shape
        for word, size in zip(words, shape, strict=False):
            known = int(word) if word.isdigit() else sizes.setdefault(word, size)
            setters.setdefault(word, name)
            fits = fits and known == size
        if not fits:
            raise ValueError(_message(name, shape, words, sizes, setters))
    return sizes


def _shape(argument):
    if hasattr(argument, "shape"):
        return tuple(argument.shape)
    return (len(argument),) if hasattr(argument, "__len__") else ()


def _message(name, shape, words, sizes, setters):
    expected = f"({', '.join(words)}{',' if len(words) == 1 else ''})"
    known = [
        f"{word}={sizes[word]} as in {setters[word]}"
        for word in dict.fromkeys(words)
        if setters.get(word, name) != name and not word.isdigit()
    ]
    known = f" with {' and '.join(known)}" if known else ""
    advice = "Check that all arguments belong to the same tokens."
    if len(shape) > len(words):
        advice = f"Pick one sequence or head, such as {name}[0]."
    return f"{name} must have the shape {expected}{known}, but got {shape}. {advice}"
