"""What a build need not wait for.

Pages are read and written by as many processes as there are cores. Environments of
Python inside the tree are left out, whatever their folders are called: to look for
pages in one takes longer than the whole build.
"""

import os
from pathlib import Path


def environments(root):
    """Give the folders of a tree, two levels deep, that hold a Python environment."""
    root = Path(root)
    found = [*root.glob("*/pyvenv.cfg"), *root.glob("*/*/pyvenv.cfg")]
    return sorted(file.parent.relative_to(root).as_posix() for file in found)


def exclude_environments(app, config):
    config.exclude_patterns += environments(app.srcdir)


def allow_processes(app, config):
    # These say nothing of it, and do nothing while pages are read: the one numbers
    # sections once all are read, the other writes LaTeX.
    for name in ("sphinx_multitoc_numbering", "sphinx_jupyterbook_latex"):
        if name in app.extensions:
            app.extensions[name].parallel_read_safe = True
            app.extensions[name].parallel_write_safe = True


def use_all_cores(app):
    app.parallel = max(app.parallel, os.cpu_count() or 1)
