"""Sphinx extension: what a build need not wait for.

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


def _exclude(app, config):
    config.exclude_patterns += environments(app.srcdir)


def setup(app):
    app.parallel = max(app.parallel, os.cpu_count() or 1)
    app.connect("config-inited", _exclude)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
