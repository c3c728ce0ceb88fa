"""Words beside points: where neither another word nor a line is in the way."""

from coding_attention.figures.base import INK, SMALL


def beside(ax, labels, points, lines):
    """Write each label beside its point, as free of all else as there is room.

    Args:
        ax: Axes whose limits and position are set.
        labels: texts of one line.
        points: an (x, y) for each.
        lines: (start, end) pairs that no label may be struck through by.
    """
    # Everything in inches, so that the size of letters counts.
    box, (width, height) = ax.get_position(), ax.figure.get_size_inches()
    (x0, x1), (y0, y1) = ax.get_xlim(), ax.get_ylim()
    scale = box.width * width / (x1 - x0), box.height * height / (y1 - y0)
    taken = []
    for start, end in lines:
        for k in range(41):
            x, y = (
                (s + k / 40 * (e - s)) * f
                for s, e, f in zip(start, end, scale, strict=True)
            )
            taken.append((x - 0.03, y - 0.03, x + 0.03, y + 0.03))
    # The lines through the origin, too.
    taken += [(-0.02, y0 * scale[1], 0.02, y1 * scale[1])]
    taken += [(x0 * scale[0], -0.02, x1 * scale[0], 0.02)]
    limits = (x0 * scale[0], y0 * scale[1], x1 * scale[0], y1 * scale[1])
    for label, point in zip(labels, points, strict=True):
        x, y = point[0] * scale[0], point[1] * scale[1]
        wide, high = 0.079 * len(label), 0.13
        places = [
            (x + dx * (0.07 + wide / 2) - wide / 2, y + dy * r - high / 2)
            for r in (0.0, 0.1, 0.17, 0.25, 0.35, 0.5)
            for dx, dy in ((1, 1), (0, 1), (-1, 1), (0, -1), (1, -1), (-1, -1))
            if r or (dy == 1 and dx)
        ]
        boxes = [(a, b, a + wide, b + high) for a, b in places]
        free = [b for b in boxes if _inside(b, limits)] or boxes
        best = min(free, key=lambda b: sum(_common(b, other) for other in taken))
        taken.append(best)
        ax.text(
            best[0] / scale[0], (best[1] + high / 2) / scale[1], label,
            va="center_baseline", fontsize=SMALL, color=INK,
        )  # fmt: skip


def _inside(box, limits):
    low = box[0] >= limits[0] and box[1] >= limits[1]
    return low and box[2] <= limits[2] and box[3] <= limits[3]


def _common(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return max(0.0, width) * max(0.0, height)
