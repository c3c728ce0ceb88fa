"""The strip below the titles of pages 02 to 05: the part of the machine they build."""

import re

import pytest
from bs4 import BeautifulSoup

from attention import CausalAttention, MultiHeadAttention, SelfAttention_v2
from attention.functional import causal_mask
from theme import machine

# What a layer has that computes a part; all layers have the other parts.
HAS = {"q, k, v": "W_query", "mask": "mask", "heads": "num_heads", "output": "out_proj"}
LAYERS = {
    "03_trainable_self_attention": SelfAttention_v2(3, 2),
    "04_causal_attention": CausalAttention(3, 2, 6, 0.0),
    "05_multi_head_attention": MultiHeadAttention(3, 2, 6, 0.0, num_heads=2),
}


def strip_of(site, page):
    html = (site / "book" / f"{page}.html").read_text("utf-8")
    (strip,) = BeautifulSoup(html, "html.parser").select(".am-strip")
    return strip


def lit(strip):
    return {part.get_text() for part in strip.select(".am-lit")}


def test_each_part_is_drawn_as_a_whole():
    """Also one whose rows are not as long as each other."""
    for rows in (*machine.PARTS.values(), "ab a", "a abc"):
        svg = BeautifulSoup(machine._cells(rows), "html.parser").svg
        squares = re.findall(r"M(\d+) (\d+)h(\d+)v", "".join(
            path["d"] for path in svg.select("path")))  # fmt: skip
        ends = [(int(x) + int(side), int(y) + int(side)) for x, y, side in squares]
        size = int(svg["width"]), int(svg["height"])
        assert size == tuple(map(max, zip(*ends, strict=True)))
        assert svg["viewbox"] == "0 0 {} {}".format(*size)


def test_a_page_lights_what_its_class_has_and_the_one_before_lacks(site):
    known = set()
    for page, layer in LAYERS.items():
        has = {part for part, name in HAS.items() if hasattr(layer, name)}
        assert lit(strip_of(site, page)) == has - known, page
        known |= has
    first = strip_of(site, "02_simple_self_attention")
    every = [part.get_text() for part in first.select(".am-part")]
    assert lit(first) == set(every) - known
    assert every == list(machine.PARTS)


@pytest.mark.parametrize("page", ["02_simple_self_attention", *LAYERS])
def test_the_strip_says_what_it_shows(site, page):
    strip = strip_of(site, page)
    builds = strip["aria-label"].partition("This page builds ")[2].rstrip(".")
    assert set(re.split(r", (?!k|v)| and ", builds)) == lit(strip)
    assert [e.name for e in strip.find_previous_siblings()] == ["h1"]


def test_the_mask_is_drawn_as_it_is(site):
    strip = strip_of(site, "04_causal_attention")
    (part,) = strip.select(".am-lit")
    corners = re.findall(r"M(\d+) (\d+)", part.select_one(".am-x")["d"])
    side = machine.SIDE + 1
    hidden = sorted([int(y) // side, int(x) // side] for x, y in corners)
    assert hidden == causal_mask(3).nonzero().tolist()
