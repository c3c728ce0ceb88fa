"""Words in a plane of two meanings, and where attention moves them."""

from attention.chapter.figures.base import (
    BLUE,
    GRAY,
    INK,
    TEXT,
    VERMILION,
    arrow,
    check,
    new_axes,
    number,
    styled,
    told,
)


@styled
def plane(vectors, words, axes, moved=None, focus=(), title=None):
    """Draw words as points of a plane, and the way from embedding to context vector.

    Args:
        vectors: embeddings of two numbers, (t, 2).
        words: t labels.
        axes: what the two numbers mean, such as ("nature", "money").
        moved: context vectors, (t, 2), or None for points that stay.
        focus: words whose way stands out; the others are drawn in the background.
        title: short text above.

    Returns:
        Axes with a dot for each embedding and an arrow to each context vector.
    """
    given = {"vectors": (vectors, "t 2"), "words": (words, "t"), "axes": (axes, "2")}
    if moved is not None:
        given["moved"] = (moved, "t 2")
    check(**given)
    ax = new_axes(3.6, 3.2 if title is None else 3.4)
    ax.set_position([0.13, 0.14, 0.84, 0.83 if title is None else 0.76])
    starts = vectors.tolist()
    ends = starts if moved is None else moved.tolist()
    xs, ys = zip(*starts, *ends, (0.0, 0.0), strict=True)
    spans = [max(values) - min(values) or 1 for values in (xs, ys)]
    ax.set_xlim(min(xs) - 0.06 * spans[0], max(xs) + 0.16 * spans[0])
    ax.set_ylim(min(ys) - 0.06 * spans[1], max(ys) + 0.12 * spans[1])
    ax.axhline(0, color=GRAY, lw=0.6, zorder=0)
    ax.axvline(0, color=GRAY, lw=0.6, zorder=0)
    for word, start, end in zip(words, starts, ends, strict=True):
        color = VERMILION if word in focus else (GRAY if focus else BLUE)
        ax.plot(*start, "o", color=color, ms=5)
        if start != end:
            arrow(ax, tuple(start), tuple(end), color, 1.8, gap=0)
    _label(ax, words, starts, ends)
    ax.set_xlabel(axes[0])
    ax.set_ylabel(axes[1])
    if title is not None:
        ax.set_title(title)
    return told(ax, *_words(words, axes, starts, ends, moved, focus))


def _label(ax, words, starts, ends):
    """Write each word beside its point, where neither text nor arrow is in the way."""
    # Everything in inches, so that the size of letters counts.
    box, (width, height) = ax.get_position(), ax.figure.get_size_inches()
    (x0, x1), (y0, y1) = ax.get_xlim(), ax.get_ylim()
    scale = box.width * width / (x1 - x0), box.height * height / (y1 - y0)
    taken = []
    for start, end in zip(starts, ends, strict=True):
        for k in range(21):
            share = k / 20
            at = [s + share * (e - s) for s, e in zip(start, end, strict=True)]
            x, y = (a * s for a, s in zip(at, scale, strict=True))
            taken.append((x - 0.03, y - 0.03, x + 0.03, y + 0.03))
    # The lines through the origin, too.
    taken += [(-0.02, y0 * scale[1], 0.02, y1 * scale[1])]
    taken += [(x0 * scale[0], -0.02, x1 * scale[0], 0.02)]
    limits = (x0 * scale[0], y0 * scale[1], x1 * scale[0], y1 * scale[1])
    for word, start in zip(words, starts, strict=True):
        x, y = start[0] * scale[0], start[1] * scale[1]
        wide, high = 0.083 * len(word), 0.13
        places = [
            (x + dx * (0.07 + wide / 2) - wide / 2, y + dy * r - high / 2)
            for r in (0.0, 0.12, 0.24, 0.36)
            for dx, dy in ((1, 1), (0, 1), (-1, 1), (0, -1), (1, -1), (-1, -1))
            if r or (dy == 1 and dx)
        ]
        boxes = [(a, b, a + wide, b + high) for a, b in places]
        free = [b for b in boxes if _inside(b, limits)] or boxes
        best = min(free, key=lambda b: sum(_common(b, other) for other in taken))
        taken.append(best)
        ax.text(
            best[0] / scale[0], (best[1] + high / 2) / scale[1], word,
            va="center_baseline", fontsize=TEXT, color=INK,
        )  # fmt: skip


def _inside(box, limits):
    low = box[0] >= limits[0] and box[1] >= limits[1]
    return low and box[2] <= limits[2] and box[3] <= limits[3]


def _common(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return max(0.0, width) * max(0.0, height)


def _words(words, axes, starts, ends, moved, focus):
    def at(point):
        return f"({', '.join(number(value, 2) for value in point)})"

    caption = f"Words by two numbers, {axes[0]} and {axes[1]}."
    if moved is None:
        places = "; ".join(
            f"{w} at {at(s)}" for w, s in zip(words, starts, strict=True)
        )
        return caption, f"A plane with the words {places}."
    ways = [
        f"{word} from {at(start)} to {at(end)}"
        for word, start, end in zip(words, starts, ends, strict=True)
        if word in focus or not focus
    ]
    caption += f" The arrows lead to the context vectors: {'; '.join(ways)}."
    places = "; ".join(
        f"{w} from {at(s)} to {at(e)}"
        for w, s, e in zip(words, starts, ends, strict=True)
    )
    return caption, f"A plane with an arrow for each word: {places}."
