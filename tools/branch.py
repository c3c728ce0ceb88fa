"""Make the tree of the branch that Colab opens, from the built site.

    python -m tools.branch FOLDER

The site's notebooks install the package they were published with; those on main don't
know their repository's address. So the workflow that publishes pushes them to a branch,
as one commit without a past, which keeps the repository small.
"""

import shutil
import sys
from pathlib import Path

SITE = Path(__file__).resolve().parent.parent / "_build" / "html"
README = """\
# Finished notebooks

A workflow writes this branch with each publication of the book, so changes here are
lost. The pages' sources are on the branch `main`, in `book/`.
"""


def write_tree(site, folder):
    """Copy the site's notebooks to where they are in the repository; list them."""
    sources = Path(site) / "_sources"
    notebooks = sorted(sources.rglob("*.ipynb"))
    if not notebooks:
        raise FileNotFoundError(f"{sources} has no notebooks. Build: make book")
    for notebook in notebooks:
        target = Path(folder) / notebook.relative_to(sources)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(notebook, target)
    Path(folder, "README.md").write_text(README, encoding="utf-8")
    return [notebook.relative_to(sources).as_posix() for notebook in notebooks]


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    print("\n".join(write_tree(SITE, sys.argv[1])))


if __name__ == "__main__":
    main()
