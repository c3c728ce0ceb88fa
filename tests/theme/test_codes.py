"""The page of all codes: what reports, SARIF and the search link to."""

from collections import Counter
from email.message import Message
from importlib import metadata
from urllib.parse import urlsplit

from attncheck.commandline import main
from attncheck.formats import address
from attncheck.mistakes import BASES, HEADER, MISTAKES
from tests.theme.test_search import read_index

PAGE = "book/codes"


def text_of(element):
    # Sphinx makes quotes round.
    plain = element.get_text().translate(str.maketrans("‘’“”", "''\"\""))
    return " ".join(plain.split())


def test_each_code_has_its_anchor_words_and_example(anchors):
    for mistake in MISTAKES.values():
        found = anchors(PAGE)[mistake.code.lower()]
        assert text_of(found.h3).startswith(mistake.code)
        for words in (mistake.title, mistake.means, mistake.line):
            assert " ".join(words.replace("`", "").split()) in text_of(found)
        for words in (mistake.name, mistake.severity):
            assert words in text_of(found.p)
        assert found.find("a", href=f"{mistake.page}.html"), mistake.code
        shown = [block.get_text().strip() for block in found.select(".highlight pre")]
        assert shown == [mistake.example().strip()] * bool(mistake.example())


def test_an_example_shows_the_lines_of_the_planted_bug():
    scale, dropped = MISTAKES["scale_missing"], MISTAKES["dropout_on_scores"]
    assert scale.example() == (
        "- weights = torch.softmax(scores, dim=-1)\n"
        "+ weights = torch.softmax(scores / self.head_dim**0.5, dim=-1)"
    )
    assert dropped.example() == (
        "- scores = self.dropout(scores)\n...\n+ weights = self.dropout(weights)"
    )
    for mistake in MISTAKES.values():
        for bug in mistake.planted[:1]:
            marked = [line.split(" ", 1) for line in mistake.example().splitlines()]
            wrong, right = lines(bug.source()), lines(HEADER + BASES[bug.base][0])
            gone = Counter(one[-1].strip() for one in marked if one[0] == "-")
            come = Counter(one[-1].strip() for one in marked if one[0] == "+")
            assert gone <= wrong, mistake.name
            assert wrong - gone + come == right, mistake.name


def lines(source):
    """Count the lines of a class that say something."""
    stripped = (line.strip() for line in source.splitlines())
    return Counter(line for line in stripped if line not in ("", "pass"))


def test_a_code_is_found_by_the_search_under_its_anchor(site):
    pieces = {p[2]: p for p in read_index(site)["pieces"]}
    for mistake in MISTAKES.values():
        title = pieces[mistake.code.lower()][3]
        assert title.startswith(f"{mistake.code} "), mistake.code


def test_only_a_set_address_is_told_and_leads_to_the_code(soup, monkeypatch, capsys):
    told = Message()
    monkeypatch.setattr(metadata, "metadata", lambda name: told)
    assert address("ATT307") == ""
    assert main(["--explain", "ATT307"]) == 0
    assert "codes.html" not in capsys.readouterr().out
    told["Project-URL"] = "Issues, https://example.org/issues"
    told["Project-URL"] = "Homepage, https://example.org/site/"
    where = address("ATT307")
    assert main(["--explain", "ATT307"]) == 0
    assert where in capsys.readouterr().out
    parts = urlsplit(where)
    page = parts.path.removeprefix("/site/").removesuffix(".html")
    assert soup(page).find(id=parts.fragment).h3.get_text().startswith("ATT307")
