"""What a part of a page is for, marked where it can be seen; and the faces of it."""

import ast
import json

import pytest

from coding_attention.book import list_pages
from tests.theme.conftest import ROOT
from theme import roles


@pytest.mark.parametrize(
    ("source", "quiet"),
    [
        ("assert a == b", True),
        ('print("same:", torch.allclose(a, b))', True),
        ("torch.equal(a, b)", True),
        ("a = torch.allclose(b, c)\na", False),
        ("print(a)", False),
        ("%timeit f()", False),
        ("", False),
    ],
)
def test_a_cell_that_only_compares_is_known(source, quiet):
    assert roles.only_checks(source) is quiet


def test_listings_are_titled_and_counted(soup):
    titles = []
    for page in list_pages():
        for cell in soup(page).select("div.cell.tag_listing"):
            title = cell.select_one(".listing-title a")
            assert title["href"] == f"#{cell['id']}"
            names = ast.parse(cell.select_one("div.cell_input pre").get_text()).body
            assert title.select_one("code").get_text() == names[0].name
            titles.append(title.get_text())
    assert "Listing 04a · CausalAttention" in titles
    numbers = [title.partition(" ·")[0] for title in titles]
    assert len(set(numbers)) == len(numbers) >= 7


def test_every_named_cell_links_to_itself(soup):
    for page in list_pages():
        for cell in soup(page).select("div.cell[id]"):
            link = cell.find("a", href=f"#{cell['id']}")
            assert link is not None, f"{page}: {cell['id']}"


def test_the_side_bar_numbers_pages_as_their_figures_are(soup):
    items = soup("book/03_questions").select("nav.bd-links li.toctree-l1 a")
    texts = [" ".join(item.get_text(" ").split()) for item in items]
    assert "3 Trainable self-attention 3.4" in texts
    assert "Questions about trainable self-attention" in texts


def test_the_side_bar_folds_what_is_not_the_chapter(soup):
    bar = soup("book/03_questions").select_one("nav.bd-links")
    assert [e.get_text() for e in bar.select("p.caption")] == ["The chapter"]
    folded = {e.summary.get_text(): e.has_attr("open") for e in bar.select("details")}
    assert folded == dict.fromkeys(["Beyond", "Practice", "Reference"], False)
    assert len(bar.select("li a")) == len(list_pages())


def test_fonts_hold_what_pages_show(site, soup):
    """A letter that the cut face lacks would be drawn by another, of another width."""
    file = ROOT / "tests" / "theme" / "letters.json"
    held = json.loads(file.read_text(encoding="utf-8"))
    missing = {}
    for page in list_pages():
        article = soup(page).select_one("article")
        for formula in article.select("math"):
            note = formula.find("annotation").get_text()
            shown = set(formula.get_text().removesuffix(note))
            _lacks(missing, "maths", shown, held["maths"])
            alone = {m.get_text() for m in formula.select("mi:not([mathvariant])")}
            alone = {italic(letter) for letter in alone if len(letter) == 1}
            _lacks(missing, "maths", alone, held["maths"])
        for code in article.select("pre, code"):
            _lacks(missing, "code", set(code.get_text()), held["code"])
    assert {k: sorted(v) for k, v in missing.items()} == {}


def italic(letter):
    """Give a letter as browsers set it where it stands alone: h as ℎ, α as 𝛼."""
    for first, start in (("A", 0x1D434), ("a", 0x1D44E), ("α", 0x1D6FC)):
        place = ord(letter) - ord(first)
        if letter != "h" and 0 <= place < (25 if first == "α" else 26):
            return chr(start + place)
    return "ℎ" if letter == "h" else letter


def _lacks(missing, face, shown, held):
    lacking = {c for c in shown if not c.isspace() and c not in held}
    if lacking:
        missing.setdefault(face, set()).update(lacking)
