"""The search in use: what learners type, by keyboard, from a server and from a file."""

import json

import pytest
import yaml
from tools.measure.queries import hits_of, rank

from attncheck.mistakes import MISTAKES
from tests.book.pages import toc_entries
from theme.lean_site import find, sections
from tools.measure.visit import axe_source, visiting

PAGE = "book/02_simple_self_attention.html"
# What someone types -> the page, and where it matters the place, that comes first.
QUERIES = {
    "multi head": "05_multi_head_attention",
    "heads": "05_multi_head_attention",
    "multihead": "05_multi_head_attention",
    "why divide by sqrt": "03_questions#why-are-the-scores-divided",
    "√d_k": "03_questions",
    "square root": "03_questions",
    "flash attention": "07_where_the_time_goes#what-the-kernel-does",
    "KV cache": "07_where_the_time_goes#one-more-token",
    "GQA": "10_attention_in_models#fewer-key-heads-fewer-bytes",
    "RoPE": "10_attention_in_models#rotary-positions",
    "softmax dim": "02_simple_self_attention#which-dim",
    "3.5.1": "04_causal_attention#two-ways-to-hide-3-5-1",
    "3.6": "05_multi_head_attention",
    "causal mask": "04_causal_attention",
    "why minus infinity": "04_questions#why-minus-infinity-and-not-zero",
    "dropout": "04_causal_attention#dropout-on-the-weights-3-5-2",
    "what is a query": "03_questions#what-are-queries-keys-and-values",
    "buffers": "04_questions#what-is-a-buffer",
    "contiguous": "05_questions#why-contiguous",
    "layer norm": "06_averaging#layer-norm",
    "roofline": "07_where_the_time_goes#the-roofline",
    "0.4306": "03_trainable_self_attention",
    "CausalAttention": "04_causal_attention",
    "positional encoding": "03_trainable_self_attention#does-order-matter",
    "why is .T not enough": "04_questions#why-not-t-for-the-keys",
    "ring attention": "08_past_one_device#around-a-ring",
    # One or two letters wrong.
    "sotfmax dim": "02_simple_self_attention#which-dim",
    "casual atention": "04_causal_attention",
    "droput": "04_causal_attention#dropout-on-the-weights-3-5-2",
    "multi haed": "05_multi_head_attention",
    "contigous": "05_questions#why-contiguous",
    "notaton": "notation",
    # Questions, as people ask them.
    "what is attention": "01_why_attention",
    "rope": "10_attention_in_models#rotary-positions",
    "difference self attention cross attention":
        "01_why_attention#from-looking-back-to-self-attention",
    "how many heads should I use": "05_multi_head_attention#why-more-than-one-head",
    "what does the mask do": "04_causal_attention",
    "how long does it take": "teaching#how-long-it-takes",
    "colab": "index",
    "view size is not compatible": "05_questions#why-contiguous",
    # A digit for a word, one order or the other, letters alone.
    "rows that do not sum to 1": "02_simple_self_attention#which-dim",
    "before or after softmax": "04_causal_attention#two-ways-to-hide-3-5-1",
    "is dropout before or after softmax":
        "04_questions#why-drop-weights-and-not-outputs",
    "what b and d_in mean": "notation#sizes",
    "what is d_head": "notation#sizes",
    "CUDA out of memory": "07_where_the_time_goes#what-the-kernel-does",
}  # fmt: skip


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
            if rank(found[query], place) != 1
        }
        # A word that the book says is not taken for one like it, such as "back".
        hits = hits_of(visit.page, ["bank"])["bank"]
        assert hits
        assert [text for _, text in hits if "bank" not in text.lower()] == []
        assert visit.errors == []
    assert wrong == {}


def pasted():
    """What PyTorch, the package and the checker say -> where it leads."""
    torch = pytest.importorskip("torch")
    from attention import CausalAttention, MultiHeadAttention

    x = torch.zeros(2, 6, 3)
    mask = CausalAttention(3, 2, 6, 0.0).state_dict()
    raised = {
        "05_questions#why-contiguous": lambda: x.transpose(1, 2).view(2, 18),
        "03_trainable_self_attention": lambda: torch.nn.Linear(2, 2)(x),
        "05_questions#what-if-the-heads-do-not-divide-the-width": (
            lambda: MultiHeadAttention(3, 4, 6, 0.0, num_heads=3)
        ),
        "04_questions#should-a-checkpoint-hold-the-mask": (
            lambda: torch.nn.Module.load_state_dict(with_a_mask(torch, 8), {
                "mask": mask.get("mask", torch.zeros(6, 6))
            })
        ),
        "05_questions#what-if-a-sequence-is-too-long": (
            lambda: CausalAttention(3, 2, 4, 0.0)(x)
        ),
        "03_questions#what-are-requires-grad-grad-fn-and-detach": (
            lambda: x.sum().backward()
        ),
    }  # fmt: skip
    said = {
        # On two devices only a machine with a graphics card says these.
        "RuntimeError: Expected all tensors to be on the same device, but found at "
        "least two devices, cuda:0 and cpu!": "04_questions#what-is-a-buffer",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 "
        "has a total capacity of 23.68 GiB": "07_where_the_time_goes",
    }
    for place, call in raised.items():
        with pytest.raises((RuntimeError, ValueError)) as caught:
            call()
        said[f"{caught.type.__name__}: {caught.value}"] = place
    for mistake in [*MISTAKES.values()][::25]:  # all have a place
        said[f"{mistake.title} [{mistake.severity} {mistake.code}]"] = (
            f"codes#{mistake.code.lower()}"
        )
    return said


def with_a_mask(torch, size):
    """A layer that holds nothing but a mask."""
    layer = torch.nn.Module()
    layer.register_buffer("mask", torch.zeros(size, size))
    return layer


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
        page.keyboard.type("contigous")  # while the engine may still be on its way
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
        page.keyboard.type("contigous")
        page.wait_for_selector(".search-hits a")
        page.keyboard.press("Enter")
        page.wait_for_url("**/05_questions.html#why-contiguous")
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
def test_the_dialog_finds_a_word_that_no_title_has(browser, address):
    with visiting(browser, f"{address}/book/notation.html") as visit:
        visit.load()
        visit.page.keyboard.press("/")
        visit.page.keyboard.type("kitten")
        visit.page.wait_for_selector(".search-hits a[href*='02_simple']")
        # Of a long word two letters may be wrong, and not three.
        for typed, found in (("normalixatuon", True), ("mormalixatuon", False)):
            visit.page.keyboard.press("Control+a")
            visit.page.keyboard.type(typed)
            wanted = ".search-hits a" if found else ".search-hits:not(:has(a))"
            visit.page.wait_for_selector(wanted, state="attached")


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


@pytest.mark.site
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_open_search_is_accessible(width, scheme, browser, address):
    options = {"width": width, "scheme": scheme, "bypass_csp": True}
    with visiting(browser, f"{address}/{PAGE}", **options) as visit:
        visit.load()
        visit.page.keyboard.press("Control+k")
        hits_of(visit.page, ["softmax"])
        visit.page.keyboard.press("ArrowDown")
        visit.page.evaluate(axe_source())
        found = visit.page.evaluate("axe.run('.search-dialog')")
        assert [rule["id"] for rule in found["violations"]] == []
        assert len(found["passes"]) > 5
        room = visit.page.evaluate(
            "() => { const box = document.querySelector('.search-dialog')"
            ".getBoundingClientRect(); return [box.left, innerWidth - box.right]; }"
        )
        assert min(room) >= 0


@pytest.mark.site
def test_the_page_for_wrong_addresses_has_titles_until_someone_types(browser, address):
    with visiting(browser, f"{address}/404.html", fresh=True) as visit:
        visit.page.route("**/causal-attention", lambda route: route.fulfill(
            path=None, status=404, content_type="text/html", body=visit.missing
        ))  # fmt: skip
        visit.missing = visit.page.request.get(f"{address}/404.html").text()
        visit.url = f"{address}/causal-attention"
        visit.load()
        first = visit.page.locator(".search-hits a").first
        assert "04_causal_attention" in first.get_attribute("href")
        asked = [url.rpartition("/")[2] for url in visit.requests]
        assert "search-titles.js" in asked
        assert "search-texts.js" not in asked
        visit.page.keyboard.press("End")
        visit.page.keyboard.type(" diagonal")
        visit.page.wait_for_selector(".search-hits .search-text")
        assert visit.page.locator(".search-answer").count() == 1


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
    known = find.places(read_index(site))
    gone = [
        a for part in ("answers", "messages") for a in table[part] if a not in known
    ]
    assert gone == [], (
        "change theme/lean_site/search_words.yml to the headings of today"
    )


def test_index_has_every_page_section_and_cell_by_its_anchor(site, soup):
    index = read_index(site)
    assert [page[0] for page in index["pages"]] == [f"{e}.html" for e in toc_entries()]
    found = {(index["pages"][p[0]][0], p[2]) for p in index["pieces"]}
    for entry in toc_entries():
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
    for entry in toc_entries():
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


def test_pieces_of_a_page():
    page = """<article><section id="a"><h1>Title<a class="headerlink">#</a></h1>
    <p>Divide by <math alttext="\\sqrt{d_k}"><msqrt></msqrt></math> here.</p>
    <details><summary>Hint</summary><p>secret</p></details>
    <div class="cell" id="named-cell"><div class="cell_input"><pre>x = 1

    y = 2</pre></div>
    <div class="cell_output"><pre>tensor([0.4306, 1.])</pre></div></div>
    <section id="b"><h2>Next</h2><p>after <svg><text>drawn</text></svg></p></section>
    </section></article>"""
    first, cell, second = sections.pieces(page)
    assert (first.kind, first.anchor, first.title) == ("page", "a", "Title")
    assert first.words("text") == "Divide by √d_k here."
    assert (cell.kind, cell.title, cell.lines()) == (
        "cell",
        "named cell",
        "x = 1\ny = 2",
    )
    assert cell.numbers() == ["0.4306"]
    assert (second.title, second.words("text")) == ("Next", "after")


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\frac{\omega}{\sqrt{d_k}}", "ω/√d_k"),
        (r"\text{softmax}(QK^\top)", "softmax(QK^ᵀ)"),
        (r"\sqrt{d_k}", "√d_k"),
    ],
)
def test_formulas_are_indexed_as_one_types_them(latex, text):
    assert sections.spoken(latex) == text
