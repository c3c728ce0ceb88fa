"""The training lab in a browser: every head at every step, moved by hand or played."""

import re

import pytest

from tests.coding_attention.labs.harness import HANDS, PHONE, check, drag, follow
from tests.coding_attention.labs.table import STEPS
from tools.measure.visit import visiting

pytestmark = pytest.mark.site
# The share of color of each cell, row by row up to the diagonal.
TONES = """all => all.map(e => [...e.querySelectorAll('g rect')].map(
  cell => parseFloat(cell.style.getPropertyValue('--tone'))))"""


def tones(lab):
    return [
        [round(100 * x, 1) for i, row in enumerate(head) for x in row[: i + 1]]
        for head in lab.patterns[lab.at]
    ]


def near(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, abs=0.051)


def test_all_heads_are_drawn_at_every_step(lab_on_page):
    root, lab, one = lab_on_page("TrainingLab")
    squares = root.locator(".al-pattern")
    mark = root.get_by_role("slider", name="Training step")
    for at, step in enumerate(STEPS):
        lab.at = at
        near(squares.evaluate_all(TONES), tones(lab))
        score = lab.scores["induction"][at][0]
        label = f"block 1, head 1 at step {step}: induction {score:.2f}"
        assert squares.first.get_attribute("aria-label") == label
        assert mark.get_attribute("aria-valuetext") == f"step {step}"
        check(root, lab)
        root.get_by_role("button", name="Step on").click()
    assert mark.get_attribute("aria-valuenow") == str(STEPS[-1])  # and no further
    for step in [*reversed(STEPS[:-1]), STEPS[0]]:
        root.get_by_role("button", name="Step back").click()
        assert mark.get_attribute("aria-valuenow") == str(step)
    assert one.errors == []


@pytest.mark.parametrize("touch", [False, True])
def test_the_line_is_dragged_to_the_nearest_step(lab_on_page, touch):
    root, lab, one = lab_on_page("TrainingLab", **(PHONE if touch else {}))
    mark = root.get_by_role("slider", name="Training step")
    width = mark.locator("xpath=..").bounding_box()["width"]
    drag(one.page, mark, 0.7 * width, 0, touch)
    assert mark.get_attribute("aria-valuenow") == "200"  # nearer than 50
    lab.at = 2
    check(root, lab)
    HANDS["keys"](one.page, mark)  # to the left, down, and far down
    assert mark.get_attribute("aria-valuenow") == "0"


def test_lines_are_the_loss_and_the_scores(lab_on_page):
    root, lab, _ = lab_on_page("TrainingLab")
    paths = [
        [tuple(map(float, xy)) for xy in re.findall(r"([\d.]+),([\d.]+)", path)]
        for path in root.locator("path.al-curve").evaluate_all(
            "all => all.map(e => e.getAttribute('d'))"
        )
    ]
    x = [34 + 272 * step / 200 for step in STEPS]
    loss = [(a, 84 - 66 * y / 2.5) for a, y in zip(x, lab.losses, strict=True)]
    found = [pytest.approx(point, abs=0.01) for point in paths[0]]
    assert loss == found
    for h in range(2):
        values = [row[h] for row in lab.scores["induction"]]
        score = [(a, 184 - 66 * y) for a, y in zip(x, values, strict=True)]
        assert score == [pytest.approx(point, abs=0.01) for point in paths[1 + h]]


def test_a_cell_is_read_by_hand_and_by_keys(lab_on_page):
    root, lab, one = lab_on_page("TrainingLab")
    second = root.locator(".al-pattern").nth(1)
    readout = root.locator(".al-readout")
    box = second.bounding_box()
    side = box["width"] / 12
    second.click(position={"x": 2.5 * side, "y": 7.5 * side})
    weight = lab.patterns[0][1][7][2]
    words = f"block 2, head 1: b (8) looks at c (3) with weight {weight:.3f}"
    assert readout.text_content() == words
    lab.head = 1  # a click chooses the head whose numbers are shown
    check(root, lab)
    second.focus()
    for key in ("ArrowUp", "ArrowRight"):
        one.page.keyboard.press(key)
    weight = lab.patterns[0][1][6][3]
    assert readout.text_content() == (
        f"block 2, head 1: a (7) looks at d (4) with weight {weight:.3f}"
    )


def test_play_goes_on_to_the_end_and_holds_still_on_demand(lab_on_page):
    for motion in ("no-preference", "reduce"):
        root, _, _ = lab_on_page("TrainingLab", reduced_motion=motion)
        mark = root.get_by_role("slider", name="Training step")
        root.get_by_role("button", name="Play").click()
        if motion == "reduce":  # one step, and no timer that would go on: no Stop
            assert mark.get_attribute("aria-valuenow") == "50"
            assert root.get_by_role("button", name="Play").count() == 1
            continue
        assert root.get_by_role("button", name="Stop").count() == 1
        root.get_by_role("button", name="Play").wait_for()  # it stops by itself
        assert mark.get_attribute("aria-valuenow") == "200"


def test_play_at_the_end_begins_with_the_first_step(lab_on_page):
    root, _, _ = lab_on_page("TrainingLab", reduced_motion="reduce")
    mark = root.get_by_role("slider", name="Training step")
    for _ in STEPS:
        root.get_by_role("button", name="Step on").click()
    assert mark.get_attribute("aria-valuenow") == str(STEPS[-1])
    root.get_by_role("button", name="Play").click()
    assert mark.get_attribute("aria-valuenow") == "0"


def test_the_question_has_an_answer_and_a_link_leads_there(lab_on_page):
    root, lab, one = lab_on_page("TrainingLab")
    task, summary = root.locator(".al-task"), root.locator(".al-summary")
    assert task.text_content().startswith("Which is the last step shown")
    assert "Above one half: no score of any head." in summary.text_content()
    one.page.evaluate("location.hash = '#lab-training?at=50&head=block+2%2C+head+1'")
    one.page.wait_for_function(
        "document.querySelector('.al-summary').textContent.includes('After 50 steps')"
    )
    assert task.text_content() == (
        "Done: the next step shown is 200, with induction of block 2, head 1 (0.90). "
        "On the way, the loss falls to 0.1250."
    )
    lab.at, lab.head = 1, 1
    check(root, lab)
    root.get_by_role("button", name="Step on").click()
    one.page.wait_for_function("location.hash.includes('at=200')")
    assert task.text_content().startswith("Which is")
    assert "half: induction of block 2, head 1 (0.90)." in summary.text_content()
    root.get_by_role("button", name="Reset").click()
    one.page.wait_for_function("!location.hash.includes('at=')")
    follow(one.page, "#lab-training?at=70")  # no step that is shown
    assert "After 0 steps" in summary.text_content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_score_has_one_color_in_figure_and_lab(browser, site, serving, scheme):
    """Page 09 draws the same two scores twice, in one order and in the same colors."""
    url = f"{serving(site)}/book/09_watch_heads_learn.html"
    with visiting(browser, url, scheme=scheme) as visit:
        visit.load()
        stroke = "all => all.map(e => getComputedStyle(e).stroke)"
        colors = """all => [...new Set(all.map(e => getComputedStyle(e).stroke))]"""
        figure = visit.page.locator("#figure-scores svg").first
        lines = figure.locator("path[clip-path]")
        lab = visit.page.locator(".attn-lab.al-training")
        curves = lab.locator("path.al-curve:not(.al-loss)")
        drawn = curves.evaluate_all(colors)
        keys = lab.locator(".al-legend > span").all_text_contents()
        assert [key.split()[0] for key in keys[:2]] == ["previous", "induction"]
        assert drawn == lines.evaluate_all(stroke)[:2]
