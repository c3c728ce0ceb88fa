"""The page of all codes: what reports and the search link to."""

import json
import re
from email.message import Message
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

from attncheck.commandline import main
from attncheck.mistakes import MISTAKES
from attncheck.report import address

PAGE = "book/codes"
CODES = json.loads(Path("tests/attncheck/codes.json").read_text(encoding="utf-8"))


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
        assert shown == [mistake.shown.strip()] * bool(mistake.shown)


def test_every_code_that_is_gone_is_named_on_the_page(soup):
    text = soup(PAGE).find(id="codes-that-are-gone").get_text()
    told = {int(code) for code in re.findall(r"ATT(\d+)", text)}
    for first, last in re.findall(r"ATT(\d+) to ATT(\d+)", text):
        told |= {*range(int(first), int(last))}
    gone = {code for code, name in CODES.items() if name not in MISTAKES}
    assert {int(code.removeprefix("ATT")) for code in gone} <= told


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
