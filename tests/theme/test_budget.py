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


def test_the_budget_catches_a_bad_page(browser, tmp_path):
    """The measuring itself can fail: one page with every fault at once."""
    from tools.measure.server import serving

    (tmp_path / "bad.html").write_text(
        "<html lang=en><title>Bad</title><main><h1>Bad</h1>"
        "<img src='https://other.example/a.png' width=2000 height=9>"
        "<p style='color:#999'>pale</p><script>missing()</script></main>"
    )
    with serving(tmp_path) as url:
        found = measure(browser, f"{url}/bad.html")
    broken = {line.split()[0] for line in exceeded(found, LIMITS | {"bytes": 10})}
    assert broken == {
        "bytes", "third_parties", "console_errors", "images_without_text",
        "axe_nodes", "overflow_px",
    }  # fmt: skip
