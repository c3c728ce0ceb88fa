"""The icons in use as inline SVG, and as masks where a style sheet draws them.

Replaces Font Awesome's script (1.5 MB), style sheet and three fonts, which the theme
loads on every page for about a dozen icons. The shapes are read at build time from the
theme's own copy. They are Font Awesome Free 6, CC BY 4.0, https://fontawesome.com.
"""

import re
from functools import cache
from pathlib import Path
from urllib.parse import quote

import pydata_sphinx_theme
import sphinx_book_theme
from sphinx.errors import ThemeError

THEMES = [
    Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme",
    Path(sphinx_book_theme.__file__).parent / "theme" / "sphinx_book_theme",
]
# Where Font Awesome's script is: up to pydata-sphinx-theme 0.15, and since.
SCRIPTS = ("static/vendor/fontawesome/*/js/all.min.js", "static/scripts/fontawesome.js")
SHAPE = re.compile(
    r'"?([a-z0-9-]+)"?:\[(\d+),(\d+),\[([^\]]*)\],"([0-9a-f]+)","([^"]+)"\]'
)
CREDIT = "Icons: Font Awesome Free 6, CC BY 4.0, https://fontawesome.com/license/free"


@cache
def shapes():
    """Read name or code point -> (width, height, path) from the theme's script."""
    scripts = [file for place in SCRIPTS for file in THEMES[0].glob(place)]
    if len(scripts) != 1:
        raise ThemeError(
            f"Expected one Font Awesome script in {THEMES[0]}, found {len(scripts)}. "
            "Adapt theme/lean_site/icons.py to the theme."
        )
    found = {}
    # The solid icons stand last, so they win over outlines of the same name.
    for match in SHAPE.finditer(scripts[0].read_text(encoding="utf-8")):
        name, width, height, aliases, code, path = match.groups()
        for key in (name, code, *re.findall(r'"([^"]+)"', aliases)):
            found[key] = (width, height, path)
    return found


def shape(name):
    """Give an icon's width, height and path by its name or code point."""
    if name not in shapes():
        raise ThemeError(f"The theme asks for the icon {name!r}, which it lacks.")
    return shapes()[name]


def inline(name, classes="", attributes=""):
    """Write an icon as an SVG element that takes the color of the text."""
    width, height, path = shape(name)
    classes = f"site-icon {classes}".strip()
    return (
        f'<svg class="{classes}"{attributes} aria-hidden="true" focusable="false" '
        f'viewBox="0 0 {width} {height}"><path fill="currentColor" d="{path}"/></svg>'
    )


def _address(code):
    width, height, path = shape(code)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
        f'<path d="{path}"/></svg>'
    )
    return f'url("data:image/svg+xml,{quote(svg, safe=" =:/,-")}")'.replace("%22", "'")


@cache
def style_sheet():
    """Write rules that draw as masks the icons which the theme draws as text."""
    rules = "\n".join(
        sheet.read_text(encoding="utf-8")
        for theme in THEMES
        for sheet in sorted(theme.glob("static/styles/*theme.css"))
    )
    glyphs = re.findall(r'(--pst-icon-[a-z-]+):"([\ue000-\uf8ff])"', rules)
    if not glyphs:
        raise ThemeError(
            "Found no icons in the theme's style sheets. Adapt "
            "theme/lean_site/icons.py, or drop `style_sheet`."
        )
    lines = [f"/* {CREDIT} */", ":root {"]
    lines += [f"  {name}: {_address(f'{ord(glyph):x}')};" for name, glyph in glyphs]
    return "\n".join([*lines, "}", *_masks(rules)]) + "\n"


def _masks(rules):
    for match in re.finditer(r"content:var\((--pst-icon-[a-z-]+)\)", rules):
        # Backwards to the rule's brace, and from there to the end of the one before.
        head = rules[: match.start()].rpartition("{")[0]
        selectors, variable = re.split("[{}]", head)[-1], match[1]
        if "ablog" not in selectors:
            yield (
                f'{selectors.strip()} {{ content: ""; display: inline-block; '
                f"min-width: 1em; height: 1em; background: currentColor; "
                f"-webkit-mask: var({variable}) center / contain no-repeat; "
                f"mask: var({variable}) center / contain no-repeat; }}"
            )


def write(app, error):
    """Write the sheet that draws them, once the theme's own are there."""
    if not error and app.builder.format == "html":
        sheet = Path(app.outdir) / "_static" / "icons.css"
        sheet.write_text(style_sheet(), encoding="utf-8")
