"""Replace parts of a rendered page, and stop when a part is not found."""

import re

from sphinx.errors import ThemeError


def replace(text, what, pattern, replacement, required=True):
    """Replace every match of a pattern.

    Args:
        text: the page.
        what: what is replaced, in words, for the message.
        pattern: a regular expression; a dot also matches line ends.
        replacement: text, or a function of the match.
        required: stop the build when nothing matches.

    Returns:
        The changed page.

    Raises:
        ThemeError: a required pattern was not found.
    """
    changed, count = re.subn(pattern, replacement, text, flags=re.DOTALL)
    if required and not count:
        raise ThemeError(
            f"The page has no {what}, which theme/lean_site replaces. The theme "
            f"has probably changed: adapt the pattern {pattern!r}, or drop the change."
        )
    return changed


def bare(script):
    """Leave out the lines of a script that are comments."""
    return re.sub(r"^ *//.*\n", "", script, flags=re.MULTILINE)
