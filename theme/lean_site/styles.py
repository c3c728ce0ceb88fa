"""Style sheets: two files for all pages, and the few that only some pages ask for.

Our own sheets take the place of those of the themes, Bootstrap, MyST-NB and Pygments.
What every page asks for is two files, the base and what is joined here: nothing is
painted before the last sheet has come, and on a slow line each one is a way there and
back. The face of the text comes within the second, as data.
"""

import base64
import re
from pathlib import Path

# What is joined, in the order of the cascade. Between the base and this stands what
# only some pages need; each of those sheets keeps its own file.
BASE, JOINED = "base.css", "book.css"
PARTS = ["frame.css", "book.css", "search.css", "site.css", "looks.css"]
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
FACE = re.compile(r'url\("(fonts/text\.woff2)"\)')


def join(folder):
    """Write the joined sheet of a folder, and take its parts away."""
    files = [file for name in PARTS if (file := folder / name).exists()]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    for file in files:
        file.unlink()
    text = COMMENT.sub("", text)  # written for whoever edits them
    text = FACE.sub(lambda match: _as_data(folder / match[1]), text)
    (folder / JOINED).write_text(text, encoding="utf-8")


def _as_data(face):
    # With the sheet that the first paint waits for, it moves no line when it comes.
    held = base64.b64encode(face.read_bytes()).decode()
    return f"url(data:font/woff2;base64,{held})"


def write(app, error):
    """Join the sheets of the finished site."""
    if error is None and app.builder.name == "html":
        join(Path(app.outdir) / "_static")
