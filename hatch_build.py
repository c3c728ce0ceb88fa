"""README as an index shows it: a link to a file of the repository leads there, or not.

Hatchling calls this while it builds. The address is that which `tools.repository` sets.
"""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]+)\]\((?!https?:|#)([^)]+)\)")


def complete_links(text, url=""):
    """Write links in full. Without an address, keep their words and drop pictures."""

    def complete(link):
        picture, words, target = link.groups()
        if not url:
            return "" if picture else words
        kind = "raw" if picture else "blob"
        return f"{picture}[{words}]({url}/{kind}/main/{target})"

    return re.sub(r"\n{3,}", "\n\n", LINK.sub(complete, text))


class Readme(MetadataHookInterface):
    """Sets the field of the metadata that pyproject.toml calls dynamic."""

    def update(self, metadata):
        """Give README with its links as the index needs them."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        url = metadata.get("urls", {}).get("Repository", "")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": complete_links(text, url),
        }
