"""Speed up the build: use all cores, and skip Python environments.

Looking for pages inside an environment takes longer than the whole build.
"""

import os
from pathlib import Path


def find_environments(root):
    """Find the folders of a tree, two levels deep, that hold a Python environment."""
    root = Path(root)
    found = [*root.glob("*/pyvenv.cfg"), *root.glob("*/*/pyvenv.cfg")]
    return sorted(file.parent.relative_to(root).as_posix() for file in found)


def speed_up(app, config):
    """Exclude environments, and let every extension run in several processes."""
    config.exclude_patterns += find_environments(app.srcdir)
    # These two don't say that they are safe. One numbers sections after all pages are
    # read, and the other writes LaTeX.
    for name in ("sphinx_multitoc_numbering", "sphinx_jupyterbook_latex"):
        if name in app.extensions:
            app.extensions[name].parallel_read_safe = True
            app.extensions[name].parallel_write_safe = True


def use_all_cores(app):
    """Read and write pages in as many processes as there are cores."""
    app.parallel = max(app.parallel, os.cpu_count() or 1)
