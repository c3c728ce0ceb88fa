"""Figures of what a model wrote: each word, and whether it may stand there."""

from attention.chapter.figures.base import (
    EDGE,
    INK,
    TITLE,
    TOKEN,
    VERMILION,
    canvas,
    cell,
    styled,
)

LINE = 0.3  # inches from one line of words to the next
ROOM = 3.5  # inches for the words of a line


@styled
def writing(texts):
    """Draw texts word by word, and cross out the words that may not stand there.

    Args:
        texts: dict of name -> list of (word, whether it may follow the word before).

    Returns:
        Axes with a name above each text, and its words in lines. A word that may not
        follow has a red frame and a line through it; the others are plain.
    """
    lines = {name: _lines(words) for name, words in texts.items()}
    ax = canvas(3.6, sum(LINE * (len(found) + 1) for found in lines.values()) + 0.05)
    top = 0.0
    for name, found in lines.items():
        ax.text(0.05, top + 0.17, name, color=INK, va="center", fontsize=TITLE)
        for line in found:
            top += LINE
            for left, word, allowed in line:
                edge = EDGE if allowed else VERMILION
                cell(ax, 0.05 + left, top + 0.03, _width(word), 0.23, TOKEN, word, edge)
                if not allowed:
                    ends = (0.09 + left, 0.01 + left + _width(word))
                    ax.plot(ends, (top + 0.145, top + 0.145), color=VERMILION, lw=1.4)
        top += LINE
    return ax


def _width(word):
    return 0.1 + 0.08 * len(word)


def _lines(words):
    """Break words into lines that fit: lists of (left edge, word, allowed)."""
    lines, left = [[]], 0.0
    for word, allowed in words:
        if left and left + _width(word) > ROOM:
            lines.append([])
            left = 0.0
        lines[-1].append((left, word, bool(allowed)))
        left += _width(word) + 0.04
    return lines
