"""Every page, in a browser, against site_budget.json."""

import pytest

from tests.theme.conftest import site_pages
from tools.measure.budget import exceeded, read_budget
from tools.measure.page import measure

pytestmark = pytest.mark.site
LIMITS = read_budget()


@pytest.mark.parametrize("page", site_pages())
def test_page_is_within_the_budget(page, browser, address):
    found = measure(browser, f"{address}/{page}.html")
    assert exceeded(found, LIMITS) == [], found
