"""The book's own kit: what its pages import. Nothing here is public API.

Figures, labs, exercises and their grading, the running example, the small models with
their stored results, and the gallery of planted bugs. It lies in the wheel so that a
page runs wherever the package is installed. It may change with any page of the book.
"""

from importlib.util import find_spec
from pathlib import Path


def _require_package():
    """Require that the name ``attention`` leads to the book's package.

    Raises:
        ImportError: a file or folder of that name hides it, such as one's own class.
    """
    found = find_spec("attention")  # without importing it
    folders = (found and found.submodule_search_locations) or []
    if found and not any(Path(f, "multi_head.py").is_file() for f in folders):
        raise ImportError(
            f"{found.origin} hides the book's package `attention`, because it has the "
            "same name. Rename it, and restart Python."
        )


_require_package()
