"""Figures of sections 3.1 and 3.2: translation, the bottleneck and the look-back."""

from matplotlib.textpath import TextPath

from coding_attention.figures.base import (
    BLUE,
    GRAY,
    GREEN,
    LIGHT,
    SMALL,
    TOKEN,
    VERMILION,
    arrow,
    canvas,
    cell,
    check,
    describe,
    legend,
    new_axes,
    styled,
)
from coding_attention.figures.words import count


@styled
def alignment(top, bottom, links, highlight=()):
    """Draw two sentences and which word of one becomes which word of the other.

    Args:
        top: words of the first sentence.
        bottom: words of the second sentence.
        links: (top index, bottom index) pairs.
        highlight: pairs among the links whose lines stand out.

    Returns:
        Axes with a row of words for each sentence and a line for each pair.
    """
    check(top=(top, "t"), bottom=(bottom, "u"))
    ax = canvas(3.6, 1.7)
    places = [_row(ax, words, y) for words, y in ((top, 0.25), (bottom, 1.45))]
    for i, j in links:
        strong = (i, j) in highlight
        ax.plot(
            [places[0][i], places[1][j]], [0.42, 1.28],
            color=VERMILION if strong else BLUE, lw=2.4 if strong else 1.4, zorder=1,
        )  # fmt: skip
    joined = [f"{top[i]} and {bottom[j]}" for i, j in links]
    alt = f"{count(len(places), 'row').capitalize()} of words, joined by lines: "
    alt += f"{', '.join(joined)}."
    if highlight:
        strong = ", ".join(f"{top[i]} and {bottom[j]}" for i, j in highlight)
        alt += f" Standing out: {strong}."
    return describe(ax, "", alt)


def _row(ax, words, y):
    # Each word gets the room of its letters, and all the same air around them.
    widths = [_inches(str(word)) for word in words]
    air = (3.58 - sum(widths)) / len(words)
    x, centers = 0.01, []
    for word, letters in zip(words, widths, strict=True):
        width = letters + air
        _box(ax, x + width / 2, y, width - 0.03, word, LIGHT)
        centers.append(x + width / 2)
        x += width
    return centers


def _inches(text):
    return TextPath((0, 0), text, size=SMALL).get_extents().width / 72


@styled
def bottleneck(source, target):
    """Draw an encoder that hands one state to the decoder.

    Args:
        source: words that the encoder reads.
        target: words that the decoder writes.

    Returns:
        Axes with two chains of states and one box between them.
    """
    ax = canvas(3.6, 2.2)
    read = _chain(ax, source, 1.5, 1.95, TOKEN)
    write = _chain(ax, target, 0.62, 0.2, LIGHT, above=True)
    arrow(ax, (read[-1], 1.35), (read[-1], 1.2), VERMILION, 1.2, 0)
    state = "one hidden state, whatever the length"
    _box(ax, 1.8, 1.06, 3.5, state, LIGHT, VERMILION)
    arrow(ax, (write[0], 0.92), (write[0], 0.77), VERMILION, 1.2, 0)
    alt = f"A chain of {count(len(read), 'state')} reads {', '.join(source)}. "
    alt += f"The state of {source[-1]} goes into one box, and from it a chain of "
    alt += f"{count(len(write), 'state')} writes {', '.join(target)}."
    return describe(ax, "", alt)


@styled
def look_back(source, target, step, weights):
    """Draw a decoding step that looks back at all states of the encoder.

    Args:
        source: words that the encoder reads, t.
        target: words that the decoder writes.
        step: index of the word that is being written.
        weights: (t,), how much the step takes from each state.

    Returns:
        Axes with two chains of states, and a line as thick as each weight.
    """
    check(source=(source, "t"), weights=(weights, "t"))
    ax = canvas(3.6, 2.2)
    read = _chain(ax, source, 1.5, 1.95, TOKEN)
    write = _chain(ax, target, 0.62, 0.2, LIGHT, above=True)
    widths = [0.6 + 10 * round(float(weight), 3) for weight in weights]
    for x, width in zip(read, widths, strict=True):
        ax.plot([write[step], x], [0.77, 1.35], color=BLUE, lw=width, zorder=0.5)
    shares = ", ".join(
        f"{word} {float(w):.2f}" for word, w in zip(source, weights, strict=True)
    )
    alt = (
        f"Chains of states that read and that write, and {count(len(widths), 'line')} "
    )
    alt += f"join the state that writes {target[step]} to the states that read. "
    alt += f"The thicker a line, the more it takes: {shares}."
    return describe(ax, "", alt)


@styled
def against_length(lengths, groups, ylabel):
    """Draw a share against length: a line for the mean, an area for the spread.

    Args:
        lengths: n lengths.
        groups: dict of name -> list of series, one for each seed, of n numbers from 0
            to 1 each; one to three of them.
        ylabel: what is measured.

    Returns:
        Axes with a line and an area from lowest to highest for each group.
    """
    looks = ((VERMILION, "s"), (BLUE, "o"), (GREEN, "D"))
    for name, series in groups.items():
        for k, one in enumerate(series):
            check(lengths=(lengths, "n"), **{f"groups[{name!r}][{k}]": (one, "n")})
    ax = new_axes(3.5, 2.5)
    ax.set_position([0.15, 0.17, 0.82, 0.7])
    for (name, series), (color, marker) in zip(groups.items(), looks, strict=False):
        columns = list(zip(*series, strict=True))
        means = [sum(column) / len(column) for column in columns]
        lowest, highest = map(min, columns), map(max, columns)
        ax.fill_between(
            lengths, list(lowest), list(highest), color=color, alpha=0.3, lw=0
        )
        ax.plot(lengths, means, marker + "-", color=color, lw=1.6, ms=4, label=name)
    ax.set_ylim(0, 1.03)
    ax.set_xticks(lengths, [str(length) for length in lengths])
    ax.set_xlabel("length of the sequence")
    ax.set_ylabel(ylabel)
    legend(ax, 2, 1.6)
    return ax


def _chain(ax, words, y, label_y, color, above=False):
    step = 3.5 / len(words)
    centers = [0.05 + step * (i + 0.5) for i in range(len(words))]
    for i, (x, word) in enumerate(zip(centers, words, strict=True)):
        _box(ax, x, y, step - 0.17, "state", color)
        ax.text(x, label_y, word, fontsize=SMALL, ha="center", va="center_baseline")
        if i > 0:
            half = step / 2
            arrow(ax, (x - half - 0.09, y), (x - half + 0.1, y), gap=0)
        if above:
            arrow(ax, (x, y - 0.14), (x, label_y + 0.08), gap=0)
        else:
            arrow(ax, (x, label_y - 0.12), (x, y + 0.14), gap=0)
    return centers


def _box(ax, x, y, width, text, color, edge=GRAY):
    cell(ax, x - width / 2, y - 0.15, width, 0.3, color, text, edge)
