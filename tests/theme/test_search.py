"""The search in use: what learners type, by keyboard, from a server and from a file."""

import json

import pytest
import torch
import yaml

from attncheck.mistakes import MISTAKES
from coding_attention.book import list_pages
from theme.lean_site import find, sections
from tools.measure.visit import axe_source, visiting

PAGE = "book/02_simple_self_attention.html"
# What someone types -> the pages of which one comes first, and where it matters the
# place in it.
QUERIES = {
    "multi head": "05_multi_head_attention",
    "why divide by sqrt": "03_trainable_self_attention|03_questions",
    "KV cache": "07_where_the_time_goes#one-more-token",
    "GQA": "10_attention_in_models#fewer-key-heads-fewer-bytes",
    "3.6": "05_multi_head_attention",
    "causal mask": "04_causal_attention",
    "contiguous": "05_multi_head_attention|05_questions",
    "layer norm": "06_averaging#layer-norm",
    "0.4306": "03_trainable_self_attention",
    "CausalAttention": "04_causal_attention",
    # One or two letters wrong.
    "sotfmax dim": "02_simple_self_attention",
    "casual atention": "04_causal_attention",
    "notaton": "notation",
    # Questions, as people ask them.
    "what is attention": "01_why_attention",
    "how long does it take": "teaching#how-long-it-takes",
    "what is d_head": "notation#sizes",
    "running mean": "06_averaging",
    "softmax overflow": "02_simple_self_attention",
    "tril vs triu": "04_causal_attention|04_questions",
    "dropout scaling": "04_causal_attention",
    "try my own sentence": "03_trainable_self_attention#your-own-sentence",
    "type a sentence": "03_trainable_self_attention#your-own-sentence",
    "demo": "03_trainable_self_attention#your-own-sentence",
}


@pytest.mark.site
def test_learners_find_the_right_page_first(browser, address):
    with visiting(browser, f"{address}/{PAGE}") as visit:
        visit.load()
        visit.page.keyboard.press("Control+k")
        asked = QUERIES | pasted()
        found = hits_of(visit.page, asked)
        wrong = {
            query: [hit[0] for hit in found[query][:3]]
            for query, place in asked.items()
            if not any(leads(found[query], one) for one in place.split("|"))
        }
        # A word that the book says is not taken for one like it, such as "back".
        hits = hits_of(visit.page, ["bank"])["bank"]
        assert hits
        assert [text for _, text in hits if "bank" not in text.lower()] == []
        assert visit.errors == []
    assert wrong == {}


def hits_of(page, queries):
    """Type each query into the open search: {query: [(address, text)]}."""
    field, found = page.locator(".search-dialog input"), {}
    for query in queries:
        field.fill(query)  # a field of one line drops the line ends of what is pasted
        page.wait_for_function(
            "(q) => document.querySelector('.search-answer')?.dataset.query === q",
            arg=field.input_value().strip(),
        )
        found[query] = page.eval_on_selector_all(
            ".search-hits a",
            "(all) => all.map((a) => [a.getAttribute('href'), a.innerText])",
        )
    return found


def leads(hits, place):
    """Tell whether the first hit is a page, and where one is named a place on it."""
    page, _, anchor = place.partition("#")
    address = hits[0][0] if hits else ""
    return f"/{page}.html" in f"/{address}" and address.endswith(anchor)


def pasted():
    """What PyTorch and the checker say -> where it leads."""
    with pytest.raises(RuntimeError) as caught:
        torch.zeros(2, 6, 3).transpose(1, 2).view(2, 18)
    found = {f"RuntimeError: {caught.value}": "05_multi_head_attention|05_questions"}
    for mistake in [*MISTAKES.values()][::25]:  # all have a place
        line = f"{mistake.title} [{mistake.severity} {mistake.code}]"
        found[line] = f"codes#{mistake.code.lower()}"
    return found


@pytest.mark.site
@pytest.mark.parametrize("scheme", ["http", "file"])
def test_search_by_keyboard_alone(scheme, browser, address, site):
    base = address if scheme == "http" else site.as_uri()
    with visiting(browser, f"{base}/{PAGE}") as visit:
        page = visit.page
        visit.load()
        page.locator("a.right-next").focus()
        for other in ("k", "Control+/", "Alt+/", "Control+Shift+k", "Control+Alt+k"):
            page.keyboard.press(other)
            assert not page.locator(".search-dialog").is_visible(), other
        page.keyboard.press("/")
        page.keyboard.type("notaton")  # while the engine may still be on its way
        page.wait_for_selector(".search-hits a")
        assert "hit" in page.locator(".search-status[role=status]").inner_text()
        # What is typed are names, too: no red lines below them.
        assert not page.evaluate("document.activeElement.spellcheck")
        focused = "() => document.activeElement.closest('.search-hits') !== null"
        page.keyboard.press("ArrowDown")
        assert page.evaluate(focused)
        page.keyboard.press("ArrowUp")
        assert not page.evaluate(focused)
        page.keyboard.press("Escape")
        assert not page.locator(".search-dialog").is_visible()
        # Back where one was before the dialog.
        assert page.evaluate("document.activeElement.className") == "right-next"
        page.keyboard.press("Control+k")
        # A click within it, or a slash, leaves it open; a click beside it closes it.
        page.locator(".search-dialog input").click()
        page.keyboard.press("/")
        assert page.locator(".search-dialog").is_visible()
        page.mouse.click(3, 3)
        assert not page.locator(".search-dialog").is_visible()
        page.keyboard.press("Control+k")
        page.keyboard.type("notaton")
        page.wait_for_selector(".search-hits a")
        page.keyboard.press("Enter")
        page.wait_for_url("**/notation.html*")
        page.wait_for_load_state()
        # Nothing of the search is left on the page, nor on the device.
        assert page.locator("article mark, .highlighted").count() == 0
        assert (
            page.evaluate("Object.keys(localStorage).filter((k) => /high/.test(k))")
            == []
        )
        assert visit.third_parties() == []
        assert visit.errors == []


@pytest.mark.site
@pytest.mark.parametrize("scheme", ["http", "file"])
def test_search_page_answers_an_address(scheme, browser, address, site):
    base = address if scheme == "http" else site.as_uri()
    with visiting(browser, f"{base}/search.html?q=grouped+query+attention") as visit:
        visit.load()
        first = visit.page.locator("#search-page .search-hits a").first
        assert first.get_attribute("href").endswith("#fewer-key-heads-fewer-bytes")
        assert visit.page.locator("#book-search-input").input_value() != ""
        assert visit.errors == []


@pytest.mark.site
def test_open_search_is_accessible(browser, address):
    with visiting(browser, f"{address}/{PAGE}", width=390, bypass_csp=True) as visit:
        visit.load()
        visit.page.keyboard.press("Control+k")
        hits_of(visit.page, ["softmax"])
        visit.page.keyboard.press("ArrowDown")
        visit.page.evaluate(axe_source())
        found = visit.page.evaluate("axe.run('.search-dialog')")
        assert [rule["id"] for rule in found["violations"]] == []
        assert len(found["passes"]) > 5


@pytest.mark.site
def test_a_page_does_not_carry_the_search(browser, address):
    with visiting(browser, f"{address}/{PAGE}", fresh=True) as visit:
        visit.weigh()
        visit.load()
        assert not [url for url in visit.requests if "/search" in url and ".js" in url]
        visit.page.keyboard.press("Control+k")
        visit.page.wait_for_selector(".search-status", state="attached")
        loaded = {u.rpartition("/")[2]: n for u, n in visit.transferred.items()}
        assert 0 < loaded["search.js"] < 15_000
        assert 0 < loaded["search-titles.js"] < 30_000
        assert 0 < loaded["search-texts.js"] < 150_000


def read_index(site):
    parts = []
    for name in ("titles", "texts"):
        text = (site / "_static" / f"search-{name}.js").read_text("utf-8")
        parts.append(json.loads(text.partition(" = ")[2].strip().removesuffix(";")))
    index, texts = parts
    pairs = zip(index["pieces"], texts, strict=True)
    return index | {"pieces": [title + text for title, text in pairs]}


def test_every_place_in_the_table_of_words_is_in_the_book(site):
    table = yaml.safe_load(find.WORDS.read_text("utf-8"))
    known = find.number_pieces(read_index(site))
    gone = [
        a for part in ("answers", "messages") for a in table[part] if a not in known
    ]
    assert gone == [], (
        "change theme/lean_site/search_words.yml to the headings of today"
    )


def test_index_has_every_page_section_and_cell_by_its_anchor(site, soup):
    index = read_index(site)
    assert [page[0] for page in index["pages"]] == [f"{e}.html" for e in list_pages()]
    found = {(index["pages"][p[0]][0], p[2]) for p in index["pieces"]}
    for entry in list_pages():
        article = soup(entry).find("article")
        ids = {s["id"] for s in article.find_all("section", id=True)}
        ids |= {c["id"] for c in article.select("div.cell[id]")}
        assert {(f"{entry}.html", i) for i in ids} <= found, entry
    assert not (site / "searchindex.js").exists()


def test_nothing_hidden_is_in_the_index(site, soup):
    """Hints and folded code, but not the answers to predictions: a hit opens them."""
    index = read_index(site)
    texts = {}
    for piece in index["pieces"]:
        page = index["pages"][piece[0]][0]
        texts[page] = texts.get(page, "") + " ".join(piece[4:]) + " "
    checked = 0
    for entry in list_pages():
        text = "".join(texts[f"{entry}.html"].split())
        article = soup(entry).find("article")
        shown = "".join("".join(_visible(article)).split())
        for fold in article.select("details:not([open], .answer)"):
            for line in fold.get_text().splitlines():
                line = "".join(line.split())
                if len(line) > 25 and line not in shown:
                    assert line not in text, f"{entry}: {line}"
                    checked += 1
        assert "Showcode" not in text
        assert "Showtheanswer" not in text
        assert "linktothecell" not in text
    assert checked > 500


def _visible(article):
    for text in article.strings:
        above = text.find_parents("details")
        if all(f.has_attr("open") or "answer" in f.get("class", []) for f in above):
            yield text


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\frac{\omega}{\sqrt{d_k}}", "ω/√d_k"),
        (r"\text{softmax}(QK^\top)", "softmax(QK^ᵀ)"),
        (r"\sqrt{d_k}", "√d_k"),
    ],
)
def test_formulas_are_indexed_as_one_types_them(latex, text):
    assert sections.spell_formula(latex) == text
