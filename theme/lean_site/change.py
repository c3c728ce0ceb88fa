"""Replace parts of a rendered page, and stop the build when a part is not found.

Most parts stand on every page: where one misses, its page stops the build. The others
stand on some pages. What was found of them is noted while the pages are written, by
several processes at once; when the site is built, each must have been found somewhere.
Where only some versions of a theme write a part, its row names them.
"""

import hashlib
import re
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement
from sphinx.errors import ThemeError

EVERY, SOME = "every page", "some page"
WITH_ADDRESS = "some page, where the repository has an address"
THEMES = ("sphinx-book-theme", "pydata-sphinx-theme")
GONE = (
    "{where} has {what}, which theme/lean_site replaces. The theme has probably "
    "changed: adapt the pattern {pattern!r}, or drop the change."
)


def replace(text, what, pattern, replacement, needed=EVERY, found=None):
    """Replace every match of a pattern.

    Args:
        text: the page.
        what: what is replaced, in words, for the message.
        pattern: a regular expression; a dot also matches line ends.
        replacement: text, or a function of the match.
        needed: where a match must be: EVERY page, SOME page, SOME with an address to
            launch from, or some page if a theme of that version is installed, as in
            "pydata-sphinx-theme>=0.16".
        found: a `Found`, told what was looked for and whether it was there.

    Returns:
        The changed page.

    Raises:
        ThemeError: a pattern that every page needs was not found.
    """
    changed, count = re.subn(pattern, replacement, text, flags=re.DOTALL)
    if needed == EVERY and not count:
        raise ThemeError(GONE.format(where="A page no longer", what=what,
                                     pattern=pattern))  # fmt: skip
    if found is not None and applies(needed, found.address):
        found.note(what, pattern, count)
    return changed


def applies(needed, address):
    """Tell whether this site and the installed theme are what a row speaks of."""
    if needed == WITH_ADDRESS:
        return bool(address)
    if needed in (EVERY, SOME):
        return True
    theme = Requirement(needed)
    return theme.specifier.contains(version(theme.name))


class Found:
    """What was replaced on the pages of this site, noted by all processes that write.

    The notes are files, since Sphinx writes pages in processes of their own and keeps
    pages that did not change. Another theme, or another change of ours, begins anew:
    then Sphinx writes every page.
    """

    def __init__(self, app):
        """Keep the notes beside Sphinx's own memory of the pages."""
        self.folder = Path(app.doctreedir) / f"found-{app.config.site_digest[:16]}"
        self.address = app.config.html_theme_options.get("repository_url")
        self.folder.mkdir(parents=True, exist_ok=True)

    def note(self, what, pattern, count):
        """Note what was looked for on a page and how often it was there."""
        name = hashlib.sha256(what.encode()).hexdigest()[:16]
        for file, wanted in ((f"{name}.sought", True), (f"{name}.found", count)):
            if wanted and not (self.folder / file).exists():
                (self.folder / file).write_text(f"{what}\n{pattern}", encoding="utf-8")

    def complete(self):
        """Require that all that was looked for was found on some page.

        Raises:
            ThemeError: a part was found nowhere.
        """
        for file in sorted(self.folder.glob("*.sought")):
            if not file.with_suffix(".found").exists():
                what, pattern = file.read_text(encoding="utf-8").split("\n", 1)
                raise ThemeError(
                    GONE.format(where="No page of the site", what=what, pattern=pattern)
                )


def bare(script):
    """Leave out the lines of a script that are comments."""
    return re.sub(r"^ *//.*\n", "", script, flags=re.MULTILINE)
