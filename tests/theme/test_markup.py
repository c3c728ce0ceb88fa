"""What the extension `lean_site` promises, in the pages and function by function."""

import gzip
import json
import re

import pytest
from sphinx.errors import ExtensionError

from coding_attention.book import list_pages
from tests.theme.conftest import site_pages
from theme.lean_site import assets, markup, maths, policy

BOOK_PAGES = site_pages()


@pytest.fixture(scope="module")
def soups(soup):
    return {page: soup(page) for page in BOOK_PAGES}


@pytest.mark.parametrize("page", BOOK_PAGES)
def test_one_inline_script_and_the_policy_names_it(page, soups):
    soup = soups[page]
    scripts = soup.find_all("script")
    data = [s for s in scripts if "application/" in s.get("type", "")]
    inline = [s for s in scripts if not s.get("src") and s not in data]
    assert [script.string for script in inline] == [assets.THEME_SCRIPT]
    rules = soup.find("meta", {"http-equiv": "Content-Security-Policy"})
    assert policy.hash_source(assets.THEME_SCRIPT) in rules["content"]
    assert "unsafe-eval" not in rules["content"]
    # It governs what stands behind it, and no script holds up the page.
    assert not rules.find_all_previous(["script", "link"])
    assert all(s.has_attr("defer") for s in scripts if s.get("src"))
    attributes = {name for tag in soup.find_all(True) for name in tag.attrs}
    assert not [name for name in attributes if name.startswith("on")]
    assert not soup.find_all("style")


def test_pages_are_described_each_by_its_own_words(soups):
    texts = []
    for page in list_pages():
        head = soups[page].head
        texts.append(head.find("meta", {"name": "description"})["content"])
        assert 30 <= len(texts[-1]) <= 160, texts[-1]
        title = soups[page].find("h1").find(string=True).strip()
        told = head.find("meta", {"property": "og:title"})["content"]
        assert told.startswith(title)
        data = json.loads(head.find("script", type="application/ld+json").string)
        assert data["description"] == texts[-1]
    assert len(set(texts)) == len(texts)


def test_files_of_every_page_are_few_and_light(site, soups):
    """Sheets and scripts, as they travel; the text's face within them counts apart."""
    static, asked = site / "_static", []
    for soup in soups.values():
        files = soup.select("link[rel=stylesheet], script[src]")
        links = [one.get("href") or one["src"] for one in files]
        names = [link.partition("?")[0].rpartition("_static/")[2] for link in links]
        assert all((static / name).is_file() for name in names), names
        sheets = [name for name in names if name.endswith(".css")]
        assert (sheets[0], sheets[-1]) == ("base.css", "book.css")
        asked.append({*names})
    everywhere = set.intersection(*asked)
    assert everywhere == {"base.css", "book.css", "site.js"}
    size = 0
    for name in everywhere:
        text = (static / name).read_text("utf-8")
        size += len(gzip.compress(re.sub("base64,[^)]*", "", text).encode(), 9))
    assert size <= 20_000
    fonts = {f.stem for f in static.rglob("*") if f.suffix in {".woff2", ".ttf"}}
    assert fonts == {"text", "text-italic", "code", "maths"}  # ours, cut to size


def test_every_formula_has_its_source(soups):
    formulas = [m for page in BOOK_PAGES for m in soups[page].find_all("math")]
    assert len(formulas) >= 10
    for formula in formulas:
        assert formula["alttext"].strip()
        assert formula.find("annotation").string == formula["alttext"]
        assert "\\" not in "".join(
            part.get_text() for part in formula.find_all(["mi", "mo", "mn", "mtext"])
        )
    for page in BOOK_PAGES:
        assert not soups[page].find_all(["span", "div"], class_="math")


def test_no_landmark_is_empty(soups):
    for page, soup in soups.items():
        for landmark in soup.select("header, main, nav, footer, aside[aria-label]"):
            if "d-none" not in landmark.get("class", []):
                assert landmark.get_text(strip=True), (page, landmark)


def test_words_in_formulas_are_words():
    """Upright, and not a product of letters with the space of one between them."""
    assert "<mi>softmax</mi>" in maths.to_mathml(r"\mathrm{softmax}(x)")
    assert "<mi>out</mi>" in maths.to_mathml("d_{out}")
    assert 'alttext="d_{out}"' in maths.to_mathml("d_{out}")
    product = maths.to_mathml("d_k x y")
    assert [*re.findall(r"<mi>(\w+)</mi>", product)] == ["d", "k", "x", "y"]


def test_headings_and_links_to_them_have_names(soups, anchors):
    headings = 0
    for page in BOOK_PAGES:
        for link in soups[page].select("article a.headerlink"):
            heading = link.parent
            if not re.fullmatch("h[1-6]", heading.name):
                continue
            named = anchors(page)[heading["aria-labelledby"]]
            assert "#" not in named.get_text(), "the sign of the link is not its title"
            assert named.parent is heading
            assert link["aria-label"] == "# link to this section"
            headings += 1
    assert headings > 200


def test_no_line_begins_with_a_full_stop_or_ends_with_a_bracket(soups):
    for page in BOOK_PAGES:
        for formula in soups[page].select("p math"):
            before, after = formula.previous_sibling, formula.next_sibling
            if (isinstance(after, str) and after[:1] in set(".,;:!?)")) or (
                isinstance(before, str) and before[-1:] in set("([“")
            ):
                assert formula.parent.name == "span", f"{page}: {formula['alttext']}"


def test_unknown_formula_command_is_refused():
    with pytest.raises(ExtensionError, match="nosuchcommand"):
        maths.to_mathml(r"\nosuchcommand{x}")


def test_drawings_lose_only_what_nobody_sees():
    upright = '<text x="1" transform="rotate(-0 1 2)">a  b</text>'
    turned = '<text transform="rotate(-90 1 2)">c</text>'
    slanted = '<path d="M 1 2  L 8 2  L 9 6  L 1 6  L 1 2  z "/>'
    corners = '<g><path d="M 1 2  L 8.5 2  L 8.5 6  L 1 6  L 1 2  z " fill="red"/></g>'
    drawn = f"<svg>\n <g>\n  {upright}\n{turned}</g>\n{slanted}{corners}</svg>"
    assert markup.shorten_drawings(f"<pre>\n<b>\n</b></pre>{drawn}") == (
        f'<pre>\n<b>\n</b></pre><svg><g><text x="1">a  b</text>{turned}</g>{slanted}'
        '<path d="M1 2H8.5V6H1z" fill="red"/></svg>'
    )
