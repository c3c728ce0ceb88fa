"""Figures of sections 3.1 and 3.2: translation, the bottleneck and the look-back."""

from matplotlib.patches import Rectangle

from attention.chapter.figures import checks
from attention.chapter.figures.base import (
    BLUE,
    DARK,
    GREEN,
    INK,
    LIGHT,
    SKY,
    VERMILION,
    new_axes,
    styled,
)


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

    Raises:
        TypeError, ValueError: a sentence without words, a pair that points at none, or
            a highlight that is no link.
    """
    words = {
        "top_word": checks.entries("top", top),
        "bottom_word": checks.entries("bottom", bottom),
    }
    links = checks.pairs("links", links, **words)
    highlight = checks.pairs("highlight", highlight, **words)
    unknown = [pair for pair in highlight if pair not in links]
    if unknown:
        raise ValueError(
            f"highlight must hold pairs of links, but got {unknown[0]}. Add the pair "
            f"to links, so that there is a line to stand out."
        )
    ax = _plain(3.6, 1.7)
    places = [_row(ax, words, y) for words, y in ((top, 0.25), (bottom, 1.45))]
    for i, j in links:
        strong = (i, j) in highlight
        ax.plot(
            [places[0][i], places[1][j]], [0.42, 1.28],
            color=VERMILION if strong else BLUE, lw=2.4 if strong else 1.4, zorder=1,
        )  # fmt: skip
    return ax


def _row(ax, words, y):
    # Each word gets room by its letters.
    letters = [len(str(word)) + 1.6 for word in words]
    scale = 3.56 / sum(letters)
    x, centers = 0.02, []
    for word, size in zip(words, letters, strict=True):
        width = size * scale
        _box(ax, x + width / 2, y, width - 0.04, word, LIGHT)
        centers.append(x + width / 2)
        x += width
    return centers


@styled
def bottleneck(source, target):
    """Draw an encoder that hands one state to the decoder.

    Args:
        source: words that the encoder reads.
        target: words that the decoder writes.

    Returns:
        Axes with two chains of states and one box between them.

    Raises:
        TypeError, ValueError: no list of words, an empty one, or one too long.
    """
    _check_chains(source, target)
    ax = _plain(3.6, 2.2)
    read = _chain(ax, source, 1.5, 1.95, SKY)
    write = _chain(ax, target, 0.62, 0.2, "#fbe3d3", above=True)
    _arrow(ax, (read[-1], 1.35), (read[-1], 1.2), VERMILION)
    _box(ax, 1.8, 1.06, 3.5, "one hidden state, whatever the length", "#fff2cc")
    _arrow(ax, (write[0], 0.92), (write[0], 0.77), VERMILION)
    return ax


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

    Raises:
        TypeError, ValueError: no list of words, an empty one, or one too long; a step
            without a word, or not one weight from 0 to 1 for each word of the source.
    """
    _check_chains(source, target)
    checks.index("step", step, len(target), "words of target")
    weights = checks.numbers("weights", weights, len(source), "words of source", 0, 1)
    ax = _plain(3.6, 2.2)
    read = _chain(ax, source, 1.5, 1.95, SKY)
    write = _chain(ax, target, 0.62, 0.2, "#fbe3d3", above=True)
    for x, weight in zip(read, weights, strict=True):
        width = 0.6 + 5 * round(weight, 3)
        ax.plot([write[step], x], [0.77, 1.35], color=VERMILION, lw=width, zorder=1)
    return ax


@styled
def everyone(words):
    """Draw self-attention: every position of one sequence looks at all positions.

    Args:
        words: one sequence.

    Returns:
        Axes with two rows of the same words and a line for each pair.

    Raises:
        TypeError, ValueError: the words are no list, or there is none.
    """
    checks.entries("words", words)
    ax = _plain(3.6, 1.8)
    centers = _row(ax, words, 1.55)
    _row(ax, words, 0.25)
    for query in centers:
        for key in centers:
            ax.plot([query, key], [0.42, 1.38], color=BLUE, lw=1.0, zorder=1)
    return ax


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

    Raises:
        TypeError, ValueError: too many groups, or a series that has not one number
            from 0 to 1 for each length.
    """
    looks = ((VERMILION, "s"), (BLUE, "o"), (GREEN, "D"))
    n = checks.entries("lengths", lengths)
    lengths = checks.numbers("lengths", lengths, n, "lengths")
    checks.groups("groups", groups, len(looks))
    groups = {
        name: checks.series(f"groups[{name!r}]", series, n, "lengths", 0, 1)
        for name, series in groups.items()
    }
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
    ax.tick_params(labelsize=8)
    ax.set_xlabel("length of the sequence", fontsize=8)
    ax.set_ylabel(ylabel, fontsize=8)
    ax.legend(
        loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=2, fontsize=8,
        frameon=False, labelcolor=INK, borderaxespad=0.1, handlelength=1.6,
    )  # fmt: skip
    return ax


@styled
def stages(names, inside):
    """Draw the way from data to an assistant, with the parts of the first stage.

    Args:
        names: three stages, in order.
        inside: for each stage, the one to three texts that stand in its box; the first
            text of the first stage is framed, for it is where the book stands.

    Returns:
        Axes with a box for each stage.

    Raises:
        TypeError, ValueError: not three stages, or one whose texts do not fit its box.
    """
    checks.labels("names", names, 3, "stages")
    checks.labels("inside", inside, 3, "stages")
    for i, texts in enumerate(inside):
        checks.entries(f"inside[{i}]", texts, 3)
    ax = _plain(3.6, 1.75)
    width = 1.12
    for i, (name, texts) in enumerate(zip(names, inside, strict=True)):
        x = 0.03 + i * 1.21
        box = Rectangle((x, 0.32), width, 1.38, facecolor=LIGHT, edgecolor=DARK, lw=0.8)
        ax.add_patch(box)
        ax.text(x + width / 2, 0.17, name, fontsize=8, ha="center", va="center")
        for k, text in enumerate(texts):
            here = i == 0 and k == 0
            _box(
                ax, x + width / 2, 0.56 + k * 0.44, width - 0.14, text,
                "#fff2cc" if here else SKY, VERMILION if here else DARK,
            )  # fmt: skip
        if i > 0:
            _arrow(ax, (x - 0.1, 1.0), (x + 0.01, 1.0), INK)
    return ax


def _plain(width, height):
    ax = new_axes(width, height)
    ax.set_position([0, 0, 1, 1])
    ax.set_axis_off()
    ax.set_xlim(0, width)
    ax.set_ylim(height, 0)
    return ax


def _check_chains(source, target):
    # More states than that would leave no room for the arrows between them.
    for name, words in (("source", source), ("target", target)):
        checks.entries(name, words, 10)


def _chain(ax, words, y, label_y, color, above=False):
    step = 3.5 / len(words)
    centers = [0.05 + step * (i + 0.5) for i in range(len(words))]
    for i, (x, word) in enumerate(zip(centers, words, strict=True)):
        _box(ax, x, y, step - 0.17, "state", color)
        ax.text(x, label_y, word, fontsize=8, ha="center", va="center_baseline")
        if i > 0:
            half = step / 2
            _arrow(ax, (x - half - 0.09, y), (x - half + 0.1, y), INK)
        if above:
            _arrow(ax, (x, y - 0.14), (x, label_y + 0.08), INK)
        else:
            _arrow(ax, (x, label_y - 0.12), (x, y + 0.14), INK)
    return centers


def _box(ax, x, y, width, text, color, edge=DARK):
    corner = (x - width / 2, y - 0.15)
    ax.add_patch(
        Rectangle(corner, width, 0.3, facecolor=color, edgecolor=edge, lw=0.9, zorder=2)
    )
    ax.text(
        x, y, text, color=DARK, fontsize=7, ha="center", va="center_baseline", zorder=3
    )


def _arrow(ax, start, end, color):
    arrow = {"arrowstyle": "->", "color": color, "lw": 1.2, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", end, start, arrowprops=arrow)
