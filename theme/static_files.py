"""The one writer of scripts and style sheets of the site.

Scripts, and sheets that only some pages load, are written before the pages, since a
page's links to them contain a digest. All pages load just two sheets, because a browser
paints nothing before the last one arrives, and each costs a round trip. The second one
embeds the text's font.
"""

import base64
import re
import shutil
from pathlib import Path

from theme import labs, own_sentence, practice
from theme.lean_site import assets

FACE = re.compile(r'url\("(fonts/text\.woff2)"\)')


def write_scripts(app):
    """Write the scripts, and the exercises' notebooks, before the pages."""
    if app.builder.format != "html":
        return
    repository = app.config.html_theme_options.get("repository_url", "")
    files = {
        **labs.compose_assets(),
        **practice.compose_assets(),
        **practice.build_notebooks(repository),
        **own_sentence.compose_assets(),
        "site.js": assets.compose_script(),
    }
    for name, text in files.items():
        file = Path(app.outdir) / "_static" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        # The same bytes on Windows, since addresses and policies contain their hashes.
        file.write_text(text, encoding="utf-8", newline="\n")


def join_sheets(app, error):
    """Join the sheets of every page, and delete what no page asks for."""
    if error or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "_static"
    (folder / assets.JOINED).write_text(_join(folder), encoding="utf-8")
    base = folder / assets.BASE
    base.write_text(assets.strip_sheet(base.read_text("utf-8")), encoding="utf-8")
    shutil.rmtree(folder / "vendor", ignore_errors=True)
    parts = {*assets.PARTS} - {assets.JOINED}
    for file in folder.rglob("*"):
        unused = assets.is_never_used(file.name) or file.suffix == ".map"
        if file.is_file() and (unused or file.name in parts):
            file.unlink()


def _join(folder):
    files = [folder / name for name in assets.PARTS]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    text = assets.strip_sheet(text)
    return FACE.sub(lambda match: _embed_face(folder / match[1]), text)


def _embed_face(file):
    held = base64.b64encode(file.read_bytes()).decode()
    return f"url(data:font/woff2;base64,{held})"
