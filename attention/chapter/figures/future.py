"""Figures of what a model wrote: each word, and whether it may stand there."""

from matplotlib.patches import Rectangle

from attention import validate
from attention.chapter.figures import checks
from attention.chapter.figures.base import (
    DARK,
    INK,
    SKY,
    VERMILION,
    new_axes,
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

    Raises:
        TypeError, ValueError: no text, or one that is no list of such pairs.
    """
    checks.named("texts", texts)
    for name, words in texts.items():
        checks.entries(f"texts[{name!r}]", words)
        for entry in words:
            _check_word(f"texts[{name!r}]", entry)
    lines = {name: _lines(words) for name, words in texts.items()}
    height = sum(LINE * (len(found) + 1) for found in lines.values()) + 0.05
    ax = new_axes(3.6, height)
    ax.set_position([0, 0, 1, 1])
    ax.set_axis_off()
    ax.set_xlim(0, 3.6)
    ax.set_ylim(height, 0)
    top = 0.0
    for name, found in lines.items():
        ax.text(0.05, top + 0.17, name, color=INK, va="center", fontsize=9)
        for line in found:
            top += LINE
            _draw(ax, top, line)
        top += LINE
    return ax


def _check_word(name, entry):
    advice = "Pass pairs such as ('journey', True)."
    validate.instance(f"an entry of {name}", entry, tuple, advice)
    if len(entry) != 2 or not isinstance(entry[0], str) or entry[1] not in (0, 1):
        raise ValueError(
            f"{name} must hold pairs of a word and True or False, but got {entry!r}. "
            f"{advice}"
        )


def _width(word):
    return 0.1 + 0.075 * len(word)


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


def _draw(ax, top, line):
    for left, word, allowed in line:
        corner, width = (0.05 + left, top + 0.03), _width(word)
        edge = SKY if allowed else VERMILION
        ax.add_patch(
            Rectangle(corner, width, 0.23, facecolor=SKY, edgecolor=edge, lw=1.4)
        )
        middle = top + 0.145
        ax.text(
            corner[0] + width / 2, middle, word, color=DARK, fontsize=8, ha="center",
            va="center",
        )  # fmt: skip
        if not allowed:
            ends = (corner[0] + 0.04, corner[0] + width - 0.04)
            ax.plot(ends, (middle, middle), color=VERMILION, lw=1.1)
