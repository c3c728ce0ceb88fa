"""The list of the page "All codes", built from the records of the mistakes.

``mistake-codes`` makes a section for each stage and in it one for each code, with the
code as its anchor: what reports and the search link to.
"""

import re

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from attncheck.mistakes import MISTAKES, records
from attncheck.report import PAGES

# In the order of the computation; stages outside it come last.
STAGES = {
    "call": "Calling the class",
    "projection": "Projections",
    "split": "Splitting into heads",
    "positions": "Positions and normalized queries and keys",
    "scores": "Scores",
    "mask": "Mask",
    "weights": "Attention weights",
    "dropout": "Dropout",
    "mix": "Weighted sum",
    "join": "Joining heads",
    "output": "Output",
    "outputs": "Symptoms without a known cause",
    "training": "Training",
    "storage": "Checkpoints, devices and dtypes",
    "cache": "Key-value cache",
    "padding": "Padding",
    "cross": "Cross-attention",
}


def mark_code(text):
    """Turn a text into nodes, with its backticks as code."""
    parts = enumerate(re.split("`([^`]*)`", text))
    return [nodes.literal("", p) if i % 2 else nodes.Text(p) for i, p in parts if p]


def make_section(anchor, title, *content):
    """Make a section with an anchor of its own."""
    return nodes.section("", nodes.title("", "", *title), *content, ids=[anchor])


def make_entry(mistake):
    """Make the section of one code."""
    page = f"{mistake.page}.html"
    link = nodes.reference("", PAGES[mistake.page], refuri=page, internal=True)
    named = [nodes.literal("", mistake.name), nodes.Text(f", {mistake.severity}. ")]
    line = [nodes.strong("", "Likely line:"), nodes.Text(" "), *mark_code(mistake.line)]
    read = [nodes.Text(". Read: "), link, nodes.Text(".")]
    content = [
        nodes.paragraph("", "", *named, *mark_code(mistake.means)),
        nodes.paragraph("", "", *line, *read),
    ]
    if example := mistake.shown.strip():
        content.append(nodes.literal_block("", example, language="diff"))
    title = mark_code(f"{mistake.code} {mistake.title}")
    return make_section(mistake.code.lower(), title, *content)


class Codes(SphinxDirective):
    """Every code with its words and an example, by the stage that it belongs to."""

    def run(self):
        for path in records.HERE.iterdir():
            self.env.note_dependency(str(path))
        strange = [m.name for m in MISTAKES.values() if m.stage not in STAGES]
        if strange:
            raise ExtensionError(
                f"{', '.join(strange)}: the stage in attncheck/mistakes/*.toml has no "
                f"title in theme/codes.py, which has {', '.join(STAGES)}"
            )
        return [
            make_section(
                f"stage-{stage}",
                [nodes.Text(title)],
                *(make_entry(m) for m in MISTAKES.values() if m.stage == stage),
            )
            for stage, title in STAGES.items()
        ]


def add_directives(app):
    """Let a page place the list."""
    app.add_directive("mistake-codes", Codes)
