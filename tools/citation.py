"""Write the entry for BibTeX on the page for teachers, from CITATION.cff.

    python -m tools.citation

The facts stand in CITATION.cff alone; a test holds the page equal to it.
"""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "book" / "teaching.md"
PLACE = re.compile(r"^```bibtex\n.*?^```\n", re.S | re.M)


def bibtex(root=ROOT):
    """Return the entry as text."""
    cited = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
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


def _name(author):
    if "name" in author:
        return f"{{{author['name']}}}"  # a group is not split into names
    return f"{author['family-names']}, {author['given-names']}"


def written(page):
    """Return the page with the entry in its place."""
    text, places = PLACE.subn(lambda _: f"```bibtex\n{bibtex()}\n```\n", page)
    if places != 1:
        raise ValueError("the page has not one block of bibtex")
    return text


def main():
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
