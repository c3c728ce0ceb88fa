"""What the extension `lean_site` promises, in the pages and function by function."""

import gzip
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.utils import new_document
from sphinx.errors import ExtensionError, ThemeError

from tests.book.pages import ROOT, toc_entries
from tests.theme.conftest import site_pages
from theme.lean_site import (
    assets,
    describe,
    icons,
    launch,
    markup,
    maths,
    policy,
)  # fmt: skip

BOOK_PAGES = site_pages()


@pytest.fixture(scope="module")
def soups(soup):
    return {page: soup(page) for page in BOOK_PAGES}


@pytest.mark.parametrize("page", BOOK_PAGES)
def test_page_asks_for_nothing_that_was_dropped(page, site, soups):
    text = (site / f"{page}.html").read_text("utf-8").lower()
    for dropped in (
        "fontawesome",
        "thebe",
        "mathjax@",
        "requirejs",
        "unpkg",
        "jsdelivr",
    ):
        assert dropped not in text, dropped
    assert not soups[page].find_all(["i", "span"], class_=re.compile("fa-"))
    assert len(soups[page].find_all("svg", class_="site-icon")) >= 5


@pytest.mark.parametrize("page", toc_entries())
def test_the_list_of_pages_is_open_where_the_reader_is(page, soups):
    (here,) = soups[page].select(".bd-docs-nav li.current.active")
    assert all(part.has_attr("open") for part in here.find_parents("details"))
    opened = soups[page].select(".bd-docs-nav details[open]")
    assert opened == here.find_parents("details")


@pytest.mark.parametrize("page", BOOK_PAGES)
def test_one_inline_script_and_the_policy_names_it(page, soups):
    inline = [
        script
        for script in soups[page].find_all("script")
        if not script.get("src") and "application/" not in script.get("type", "")
    ]
    assert [script.string for script in inline] == [assets.THEME_SCRIPT]
    rules = soups[page].find("meta", {"http-equiv": "Content-Security-Policy"})
    assert policy.source_hash(assets.THEME_SCRIPT) in rules["content"]
    assert "unsafe-eval" not in rules["content"]
    assert "script-src 'self' 'sha256-" in rules["content"]
    handlers = [
        tag.name
        for tag in soups[page].find_all(True)
        if any(name.startswith("on") for name in tag.attrs)
    ]
    assert handlers == []
    assert not soups[page].find_all("style")


def test_policy_stands_before_what_it_governs(site):
    for page in BOOK_PAGES:
        text = (site / f"{page}.html").read_text("utf-8")
        rules = text.index("Content-Security-Policy")
        assert rules < text.index("<script")
        assert rules < text.index("<link")


@pytest.mark.parametrize("page", BOOK_PAGES)
def test_scripts_do_not_hold_up_the_page(page, soups):
    scripts = soups[page].find_all("script", src=True)
    assert scripts
    assert all(script.has_attr("defer") for script in scripts)


@pytest.mark.parametrize("page", toc_entries())
def test_page_is_described(page, soups):
    head = soups[page].head
    text = head.find("meta", {"name": "description"})["content"]
    assert 30 <= len(text) <= 160, text
    title = soups[page].find("h1").find(string=True).strip()
    assert head.find("meta", {"property": "og:title"})["content"].startswith(title)
    data = json.loads(head.find("script", type="application/ld+json").string)
    assert data["@type"] == "LearningResource"
    assert data["description"] == text
    assert len(head.find_all("meta", {"name": "viewport"})) == 1


def test_descriptions_differ(soups):
    texts = [
        soups[page].find("meta", {"name": "description"})["content"]
        for page in toc_entries()
    ]
    assert len(set(texts)) == len(texts)


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


def test_unused_files_are_not_published(site):
    static = site / "_static"
    assert not (static / "vendor").exists()
    assert not [f.name for f in static.rglob("*") if "thebe" in f.name]
    fonts = {f.stem for f in static.rglob("*") if f.suffix in {".woff2", ".ttf"}}
    assert fonts == {"text", "text-italic", "code", "maths"}  # ours, cut to size


def test_what_every_page_loads_stays_light(site, soups):
    """Sheets and scripts, as they travel; the text's face within them counts apart."""
    asked = [
        {
            one["src" if one.name == "script" else "href"].partition("?")[0]
            for one in soup.select("link[rel=stylesheet], script[src]")
        }
        for soup in soups.values()
    ]
    named = [{one.rpartition("_static/")[2] for one in page} for page in asked]
    everywhere = set.intersection(*named)
    assert everywhere == {"base.css", "book.css", "site.js"}
    size = 0
    for name in everywhere:
        text = (site / "_static" / name).read_text("utf-8")
        size += len(gzip.compress(re.sub("base64,[^)]*", "", text).encode(), 9))
    assert size <= 17_000


def test_no_landmark_is_empty(soups):
    for page, soup in soups.items():
        for landmark in soup.select("header, main, nav, footer, aside[aria-label]"):
            if "d-none" not in landmark.get("class", []):
                assert landmark.get_text(strip=True), (page, landmark)


def test_sheets_of_all_pages_are_two_files(site, soups):
    static = site / "_static"
    for page, soup in soups.items():
        names = [
            link["href"].partition("?")[0].rpartition("_static/")[2]
            for link in soup.select("link[rel=stylesheet]")
        ]
        assert (names[0], names[-1]) == ("base.css", "book.css"), page
        # What stands between belongs to some pages alone.
        assert len(names) <= 6, page
        assert all((static / name).is_file() for name in names), page
    theirs = ("mystnb*.css", "pygments.css", "basic.css", "styles/*.css")
    assert not [file for name in theirs for file in static.glob(name)]
    for sheet in static.glob("*.css"):
        text = sheet.read_text("utf-8")
        assert "@import" not in text
        for address in re.findall(r"""url\(["']?(?!data:)([^"')]+)""", text):
            assert (static / address).is_file(), f"{sheet.name} asks for {address}"


def test_comments_and_indents_are_left_out_of_scripts_and_nothing_else():
    script = '  // why\nlet a = "//x"; // kept\n\n// end\n  b("  ");\n'
    assert assets.bare(script) == 'let a = "//x"; // kept\n\nb("  ");\n'


# The functions


def test_what_no_page_has_stops_the_build():
    body = (
        '<h2>T<a class="headerlink" href="#t" title="x">#</a></h2>'
        '<div class="pst-scrollable-table-container"></div>'
        '<summary aria-label="Toggle hidden content">\n'
        '<p class="collapsed admonition-title">Show</p></summary>'
        '<div role="doc-biblioentry"></div>'
    )
    assert markup.missing([markup.mended(body)]) == []
    for row in markup.ROWS:
        if row.sign:
            others = re.sub(row.pattern, "", body)
            assert markup.missing([markup.mended(others)]) == [row]


def test_an_unknown_inline_script_stops_the_build():
    with pytest.raises(ThemeError, match=r"inline script.*track"):
        markup.mended("<p><script>track()</script></p>")


@pytest.mark.parametrize(
    ("name", "body", "loaded"),
    [
        ("sphinx-thebe.js", "", False),
        ("design-tabs.js", '<p class="x">', False),
        ("design-tabs.js", '<div class="sd-tab-set">', True),
        ("togglebutton.js", '<button class="dropdown-toggle">', False),
        ("togglebutton.js", '<div class="admonition dropdown">', True),
        ("togglebutton.js", '<div class="toggle">', True),
        ("doctools.js", "", False),
        ("site.js", "", True),
    ],
)
def test_files_are_loaded_where_they_are_needed(name, body, loaded):
    assert assets.needed(name, body) is loaded


def test_a_formula_keeps_the_signs_beside_it_and_the_text_keeps_the_rest():
    before, after = nodes.Text("The root ("), nodes.Text("). It follows")
    paragraph = nodes.paragraph("", "", before, nodes.math("", "d_k"), after)
    document = new_document("page")
    document += paragraph
    maths.keep_together(SimpleNamespace(document=document))
    one, formula, two = paragraph.children
    assert (one, formula["before"]) == ("The root ", "(")
    assert (formula["after"], two) == (").", " It follows")


def test_formula_becomes_mathml():
    text = maths.to_mathml(r"\frac{\omega}{\sqrt{d_k}}")
    assert 'alttext="\\frac{\\omega}{\\sqrt{d_k}}"' in text
    assert {"mfrac", "msqrt", "msub"} <= set(re.findall(r"<(m\w+)", text))
    assert "ω" in text
    assert 'display="block"' in maths.to_mathml("x", "block")


def test_words_in_formulas_are_words():
    """Upright, and not a product of letters with the space of one between them."""
    assert "<mi>softmax</mi>" in maths.to_mathml(r"\mathrm{softmax}(x)")
    assert "<mi>out</mi>" in maths.to_mathml("d_{out}")
    assert 'alttext="d_{out}"' in maths.to_mathml("d_{out}")
    product = maths.to_mathml("d_k x y")
    assert [*re.findall(r"<mi>(\w+)</mi>", product)] == ["d", "k", "x", "y"]


def test_words_in_formulas_are_words_on_all_pages(soups):
    formulas = [m for page in BOOK_PAGES for m in soups[page].find_all("math")]
    words = 0
    for formula in formulas:
        source = formula["alttext"]
        named = re.findall(r"\\(?:mathrm|text|operatorname)\{([^{}\\]+)\}", source)
        for word in named + re.findall(r"[_^]\{([A-Za-z]{2,})\}", source):
            parts = [
                part.get_text() for part in formula.find_all(["mi", "mo", "mtext"])
            ]
            assert word in parts, f"{source}: {parts}"
            words += 1
    assert words > 5


SYMBOLS = ("d_k", "d_v", "d_in", "d_out", "d_head", "W_query", "W_key", "W_value")


def ways_of_writing(paragraph):
    """Tell how a paragraph writes each symbol: as code, as a formula, as plain text."""
    found = {}
    text = {
        "code": [c.get_text() for c in paragraph.select("code")],
        "formula": [
            re.sub(r"[{}]", "", m["alttext"]) for m in paragraph.select("math")
        ],
        "plain": [
            str(part)
            for part in paragraph.find_all(string=True)
            if not part.find_parents(["code", "math"])
        ],
    }
    for way, parts in text.items():
        for name in SYMBOLS:
            if any(re.search(rf"(?<!\w){name}(?!\w)", part) for part in parts):
                found.setdefault(name, []).append(way)
    return found


@pytest.mark.parametrize("page", BOOK_PAGES)
def test_a_paragraph_writes_a_symbol_in_one_way(page, soups):
    article = soups[page].select_one("article")
    # The tables of names are about their ways of being written.
    for paragraph in article.select("p, li > p") if article else ():
        # So are docstrings, which help() shows without marks.
        if paragraph.find_parent(["table", "dl"]) or paragraph.find_parent(
            class_="cell_output"
        ):
            continue
        for name, ways in ways_of_writing(paragraph).items():
            assert len(ways) == 1, f"{name} as {ways} in: {paragraph.get_text()}"


def test_two_ways_in_a_paragraph_are_seen():
    text = (
        "<p>The width <code>d_k</code>, or <math alttext='d_{k}'></math>, or d_k.</p>"
    )
    paragraph = BeautifulSoup(text, "html.parser").p
    assert ways_of_writing(paragraph) == {"d_k": ["code", "formula", "plain"]}


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


def test_the_foot_says_edition_licenses_and_checks(soups):
    version = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["version"]
    for page in BOOK_PAGES:
        foot = soups[page].select_one("footer.bd-footer-content")
        text = " ".join(foot.get_text(" ").split())
        for words in (f"edition {version}", "CC BY 4.0", "Apache 2.0"):
            assert words in text, page
        link = foot.find("a", string="How this book is checked")
        assert link["href"].endswith("provenance.html#how-the-book-is-checked")
        assert len(soups[page].select("footer.bd-footer-content")) == 1


def test_no_line_begins_with_a_full_stop(soups):
    for page in BOOK_PAGES:
        for formula in soups[page].select("p math"):
            after = formula.next_sibling
            if isinstance(after, str) and after[:1] in set(".,;:!?)"):
                assert formula.parent.name == "span", f"{page}: {formula['alttext']}"


def test_unknown_formula_command_is_refused():
    with pytest.raises(ExtensionError, match="nosuchcommand"):
        maths.to_mathml(r"\nosuchcommand{x}")


def test_icon_is_the_solid_one_and_takes_the_color_of_the_text():
    text = icons.inline("bars", "kept", ' data-mode="x"')
    assert text.startswith(
        '<svg class="site-icon kept" data-mode="x" aria-hidden="true"'
    )
    assert "currentColor" in text
    assert icons.shape("file")[2].startswith("M0 64C0 28.7")  # not the outlined file
    with pytest.raises(ThemeError, match="no-such-icon"):
        icons.inline("no-such-icon")


def test_description_is_cut_at_a_word():
    from docutils import nodes

    page = nodes.section("", nodes.paragraph("", "word " * 50))
    text = describe.description(page, "fallback")
    # 31 words, their spaces and the dots are 156 signs; one more word is too many.
    assert text == "word " * 31 + "…"
    assert describe.description(None, "fallback") == "fallback"


def test_buttons_are_chosen():
    menu = [{"text": ".ipynb", "url": "a"}, {"text": ".pdf", "url": "b"}]
    header = [
        {"label": "download-buttons", "buttons": menu},
        {"label": "launch-buttons"},
        {"label": "fullscreen-button"},
    ]
    chosen = launch.buttons(header, is_notebook=True)
    assert [b.get("url", b.get("label")) for b in chosen] == ["a", "launch-buttons"]
    assert launch.buttons(header, is_notebook=False) == []


def test_static_folder_holds_no_script():
    """Jupyter Book would put it on every page; find_the_bug.py takes its own off."""
    static = Path(__file__).resolve().parents[2] / "theme" / "static"
    assert {path.name for path in static.rglob("*.js")} <= {"find_the_bug.js"}


def test_the_game_s_script_is_on_its_page_alone(site):
    pages = [p.stem for p in (site / "book").glob("*.html")
             if "find_the_bug.js" in p.read_text(encoding="utf-8")]  # fmt: skip
    assert pages == ["find_the_bug"]


def test_data_of_widgets_is_kept():
    """Scripts of another type hold data: nothing runs, and labs read them."""
    data = '<script type="application/vnd.jupyter.widget-state+json">{"a": 1}</script>'
    thebe = '<script type="text/x-thebe-config">{}</script>'
    empty = "<script>\n</script>"
    assert markup.mended(f"{data}<p>{thebe}{empty}</p>{data}") == f"{data}<p></p>{data}"
