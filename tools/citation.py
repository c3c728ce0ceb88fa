"""Write what is made from CITATION.cff: the page's entry for BibTeX, and .zenodo.json.

    python -m tools.citation

The facts stand in CITATION.cff alone; a test holds both equal to it. Zenodo reads its
own file first. It says what CITATION.cff cannot: that text and figures have another
license, and which book this one follows.
"""

import json
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "book" / "teaching.md"
ZENODO = ROOT / ".zenodo.json"
PLACE = re.compile(r"^```bibtex\n.*?^```\n", re.S | re.M)


def bibtex(root=ROOT):
    """Return the entry as text."""
    cited = _cited(root)
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    # Before the first release, the year is that of the copyright.
    released = str(cited.get("date-released") or config["copyright"])
    fields = {
        "author": " and ".join(map(_name, cited["authors"])),
        "title": f"{{{cited['title']}}}",
        "year": released[:4],
        "version": cited["version"],
        "license": cited["license"],
        "doi": cited.get("doi"),
        "url": cited.get("url") or cited.get("repository-code"),
    }
    lines = [f"  {key:<7} = {{{value}}}," for key, value in fields.items() if value]
    return "\n".join(["@software{coding_attention,", *lines, "}"])


def zenodo(root=ROOT):
    """Return the text of .zenodo.json."""
    cited = _cited(root)
    followed = [r for r in cited["references"] if "isbn" in r]
    facts = {
        "title": cited["title"],
        "description": " ".join(cited["abstract"].split()),
        "upload_type": "software",
        "access_right": "open",
        "version": cited["version"],
        "license": cited["license"].lower(),
        "creators": [{"name": _name(a).strip("{}")} for a in cited["authors"]],
        "keywords": cited["keywords"],
        "notes": "Code: Apache 2.0. Text and figures of the book: CC BY 4.0.",
        "related_identifiers": [
            {"identifier": r["isbn"], "scheme": "isbn", "relation": "references"}
            for r in followed
        ],
    }
    return json.dumps(facts, indent=2) + "\n"


def _cited(root):
    return yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))


def _name(author):
    if "name" in author:
        return f"{{{author['name']}}}"  # a group is not split into names
    return f"{author['family-names']}, {author['given-names']}"


def written(page, root=ROOT):
    """Return the page with the entry in its place.

    Raises:
        ValueError: the page has no block of BibTeX, or more than one.
    """
    text, places = PLACE.subn(lambda _: f"```bibtex\n{bibtex(root)}\n```\n", page)
    if places != 1:
        raise ValueError("the page has not one block of bibtex")
    return text


def main():
    ZENODO.write_text(zenodo(), encoding="utf-8")
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
