"""Give the outputs of a stored page the HTML that the site shows.

A page keeps a picture of each figure and lab, for hosts that show no drawings, and
beside it the HTML, or a lab's name and traits: see coding_attention/stored.py.
"""

import json

from coding_attention.stored import HTML, KEPT, LAB, html_of, restore


def restore_outputs(app, name, source):
    """Show each figure's HTML, and behind a lab's picture its name and traits."""
    if KEPT not in source[0] and LAB not in source[0]:
        return
    notebook = json.loads(source[0])
    for cell in notebook["cells"]:
        restore(cell.get("outputs", []))
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if LAB in data:
                data[HTML] = write_lab(output)
                del data[LAB]
    source[0] = json.dumps(notebook)


def write_lab(output):
    """Write a lab's picture and the element from which labs_loader.js makes the lab."""
    # "</script>" within a trait must not end the element that holds it.
    lab = json.dumps(output["data"][LAB], sort_keys=True).replace("</", "<\\/")
    return f'{html_of(output)}<script type="{LAB}">{lab}</script>'
