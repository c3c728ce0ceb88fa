"""The cases of the page "Find the bug".

Two directives. ``bug-score`` marks the place of the score; ``bug-case`` with a number
shows one case: what a broken layer does, beside the right one, five causes, and the
answer in a closed ``details``. So the page can be read without scripts; with them
(``static/find_the_bug.js``) the causes are buttons that answer.

Everything comes from ``coding_attention/gallery/cases.json``, which is made from the
planted bugs beside it (``planted.toml``) and recomputed by a test.
Neither PyTorch nor the package is imported.
"""

import json
import re
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

STORED = Path(__file__).parents[1] / "coding_attention/gallery/cases.json"
WORDS = ("Your", "journey", "starts", "with", "one", "step")
ASSETS = "find_the_bug"
GUESSING = 2.0794  # the logarithm of eight
# The loss's chart in pixels.
WIDTH, HEIGHT, LEFT, BOTTOM, MOST = 300, 170, 34, 146, 2.5


def format_number(x):
    """Give a number of a picture as people read it."""
    return x if isinstance(x, str) else f"{x:.2f}"


def write_table(values, kind, name):
    """Give a grid of numbers as an HTML table, colored from 0 to 1, with row sums."""
    sums = kind != "reach"
    heads = [*WORDS, "sum"] if sums else WORDS
    head = "".join(f'<th scope="col">{word}</th>' for word in heads)
    lines = []
    for word, row in zip(WORDS, values, strict=True):
        cells = "".join(
            f'<td style="--tone:{choose_tone(x)}">{format_number(x)}</td>' for x in row
        )
        total = f'<td class="fb-sum">{format_number(sum_row(row))}</td>' if sums else ""
        lines.append(f'<tr><th scope="row">{word}</th>{cells}{total}</tr>')
    return (
        f'<table aria-label="{escape(name)}"><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def choose_tone(x):
    """Choose the share of color for a number; words have none."""
    return "0%" if isinstance(x, str) else f"{100 * min(max(x, 0), 1):.0f}%"


def sum_row(row):
    """Sum a row; the sum of a row with a word, such as nan, is that word."""
    words = [x for x in row if isinstance(x, str)]
    return words[0] if words else sum(row)


def list_points(losses):
    """List the points of the loss's line; none if a loss isn't a number."""
    if any(isinstance(x, str) for x in losses):
        return ""
    wide = (WIDTH - LEFT - 6) / (len(losses) - 1)
    return " ".join(
        f"{LEFT + i * wide:.1f},{place_loss(x):.1f}" for i, x in enumerate(losses)
    )


def place_loss(loss):
    """Give the height of a loss in the chart."""
    return BOTTOM - loss / MOST * (BOTTOM - 8)


def draw_chart(losses, name):
    """Give the loss over training as a line, and guessing as a dotted one."""
    numbers = [format_number(losses[i]) for i in (0, len(losses) // 2, -1)]
    words = f"{name}: the loss is {numbers[0]} at first, {numbers[1]} halfway, "
    ticks = "".join(
        f'<text x="{LEFT - 6}" y="{place_loss(x) + 4:.1f}" text-anchor="end">{x}</text>'
        for x in (0, 1, 2)
    )
    end = "" if list_points(losses) else "nan from the first step"
    return (
        f'<svg role="img" aria-label="{escape(words)}{numbers[2]} in the end." '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">{ticks}'
        f'<path class="fb-axis" d="M{LEFT} 8V{BOTTOM}H{WIDTH - 6}"/>'
        f'<path class="fb-guess" d="M{LEFT} {place_loss(GUESSING):.1f}H{WIDTH - 6}"/>'
        f'<polyline class="fb-line" points="{list_points(losses)}"/>'
        f'<text class="fb-none" x="{LEFT + 40}" y="80">{end}</text>'
        f'<text x="{WIDTH - 6}" y="{HEIGHT - 6}" text-anchor="end">300 steps'
        "</text></svg>"
    )


def draw_picture(values, kind, name, mark=""):
    """Give one picture with its name: a grid, two grids, or a chart."""
    if kind == "loss":
        body = draw_chart(values, name)
    elif kind in ("heads", "batch"):
        each = "head" if kind == "heads" else "sentence"
        parts = (
            write_table(part, kind, f"{name}, {each} {i}")
            for i, part in enumerate(values, start=1)
        )
        body = "".join(parts)
    else:
        body = write_table(values, kind, name)
    scroll = f'<div class="fb-scroll">{body}</div>'
    return (
        f'<figure class="fb-picture {mark}"><figcaption>{name}</figcaption>'
        f"{scroll}</figure>"
    )


def mark_code(text):
    """Turn the backticks of a sentence into code."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", escape(text))


def write_answer(case):
    """Give the answer: the cause, the lines, and how to mend them."""
    cause = next(c["cause"] for c in case["choices"] if c["bug"] == case["bug"])
    mended = case["mended"]
    instead = (
        f"<p>Mended:</p><pre><code>{escape(mended)}</code></pre>"
        if mended
        else "<p>Mended: without this line.</p>"
    )
    return (
        f'<details class="fb-answer"><summary>The answer</summary><p><strong>{cause}'
        f"</strong> {mark_code(case['why'])}</p><p>The line that does it:</p>"
        f"<pre><code>{escape(case['broken'])}</code></pre>{instead}</details>"
    )


def write_case(number, stored):
    """Give one case as HTML."""
    case = stored["cases"][number - 1]
    kind = case["kind"]
    choices = {c["bug"]: c for c in case["choices"]}
    wrong = choices[case["bug"]]["picture"]
    broken = draw_picture(wrong, kind, "This layer", "fb-this")
    right = draw_picture(stored["right"][kind], kind, "The right layer", "fb-right")
    causes = "".join(
        f'<li data-bug="{c["bug"]}">{escape(c["cause"])}</li>' for c in case["choices"]
    )
    # What the script shows for the other causes.
    others = {
        name: {"looks": c["looks"], "picture": c["picture"]}
        for name, c in choices.items()
        if name != case["bug"]
    }
    data = json.dumps({"bug": case["bug"], "kind": kind, "others": others})
    data = data.replace("</", "<\\/")
    return (
        f'<div class="fb-case" data-case="{number}"><p>{escape(case["asked"])}</p>'
        f'<div class="fb-pictures">{broken}{right}</div>'
        f'<p class="fb-ask">Which mistake is it?</p><ul class="fb-causes">{causes}</ul>'
        f"{write_answer(case)}"
        f'<script type="application/json" class="fb-data">{data}</script></div>'
    )


class BugCase(SphinxDirective):
    """One case; the argument is its number, from 1."""

    required_arguments = 1

    def run(self):
        self.env.note_dependency(str(STORED))
        stored = json.loads(STORED.read_text(encoding="utf-8"))
        number = int(self.arguments[0])
        if not 1 <= number <= len(stored["cases"]):
            raise ExtensionError(
                f"there are {len(stored['cases'])} cases, so no case {number}: see "
                "`number` in coding_attention/gallery/planted.toml"
            )
        return [nodes.raw("", write_case(number, stored), format="html")]


class BugScore(SphinxDirective):
    """The place of the score, which only a script can keep."""

    def run(self):
        html = '<div class="fb-score"></div>'
        return [nodes.raw("", html, format="html")]


def add_assets(app, pagename, templatename, context, doctree):
    """Let the page of the game ask for its script and sheet."""
    if 'class="fb-case"' in context.get("body", ""):
        app.add_js_file(f"{ASSETS}.js", loading_method="defer")
        app.add_css_file(f"{ASSETS}.css")


def add_directives(app):
    """Let a page place the cases and the score."""
    app.add_directive("bug-case", BugCase)
    app.add_directive("bug-score", BugScore)
