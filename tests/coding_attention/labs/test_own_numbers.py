"""What one lab alone draws or does: curves, vectors, marks, words, against PyTorch.

What all labs have in common stands in test_ways.py.
"""

import math
import random
import re

import pytest
import torch
from playwright.sync_api import expect

from attention import SelfAttention_v2
from coding_attention.labs import DropoutLab, LookLab, scale
from coding_attention.models import real
from tests.coding_attention.labs.screen import (
    PHONE,
    check,
    drag,
    drawn,
    find_astray,
    follow,
    on_page,
    reset,
)
from tests.coding_attention.labs.table import WORDS, tiny_gpt

pytestmark = pytest.mark.site


def points(path):
    return [tuple(map(float, xy)) for xy in re.findall(r"(-?[\d.]+),(-?[\d.]+)", path)]


# ---- marks that set a number ----


@pytest.mark.parametrize(
    ("name", "label", "trait"),
    [
        ("ScaleLab", "d_k, the width of a key", "d_k"),
        ("DropoutLab", "Draws in the mean", "draws"),
    ],
)
def test_a_mark_is_moved_and_all_numbers_follow(lab_on_page, name, label, trait):
    root, lab, one = lab_on_page(name)
    mark = root.get_by_role("slider", name=label)
    first = getattr(lab, trait)
    drag(one.page, mark, -40, 60)
    setattr(lab, trait, int(mark.get_attribute("aria-valuenow")))
    assert getattr(lab, trait) < first
    check(root, lab)


# ---- attention ----

READ_INPUTS = """root =>
  [...root.querySelectorAll('table[aria-label="Inputs x"] input')]
    .map(field => Number(field.dataset.shown))"""


def press_keys(page, mark):
    mark.focus()
    for key in ("ArrowLeft", "ArrowDown", "Shift+ArrowDown"):
        page.keyboard.press(key)


# Three ways to move a mark to the left and down.
HANDS = {
    "mouse": lambda page, mark: drag(page, mark, -40, 60),
    "touch": lambda page, mark: drag(page, mark, -40, 60, touch=True),
    "keys": press_keys,
}


@pytest.mark.parametrize("hand", HANDS)
def test_a_vector_is_moved_and_all_follows(lab_on_page, hand):
    options = PHONE if hand == "touch" else {}
    root, lab, one = lab_on_page("AttentionLab", **options)
    HANDS[hand](one.page, root.get_by_role("slider", name="Tokens x: journey"))
    moved = root.evaluate(READ_INPUTS)
    before = lab.tensor("inputs").flatten().tolist()
    changed = [i for i, (a, b) in enumerate(zip(before, moved, strict=True)) if a != b]
    assert changed == [3, 4]  # two numbers of journey, and nothing else
    assert moved[3] < before[3]
    assert moved[4] < before[4]
    lab.inputs = [moved[i : i + 3] for i in range(0, 18, 3)]
    check(root, lab)
    drag(one.page, root.get_by_role("slider", name="Tokens x: journey"), -900, 900)
    assert find_astray(root) == []


def test_an_edited_value_moves_everything_downstream(lab_on_page):
    root, lab, one = lab_on_page("AttentionLab")
    root.get_by_label("Causal mask").check()
    lab.causal = True
    cell = root.get_by_label("Inputs x, with, 2")
    cell.click()
    one.page.keyboard.press("Control+a")
    one.page.keyboard.type("-1.5")
    one.page.keyboard.press("Tab")
    x = lab.tensor("inputs")
    x[3, 1] = -1.5
    lab.inputs = x
    check(root, lab)
    for wrong in ("", "two", "1e99"):
        cell.fill(wrong)
        assert cell.get_attribute("aria-invalid") == "true"
    cell.blur()
    check(root, lab)


def test_no_name_is_covered_whatever_the_inputs(lab_on_page):
    root, _, one = lab_on_page("AttentionLab")
    draw = random.Random(123)
    for turn in range(24):
        spread = draw.choice([0, 0.03, 0.2, 0.9])  # tokens may share one place
        middle = [draw.uniform(-0.2, 0.9) for _ in range(3)]
        inputs = [[x + draw.uniform(-spread, spread) for x in middle] for _ in range(6)]
        rows = ";".join(",".join(f"{x:.2f}" for x in row) for row in inputs)
        trainable = turn % 2
        follow(one.page, f"#lab-attention?inputs={rows}&trainable={trainable}")
        # Tokens and z; or tokens, keys and q, values and z.
        names = root.locator(".al-name").filter(visible=True)
        assert names.count() == (6 + 7 + 7 if trainable else 6 + 1)
        # A token of a link may be outside of the plane, with its name.
        assert [fault for fault in find_astray(root) if " is over " in fault] == []


def test_names_find_their_places_when_a_hidden_lab_is_shown(lab_on_page):
    root, _, one = lab_on_page("AttentionLab")
    names = root.locator(".al-name").filter(visible=True)
    places = "all => all.map(name => ['x', 'y'].map(a => name.getAttribute(a)))"
    shown = names.evaluate_all(places)
    # As in a notebook that draws a lab before it shows it: without widths of text.
    root.evaluate("root => { root.style.display = 'none' }")
    for trainable in (1, 0):
        follow(one.page, f"#lab-attention?trainable={trainable}")
    root.evaluate("root => { root.style.display = '' }")
    drawn(one.page)
    assert names.evaluate_all(places) == shown


def test_arrow_keys_move_and_enter_picks(lab_on_page):
    root, lab, one = lab_on_page("AttentionLab")
    one.page.evaluate("document.addEventListener('keydown', e => (window.heard = e))")
    table = root.get_by_role("grid", name="2. Weights α")
    table.locator('[tabindex="0"]').focus()
    where = """() => [document.activeElement.parentNode.rowIndex,
                      document.activeElement.cellIndex]"""
    visited = []
    for key in ("ArrowDown", "ArrowRight", "End", "Home", "Control+End", "Control+Home",
                "ArrowUp", "ArrowDown", "ArrowDown", "ArrowDown"):  # fmt: skip
        one.page.keyboard.press(key)
        visited.append(tuple(one.page.evaluate(where)))
    assert visited == [(2, 1), (2, 2), (2, 6), (2, 1), (6, 6), (1, 1), (1, 1), (2, 1),
                       (3, 1), (4, 1)]  # fmt: skip
    assert table.locator('[tabindex="0"]').count() == 1
    one.page.keyboard.press("Enter")
    query = root.get_by_role("combobox", name="Query")
    assert query.input_value() == "with"
    one.page.keyboard.press("/")  # which opens the page's search elsewhere
    assert not one.page.evaluate("window.heard")
    table.locator("tbody th").nth(4).click()
    assert query.input_value() == "one"
    lab.query = 4
    check(root, lab)


# ---- scale ----


def test_curves_are_the_measures_of_each_width(lab_on_page):
    root, lab, _ = lab_on_page("ScaleLab")
    root.get_by_label("Divide by").select_option("√d_k")
    lab.divisor = "root"
    paths = root.get_by_label("Largest weight and slope").locator("path.al-curve")
    for path, name in zip(paths.all(), ("largest", "gradient"), strict=True):
        curve = points(path.get_attribute("d"))
        for width in (1, 16, 64, 1024):
            x = 30 + 166 * math.log(width) / math.log(1024)
            y = 116 - 98 * lab.compute(width)[name]
            nearest = min(curve, key=lambda point: abs(point[0] - x))
            assert nearest == pytest.approx((x, y), abs=0.01)


@pytest.mark.parametrize("d_k", [1, 77])
def test_histogram_and_softmax_follow_the_width(lab_on_page, d_k):
    root, lab, _ = lab_on_page("ScaleLab")
    root.get_by_label("exactly").fill(str(d_k))
    root.get_by_label("exactly").blur()
    lab.d_k = d_k
    check(root, lab)
    scores = scale._drawn(lab.seed)[..., d_k - 1].flatten()
    edge = next(x for x in (1, 3, 10, 30, 100, 300) if x >= scores.abs().max())
    counts = torch.histc(scores, 24, -edge, edge)
    heights = root.locator(".al-bin").evaluate_all(
        "all => all.map(e => Number(e.getAttribute('height')))"
    )
    assert heights == pytest.approx((56 * counts / counts.max()).tolist(), abs=0.01)
    # Above it, the keys of the first query, each at its score and weight.
    found = root.locator("circle.al-point:not(.al-now)").evaluate_all(
        "all => all.map(e => [e.cx.baseVal.value, e.cy.baseVal.value])"
    )
    now = lab.compute()
    x = 30 + 172 * (now["scores"] + edge) / (2 * edge)
    wanted = torch.stack([x, 88 - 70 * now["weights"]], dim=-1)
    assert torch.tensor(found).double() == pytest.approx(wanted, abs=0.01)


# ---- dropout ----


def running_means(lab, i, j):
    """The mean of one weight over the weight, after 1, 2, 3 … draws, by PyTorch."""
    kept = torch.stack([lab.kept(n + 1)[i, j] for n in range(lab.draws)]).double()
    share = 1 if lab.bug == "undivided" else 1 / (1 - lab.p)
    return share * kept.cumsum(0) / torch.arange(1, lab.draws + 1)


@pytest.mark.parametrize("state", [{}, {"bug": "undivided", "p": 0.25, "draws": 700}])
def test_the_thick_line_is_the_mean_of_the_framed_weight(lab_on_page, state):
    root, _, one = lab_on_page("DropoutLab")
    query = "&".join(f"{name}={value}" for name, value in state.items())
    follow(one.page, f"#lab-dropout?{query}")
    cells = root.locator(".al-heat").first.locator("tbody td")
    cells.nth(6 * 4 + 3).click()
    cells.nth(6 * 1 + 5).click()  # hidden: it takes part in nothing
    lab = DropoutLab(query=4, key=3, **state)
    check(root, lab)
    expected = running_means(lab, 4, 3)
    path = root.locator("path.al-curve:not(.al-faint)").get_attribute("d")
    assert len(points(path)) >= 40
    for x, y in points(path):
        n = round(1000 ** ((x - 34) / 272))  # the axis is logarithmic, 1 to 1000
        assert 2 * (116 - y) / 98 == pytest.approx(expected[n - 1].item(), abs=0.01)
    faint = root.locator("path.al-faint").get_attribute("d")
    assert faint.count("M") == 20  # the other weights that are not 0


@pytest.mark.parametrize("options", [{}, {"forced_colors": "active"}])
def test_what_is_dropped_is_crossed_out(lab_on_page, options):
    root, lab, _ = lab_on_page("DropoutLab", **options)
    lines = """all => all.map(e =>
      getComputedStyle(e).backgroundImage.split('linear-gradient').length - 1)"""
    out = root.locator(".al-heat").first.locator("tbody td").evaluate_all(lines)
    gone = ~lab.kept() & (torch.tensor(lab.weights) > 0)
    assert [count == 2 for count in out] == gone.flatten().tolist()
    assert 0 < int(gone.sum()) < 21


# ---- mask ----


def test_a_weight_that_is_hidden_and_has_weight_all_the_same_is_marked(lab_on_page):
    root, lab, _ = lab_on_page("MaskLab")
    cells = root.get_by_role("grid", name="Weights α, drawn").locator("tbody td")
    rings = "all => all.map(e => getComputedStyle(e).boxShadow)"
    before = cells.evaluate_all(rings)
    root.get_by_role("button", name="Fill with 0").click()
    lab.fill = "0"
    check(root, lab)
    after = cells.evaluate_all(rings)
    leaks = lab.hidden() & (lab.compute()[1] != 0)
    assert int(leaks.sum()) == 15
    changed = [a != b for a, b in zip(before, after, strict=True)]
    assert changed == leaks.flatten().tolist()


# ---- heads ----


def test_width_that_heads_do_not_divide_falls_back_to_one_head(lab_on_page):
    root, lab, _ = lab_on_page("HeadSplitLab")
    root.get_by_role("combobox", name="h", exact=True).select_option("4")
    root.get_by_role("combobox", name="d_out", exact=True).select_option("6")
    lab.num_heads = 1
    lab.d_out = 6
    check(root, lab)


# Of each entry: its number, and the token and the color that its cell has.
READ_ENTRIES = """root => Object.fromEntries(
  [...root.querySelectorAll('.hs-block td')].map(cell =>
    [/entry (\\d+)/.exec(cell.ariaLabel)[1],
     [cell.textContent, getComputedStyle(cell).backgroundColor]]))"""


def test_entries_keep_the_color_of_their_token_in_every_step(lab_on_page):
    root, lab, _ = lab_on_page("HeadSplitLab")
    found, colors = root.evaluate(READ_ENTRIES), {}
    for entry, (token, color) in found.items():
        assert int(token) == int(entry) // lab.d_out % lab.num_tokens
        assert colors.setdefault(token, color) == color
    assert len(set(colors.values())) == len(colors) == lab.num_tokens
    for step in ("1. view", "2. transpose", "4. transpose back", "5. join"):
        root.get_by_label("Step").select_option(step)
        assert root.evaluate(READ_ENTRIES) == found


# ---- trained models ----


def test_keys_ask_another_word(lab_on_page):
    root, lab, one = lab_on_page("LookLab")
    root.locator(".lk-asks").focus()
    last = len(lab.compute()[0]) - 1
    for key, end in (("ArrowRight", last), ("ArrowLeft", 0)):
        for _ in range(last + 1):  # and no further
            one.page.keyboard.press(key)
        check(root, LookLab(asked=end))
    root.locator(".lk-word").nth(4).click()
    check(root, LookLab(asked=4))


# Of each row of the picture: its numbers, and the heights of the bars in its columns.
READ_MACHINE = """root => [...root.querySelectorAll('.mc-board tbody tr')].map(row => [
  [...row.cells].slice(1).map(e => e.textContent).filter(text => text).map(Number),
  Object.fromEntries([...row.querySelectorAll('.mc-strip')].map(e => [
    e.ariaLabel.split(' ')[0], [...e.lastElementChild.getAttribute('d')
      .matchAll(/V([-.\\d]+)/g)].map(([, up]) => -up)]))])"""


def test_the_picture_shows_what_the_head_computes(lab_on_page):
    root, _, _ = lab_on_page("LookLab")
    words, x = real.states("3.1", "the workers watched the piano until they left")
    layer = real.load_head(SelfAttention_v2(384, 32, qkv_bias=True), "3.1")
    asked = words.index("they")
    with torch.no_grad():
        q, k, v, z = layer.W_query(x), layer.W_key(x), layer.W_value(x), layer(x)
    scores = k @ q[asked]  # (t, 32) @ (32,) -> (t,)
    weights = (scores / 32**0.5).softmax(dim=-1)
    columns = {
        "x": x[:, :32], "q": q, "k": k, "v": v,
        "mix": weights[:, None] * v, "z": z[asked : asked + 1],
    }  # fmt: skip
    rows = root.evaluate(READ_MACHINE)
    for i, (numbers, _) in enumerate(rows):
        wanted = [scores[i], scores[i] / 32**0.5, weights[i]]
        assert numbers == pytest.approx([w.item() for w in wanted], abs=0.06)
        assert numbers[1:] == pytest.approx([w.item() for w in wanted[1:]], abs=0.011)
    for name, vectors in columns.items():
        # What a value is multiplied by and adds up to is drawn on the scale of values.
        most = 0.6 * (v if name in ("mix", "z") else vectors).abs().max()
        bars = torch.tensor([row[name] for _, row in rows if row[name]])
        torch.testing.assert_close(bars, vectors / most, atol=0.02, rtol=0)
    assert [bool(row["z"]) for _, row in rows] == [i == asked for i in range(len(rows))]


def find_marked(root, kind):
    """Name the columns of the picture that are marked in a way."""
    heads = root.locator(f".mc-board thead .mc-{kind}")
    return [head.split()[-1] for head in heads.all_text_contents() if head]


def test_the_stages_go_through_the_picture_in_order(lab_on_page):
    root, _, one = lab_on_page("LookLab")
    columns = ["x", "q", "k", "v", "score", "scale", "mask", "weight", "mix", "z"]
    stages = [["x"], ["q", "k", "v"], *([name] for name in columns[4:])]
    for stage, names in enumerate(stages, start=1):
        root.get_by_role("button", name="Next").press("Enter")
        drawn(one.page)
        check(root, LookLab(stage=stage))
        assert find_marked(root, "now") == names
        later = columns[columns.index(names[-1]) + 1 :]
        assert find_marked(root, "later") == later
        assert find_marked(root, "absent") == ["mask"]


def test_a_play_ends_at_the_last_stage_or_where_the_reader_moves_on(visit, served):
    one = visit(fresh=True)  # the clock stays with its context
    one.page.clock.install()
    one.open(f"{served}/LookLab.html")
    root = on_page(one.page, "LookLab")
    play = root.get_by_role("button", name="Play")
    for stage, by_hand in ((8, False), (2, True)):
        play.click()
        assert not play.count()
        if by_hand:
            root.get_by_role("slider", name="Stage").press("ArrowRight")
        for _ in range(8):  # a stage lasts as long as its sentence takes to read
            one.page.clock.run_for(30_000)
        assert play.count() == 1
        check(root, LookLab(stage=stage))


def test_the_trained_model_reads_what_is_typed(lab_on_page):
    root, _, one = lab_on_page("TinyGptLab")
    root.get_by_label("Text").fill("banana ban your")
    letters = [WORDS.index(letter) for letter in "bananaban"]
    check(root, tiny_gpt(tokens=[*letters, 0]))
    root.locator("input[type=range]").press("Home")
    check(root, tiny_gpt(tokens=[*letters, 0], at=0))
    root.get_by_role("button", name="Reset").click()
    # A head's weights by keyboard, from the largest of the row that looks.
    root.locator(".al-pattern").nth(3).focus()
    one.page.keyboard.press("ArrowLeft")
    weight = tiny_gpt().compute()[0][1, 1, -1, 2]
    expect(root.locator(".al-readout")).to_contain_text(f"{weight:.4f}")


# ---- what a reader is asked to find ----


def click(*names):
    return lambda root, page: [
        root.get_by_role("button", name=name).first.click() for name in names
    ]


def push_starts_down(root, page):
    root.get_by_role("slider", name="Tokens x: starts").focus()
    for _ in range(3):
        page.keyboard.press("Shift+ArrowDown")


def divide_by_the_sum(root, page):
    click("Zeros after softmax")(root, page)
    root.get_by_label("Divide rows by their sum").check()


def divide_by_the_root(root, page):
    root.get_by_label("Divide by").select_option("√d_k")


def read_the_last_step_with_one_head(root, page):
    click("straight view")(root, page)
    root.get_by_role("combobox", name="h", exact=True).select_option("1")
    root.get_by_label("Step").select_option("5. join")


GOALS = {
    "AttentionLab": push_starts_down,
    "MaskLab": divide_by_the_sum,
    "ScaleLab": divide_by_the_root,
    "DropoutLab": click(*9 * ["Draw 100"]),
    "HeadSplitLab": read_the_last_step_with_one_head,
    "MultiHeadLab": click("head 0"),
    "LookLab": click("Swap “they” for “it”"),
    "TinyGptLab": click("block 1, head 1"),
}


@pytest.mark.parametrize("name", GOALS)
def test_the_question_has_an_answer(lab_on_page, name):
    root, _, one = lab_on_page(name)
    solved = root.locator(".al-done")
    assert not solved.count()
    GOALS[name](root, one.page)
    drawn(one.page)
    assert solved.count() == 1
    root.get_by_role("button", name="Reset").click()


def test_the_training_is_gone_through_step_by_step(lab_on_page):
    root, _, one = lab_on_page("TinyGptLab")
    root.get_by_role("slider", name="Training step").press("ArrowLeft")
    check(root, tiny_gpt(step=1))
    assert root.get_by_label("Text").is_disabled()
    follow(one.page, "#lab-tinygpt?step=0")
    check(root, tiny_gpt(step=0))
    reset(root)
    check(root, tiny_gpt())
