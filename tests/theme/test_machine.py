"""The small picture below the titles of pages 02 to 05: the stages that they build."""

import re

import pytest
from bs4 import BeautifulSoup

from attention import CausalAttention, MultiHeadAttention, SelfAttention_v2
from theme import machine
from tools.measure.visit import WIDTHS, visiting

# What a layer has that computes a stage; the first mechanism has the other stages.
HAS = {"q, k, v": "W_query", "mask": "mask", "z": "out_proj"}
LAYERS = {
    "03_trainable_self_attention": SelfAttention_v2(3, 2),
    "04_causal_attention": CausalAttention(3, 2, 6, 0.0),
    "05_multi_head_attention": MultiHeadAttention(3, 2, 6, 0.0, num_heads=2),
}
PAGES = ["02_simple_self_attention", *LAYERS]


def strip_of(site, page):
    html = (site / "book" / f"{page}.html").read_text("utf-8")
    (strip,) = BeautifulSoup(html, "html.parser").select(".am-strip")
    return strip


def lit(strip):
    return {part.get_text() for part in strip.select(".am-lit")}


def test_a_page_lights_what_its_class_has_and_the_one_before_lacks(site):
    known = set()
    for page, layer in LAYERS.items():
        has = {stage for stage, name in HAS.items() if hasattr(layer, name)}
        assert has - known <= lit(strip_of(site, page)), page
        assert not lit(strip_of(site, page)) & known, page
        known |= has
    first = lit(strip_of(site, PAGES[0]))
    assert not first & {"q, k, v", "scale", "mask"}
    every = set().union(*(lit(strip_of(site, page)) for page in PAGES))
    assert every == set(machine.STAGES)


@pytest.mark.parametrize("page", PAGES)
def test_the_strip_says_what_it_shows(site, page):
    strip = strip_of(site, page)
    builds = (
        strip.select_one(".unseen")
        .get_text()
        .partition("This page builds ")[2]
        .partition(". ")[0]
    )
    assert set(re.split(r", (?!k|v)| and ", builds)) == lit(strip)
    assert [e.name for e in strip.find_previous_siblings()] == ["h1"]
    drawn = [part.get_text() for part in strip.select(".am-part")]
    assert drawn == list(machine.STAGES)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_a_click_opens_the_picture_at_the_stage(browser, site, page, width):
    size = {"width": width, "height": WIDTHS[width]}
    with visiting(browser, viewport=size) as visit:
        # From a folder, where fewest things work.
        tab = visit.open((site / "book" / f"{page}.html").as_uri())
        parts = tab.locator(".am-part").evaluate_all(
            "all => all.map(e => [e.scrollWidth - e.clientWidth, e.offsetTop])"
        )
        assert max(over for over, _ in parts) <= 0
        assert len({top for _, top in parts}) == 1, "one drawing, on one line"
        first = min(map(machine.STAGES.index, lit(strip_of(site, page))))
        tab.locator(".am-strip").click()
        shown = tab.locator(".al-look .mc-board thead .mc-now").last
        shown.wait_for()
        assert machine.STAGES[first].endswith(shown.text_content().split()[-1])
        assert shown.evaluate("e => e.getBoundingClientRect().top < innerHeight")


def test_the_first_page_has_one_left_edge_and_a_search_in_sight(browser, site):
    with visiting(browser, viewport={"width": 1280, "height": 900}) as visit:
        tab = visit.open((site / "book" / "index.html").as_uri())
        tab.locator(".attn-lab").first.wait_for()
        edges = tab.locator("article section > :is(h1, h2, p, div, ul)").evaluate_all(
            "all => all.filter(e => e.checkVisibility())"
            ".map(e => Math.round(e.getBoundingClientRect().left))"
        )
        assert len(edges) > 10
        assert max(edges) - min(edges) <= 1
        search = tab.get_by_role("button", name="Search").first.bounding_box()
        assert search["y"] + search["height"] <= 900
