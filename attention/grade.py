"""``python -m attention.grade NOTEBOOK…``: marks what a class has handed in.

The exercises belong to the book's kit, and so does the grader; this is its name on the
command line. Nothing of the package imports this module.
"""

import importlib
import sys


def main(arguments=None):
    """Grade the notebooks that the command line names; return the exit status."""
    return importlib.import_module("attention.chapter.grading.commandline").main(
        arguments
    )


if __name__ == "__main__":
    sys.exit(main())
