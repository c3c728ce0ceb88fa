"""Every comment that tells a shape tells that of the tensor on its line."""

import pytest

from tests.book.pages import pages
from tests.book.running import ran


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_shape_comments_are_true(page):
    wrong = list(ran(page.name)[1].wrong())
    assert not wrong, "\n".join(wrong)
