"""Where a page stands in the machine: a strip of eight parts below its title.

The parts are those of the lab on the first page, in its colors: from tokens to the
output. Pages 02 to 05 each build some of them, and these are lit. It needs no script,
and says in words what it shows.
"""

from html import escape

from docutils import nodes

# Rows of cells: t token, q query, k key, v value, 1 to 3 a weight, n nothing, x hidden.
PARTS = {
    "tokens": "t t t",
    "q, k, v": "qkv qkv qkv",
    "scores": "nnn nnn nnn",
    "mask": "nxx nnx nnn",
    "weights": "3nn 21n 112",
    "mix": "v v v",
    "heads": "3n. 12. .3n .12",
    "output": "ttt",
}
BUILT = {
    "02_simple_self_attention": ("tokens", "scores", "weights", "mix"),
    "03_trainable_self_attention": ("q, k, v",),
    "04_causal_attention": ("mask",),
    "05_multi_head_attention": ("heads", "output"),
}
SIDE = 7  # of a cell, in pixels


def _cells(rows):
    rows = rows.split()
    paths = {}
    for i, row in enumerate(rows):
        for j, kind in enumerate(row.replace(".", " ")):
            square = f"M{j * (SIDE + 1)} {i * (SIDE + 1)}h{SIDE}v{SIDE}h-{SIDE}z"
            paths[kind] = paths.get(kind, "") + square
    paths.pop(" ", None)
    drawn = "".join(f'<path class="am-{kind}" d="{d}"/>' for kind, d in paths.items())
    width, height = (n * (SIDE + 1) - 1 for n in (max(map(len, rows)), len(rows)))
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f"<svg {size}>{drawn}</svg>"


def strip(lit):
    """Give the strip as HTML, with the parts ``lit`` in full color."""
    told = (
        f"The attention machine, in order: {'; '.join(PARTS)}. "
        f"This page builds {', '.join(lit[:-1])}{' and ' * (len(lit) > 1)}{lit[-1]}."
    )
    parts = "".join(
        f'<span class="am-part{" am-lit" * (name in lit)}">{_cells(rows)}{name}</span>'
        for name, rows in PARTS.items()
    )
    return f'<div class="am-strip" role="img" aria-label="{escape(told)}">{parts}</div>'


def add_strip(page):
    """Put the strip below the title of a page that builds a part."""
    lit = BUILT.get(page.env.docname.rpartition("/")[2])
    if not lit:
        return
    title = next(page.document.findall(nodes.title))
    where = title.parent.index(title) + 1
    title.parent.insert(where, nodes.raw("", strip(lit), format="html"))
