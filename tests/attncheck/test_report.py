"""What a reader sees."""

import pytest
from bs4 import BeautifulSoup

import attention
from attncheck import pytest_plugin
from attncheck.formats import as_text
from attncheck.mistakes import PLANTED
from attncheck.report import PAGES, CheckFailed, Finding, Report, Result
from tests.book.pages import BOOK


@pytest.fixture
def report():
    planted = PLANTED["mask_missing"]
    return attention.check(planted.build())


def finding(**changes):
    words = {
        "mistake": "mask_missing",
        "title": "a <b> & c",
        "test": "t",
        "done": "d",
        "seen": "<script>alert(1)</script>",
        "means": "m",
        "line": 'x < "y"',
        "page": "04_causal_attention",
    }
    return Finding(**(words | changes))


@pytest.mark.parametrize("page", PAGES)
def test_pages_have_the_titles_that_they_have_in_the_book(page):
    text = (BOOK / f"{page}.md").read_text(encoding="utf-8")
    assert f"\n# {PAGES[page]}\n" in text


def test_text_names_the_mistake_the_line_and_the_page(report):
    text = str(report)
    assert text.startswith("Attention(d_in=16, d_out=16")
    assert "1. The future leaks: no causal mask [error ATT201]" in text
    for label in ("Test", "Done", "Seen", "Means", "Likely line", "Read"):
        assert f"\n   {label:<12}" in text
    assert "Causal attention (04_causal_attention)" in text
    assert "   failed      what each position depends on" in text
    assert repr(report) == text


def test_lines_are_wrapped_under_their_label(report):
    lines = str(report).splitlines()
    assert max(map(len, lines)) <= 88
    start = next(i for i, line in enumerate(lines) if line.startswith("   Seen"))
    assert lines[start + 1].startswith(" " * 15)
    assert lines[start + 1].strip()


def test_html_is_an_accessible_table(report):
    page = BeautifulSoup(report._repr_html_(), "html.parser")
    tables = page.find_all("table")
    assert (
        tables[0].caption.text == "1. The future leaks: no causal mask (error ATT201)"
    )
    heads = tables[0].find_all("th")
    assert [th.text for th in heads][:3] == ["Test", "Done", "Seen"]
    assert {th["scope"] for th in heads} == {"row"}
    assert [th["scope"] for th in tables[1].thead.find_all("th")] == ["col", "col"]
    assert report.findings[0].means in tables[0].text


def test_html_escapes_everything():
    report = Report("<i>Mine</i>", [finding()], [Result("<t>", "failed")], ["<n>"])
    text = report._repr_html_()
    for raw in ("<script", "<i>", "<b>", "<t>", "<n>"):
        assert raw not in text
    assert "&lt;script&gt;" in text


def test_failures_raise_with_the_whole_report(report):
    with pytest.raises(CheckFailed, match="no causal mask") as caught:
        report.raise_for_failures()
    first, _, rest = str(caught.value).partition("\n\n")
    assert first == "mask_missing (ATT201): The future leaks: no causal mask"
    assert rest == str(report)
    assert isinstance(caught.value, AssertionError)
    attention.check(attention.CausalAttention).raise_for_failures()


@pytest.mark.parametrize(
    ("report", "ok", "status"),
    [
        (Report("right"), True, 0),
        (Report("wrong", [finding()]), False, 1),
        (Report("warned", [finding(severity="warning")]), True, 0),
        (Report("warned", [finding(severity="warning")], strict=True), False, 1),
        (Report("alone", not_compared="a norm"), False, 3),
        (Report("alone", [finding()], not_compared="a norm"), False, 1),
        (Report("unusable", usable=False, problem="no class"), False, 2),
        (Report("broken", results=[Result("t", "broken")]), False, 3),
        (Report("part", results=[Result("t", "not run")]), True, 0),
    ],
)
def test_ok_and_exit_status(report, ok, status):
    assert report.ok is ok
    assert report.exit_status == status
    if ok:
        report.raise_for_failures()
    else:
        with pytest.raises(CheckFailed):
            report.raise_for_failures()


def test_headline_counts_what_was_not_run():
    results = [Result("a", "passed"), Result("b", "failed"), Result("c", "not run")]
    report = Report("Mine", [finding()], results)
    assert report.headline() == "Mine: 1 finding, 1 of 2 tests passed, 1 not run"


def test_an_unusable_report_says_what_to_do():
    text = str(attention.check(3))
    assert text.startswith("int: couldn't be tested")
    assert "Pass the class itself" in text
    assert "Pass the class itself" in attention.check(3)._repr_html_()


def test_several_reports_end_with_their_counts():
    passed, failed = (attention.check(cls) for cls in (
        attention.MultiHeadAttention, PLANTED["scale_missing"].build()
    ))  # fmt: skip
    one = as_text([(passed, "a.py")])
    assert one == str(passed)
    three = as_text([(passed, "a.py"), (failed, "b.py"), (passed, "c.py")])
    assert three.endswith("\n\n\n3 classes: 2 passed, 1 failed")


def test_a_subtest_skips_what_was_not_run_and_fails_with_what_was_found():
    found = finding(test="b", mistake="mask_missing", code="ATT201")
    report = Report("Mine", findings=[found])
    try:
        pytest_plugin._tell(report, Result("a", "passed"))
    except pytest.skip.Exception:  # which would skip this test as well
        pytest.fail("a test that passed was skipped")
    with pytest.raises(pytest.skip.Exception, match="there is no mask"):
        pytest_plugin._tell(report, Result("c", "not run", "there is no mask"))
    with pytest.raises(pytest.fail.Exception, match=r"mask_missing \(ATT201\)"):
        pytest_plugin._tell(report, Result("b", "failed", mistakes=("mask_missing",)))
    with pytest.raises(pytest.fail.Exception, match="ATT201"):  # of another test, too
        pytest_plugin._tell(report, Result("e", "failed", mistakes=("mask_missing",)))
    with pytest.raises(pytest.fail.Exception, match="ATT201"):
        pytest_plugin._tell(report, Result("b", "failed"))
    with pytest.raises(pytest.fail.Exception, match="no device"):
        pytest_plugin._tell(report, Result("d", "broken", "no device"))
