"""A figure as one picture: its drawings on a light ground, with the caption below.

For hosts that show no drawings in HTML. It is as wide as the column of the site, with
two pixels for each of it.
"""

import io
import textwrap
from pathlib import Path

import matplotlib as mpl
from PIL import Image, ImageDraw, ImageFont

from coding_attention.figures.base import styled

COLUMN, GAP, SCALE = 688, 24, 2  # as in shown.py, in CSS pixels
DPI = 72 * 1.25 * SCALE  # text of 8.5 points gets 11 pixels
LINE, LETTERS = 20, 92  # of the caption: pixels a line, letters in one
COLORS = 64
FACE = Path(mpl.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")


def picture(drawings, caption):
    """Draw figures side by side, as many as fit, above the caption.

    Args:
        drawings: figures of matplotlib.
        caption: what stands below them.

    Returns:
        The bytes of a PNG, its width and its height in CSS pixels.
    """
    images = [_image(drawing) for drawing in drawings]
    places, height = _places([image.size for image in images])
    lines = textwrap.wrap(caption, LETTERS)
    whole = Image.new(
        "RGB", (COLUMN * SCALE, height + (LINE * len(lines) + GAP) * SCALE), "white"
    )
    for image, place in zip(images, places, strict=True):
        whole.paste(image, place)
    ImageDraw.Draw(whole).multiline_text(
        (0, height + GAP // 2 * SCALE), "\n".join(lines), "#14202b",
        ImageFont.truetype(str(FACE), 13 * SCALE), spacing=5 * SCALE,
    )  # fmt: skip
    buffer = io.BytesIO()
    whole.quantize(COLORS).save(buffer, "PNG", optimize=True)
    return buffer.getvalue(), COLUMN, whole.height // SCALE


@styled
def _image(drawing):
    buffer = io.BytesIO()
    drawing.savefig(buffer, format="png", dpi=DPI, facecolor="white")
    image = Image.open(buffer).convert("RGB")
    image.thumbnail((COLUMN * SCALE, 10**5))
    return image


def _places(sizes):
    """Give the upper left corner of each image, and the height of all rows."""
    places, x, y, row = [], 0, 0, 0
    for width, height in sizes:
        if x and x + width > COLUMN * SCALE:
            x, y, row = 0, y + row + GAP * SCALE, 0
        places.append((x, y))
        x, row = x + width + GAP * SCALE, max(row, height)
    return places, y + row
