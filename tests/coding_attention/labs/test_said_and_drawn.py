"""What labs say of a cell and draw beside their grids: sums, curves, marks and colors.

The numbers in grids and the squares and bars are checked after every change in
test_browser.py; here is what no grid holds.
"""

import math
import re

import pytest
import torch

from coding_attention.labs import scale
from tests.coding_attention.labs.harness import check, settings
from tests.coding_attention.labs.table import short, text

pytestmark = pytest.mark.site

BAR = "--al-bar"
COLOR = """(cells, name) => cells.map(e => {
  const probe = document.createElement('i');
  probe.style.color = getComputedStyle(e).getPropertyValue(name);
  e.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
})"""


def said(root):
    return root.locator(".al-readout").text_content()


def column(root, label, j):
    cells = root.get_by_role("grid", name=label, exact=True)
    return cells.locator(f"tbody tr td:nth-of-type({j + 1})")


def points(path):
    return [tuple(map(float, xy)) for xy in re.findall(r"(-?[\d.]+),(-?[\d.]+)", path)]


def colors_of(cells, name):
    """Give a color of each cell as red, green and blue from 0 to 1."""
    found = [re.findall(r"[\d.]+", color) for color in cells.evaluate_all(COLOR, name)]
    return [
        [float(x) / (1 if "." in "".join(parts) else 255) for x in parts[:3]]
        for parts in found
    ]


def apart(one, other):
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def sum_of(weights, values):
    terms = zip(weights.tolist(), values.tolist(), strict=True)
    return " + ".join(f"{short(a)}·{short(b)}" for a, b in terms)


# ---- multi-head ----


def test_the_context_of_each_head_is_spelled_with_its_own_values(lab_on_page):
    root, lab, _ = lab_on_page("MultiHeadLab")
    layer = lab.modules()[1]
    values = lab.tensor("inputs") @ layer.W_value.weight.detach().T  # (t, h * d)
    for j, (head, feature) in enumerate([(0, 1), (0, 2), (1, 1), (1, 2)]):
        column(root, "Context of the token, drawn", 0).nth(j).hover()
        weights = lab.compute()["weights"][head, lab.token]
        words = f"step, head {head}, feature {feature}: {sum_of(weights, values[:, j])}"
        assert said(root).startswith(words)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_bars_have_the_color_of_their_head(lab_on_page, scheme):
    root, lab, _ = lab_on_page("MultiHeadLab", color_scheme=scheme)
    frames = colors_of(root.locator(".mh-head"), "--al-head")
    assert len(frames) == lab.num_heads == 2
    assert apart(*frames) > 0.1

    def check_bars(label, j, head, rows=slice(None)):
        for color in colors_of(column(root, label, j), BAR)[rows]:
            # A cell mixes its own ink into the color, a frame the page's.
            assert apart(color, frames[head]) < 0.06
            assert apart(color, frames[1 - head]) > 0.1

    for head in (0, 1):
        check_bars("Weights α of the token, drawn", head, head)
        check_bars("Output of the token, drawn", head, head)
        rows = slice(2 * head, 2 * head + 2)
        check_bars("Context of the token, drawn", 0, head, rows)
    for other in (2, 3):  # the bias and the sum belong to no head
        for color in colors_of(column(root, "Output of the token, drawn", other), BAR):
            assert min(apart(color, frame) for frame in frames) > 0.1


def contrast(first, second):
    def light(color):
        parts = [c / 255 for c in color]
        linear = [
            c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, bright = sorted((light(first), light(second)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_frames_stand_out_from_their_cells(lab_on_page, scheme):
    root, _, _ = lab_on_page("DropoutLab", color_scheme=scheme)
    seen = root.locator("td.al-seen")
    assert seen.count() == 3
    ground = colors_of(seen, "--al-nothing")
    frames = seen.evaluate_all("all => all.map(e => getComputedStyle(e).boxShadow)")
    for frame, behind in zip(frames, ground, strict=True):
        parts = [
            int(x) for x in re.match(r"rgb\((\d+), (\d+), (\d+)\)", frame).groups()
        ]
        assert contrast(parts, [255 * x for x in behind]) >= 3


# ---- training ----


def test_each_head_tells_its_own_scores_and_the_chosen_one_is_thick(lab_on_page):
    root, lab, _ = lab_on_page("TrainingLab")
    root.get_by_role("button", name="Step on").click()
    for chosen in (0, 1):
        root.get_by_role("combobox", name="Head").select_option(index=chosen)
        assert (
            root.locator(".al-stage-title.al-chosen").text_content()
            == (lab.heads[chosen])
        )
        told = root.locator(".al-told").all_text_contents()
        assert told == [f"induction {x:.2f}" for x in lab.scores["induction"][1]]
        lines = root.locator("path.al-curve:not(.al-loss)")
        widths = lines.evaluate_all(
            "all => all.map(e => getComputedStyle(e).strokeWidth)"
        )
        assert float(widths[chosen][:-2]) > float(widths[1 - chosen][:-2])


# ---- mask ----


def test_a_weight_is_spelled_from_the_scores_of_its_row(lab_on_page):
    root, lab, _ = lab_on_page("MaskLab")
    scores = lab.compute()[0] / len(lab.W_value[0]) ** 0.5
    for i, j in ((4, 1), (5, 5), (2, 0)):
        cell = root.get_by_role("grid", name="Weights α, drawn").locator("tbody tr")
        cell.nth(i).locator("td").nth(j).hover()
        seen = [x for x in scores[i].tolist() if x > -math.inf]
        words = said(root)
        assert words.startswith(f"{lab.tokens[i]} → {lab.tokens[j]}: exp(")
        assert words.split(": exp(")[1].startswith(f"{short(seen[j])})")
        assert words.endswith(f"= {lab.compute()[1][i, j]:.4f}")


@pytest.mark.parametrize("after", [False, True])
def test_each_table_of_the_mask_says_what_a_cell_is(lab_on_page, after):
    root, lab, _ = lab_on_page("MaskLab")
    if after:
        root.get_by_role("button", name="Zeros after softmax").click()
        lab.fill, lab.place = "0", "after"
    settings(root)
    numbers = root.get_by_role("button", name="Numbers", exact=True, expanded=False)
    if numbers.count():
        numbers.click()
    scores, weights, context = lab.compute()
    values = lab.tensor("inputs") @ lab.tensor("W_value")
    hidden = lab.hidden()
    assert hidden[2, 4]
    assert not hidden[4, 1]
    for i, j in ((2, 4), (4, 1)):
        pair = f"{lab.tokens[i]} → {lab.tokens[j]}: "
        total = f"{weights[i].sum():.4f}"
        of_row = f"{weights[i, j]:.4f} of a row that sums to {total}"
        fill = ", the fill" if hidden[i, j] and not after else ""
        product = f"{lab.tokens[i]} · {lab.tokens[j]}: {text(scores[i, j])}"
        told = {
            ("True hides", j): pair + ("hidden" if hidden[i, j] else "seen"),
            ("True lets through", j): pair + ("hidden" if hidden[i, j] else "seen"),
            ("Scores ω", j): product + fill,
            ("Weights α", j): pair + of_row,
            ("Weights α", len(lab.tokens)): f"row {lab.tokens[i]} sums to {total}",
            ("Context z", 1): f"{lab.tokens[i]}, feature 2: "
            f"{sum_of(weights[i], values[:, 1])} = {context[i, 1]:.4f}",
        }
        if not after:
            del told["Weights α", j]  # the test above
        for (table, at), words in told.items():
            column(root, table, at).nth(i).hover()
            assert said(root) == words


TONES = r"""root => [...root.querySelectorAll('table')]
  .filter(t => /\d/.test(t.querySelector('tbody td')?.textContent) &&
    [...t.querySelectorAll('thead th')].at(-1)?.textContent.trim() === 'sum')
  .map(t => [...t.querySelectorAll('tbody tr')].map(row =>
    [...row.querySelectorAll('td')].map(e =>
      [e.textContent, e.style.getPropertyValue('--tone')])))"""


@pytest.mark.parametrize("name", ["MaskLab", "DropoutLab"])
def test_a_weight_is_as_dark_as_it_is_large_and_the_sum_of_a_row_is_not(
    lab_on_page, name
):
    root, _, _ = lab_on_page(name)
    tables = root.evaluate(TONES)
    assert tables
    for *cells, (_, of_sum) in (row for table in tables for row in table):
        assert of_sum == "0.0%"
        for weight, tone in cells:
            share = min(max(float(weight.replace("−", "-")), 0), 1)
            assert float(tone.rstrip("%")) == pytest.approx(100 * share, abs=0.06)


def test_a_weight_that_is_hidden_and_has_weight_all_the_same_is_marked(lab_on_page):
    root, lab, _ = lab_on_page("MaskLab")
    alarms = """root => [...root.querySelectorAll(
      '[aria-label="Weights α, drawn"] tbody tr')].map(row =>
        [...row.querySelectorAll('td')].map(e => e.matches('.al-alarm')))"""
    assert not any(map(any, root.evaluate(alarms)))
    root.get_by_role("button", name="Fill with 0").click()
    lab.fill = "0"
    check(root, lab)
    leaks = lab.hidden() & (lab.compute()[1] != 0)
    assert int(leaks.sum()) == 15
    assert root.evaluate(alarms) == leaks.tolist()


# ---- the split of heads ----

# What the lab says at a step, and what then holds for the step before and this one.
SAID_OF_SPLIT = {
    "Each row is one token": lambda x, _: x.dim() == 3,
    "No entry has moved in memory": lambda view, x: (
        view.is_contiguous() and torch.equal(view.flatten(), x.flatten())
    ),
    "Each head has its own block": lambda split, view: (
        split.shape[1] == view.shape[2]
        and all(torch.equal(split[:, h], view[:, :, h]) for h in range(split.shape[1]))
    ),
    "each head multiplies every row by every row": lambda scores, split: all(
        scores[b, h, i, j] == split[b, h, i] @ split[b, h, j]
        for b, h, i, j in torch.cartesian_prod(*map(torch.arange, scores.shape))
    ),
    "Back to one block for each token": lambda back, _: all(
        (back[:, i] // 4 % 3 == i).all() for i in range(back.shape[1])
    ),
    "every entry is back where it was": lambda join, _: torch.equal(
        join.flatten(), torch.arange(24)
    ),
    "brings the wrong rows together": lambda back, _: any(
        (back[:, i] // 4 % 3 != i).any() for i in range(back.shape[1])
    ),
}


@pytest.mark.parametrize("straight", [False, True])
def test_what_is_said_of_each_step_of_the_split_holds(lab_on_page, straight):
    root, lab, _ = lab_on_page("HeadSplitLab")
    if straight:
        root.get_by_role("button", name="straight view").click()
    lab.straight = straight
    steps = lab.compute()
    before = torch.empty(0)
    choice = root.get_by_label("Step")
    assert choice.locator("option").count() == len(steps)
    for step, (name, now) in enumerate(steps.items()):
        choice.select_option(index=step)
        words = root.locator(".al-summary").text_content()
        said = [claim for claim in SAID_OF_SPLIT if claim in words]
        if straight and name not in ("x", "transpose back"):
            assert said == []
            assert words.startswith("Mixed up")
        else:
            assert len(said) == 1, words
            assert SAID_OF_SPLIT[said[0]](now, before), said
        if name != "scores":
            before = now


# ---- curves ----


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["ScaleLab", "measures"])  # of the training lab
def test_a_legend_has_the_colors_of_its_curves_and_no_role(visit, served, name, scheme):
    one = visit(color_scheme=scheme)
    page = one.open(f"{served}/{name}.html", until="domcontentloaded")
    root = page.locator(".attn-lab")
    root.wait_for()
    colors = """(all, trait) =>
      [...new Set(all.map(e => getComputedStyle(e)[trait]))]"""
    curves = root.locator("path.al-curve:not(.al-loss, .al-faint)")
    drawn = curves.evaluate_all(colors, "stroke")
    legend = root.locator(".al-legend:has(.al-second)").locator(".al-key")
    assert len(drawn) == 2
    assert legend.evaluate_all(colors, "backgroundColor") == drawn
    if name == "measures":  # the first step shown has no score above one half
        assert root.locator(".al-task").text_content().startswith("Done: the next")
    (query,) = root.locator("form").evaluate_all(COLOR, "--al-query")
    assert query not in drawn


# ---- scale ----


def test_curves_are_the_measures_of_each_width(lab_on_page):
    root, lab, _ = lab_on_page("ScaleLab")
    root.get_by_label("Divide by").select_option("√d_k")
    lab.divisor = "root"
    paths = root.get_by_label("Largest weight and slope").locator("path.al-curve")
    for path, name in zip(paths.all(), ("largest", "gradient"), strict=True):
        drawn = points(path.get_attribute("d"))
        for width in (1, 16, 64, 1024):
            x = 30 + 166 * math.log(width) / math.log(1024)
            y = 116 - 98 * lab.compute(width)[name]
            near = min(drawn, key=lambda point: abs(point[0] - x))
            assert near == pytest.approx((x, y), abs=0.01)


@pytest.mark.parametrize("d_k", [1, 64, 77])
def test_the_text_and_the_histogram_follow_the_width(lab_on_page, d_k):
    root, lab, _ = lab_on_page("ScaleLab")
    root.get_by_label("exactly").fill(str(d_k))
    root.get_by_label("exactly").blur()
    lab.d_k = d_k
    check(root, lab)
    now = lab.compute()
    words = (
        f"With d_k = {d_k}, scores spread by {now['spread']:.4f}. "
        "On average over 16 queries, the largest of 8 weights is "
        f"{now['largest']:.4f}. "
    )
    assert words in root.locator(".al-summary").text_content()
    scores = scale._drawn(lab.seed)[..., d_k - 1].flatten()
    edge = next(x for x in (1, 3, 10, 30, 100, 300) if x >= scores.abs().max())
    counts = torch.histc(scores, 24, -edge, edge)
    heights = root.locator(".al-bin").evaluate_all(
        "all => all.map(e => Number(e.getAttribute('height')))"
    )
    wanted = (56 * counts / counts.max()).tolist()
    assert heights == pytest.approx(wanted, abs=0.01)
    # Above it, the keys of the first query, each at its score and weight.
    found = root.locator("circle.al-point:not(.al-now)").evaluate_all(
        "all => all.map(e => [e.cx.baseVal.value, e.cy.baseVal.value])"
    )
    x = 30 + 172 * (now["scores"] + edge) / (2 * edge)
    wanted = torch.stack([x, 88 - 70 * now["weights"]], dim=-1)
    assert torch.tensor(found).double() == pytest.approx(wanted, abs=0.01)


# ---- attention ----


@pytest.mark.parametrize("query", [1, 4])
def test_names_stand_at_their_tokens_and_the_query_is_marked(lab_on_page, query):
    root, lab, _ = lab_on_page("AttentionLab")
    name = lab.tokens[query]
    root.get_by_role("combobox", name="Query").select_option(name)
    plane = root.get_by_role("group", name="Tokens x", exact=True)
    found = plane.evaluate(
        """svg => {
          const middle = e => {
            const b = e.getBBox();
            return [b.x + b.width / 2, b.y + b.height / 2];
          };
          const marks = [...svg.querySelectorAll('.al-handle')].map(e => {
            const { e: x, f: y } = e.transform.baseVal.consolidate().matrix;
            const asks = !!e.querySelector('.al-asks');
            return [e.getAttribute('aria-label'), [x, y], asks];
          });
          return [...svg.querySelectorAll('.al-name')]
            .filter(e => e.style.display !== 'none' && e.textContent !== 'z')
            .map(e => {
              const own = marks.find(([label]) => label.endsWith(`: ${e.textContent}`));
              const [x, y] = middle(e);
              const far = ([, [a, b]]) => Math.hypot(a - x, b - y);
              return [e.textContent, own[2], far(own), e.getBBox().width / 2];
            });
        }"""
    )
    assert [name for name, *_ in found] == lab.tokens
    assert [asks for _, asks, *_ in found] == [i == query for i in range(6)]
    for token, _, far, half in found:
        assert far < half + 9 + 20, f"{token} stands {far:.0f} px off"
    # Any two features can be shown.
    settings(root)
    vector = plane.get_by_role("slider", name=f"Tokens x: {name}", exact=True)
    for a, b in ((0, 2), (1, 2), (0, 1)):
        choice = root.get_by_role("combobox", name="Features of the plane")
        choice.select_option(f"features {a + 1} and {b + 1}")
        told = ", ".join(f"{lab.tensor('inputs')[query, k]:.2f}" for k in (a, b))
        assert vector.get_attribute("aria-valuetext") == told
