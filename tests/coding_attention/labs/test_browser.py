"""The labs in a browser, on a built page: every control by mouse and by keyboard.

After each change, every number on screen has to equal what PyTorch computes for the
same state, printed with four decimals.
"""

import pytest
import torch

from tests.coding_attention.labs.harness import (
    HANDS,
    PHONE,
    check,
    drawn,
    find,
    set_in_python,
    with_keyboard,
    with_mouse,
)
from tests.coding_attention.labs.table import IN_GRIDS, ROWS, short

pytestmark = pytest.mark.site


def open_numbers(root):
    root.get_by_role("button", name="Numbers", exact=True).click()


# ---- every control ----


@pytest.mark.parametrize("hand", [with_mouse, with_keyboard], ids=["mouse", "keyboard"])
@pytest.mark.parametrize("name", IN_GRIDS)
def test_controls(lab_on_page, name, hand):
    root, lab, one = lab_on_page(name)
    check(root, lab)
    for kind, label, wanted in ROWS[name].controls:
        if label == "by":  # it moves a token only if one is chosen
            root.get_by_label("Change token").select_option(index=1)
            lab.nudged = 0
        control = find(root, kind, label)
        before = lab.get_state()
        hand(one.page, control, kind, wanted)
        set_in_python(lab, control, kind, wanted)
        assert lab.get_state() != before, f"{label} changed nothing"
        check(root, lab)
        reset = root.get_by_role("button", name="Reset")
        assert reset.count() == 1, f"{name} has no button Reset: lab.resetButton()"
        reset.click()
        lab = ROWS[name].make()
        check(root, lab)
    assert one.third_parties() == []
    assert one.errors == []


def test_width_that_heads_do_not_divide_falls_back_to_one_head(lab_on_page):
    root, lab, _ = lab_on_page("HeadSplitLab")
    root.get_by_role("combobox", name="h", exact=True).select_option("4")
    root.get_by_role("combobox", name="d_out", exact=True).select_option("6")
    lab.num_heads = 1
    lab.d_out = 6
    check(root, lab)


# ---- editing, reading, moving ----


def test_an_edited_value_moves_everything_downstream(lab_on_page):
    root, lab, one = lab_on_page("AttentionLab")
    open_numbers(root)
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


SUMS = [
    ("1. Scores ω", 1, 0, "0.55·0.43 + 0.87·0.15 + 0.66·0.89 = 0.9544"),
    ("2. Weights α", 1, 0, "exp(0.9544) / (exp(0.9544) + exp(1.495)"),
    ("3. Context z = Σ α · v", 1, 0, "0.1385·0.43 + 0.2379·0.55 + 0.2333·0.57"),
]


def test_a_cell_reads_its_sum(lab_on_page):
    root, _, _ = lab_on_page("AttentionLab")
    open_numbers(root)
    readout = root.locator(".al-readout")
    assert readout.get_attribute("role") == "status"  # announced, politely
    for label, i, j, words in SUMS:
        line = root.get_by_role("grid", name=label).locator("tbody tr").nth(i)
        for hand in ("hover", "focus"):
            root.get_by_role("grid").last.locator("td").last.hover()
            assert words not in readout.text_content()
            getattr(line.locator("td").nth(j), hand)()
            assert words in readout.text_content(), f"{label}, {hand}"


def test_arrow_keys_move_and_enter_picks(lab_on_page):
    root, lab, one = lab_on_page("AttentionLab")
    open_numbers(root)
    keys = one.page.keyboard
    table = root.get_by_role("grid", name="2. Weights α")
    stops = table.locator('[tabindex="0"]')
    assert stops.count() == 1
    stops.focus()
    where = """() => [document.activeElement.parentNode.rowIndex,
                      document.activeElement.cellIndex]"""
    visited = []
    for key in ("ArrowDown", "ArrowRight", "End", "Home", "Control+End", "Control+Home",
                "ArrowUp", "ArrowDown", "ArrowDown", "ArrowDown"):  # fmt: skip
        keys.press(key)
        visited.append(tuple(one.page.evaluate(where)))
    assert visited == [(2, 1), (2, 2), (2, 6), (2, 1), (6, 6), (1, 1), (1, 1), (2, 1),
                       (3, 1), (4, 1)]  # fmt: skip
    assert table.locator('[tabindex="0"]').count() == 1
    keys.press("Enter")
    query = root.get_by_role("combobox", name="Query")
    assert query.input_value() == "with"
    assert "with attends most to" in root.locator(".al-summary").text_content()
    table.locator("tbody th").nth(4).click()
    assert query.input_value() == "one"
    lab.query = 4
    check(root, lab)


def test_keys_stay_within_the_lab(lab_on_page):
    root, _, one = lab_on_page("AttentionLab")
    one.page.evaluate(
        "document.addEventListener('keydown', e => (window.heard = e.key))"
    )
    open_numbers(root)
    heat = root.get_by_role("grid", name="Weights α of all queries")
    for trainable in (False, True):  # then it is drawn among the numbers
        root.get_by_role("checkbox", name="Trainable").set_checked(trainable)
        heat.locator('[tabindex="0"]').focus()
        for key in ("ArrowDown", "ArrowDown", "a", "Enter"):  # another query
            one.page.keyboard.press(key)
        drawn(one.page)
        one.page.keyboard.press("/")
        assert one.page.evaluate("window.heard") is None


def test_every_control_has_a_name_and_a_visible_focus(visit, served):
    page = visit().open(f"{served}/all.html")
    page.locator(".attn-lab").nth(len(ROWS) - 1).wait_for()
    controls = page.locator(".attn-lab").locator("input, select, button")
    unnamed = controls.evaluate_all(
        """all => all.filter(e => !(e.getAttribute('aria-label') || e.textContent.trim()
             || [...(e.labels || [])].some(l => l.textContent.trim()))).length"""
    )
    assert unnamed == 0
    controls.first.focus()
    seen = 0
    for _ in range(40):
        page.keyboard.press("Tab")
        width = page.evaluate(
            """() => { const e = document.activeElement;
              const style = getComputedStyle(e);
              return e.closest('.attn-lab') && style.outlineStyle + style.outlineWidth
            }"""
        )
        assert width in ("solid3px", None)
        seen += width == "solid3px"
    assert seen > 20


def test_nothing_moves_by_itself(lab_on_page):
    root, _, _ = lab_on_page("AttentionLab")
    moving = root.locator("*").evaluate_all(
        """all => all.filter(e => getComputedStyle(e).transitionDuration !== '0s' ||
             getComputedStyle(e).animationName !== 'none').map(e => e.outerHTML)"""
    )
    assert moving == []


# ---- every page, every way in ----


@pytest.mark.parametrize("options", [PHONE, {}], ids=["phone", "laptop"])
def test_a_large_table_can_be_scrolled(visit, served, options):
    page = visit(**options).open(f"{served}/big.html")
    root = page.locator(".attn-lab")
    root.wait_for()
    open_numbers(root)
    clipped = root.locator(".al-scroll").evaluate_all(
        """all => all.filter(part => part.scrollWidth > part.clientWidth)
                     .map(part => getComputedStyle(part).overflowX)"""
    )
    assert set(clipped) == {"auto"}
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_a_lab_that_fails_leaves_its_figure(visit, served):
    one = visit()
    one.page.add_init_script(
        "Object.fromEntries = (old => pairs => "
        "{ const found = old(pairs); if ('d_k' in found) throw Error('planted'); "
        "return found; })(Object.fromEntries)"
    )
    page = one.open(f"{served}/all.html")
    page.locator(".attn-lab").nth(len(ROWS) - 2).wait_for()
    assert page.locator(".attn-lab").count() == len(ROWS) - 1
    assert page.locator(".attn-static").count() == 1
    assert any("ScaleLab cannot be shown" in error for error in one.errors)


# Ten changes; gives how many cells they made anew, and how often at most one change
# wrote to one place of a cell.
TEN_CHANGES = """async (box) => {
  const root = box.closest('.attn-lab');
  const cells = () => [...root.querySelectorAll('td')];
  const everything =
    { subtree: true, childList: true, attributes: true, characterData: true };
  const before = new Set(cells());
  let written = [], most = 0;
  new MutationObserver(all => written.push(...all)).observe(root, everything);
  for (let n = 0; n < 10; n++) {
    box.click();
    await new Promise(requestAnimationFrame);
    const places = new Map();
    for (const { target, type, attributeName } of written.splice(0)) {
      if (!(target.closest ? target : target.parentNode).closest('td')) continue;
      const counts = places.get(target) ?? {};
      const kind = attributeName ?? type;
      counts[kind] = (counts[kind] ?? 0) + 1;
      most = Math.max(most, counts[kind]);
      places.set(target, counts);
    }
  }
  return [before.size, cells().filter(cell => !before.has(cell)).length, most];
}"""


def test_a_change_writes_each_number_once_and_lays_out_a_few_times(visit, served):
    page = visit().open(f"{served}/big.html")
    root = page.locator(".attn-lab")
    root.wait_for()
    open_numbers(root)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    before = _layouts(session)
    cells, made, most = root.get_by_label("Causal mask").evaluate(TEN_CHANGES)
    assert cells > 1000
    assert (made, most) == (0, 1)
    # The page once, and once for each name in the plane, whose width is measured.
    names = root.locator(".al-name:visible").count()
    assert 10 <= _layouts(session) - before <= 10 * (2 + names)


def _layouts(session):
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(m["value"] for m in metrics if m["name"] == "LayoutCount")


def test_mask_lab_says_what_goes_wrong(lab_on_page):
    root, _, _ = lab_on_page("MaskLab")
    summary = root.locator(".al-summary")
    assert summary.text_content() == (
        "All rows sum to 1. A change of step by 1 moves step: no earlier token."
    )
    root.get_by_label("Change token").select_option(label="starts")
    assert "moves starts, with, one, step: no earlier token" in summary.text_content()
    root.get_by_label("Fill with").select_option("0")
    assert "Hidden scores do not get weight 0." in summary.text_content()
    assert "the future leaks into Your, journey." in summary.text_content()
    root.get_by_label("When").select_option(label="after softmax")
    assert "5 of 6 rows do not sum to 1." in summary.text_content()
    assert "Hidden" not in summary.text_content()


def test_head_split_lab_says_what_is_mixed(lab_on_page):
    root, lab, _ = lab_on_page("HeadSplitLab")
    shape = "gives the shape (2, 2, 3, 2), stride (12, 2, 4, 1), not contiguous"
    assert shape in root.locator("figcaption").first.text_content()
    summary, task = root.locator(".al-summary"), root.locator(".al-task")
    root.get_by_role("button", name="straight view").click()
    assert summary.text_content() == (
        "Mixed up: row by row, head 0 holds the tokens 0, 0 and 1; head 1 holds the "
        "tokens 1, 2 and 2. Each head should hold the tokens 0, 1 and 2."
    )
    heads = root.get_by_role("combobox", name="h", exact=True)
    heads.select_option("4")
    assert summary.text_content().count("holds the tokens") == 2
    assert summary.text_content().count(", and so on.") == 1
    heads.select_option("2")
    strides = torch.arange(24).view(2, 2, 3, 2).stride()
    words = f"the view already has the shape (2, 2, 3, 2), stride {strides}, contiguous"
    title, note = root.locator(".al-stage-title").first, root.locator(".al-note").first
    assert (title.text_content(), note.text_content()) == ("No transpose here:", words)
    root.get_by_label("Step").select_option("1. view")
    assert title.text_content() == "x.view(b, h, t, d_head)"
    block = root.locator(".hs-block > p").first
    assert block.text_content() == "batch 0, head 0"
    assert note.text_content().startswith("gives the shape (2, 2, 3, 2), ")
    root.get_by_label("Step").select_option("5. join")
    assert summary.text_content() == (
        "Mixed up: the row of token 0 now holds entries of the tokens 0 and 1. Token 1 "
        "comes later: the future leaks."
    )
    assert "Can you find sizes" in task.text_content()
    root.get_by_role("combobox", name="h", exact=True).select_option("1")
    assert "happens to be right" in summary.text_content()
    assert task.text_content().startswith("Done: with one head")
    root.get_by_role("button", name="view, then").click()
    assert not root.locator(".al-task.al-done").count()
    root.get_by_label("Step").select_option("1. view")
    assert block.text_content() == "batch 0, token 0"
    root.get_by_label("Step").select_option("5. join")
    lab.num_heads, lab.step = 1, 5  # the sizes and the step stay
    check(root, lab)


# Where each entry stands; then, which of them do not glide from there.
ENTRIES = """root => {
  const home = root.querySelector('.al-wide').getBoundingClientRect();
  return Object.fromEntries([...root.querySelectorAll('.hs-block td')].map(td => {
    const { x, y } = td.getBoundingClientRect();
    return [/entry (\\d+)/.exec(td.ariaLabel)[1], [x - home.x, y - home.y]];
  }));
}"""
JUMPS = f"""(root, before) => {{
  const from = {{}};
  for (const one of root.getAnimations({{ subtree: true }})) {{
    const [{{ transform }}] = one.effect.getKeyframes();
    const {{ e, f }} = new DOMMatrix(transform);
    const told = one.effect.target.ariaLabel;
    from[/entry (\\d+)/.exec(told)[1]] = [e, f, one.effect.getTiming().duration];
    one.finish();
  }}
  const after = ({ENTRIES})(root);
  const jumps = Object.keys(after).filter(entry => [0, 1].some(k => Math.abs(
    before[entry][k] - after[entry][k] - (from[entry]?.[k] ?? 0)) > 1)
    || from[entry]?.slice(0, 2).join() === '0,0');
  return [Math.max(...Object.values(from).map(one => one[2])), jumps];
}}"""


@pytest.mark.parametrize("still", [False, True])
def test_entries_move_and_keep_their_color(lab_on_page, still):
    motion = "reduce" if still else "no-preference"
    root, lab, one = lab_on_page("HeadSplitLab", reduced_motion=motion)
    root.locator(".hs-block td").nth(3).hover()  # [0, 0, 1, 1] is entry 5
    assert "entry 5 is feature 1" in root.locator(".al-readout").text_content()
    one.page.mouse.move(0, 0)
    colors = """root => [...root.querySelectorAll('.hs-block td')].map(cell =>
      [cell.textContent, getComputedStyle(cell).backgroundColor]).sort()"""
    before, places = root.evaluate(colors), root.evaluate(ENTRIES)
    assert len({color for _, color in before}) == len({t for t, _ in before}) == 3
    root.get_by_label("Step").select_option("1. view")
    # The site's own links fade in while a page loads: only the lab's entries count.
    moving = root.evaluate("root => root.getAnimations({ subtree: true }).length")
    assert moving == 0 if still else moving > 10
    assert root.evaluate(colors) == before
    if not still:
        longest, jumps = root.evaluate(JUMPS, places)
        assert 300 <= longest <= 1000, "milliseconds"
        assert jumps == []
    # The entry that was pointed at is followed to its new place.
    assert "[0, 1, 0, 1]: entry 5" in root.locator(".al-readout").text_content()
    assert root.locator(".al-followed").count() == 1
    if still:
        return
    root.get_by_role("button", name="Play").click()
    root.locator("option:checked", has_text="5. join").wait_for(state="attached")
    lab.step = 5
    check(root, lab)


def test_multi_head_lab_says_what_a_head_adds(lab_on_page):
    root, lab, _ = lab_on_page("MultiHeadLab")
    summary, task = root.locator(".al-summary"), root.locator(".al-task")
    assert (
        summary.text_content()
        == "step looks most at journey in head 0, at one in head 1."
    )
    sizes = lab.compute()["added"].norm(dim=-1)
    least = int(sizes.argmin())
    buttons = [root.get_by_role("button", name=f"head {head}") for head in (0, 1)]
    buttons[1 - least].click()
    assert f"moves by {sizes[1 - least]:.4f}." in summary.text_content()
    assert "miss least?" in task.text_content()
    buttons[least].click()
    assert "only the bias of out_proj is left" in summary.text_content()
    buttons[1 - least].click()
    assert task.text_content().startswith("Done:")
    assert buttons[least].get_attribute("aria-pressed") == "false"
    lab.silenced = [least]
    check(root, lab)
    cell = root.get_by_role("grid", name="Output of the token, drawn").locator("td")
    cell.nth(1).hover()
    z, weight = lab.compute()["split"][5, 2:], lab.modules()[1].out_proj.weight[0, 2:]
    terms = " + ".join(f"{short(a)}·{short(b)}" for a, b in zip(z, weight, strict=True))
    assert (
        f"head 1 adds to feature 1: {terms} = "
        in root.locator(".al-readout").text_content()
    )


@pytest.mark.parametrize(
    ("bug", "words", "state"),
    [
        ("Fill with 0", "leaks into Your, journey, starts, with, one.", {"fill": "0"}),
        (
            "Wrong polarity",
            "The output of step is nan",
            {"part": "tril", "diagonal": 0},
        ),
        ("Zeros after softmax", "rows do not sum", {"fill": "0", "place": "after"}),
        ("Hide all of a row", "The output of with is nan", {"hidden_row": 3}),
    ],
)
def test_one_click_bugs_say_what_happens(lab_on_page, bug, words, state):
    root, lab, _ = lab_on_page("MaskLab")
    button = root.get_by_role("button", name=bug)
    button.click()
    for name, value in state.items():
        setattr(lab, name, value)
    check(root, lab)
    assert words in root.locator(".al-summary").text_content()
    assert button.get_attribute("aria-pressed") == "true"


# ---- vectors and lines that are moved ----


READ_INPUTS = """root =>
  [...root.querySelectorAll('table[aria-label="Inputs x"] input')]
    .map(field => Number(field.dataset.shown))"""


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
    assert one.errors == []


@pytest.mark.parametrize("hand", HANDS)
def test_the_width_is_moved_on_its_curve(lab_on_page, hand):
    root, lab, one = lab_on_page("ScaleLab", **(PHONE if hand == "touch" else {}))
    mark = root.get_by_role("slider", name="d_k, the width of a key")
    HANDS[hand](one.page, mark)
    lab.d_k = int(mark.get_attribute("aria-valuenow"))
    assert lab.d_k < 64
    check(root, lab)


def task_of(root):
    return root.locator(".al-task").text_content()


def test_the_questions_have_answers(lab_on_page):
    root, _, one = lab_on_page("AttentionLab")
    task = root.locator(".al-task")
    assert "make journey look away from starts" in task.text_content()
    root.get_by_role("slider", name="Tokens x: starts").focus()
    for _ in range(3):
        one.page.keyboard.press("Shift+ArrowDown")
    assert task.text_content().startswith("Done: starts now gets the least weight")
    root, _, _ = lab_on_page("MaskLab")
    root.get_by_role("button", name="Zeros after softmax").click()
    assert not root.locator(".al-task.al-done").count()
    root.get_by_label("Divide rows by their sum").check()
    assert task_of(root).startswith("Done: with zeros after softmax")
    root, _, _ = lab_on_page("ScaleLab")
    assert not root.locator(".al-task.al-done").count()
    root.get_by_label("Divide by").select_option("√d_k")
    assert root.locator(".al-task.al-done").count() == 1


def test_the_scale_lab_says_what_the_divisor_does(lab_on_page):
    root, _, _ = lab_on_page("ScaleLab")
    root.get_by_label("exactly").fill("512")
    divide, summary = root.get_by_label("Divide by"), root.locator(".al-summary")
    words = ("Softmax is saturated.", "All keys look alike.")
    for label, told in (("nothing", [words[0]]), ("d_k", [words[1]]), ("√d_k", [])):
        divide.select_option(label=label)
        assert [word for word in words if word in summary.text_content()] == told


# ---- the address ----


def test_a_state_is_in_the_address_and_a_reload_keeps_it(lab_on_page):
    root, lab, one = lab_on_page("MaskLab")
    root.get_by_label("Fill with").select_option("0")
    root.get_by_label("Change token").select_option("starts")
    one.page.wait_for_function("location.hash === '#lab-mask?nudged=starts&fill=0'")
    one.page.reload()
    root.wait_for()
    lab.fill, lab.nudged = "0", 2
    check(root, lab)
    root.get_by_role("button", name="Reset").click()
    one.page.wait_for_function("!location.hash.includes('fill')")


def test_a_link_leads_to_an_experiment(visit, served):
    one = visit()
    page = one.open(f"{served}/all.html#lab-mask?fill=0&nudged=step&part=no&nudge=99")
    root = page.locator('.attn-lab[aria-label="Mask lab"]')
    root.wait_for()
    check(root, ROWS["MaskLab"].make(fill="0"))  # what does not fit is left out
    page.evaluate("location.hash = '#lab-mask?diagonal=0'")
    root.get_by_text("is nan").wait_for()
    check(root, ROWS["MaskLab"].make(diagonal=0))
    page.evaluate("location.hash = '#lab-attention?inputs=1,0,0;0,1,0&query=one'")
    first = page.locator('.attn-lab[aria-label="Attention lab"]')
    first.get_by_text("one attends most to").wait_for()
    check(first, ROWS["AttentionLab"].make(query=4))  # two rows do not fit six tokens
    assert one.errors == []


def test_a_link_counts_though_the_lab_writes_its_last_state_just_then(lab_on_page):
    root, _, one = lab_on_page("MaskLab")
    one.page.evaluate(
        """() => {
          const before = location.href;
          location.hash = "#lab-mask?diagonal=0";
          // What the lab does 150 ms after a change; browsers tell of the link later.
          history.replaceState(history.state, "", before);
        }"""
    )
    root.get_by_text("is nan").wait_for()
    check(root, ROWS["MaskLab"].make(diagonal=0))
