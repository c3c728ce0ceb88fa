"""``python -m attention.grade NOTEBOOK…``: marks what a class has handed in.

The exercises belong to the book's kit, and so does the grader; this is its name on the
command line. Nothing of the package imports this module.
"""

import importlib
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Grade the notebooks that the command line names; return the exit status."""
    grader = importlib.import_module("attention.chapter.grading.commandline")
    return int(grader.main(arguments))


if __name__ == "__main__":
    sys.exit(main())
