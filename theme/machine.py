"""Where a page stands in the picture of attention: the picture, small, below its title.

The stages are those of the lab on the first page (coding_attention/labs/machine.js), in
their order and colors. Pages 02 to 05 each build some of them, and these are lit. The
drawing needs no script, says in words what it shows, and leads to the picture itself.
"""

from html import escape

from docutils import nodes

STAGES = ("x", "q, k, v", "score", "scale", "mask", "weight", "mix", "z")
BUILT = {
    "02_simple_self_attention": ("x", "score", "weight", "mix", "z"),
    "03_trainable_self_attention": ("q, k, v", "scale"),
    "04_causal_attention": ("mask",),
    "05_multi_head_attention": ("z",),
}
ADDRESS = "#lab-look?stage={}"  # of the picture at one of its stages
# Three words; the second is the query, which looks at the first and ahead at the third.
WEIGHTS = (0.8, 0.15, 0.05)
VECTORS = ((2, -3, 5, 1, -2, 4), (-4, 2, 1, -5, 3, -1), (1, 4, -2, 2, -1, -3))
ROW, LARGEST = 12, 5  # the height of a row, and the largest number of a vector


def _draw_bars(kind, row, x=0, share=1.0, turn=0):
    """Draw a vector, as tall as its ``share``, from ``x`` on; it is 20 wide."""
    vector = VECTORS[(row + turn) % len(VECTORS)]
    middle = ROW * row + ROW / 2
    bars = "".join(
        f"M{x + 3 * i + 2:g} {middle:g}v{-share * number * ROW / 2 / LARGEST:.1f}"
        for i, number in enumerate(vector)
    )
    ground = f'<rect class="am-ground" x="{x}" y="{ROW * row}" width="20" height="11"/>'
    return f'<g class="am-{kind}">{ground}<path d="{bars}"/></g>'


def _draw_cells(kinds, width=20):
    return "".join(
        f'<rect class="{kind}" x="{(20 - width) / 2:g}" y="{ROW * row}" '
        f'width="{width}" height="11"/>'
        for row, kind in enumerate(kinds)
    )


def _draw_weights():
    return "".join(
        f'<rect class="am-weight" style="--tone: {weight:.0%}" y="{ROW * row}" '
        'width="20" height="11"/>'
        for row, weight in enumerate(WEIGHTS)
    )


def _draw_result():
    lines, middle = "", ROW * 1.5
    for row, weight in enumerate(WEIGHTS):
        start = ROW * (row + 0.5)
        way = f"M0 {start:g}C7 {start:g} 5 {middle:g} 12 {middle:g}"
        lines += f'<path class="am-line" stroke-width="{1 + 4 * weight:g}" d="{way}"/>'
    # Beside it, the results of other heads.
    heads = "".join(
        f'<rect class="am-number" x="{x}" y="{2 * ROW + 3}" width="5" height="7"/>'
        for x in range(12, 32, 5)
    )
    return lines + _draw_bars("v", 1, x=12, turn=1) + heads


DRAWINGS = {
    "x": "".join(_draw_bars("x", row) for row in range(3)),
    "q, k, v": "".join(
        _draw_bars(kind, row, x=22 * i, turn=i)
        for i, kind in enumerate("qkv")
        for row in range(3)
    ),
    "score": _draw_cells(3 * ["am-number"]),
    "scale": _draw_cells(3 * ["am-number"], width=12),
    "mask": _draw_cells(["am-number", "am-number", "am-hidden"]),
    "weight": _draw_weights(),
    "mix": "".join(
        _draw_bars("v", row, share=WEIGHTS[row], turn=2) for row in range(3)
    ),
    "z": _draw_result(),
}
WIDTHS = {"q, k, v": 64, "z": 32}  # the others' is 20


def write_strip(lit, address=""):
    """Write the small picture: a link to the large one, stages ``lit`` in color."""
    description = (
        f"The stages of attention, in order: {'; '.join(STAGES)}. This page builds "
        f"{', '.join(lit[:-1])}{' and ' * (len(lit) > 1)}{lit[-1]}. "
        "Open the picture."
    )
    parts = " ".join(
        f'<span class="am-part{" am-lit" * (name in lit)}"><svg viewBox="0 0 '
        f'{WIDTHS.get(name, 20)} {3 * ROW - 1}" '
        f'preserveAspectRatio="none" aria-hidden="true">{DRAWINGS[name]}</svg>'
        f"{name}</span>"
        for name in STAGES
    )
    goal = address + ADDRESS.format(STAGES.index(lit[0]) + 1)
    return (
        f'<a class="am-strip" href="{escape(goal)}" title="Open the picture">'
        f'<span class="unseen">{escape(description)}</span>{parts}</a>'
    )


def add_strip(page):
    """Put the small picture below the title of a page that builds a stage."""
    docname = page.env.docname
    lit = BUILT.get(docname.rpartition("/")[2])
    if not lit:
        return
    title = next(page.document.findall(nodes.title))
    where = title.parent.index(title) + 1
    address = page.app.builder.get_relative_uri(docname, page.config.root_doc)
    title.parent.insert(where, nodes.raw("", write_strip(lit, address), format="html"))
