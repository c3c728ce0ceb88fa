"""Make the page of the package from its docstrings, with or without PyTorch.

Sphinx's autodoc imports the package to read it. The site is built where neither
PyTorch nor matplotlib is installed, so autodoc puts stand-ins in their place; they
are used everywhere, so that the page is the same everywhere.
"""

import sys
from pathlib import Path

STAND_INS = ["torch", "matplotlib", "numpy", "anywidget", "ipywidgets", "traitlets"]


def setup(app):
    root = str(Path(app.confdir))
    if root not in sys.path:
        sys.path.insert(0, root)
    app.setup_extension("sphinx.ext.autodoc")
    app.setup_extension("sphinx.ext.napoleon")
    app.config.autodoc_mock_imports = STAND_INS
    app.config.autodoc_member_order = "bysource"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
