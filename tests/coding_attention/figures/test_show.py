"""What `show` hands to the page: HTML and SVG that stand beside others."""

import html
import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from functools import cache

import numpy as np
import pytest
import torch
from bs4 import BeautifulSoup
from matplotlib.colors import to_rgb

from coding_attention import figures
from coding_attention.figures import heads, palette
from coding_attention.figures import shown as module
from tests.coding_attention.figures.artists import random, random_weights, written
from tests.coding_attention.figures.test_readable import CASES, ROOT, every_figure

NASTY = "a < b & \"c\" > 'd' </figcaption><script>"


def shown(*axes, caption="A caption.", alt="An alternative."):
    return figures.show(*axes, caption=caption, alt=alt)


def page(*axes, **texts):
    return BeautifulSoup(shown(*axes, **texts)._repr_html_(), "html.parser")


def svg(ax):
    (text,) = shown(ax).svgs
    return ET.fromstring(text)


@cache
def case(draw):
    """The SVG text of a case, made once for all tests that only read it."""
    (text,) = shown(draw()).svgs
    return text


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
    assert html.escape("a<b&c") in text
    assert "a<b&c" in "".join(svg(ax).itertext())


def test_repr_is_for_those_who_see_no_html():
    assert repr(shown(figures.matrix(random(1, 2)), caption="Cap.", alt="Alt.")) == (
        "Figure: Cap.\nShown: Alt."
    )


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
def test_svg_carries_nothing_but_the_drawing(draw):
    text = case(draw)
    tags = {element.tag.split("}")[1] for element in ET.fromstring(text).iter()}
    assert not tags & {"style", "metadata", "script", "image", "title", "date"}
    assert not re.search(r"\b(19|20)\d\d-\d\d-\d\d|matplotlib|<!--|<\?xml", text, re.I)
    assert "#010203" not in text


@every_figure
def test_svg_keeps_text_as_text(draw):
    ax = draw()
    found = [e for e in ET.fromstring(case(draw)).iter() if e.tag.endswith("}text")]
    read = sorted("".join(e.itertext()).strip() for e in found)
    expected = [line for text in written(ax) for line in text.split("\n")]
    for text in expected:
        assert any(text.strip() in line for line in read), text


@every_figure
def test_every_id_is_used_and_every_use_has_its_id(draw):
    root = ET.fromstring(case(draw))
    assert set(ids(root)) == references(root)


@every_figure
def test_drawing_twice_gives_the_same_text(draw):
    ax = draw()
    assert shown(ax).svgs == shown(ax).svgs == [case(draw)]  # one Axes and drawn anew


def test_figures_of_one_page_share_no_id_but_for_one_meaning():
    """An id that two figures define must mean the same in both."""
    meanings = defaultdict(set)
    for draw in CASES.values():
        for name, element in ids(ET.fromstring(case(draw))).items():
            element.tail = None  # white space after it
            meanings[name].add(ET.tostring(element))
    assert meanings
    assert {name for name, found in meanings.items() if len(found) > 1} == set()


@every_figure
def test_svg_shrinks_with_the_page(draw):
    ax = draw()
    root = ET.fromstring(case(draw))
    assert root.get("width") is None
    assert root.get("height") is None
    _, _, width, height = map(float, root.get("viewBox").split())
    inches = ax.figure.get_size_inches()
    assert (width, height) == pytest.approx(tuple(inches * 72), abs=0.01)
    (most,) = re.findall(r"max-width: (\d+)px", root.get("style"))
    assert int(most) <= module.COLUMN


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


def test_rows_are_even():
    """Six drawings, of which four would fit, stand in two rows of three."""
    six = [heads.pattern(random_weights(6, 6), ["journey"] * 6, ["a"] * 6)] * 6
    _, widths = layout(*six)
    assert 3 * widths[0] + 2 * module.GAP <= module.WHOLE
    assert 4 * widths[0] + 3 * module.GAP > module.WHOLE


def test_one_drawing_fills_the_column_of_text():
    width, (drawn,) = layout(figures.matrix(random(6, 6), ["journey"] * 6))
    assert width == f"0 1 {drawn}px"
    assert 0.8 * module.COLUMN <= drawn <= module.COLUMN
    # A small one is not blown up: its text would be larger than that of the page.
    _, (small,) = layout(figures.matrix(random(2, 2)))
    assert small < 200


def test_two_narrow_grids_share_the_width_of_a_phone():
    pair = [heads.pattern(random_weights(6, 6), ["journey"] * 6, ["a"] * 6)] * 2
    most = re.compile(r"max-width: min\(\d+px, ([\d.]+)px \+ ([\d.]+)%")
    for svg in shown(*pair).svgs:
        least, grown = map(float, most.search(svg).groups())
        width = least + grown / 100 * module.PHONE
        assert 2 * width + module.NARROW == pytest.approx(module.PHONE, abs=1)


def test_every_color_of_the_book_has_a_form_for_dark_pages():
    """What a drawing is filled with follows the page: no color is left as it was."""
    for name, draw in CASES.items():
        left = set(re.findall(r"(?<!,)#[0-9a-f]{6}", case(draw)))
        assert not left, f"{name}: {left}"


def test_style_sheet_sets_the_dark_form_of_every_color():
    css = (ROOT / "theme" / "static" / "book.css").read_text()
    (rule,) = re.findall(r'data-theme="dark"\] \.attention-figure \{(.*?)\}', css, re.S)
    found = dict(re.findall(r"--af-(\w+): (#[0-9a-f]{6})", rule))
    assert found == {color.name: color.dark for color in palette.BOOK.values()}


def test_a_mixture_is_the_color_that_it_stands_for():
    one = r"var\(--af-\w+,(#[0-9a-f]{6})\)"
    mixture = re.compile(rf"color-mix\(in srgb,{one} ([\d.]+)%,{one}\)")
    found = [(color, mixture.fullmatch(css)) for color, css in palette.FOR_CSS.items()]
    mixed = [(color, match.groups()) for color, match in found if match]
    assert len(mixed) > 300
    for color, (end, percent, start) in mixed:
        share = float(percent) / 100
        made = share * np.array(to_rgb(end)) + (1 - share) * np.array(to_rgb(start))
        assert np.abs(made - to_rgb(color)).max() < 1.01 / 255, color


def test_no_color_stands_for_two_things():
    for mode in ("light", "dark"):
        colors = [getattr(color, mode) for color in palette.BOOK.values()]
        assert len(set(colors)) == len(colors)
    assert len({color.name for color in palette.BOOK.values()}) == len(palette.BOOK)
