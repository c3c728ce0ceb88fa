"""Figures of what a model wrote: each word, and whether it may stand there."""

from coding_attention.figures.base import (
    INK,
    LIGHT,
    SMALL,
    TITLE,
    TOKEN,
    VERMILION,
    canvas,
    cell,
    check,
    styled,
)

LINE = 0.32  # inches from one line of words to the next
ROOM = 3.5  # inches for the words of a line


@styled
def writing(texts):
    """Draw sentences word by word, and cross out the words that may not stand there.

    Args:
        texts: dict of name -> list of sentences, each a list of (word, whether it may
            stand there).

    Returns:
        Axes with a name above each text, and each sentence on a line of its own, or
        more if it is long. A word that may not stand there has a red frame and a line
        through it; the others are plain.
    """
    check(texts=(list(texts), "texts"))
    for name, sentences in texts.items():
        check(**{f"texts[{name!r}]": (sentences, "sentences")})
    lines = {
        name: [line for sentence in sentences for line in _lines(sentence)]
        for name, sentences in texts.items()
    }
    height = sum(LINE * (len(found) + 1) for found in lines.values()) + 0.05
    ax = canvas(3.6, height)
    top = 0.0
    for name, found in lines.items():
        ax.text(0.05, top + 0.19, name, color=INK, va="center", fontsize=TITLE)
        for line in found:
            top += LINE
            _draw(ax, top, line)
        top += LINE
    return ax


def _width(word):
    return 0.1 + 0.083 * len(word)


def _lines(sentence):
    """Break a sentence into lines that fit: lists of (left edge, word, allowed)."""
    lines, left = [[]], 0.0
    for word, allowed in sentence:
        if left and left + _width(word) > ROOM:
            lines.append([])
            left = 0.0
        lines[-1].append((left, word, bool(allowed)))
        left += _width(word) + 0.03
    return lines


def _draw(ax, top, line):
    for left, word, allowed in line:
        x, y, width = 0.05 + left, top + 0.03, _width(word)
        if allowed:
            cell(ax, x, y, width, 0.25, TOKEN, word, size=SMALL)
            continue
        cell(ax, x, y, width, 0.25, LIGHT, word, edge=VERMILION, size=SMALL)
        middle = y + 0.125
        ax.plot((x + 0.04, x + width - 0.04), (middle, middle), color=VERMILION, lw=1.1)
