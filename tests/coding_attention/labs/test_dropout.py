"""The dropout lab in a browser: its lines, bugs, question, and what plays."""

import math
import re

import pytest
import torch

from coding_attention.labs import DropoutLab, draws
from tests.coding_attention.labs.harness import HANDS, PHONE, check, follow

pytestmark = pytest.mark.site


def summary(root):
    return root.locator(".al-summary").text_content()


@pytest.mark.parametrize("hand", HANDS)
def test_the_draws_are_moved_on_their_line(lab_on_page, hand):
    root, lab, one = lab_on_page("DropoutLab", **(PHONE if hand == "touch" else {}))
    mark = root.get_by_role("slider", name="Draws in the mean")
    assert mark.get_attribute("aria-valuetext") == "100 draws"
    HANDS[hand](one.page, mark)
    lab.draws = int(mark.get_attribute("aria-valuenow"))
    assert lab.draws < 100
    check(root, lab)
    assert one.errors == []


def running_means(lab, i, j):
    """The mean of one weight over the weight, after 1, 2, 3 … draws, by PyTorch."""
    kept = torch.stack([lab.kept(n + 1)[i, j] for n in range(lab.draws)]).double()
    scale = 1 if lab.bug == "undivided" else 1 / (1 - lab.p)
    return scale * kept.cumsum(0) / torch.arange(1, lab.draws + 1)


@pytest.mark.parametrize("state", [{}, {"bug": "undivided", "p": 0.25, "draws": 700}])
def test_the_thick_line_is_the_mean_of_the_framed_weight(lab_on_page, state):
    root, _, one = lab_on_page("DropoutLab")
    query = "&".join(f"{name}={value}" for name, value in state.items())
    follow(one.page, f"#lab-dropout?{query}&query=one&key=with")
    lab = DropoutLab(query=4, key=3, **state)
    check(root, lab)
    expected = running_means(lab, 4, 3)
    path = root.locator("path.al-curve:not(.al-faint)").get_attribute("d")
    points = [tuple(map(float, xy)) for xy in re.findall(r"([\d.]+),([\d.]+)", path)]
    assert len(points) >= 40
    for x, y in points:
        n = round(1000 ** ((x - 34) / 272))  # the axis is logarithmic, 1 to 1000
        assert 2 * (116 - y) / 98 == pytest.approx(expected[n - 1].item(), abs=0.01)
    faint = root.locator("path.al-faint").get_attribute("d")
    assert faint.count("M") == 20  # the other weights that are not 0


def test_a_click_frames_a_weight_and_a_hidden_one_is_left(lab_on_page):
    root, lab, one = lab_on_page("DropoutLab")
    cells = root.locator(".al-heat").first.locator("tbody td")
    cells.nth(6 * 4 + 2).click()
    one.page.wait_for_function("location.hash.includes('query=one&key=starts')")
    cells.nth(6 * 1 + 5).click()
    assert cells.nth(6 * 4 + 2).evaluate("e => e.classList.contains('al-seen')")
    lab.query, lab.key = 4, 2
    check(root, lab)


def test_what_is_dropped_is_crossed_out(lab_on_page):
    root, lab, _ = lab_on_page("DropoutLab")
    out = (
        root.locator(".al-heat")
        .first.locator("tbody td")
        .evaluate_all("all => all.map(e => e.classList.contains('al-out'))")
    )
    gone = ~lab.kept() & (torch.tensor(lab.weights) > 0)
    assert out == gone.flatten().tolist()
    assert 0 < sum(out) < 21


def test_bugs_have_a_verdict_in_words_that_is_true(lab_on_page):
    root, lab, _ = lab_on_page("DropoutLab")
    assert "so the means approach the weights" in summary(root)
    root.get_by_role("button", name="Forget to divide").click()
    lab.bug = "undivided"
    check(root, lab)
    weights = torch.tensor(lab.weights, dtype=torch.float64)
    share = (lab.compute()[1] / weights)[weights > 0]
    low, high = (round(100 * x.item()) for x in (share.min(), share.max()))
    assert f"between {low} % and {high} %." in summary(root)
    assert "approach 1 - p = 0.5 of their weights" in summary(root)
    assert "in eval(), weights are 2 times as large" in summary(root)
    root.get_by_role("button", name="Left on in eval()").click()
    lab.bug, lab.training = "left on", False
    check(root, lab)
    before = DropoutLab(draws=99, bug="left on", training=False).compute()[0]
    gap = (lab.compute()[0] - before).abs().max()
    assert f"differ by up to {gap:.4f}." in summary(root)
    root.get_by_role("button", name="Divide by 1 - p").click()
    root.get_by_label("train(), not eval()").uncheck()
    assert summary(root) == "In eval() nothing is dropped and nothing is divided."


def test_a_number_spells_how_it_comes_about(lab_on_page):
    root, lab, _ = lab_on_page("DropoutLab")
    kept = sum(lab.kept(n + 1)[1, 0].item() for n in range(100))
    mean = lab.compute()[1][1, 0]
    weight = f"{lab.weights[1][0]:.4f}"
    root.locator(".al-heat").nth(1).locator("tbody td").nth(6).hover()
    assert root.locator(".al-readout").text_content() == (
        f"journey → Your: kept in {kept} of 100 draws: {kept} / 100 · {weight} / "
        f"(1 - 0.5) = {mean:.4f}; the weight is {weight}"
    )


def within_a_tenth(seed, count):
    counts = sum(
        draws.kept(6, 6, 0.5, 1000 * (seed - 1) + n).double()
        for n in range(1, count + 1)
    )
    share = (2 * counts / count)[torch.ones(6, 6).tril().bool()]
    return bool(((share - 1).abs() <= 0.1).all())


def test_the_question_has_an_answer(lab_on_page):
    root, _, _ = lab_on_page("DropoutLab")
    task = root.locator(".al-task")
    assert not task.evaluate("e => e.classList.contains('al-done')")
    for _ in range(9):
        root.get_by_role("button", name="Draw 100").click()
    assert task.text_content().startswith("Done: with 1000 draws")
    assert within_a_tenth(1, 1000)
    # Most series of draws get there, and of those with 100 draws hardly any.
    assert sum(within_a_tenth(seed, 1000) for seed in range(1, 21)) >= 17
    assert sum(within_a_tenth(seed, 100) for seed in range(1, 21)) <= 3
    # What spreads the means shrinks with the root of the draws: four times, half.
    root.get_by_role("button", name="Forget to divide").click()
    assert task.text_content().startswith("Can you")


def test_play_draws_to_the_end_and_holds_still_where_motion_is_not_wanted(lab_on_page):
    read = "e => Number(e.getAttribute('aria-valuenow'))"
    for motion in ("no-preference", "reduce"):
        root, _, one = lab_on_page("DropoutLab", reduced_motion=motion)
        mark = root.get_by_role("slider", name="Draws in the mean")
        root.get_by_role("button", name="Play").click()
        if motion == "reduce":  # one step, and no timer that would go on: no Stop
            assert mark.evaluate(read) == 100 + math.ceil(100 / 12)
            assert root.get_by_role("button", name="Play").count() == 1
            continue
        one.page.wait_for_function(
            "document.querySelector('[aria-label=\"Draws in the mean\"]')"
            ".getAttribute('aria-valuenow') === '1000'"
        )
        root.get_by_role("button", name="Play").wait_for()  # and no longer Stop


def test_what_is_dropped_is_crossed_out_in_forced_colors_too(lab_on_page):
    root, _, _ = lab_on_page("DropoutLab", forced_colors="active")
    crossed = root.locator("td.al-out").first
    image = crossed.evaluate("e => getComputedStyle(e).backgroundImage")
    assert image.count("linear-gradient") == 2
