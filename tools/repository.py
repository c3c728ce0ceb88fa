"""Set the repository's address, and bring the notebooks' install cell in step.

    python -m tools.repository https://github.com/ORG/NAME
    python -m tools.repository https://github.com/ORG/NAME --site https://book.example
    python -m tools.repository --unset

Writes `repository.url` and `html.baseurl` in _config.yml: launch buttons, canonical
links and the site map follow, and so does the first code cell of every page, which
installs the package where it is missing, as on Colab. Nothing is executed: where the
package is, the cell does nothing.
What is found elsewhere follows, too: pyproject.toml (the index shows its addresses),
CITATION.cff, and README's badges.
"""

import argparse
import re
import sys
from pathlib import Path

from coding_attention.address import NOTEBOOKS, pages_site, parse_url
from tools.notebooks import paired_pages, reword

ROOT = Path(__file__).resolve().parent.parent
URLS = """[project.urls]
Homepage = "{site}"
Repository = "{url}"
Issues = "{url}/issues"
Changelog = "{url}/blob/main/CHANGELOG.md"

"""
CITED = """repository-code: "{url}"
url: "{site}"
"""
RUNS = "{url}/actions/workflows/publish.yml"
PAGE = "book/01_why_attention.ipynb"
BINDER = f"https://mybinder.org/v2/gh/{{owner}}/{{name}}/main?urlpath=lab/tree/{PAGE}"
COLAB = f"https://colab.research.google.com/github/{{owner}}/{{name}}/blob/{NOTEBOOKS}/"
BADGES = (
    f"[![Published]({RUNS}/badge.svg)]({RUNS}) **[Read it online]({{site}})** · "
    f"**[Run it in Binder]({BINDER})** · **[in Colab]({COLAB}{PAGE})**\n\n"
)
FORM = (
    "Open it there: "
    "<{site}/book/03_trainable_self_attention.html#your-own-sentence>\n\n"
)
# File: what it says of the address, and the line that this comes before.
PLACES = {
    "pyproject.toml": (URLS, r"^\[project.optional-dependencies\]$"),
    "CITATION.cff": (CITED, r"^abstract: "),
    "README.md": (BADGES, r"^\*\*\[Read it here\]"),
    "book/03_trainable_self_attention.md": (FORM, r"^</div>$"),
}


def set_key(config, section, key, value):
    """Set one key of a section of _config.yml, leaving its comments alone.

    Raises:
        ValueError: the key is not there, or is there twice.
    """
    pattern = (
        rf'(^{section}:\n(?:[ \t].*\n|\n)*?[ \t]+{key}:)[ \t]*(?:"[^"\n]*"|[^\s#]*)'
    )
    changed, count = re.subn(pattern, rf'\g<1> "{value}"', config, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(
            f"_config.yml has {count} keys {section}.{key}, but must have one."
        )
    return changed


def write_address(text, name, url, site):
    """Write the repository's address into a file's text, or take it out.

    Args:
        text: the text of the file.
        name: its name, one of PLACES.
        url: the repository, or empty to take the address out.
        site: where the book is published.

    Returns:
        The changed text.

    Raises:
        ValueError: the file has no place for the address.
    """
    words, before = PLACES[name]
    any_address = re.sub(r"\\\{\w+\\\}", r'[^"\\s]*', re.escape(words))
    text = re.sub(any_address, "", text)
    if not url:
        return text
    _, owner, project = parse_url(url)
    words = words.format(url=url, site=site, owner=owner, name=project)
    place = re.search(before, text, re.MULTILINE)
    if place is None:
        raise ValueError(f"{name} has no place for the address: {before}")
    return text[: place.start()] + words + text[place.start() :]


def apply(root, url, site):
    """Change _config.yml and the pages below a folder; give the changed files."""
    config = root / "_config.yml"
    text = set_key(config.read_text(encoding="utf-8"), "repository", "url", url)
    changed = _write(config, set_key(text, "html", "baseurl", site))
    for name in PLACES:
        if (root / name).exists():
            text = (root / name).read_text(encoding="utf-8")
            changed += _write(root / name, write_address(text, name, url, site))
    for page in paired_pages(root / "book"):
        pair = page.with_suffix(".ipynb")
        before = pair.read_bytes()
        reword(page)
        changed += [pair] * (pair.read_bytes() != before)
    return changed


def _write(path, text):
    if path.read_text(encoding="utf-8") == text:
        return []
    path.write_text(text, encoding="utf-8")
    return [path]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", nargs="?", help="such as https://github.com/ORG/NAME")
    parser.add_argument("--site", help="where the site is; default: GitHub Pages")
    parser.add_argument("--unset", action="store_true", help="remove the address")
    options = parser.parse_args()
    if bool(options.url) == options.unset:
        parser.error("give either an address or --unset")
    url = site = ""
    if options.url:
        try:
            url, owner, name = parse_url(options.url)
        except ValueError as error:
            sys.exit(str(error))
        site = (options.site or pages_site(owner, name)).rstrip("/")
    changed = apply(ROOT, url, site)
    print("\n".join(f"changed {p.relative_to(ROOT)}" for p in changed) or "in step")
    if changed:
        print("Look at it with `make serve`, then commit these files.")


if __name__ == "__main__":
    main()
