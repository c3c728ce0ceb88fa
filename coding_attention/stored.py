"""How a page stores a figure or a lab, so that every host shows it.

Live, a figure is HTML with drawings that follow the reader's page. GitHub and nbconvert
take drawings out of HTML, and then prefer what is left of it to a picture. So a stored
page has the picture (PNG, on a light ground: they remove or break SVG, too) and keeps
the HTML under a type that they don't know. The site reads it from there.

A lab is stored as a figure, too, with its name and traits under a type of our own. The
widget itself is not: until its cell is run, Jupyter would show an error in its place.
"""

HTML, PICTURE = "text/html", "image/png"
STORING = "BOOK_IS_STORED"  # in the environment of the kernel that runs a page
KEPT = "text/vnd.coding-attention.figure"  # as text, nbformat stores its lines apart
LAB = "application/vnd.coding-attention.lab+json"
VIEW = "application/vnd.jupyter.widget-view+json"
NEEDS_KERNEL = (
    "<p>This control needs a kernel: open the page in Jupyter and run the cell.</p>"
)


def store(outputs):
    """Let the picture of each output go before its HTML; outputs are changed."""
    for output in outputs:
        data = output.get("data", {})
        if data.pop(VIEW, None) and LAB not in data:
            data[HTML] = NEEDS_KERNEL
    _rename(outputs, HTML, KEPT)


def restore(outputs):
    """Give outputs the HTML that they had when they were made."""
    _rename(outputs, KEPT, HTML)


def _rename(outputs, old, new):
    for output in outputs:
        data = output.get("data", {})
        if PICTURE in data and old in data:
            data[new] = data.pop(old)


def html_of(output):
    """Give the HTML of an output, stored or not, as one text."""
    data = output.get("data", {})
    return "".join(data.get(HTML) or data.get(KEPT) or "")
