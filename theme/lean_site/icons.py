"""The icons in use as inline SVG.

Replaces Font Awesome's script (1.5 MB), style sheet and three fonts, which the theme
loads on every page for about a dozen icons. The shapes are read at build time from the
theme's own copy. They are Font Awesome Free 6, CC BY 4.0, https://fontawesome.com.
"""

import re
from functools import cache
from pathlib import Path

import pydata_sphinx_theme
from sphinx.errors import ThemeError

THEME = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme"
# Font Awesome's script in pydata-sphinx-theme up to 0.15, and since.
SCRIPTS = ("static/vendor/fontawesome/*/js/all.min.js", "static/scripts/fontawesome.js")
SHAPE = re.compile(
    r'"?([a-z0-9-]+)"?:\[(\d+),(\d+),\[([^\]]*)\],"([0-9a-f]+)","([^"]+)"\]'
)


@cache
def read_shapes():
    """Read name or code point -> (width, height, path) from the theme's script.

    Raises:
        ThemeError: the theme has no such script, or more than one.
    """
    scripts = [file for place in SCRIPTS for file in THEME.glob(place)]
    if len(scripts) != 1:
        raise ThemeError(
            f"Expected one Font Awesome script in {THEME}, found {len(scripts)}. "
            "Adapt theme/lean_site/icons.py to the theme."
        )
    found = {}
    # Solid icons come last, so they replace outlines of the same name.
    for match in SHAPE.finditer(scripts[0].read_text(encoding="utf-8")):
        name, width, height, aliases, code, path = match.groups()
        for key in (name, code, *re.findall(r'"([^"]+)"', aliases)):
            found[key] = (width, height, path)
    return found


def find_shape(name):
    """Give an icon's width, height and path by its name or code point.

    Raises:
        ThemeError: the theme has no such icon.
    """
    if name not in read_shapes():
        raise ThemeError(f"The theme asks for the icon {name!r}, which it lacks.")
    return read_shapes()[name]


def write_icon(name, classes="", attributes=""):
    """Write an icon as an SVG element that takes the color of the text."""
    width, height, path = find_shape(name)
    classes = f"site-icon {classes}".strip()
    return (
        f'<svg class="{classes}"{attributes} aria-hidden="true" focusable="false" '
        f'viewBox="0 0 {width} {height}"><path fill="currentColor" d="{path}"/></svg>'
    )
