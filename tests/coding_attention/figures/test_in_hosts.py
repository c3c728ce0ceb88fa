"""What is left of a page's figures in hosts that sanitize what a notebook stores."""

import base64
import io

import nbformat
import numpy as np
import pytest
from matplotlib.figure import Figure
from nbconvert import HTMLExporter
from nbconvert.preprocessors.sanitize import SanitizeHTML
from PIL import Image

from coding_attention import figures
from coding_attention.figures.picture import _image, _places
from coding_attention.figures.shown import Shown
from coding_attention.stored import HTML, KEPT, LAB, PICTURE, STORING, html_of, store
from tests.book.pages import pages

# The order in which nbconvert, and with it GitHub, chooses one form of an output.
ORDER = HTMLExporter().config.NbConvertBase.display_data_priority


def drawn(page):
    """The outputs of a page that have a drawing, labs among them."""
    for cell in page.code_cells:
        for output in cell.outputs:
            if "<svg" in html_of(output):
                yield cell.metadata.name, output


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_drawing_of_a_page_is_left_as_a_picture(page):
    found = list(drawn(page))
    assert found
    for name, output in found:
        (left,) = SanitizeHTML().sanitize_code_outputs([nbformat.from_dict(output)])
        shown = next(mime for mime in ORDER if mime in left.data)
        assert shown == PICTURE, name
        # What GitHub takes away or breaks, and would prefer, is not there at all; a
        # lab's traits it does not know.
        assert set(output.data) <= {PICTURE, KEPT, "text/plain", LAB}, name


def test_a_sanitized_page_shows_them():
    (page,) = [page for page in pages() if page.name == "02_simple_self_attention"]
    notebook = nbformat.from_dict(page.notebook)
    notebook = SanitizeHTML().preprocess(notebook, {})[0]
    text, _ = HTMLExporter(sanitize_html=True).from_notebook_node(notebook)
    assert text.count('src="data:image/png') == len(list(drawn(page))) >= 3


@pytest.fixture
def shown(monkeypatch):
    monkeypatch.setenv(STORING, "1")
    left = figures.matrix(np.eye(4))
    return figures.show(left, figures.matrix(np.eye(2)), caption="Words.", alt="Two.")


def test_a_picture_is_made_only_for_a_page_that_is_stored(shown, monkeypatch):
    assert shown._repr_png_()
    monkeypatch.delenv(STORING)
    assert shown._repr_png_() is None


def test_a_picture_has_a_light_ground_both_drawings_and_the_caption(shown):
    data, size = shown._repr_png_()
    pixels = np.asarray(Image.open(io.BytesIO(data)).convert("L"))
    assert pixels.shape == (2 * size["height"], 2 * size["width"])
    assert pixels[0, 0] == pixels[-1, -1] == 255
    other = Shown(shown.drawings[:1], shown.svgs[:1], "", "Words.", "One.")
    one = np.asarray(Image.open(io.BytesIO(other._repr_png_()[0])).convert("L"))
    both = (pixels < 250).sum()
    assert both > 1.1 * (one < 250).sum()
    shown.caption = " "
    bare = np.asarray(Image.open(io.BytesIO(shown._repr_png_()[0])).convert("L"))
    assert both > (bare < 250).sum() > 0


def test_what_has_no_picture_keeps_its_html():
    picture = base64.b64encode(b"picture").decode()
    outputs = [
        {"data": {HTML: "<b>1</b>"}},
        {"data": {HTML: "<svg/>", PICTURE: picture}},
    ]
    store(outputs)
    assert [set(one["data"]) for one in outputs] == [{HTML}, {KEPT, PICTURE}]
    assert [html_of(one) for one in outputs] == ["<b>1</b>", "<svg/>"]


def test_a_drawing_keeps_its_size_and_one_that_is_too_wide_fills_the_column():
    # 180 pixels an inch; the column has 1,376.
    assert _image(Figure(figsize=(2, 10))).size == (360, 1800)
    assert _image(Figure(figsize=(16, 4))).size == (1376, 344)


def test_drawings_fill_rows_and_keep_one_distance_both_ways():
    places, height = _places([(600, 100), (600, 140), (900, 50)])
    # 1,376 pixels have room for two of them, 48 apart.
    assert places == [(0, 0), (648, 0), (0, 188)]
    assert height == 238
