"""What `show` hands to the page: HTML and SVG that stand beside others."""

import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from html import escape

import matplotlib as mpl
import pytest
import torch
from bs4 import BeautifulSoup

from coding_attention import figures
from coding_attention.figures import shown as module
from tests.coding_attention.figures.artists import random, written
from tests.coding_attention.figures.test_on_pages import FIGURES, every_figure

NASTY = "a < b & \"c\" > 'd' </figcaption><script>"


def shown(*axes, caption="A caption.", alt="An alternative."):
    return figures.show(*axes, caption=caption, alt=alt)


def page(*axes, **texts):
    return BeautifulSoup(shown(*axes, **texts)._repr_html_(), "html.parser")


def svg(ax):
    (text,) = shown(ax).svgs
    return ET.fromstring(text)


def drawings(html):
    """The drawings of a figure that a page stores."""
    return [ET.fromstring(text) for text in re.findall(r"<svg.*?</svg>", html, re.S)]


def ids(root):
    return {e.get("id"): e for e in root.iter() if e.get("id") is not None}


def references(root):
    """All ids that are used, by href or by url(#...)."""
    used = set()
    for element in root.iter():
        for name, value in element.attrib.items():
            if name.endswith("href"):
                used.add(value.removeprefix("#"))
            used |= set(re.findall(r"url\(#([^)]+)\)", value))
    return used


@pytest.mark.parametrize("where", ["caption", "alt"])
def test_texts_are_escaped(where):
    ax = figures.matrix(random(2, 2))
    text = shown(ax, **{where: NASTY})._repr_html_()
    assert NASTY not in text
    assert "<script" not in text
    found = BeautifulSoup(text, "html.parser")
    image, caption = found.select_one('[role="img"]'), found.figcaption
    read = {"caption": caption.text, "alt": image["aria-label"]}
    assert read[where] == NASTY


def test_labels_are_escaped_in_the_svg():
    ax = figures.matrix(random(1, 1), rows=["a<b&c"])
    (text,) = shown(ax).svgs
    assert escape("a<b&c") in text
    assert "a<b&c" in "".join(svg(ax).itertext())


@pytest.mark.parametrize("where", ["caption", "alt"])
def test_empty_texts_are_refused(where):
    with pytest.raises(ValueError, match=f"{where} is empty. Say in a sentence"):
        shown(figures.matrix(random(1, 2)), **{where: " "})


def test_several_axes_become_panels_in_order():
    first, second = figures.matrix(random(2, 2)), figures.matrix(random(3, 2, seed=1))
    panels = page(first, second).select('[role="img"] > svg')
    read = [[t.text.strip() for t in panel.select("text")] for panel in panels]
    assert read == [written(first), written(second)]


@every_figure
def test_a_page_stores_nothing_but_the_drawing(html):
    for root in drawings(html):
        tags = {element.tag.split("}")[1] for element in root.iter()}
        assert not tags & {"style", "metadata", "script", "image", "title", "date"}
    text = "".join(re.findall(r"<svg.*?</svg>", html, re.S))
    assert not re.search(r"\b(19|20)\d\d-\d\d-\d\d|matplotlib|<!--|<\?xml", text, re.I)
    assert "#010203" not in text  # what stands for the page's color


@every_figure
def test_every_id_is_used_and_every_use_has_its_id(html):
    for root in drawings(html):
        assert set(ids(root)) == references(root)


@every_figure
def test_every_color_has_a_form_for_dark_pages(html):
    svgs = "".join(re.findall(r"<svg.*?</svg>", html, re.S))
    assert not re.findall(r"(?<!,)#[0-9a-f]{6}", svgs)


@pytest.mark.parametrize("page", sorted({name.partition(":")[0] for name in FIGURES}))
def test_figures_of_one_page_share_no_id_but_for_one_meaning(page):
    """An id that two figures define must mean the same in both."""
    meanings = defaultdict(set)
    for name, html in FIGURES.items():
        if name.startswith(f"{page}:"):
            for root in drawings(html):
                for one, element in ids(root).items():
                    element.tail = None  # white space after it
                    meanings[one].add(ET.tostring(element))
    assert {name for name, found in meanings.items() if len(found) > 1} == set()


def test_drawing_twice_gives_the_same_text():
    ax = figures.matrix(random(2, 2), rows=["a", "b"])
    again = figures.matrix(random(2, 2), rows=["a", "b"])
    assert shown(ax).svgs == shown(ax).svgs == shown(again).svgs


def test_svg_shrinks_with_the_page_and_keeps_text_as_text():
    ax = figures.matrix(random(2, 2), rows=["a", "b"])
    root = svg(ax)
    assert root.get("width") is None
    assert root.get("height") is None
    _, _, width, height = map(float, root.get("viewBox").split())
    inches = ax.figure.get_size_inches()
    assert (width, height) == pytest.approx(tuple(inches * 72), abs=0.01)
    (most,) = re.findall(r"max-width: (\d+)px", root.get("style"))
    assert int(most) <= module.COLUMN
    found = [e for e in root.iter() if e.tag.endswith("}text")]
    read = {"".join(text.itertext()).strip() for text in found}
    assert read == {*written(ax), "a", "b"}


def test_ink_is_the_color_of_the_page_in_lines_and_text():
    ax = figures.running_mean(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.5]), "y")
    root = svg(ax)
    fills = [e.get("style", "") for e in root.iter() if e.tag.endswith("}text")]
    assert fills
    assert all("fill: currentColor" in style for style in fills)
    lines = [e.get("style", "") for e in root.iter() if e.tag.endswith("}path")]
    assert any("stroke: currentColor" in style for style in lines)


def layout(*axes):
    """The width of the drawings in the column of text, and the widest of each panel."""
    found = shown(*axes)
    most = re.compile(r"max-width: (?:min\()?(\d+)px")
    widths = [int(most.search(svg)[1]) for svg in found.svgs]
    return found.width, widths


def test_two_drawings_fill_the_column_side_by_side():
    pair = [figures.matrix(random(4, 4, seed=s)) for s in (0, 1)]
    width, widths = layout(*pair)
    assert width.startswith("0 1 ")  # the margin is the caption's
    assert sum(widths) + module.GAP == pytest.approx(module.COLUMN, abs=10)
    # Larger ones have the margin, too.
    pair = [figures.matrix(random(6, 6, seed=s), ["journey"] * 6) for s in (0, 1)]
    width, widths = layout(*pair)
    assert width == "1 1 100%"
    assert sum(widths) + module.GAP == pytest.approx(module.WHOLE, abs=2)


def test_one_drawing_fills_the_column_of_text():
    width, (drawn,) = layout(figures.matrix(random(6, 6), ["journey"] * 6))
    assert width == f"0 1 {drawn}px"
    assert 0.8 * module.COLUMN <= drawn <= module.COLUMN
    # A small one is not blown up: its text would be larger than that of the page.
    _, (small,) = layout(figures.matrix(random(2, 2)))
    assert small < 200


def test_style_does_not_leak():
    before = dict(mpl.rcParams)
    figures.show(figures.matrix(random(2, 2)), caption="c", alt="a")
    assert dict(mpl.rcParams) == before
