"""The prose of a page reads in every front end."""

import re

import pytest

from tests.book.pages import pages


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_prose_is_plain(page):
    """No raw MyST roles (other front ends show them as text), no em-dash chains."""
    for text in page.prose:
        assert not re.search(r"\{[\w:-]+\}`", text), text
        assert "—" not in text, text
