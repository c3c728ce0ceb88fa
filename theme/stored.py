"""A stored figure is read as the HTML that it was made as.

A page keeps a picture of it, too, for hosts that show no drawings: see
coding_attention/stored.py.
"""

import json

from coding_attention.stored import KEPT, restore


def restore_figures(app, name, source):
    if KEPT not in source[0]:
        return
    notebook = json.loads(source[0])
    for cell in notebook["cells"]:
        restore(cell.get("outputs", []))
    source[0] = json.dumps(notebook)
