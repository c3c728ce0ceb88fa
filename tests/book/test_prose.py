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


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_notebook_reads_well_without_an_extension(page):
    """No fence with colons, no role, no target: Jupyter would show them as they are."""
    for text in page.prose:
        assert not re.search(r"^:::|^\([\w-]+\)=$|\{[a-z:]+\}`", text, re.M), text


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_no_directive_stands_in_a_notebook(page):
    """Hosts without MyST show `:::{admonition}` and `{note}` fences as they stand."""
    for text in page.prose:
        assert not re.search(r"^(:::|(```|~~~)+\{|\([\w-]+\)=$)", text, re.M), text
