"""The labs in a browser, on a built page: every control by mouse and by keyboard.

After each change, every number on screen has to equal what PyTorch computes for the
same state, printed with four decimals.
"""

import pytest
import torch

from attention import labs

pytestmark = pytest.mark.browser


VIEW = "application/vnd.jupyter.widget-view+json"

# ---- what a lab must show for a state, computed by PyTorch ----


def text(x):
    if isinstance(x, bool):
        return str(x)
    if abs(x) >= 1e6 and abs(x) != torch.inf:
        return f"{x:.4e}"
    return f"{x:.4f}"


def texts(matrix):
    return [[text(x) for x in row] for row in torch.as_tensor(matrix).tolist()]


def with_column(matrix, column):
    return texts(torch.cat((matrix, column.unsqueeze(-1)), dim=-1))


def attention_numbers(lab):
    scores, weights, context = lab.compute()
    shown = {
        "1. Scores ω": texts(scores),
        "2. Weights α = softmax(ω)": texts(weights),
        "3. Context z = Σ α · v": texts(context),
        "Inputs x": texts(lab.tensor("inputs")),
    }
    if lab.trainable:
        for name, trait in (
            ("Queries q", "query"),
            ("Keys k", "key"),
            ("Values v", "value"),
        ):
            product = lab.tensor("inputs") @ lab.tensor(f"W_{trait}")
            shown[f"{name} = x W_{trait}"] = texts(product)
    return shown


def mask_numbers(lab):
    scores, weights, context = lab.compute()
    moved = (lab.compute(nudged=True)[2] - context).abs().amax(dim=-1)
    return {
        "True hides": texts(lab.hidden()),
        "True lets through": texts(~lab.hidden()),
        "Scores ω": texts(scores),
        "Weights α": with_column(weights, weights.sum(dim=-1)),
        "Context z": with_column(context, moved),
    }


def scale_numbers(lab):
    now = lab.compute()
    lines = []
    for width in (lab.d_k, 1, 4, 16, 64, 256, 1024):
        found, divisor = lab.compute(width), lab.divide_by(width)
        numbers = [divisor, width**0.5 / divisor, found["spread"], found["largest"]]
        numbers += [found["entropy"], found["gradient"]]
        lines.append([str(width), *map(text, numbers)])
    rows = texts(torch.stack((now["scores"], now["weights"])))
    return {"One of 16 queries and its 8 keys": rows, "By width": lines}


def dropout_numbers(lab):
    weights = torch.tensor(lab.weights, dtype=torch.float64)
    dropped, mean = lab.compute()
    kept = lab.kept() if lab.training else torch.ones_like(weights)
    return {
        "Weights α": with_column(weights, weights.sum(dim=-1)),
        "Kept (1) or dropped (0)": [
            [str(int(x)) for x in row] for row in kept.tolist()
        ],
        "After dropout": with_column(dropped, dropped.sum(dim=-1)),
        "Mean over the draws": with_column(mean, mean.sum(dim=-1)),
    }


def split_numbers(lab):
    steps = {"x": "0. x", "view": "1. view", "transpose": "2. transpose"}
    steps |= {"scores": "3. scores", "transpose back": "4. transpose back"}
    steps |= {"join": "5. join"}
    name = list(steps)[lab.step]
    axes = {
        "x": ["batch", "token"],
        "view": ["batch", "token", "head"],
        "transpose": ["batch", "head", "token"],
        "scores": ["batch", "head", "query"],
        "transpose back": ["batch", "token", "head"],
        "join": ["batch", "token"],
        "straight": ["batch", "head", "row"],
    }
    shown = {}
    found = lab.compute()
    for part, title in ((name, steps[name]), ("straight", "straight view")):
        x = found[part]
        tagged = part != "scores"
        for lead in torch.cartesian_prod(*map(torch.arange, x.shape[:-2])).view(
            -1, x.dim() - 2
        ):
            where = ", ".join(
                f"{a} {i}" for a, i in zip(axes[part], lead.tolist(), strict=False)
            )
            shown[f"{title}: {where}"] = [
                [
                    f"{n} t{n // lab.d_out % lab.num_tokens}" if tagged else str(n)
                    for n in row
                ]
                for row in x[tuple(lead)].tolist()
            ]
    return shown


def multi_head_numbers(lab):
    first, second, weights = lab.compute()
    return {
        "Weights α": texts(weights),
        "MultiHeadAttentionWrapper": texts(first),
        "MultiHeadAttention": texts(second),
    }


NUMBERS = {
    "AttentionLab": attention_numbers,
    "MaskLab": mask_numbers,
    "ScaleLab": scale_numbers,
    "DropoutLab": dropout_numbers,
    "HeadSplitLab": split_numbers,
    "MultiHeadLab": multi_head_numbers,
}
WHERE = {
    "AttentionLab": "one",
    "MaskLab": "one",
    "ScaleLab": "one",
    "DropoutLab": "two",
    "HeadSplitLab": "two",
    "MultiHeadLab": "two",
}

READ = """root => Object.fromEntries([...root.querySelectorAll('table[role=grid]')]
  .filter(table => table.checkVisibility())
  .map(table => [table.getAttribute('aria-label'), [...table.tBodies[0].rows].map(
    row => [...row.querySelectorAll('td')].map(
      cell => cell.firstElementChild?.value ?? cell.textContent))]))
"""


def check(root, lab):
    """Require every grid of the lab on screen to hold PyTorch's numbers."""
    expected = NUMBERS[type(lab).__name__](lab)
    found = root.evaluate(READ)
    assert set(found) == set(expected), lab
    for label, rows in expected.items():
        assert found[label] == rows, f"{lab}: {label}"


@pytest.fixture
def lab_on_page(visit, served):
    """Open the page of a lab; gives its root, the lab in Python, and the visit."""

    def open_(name, **options):
        one = visit(**options)
        page = one.open(f"{served}/{WHERE[name]}.html", until="domcontentloaded")
        lab = getattr(labs, name)()
        root = page.locator(f'.attn-lab[aria-label="{lab.title}"]')
        root.wait_for()
        return root, lab, one

    return open_


# ---- every control ----

# Lab, kind, label, and what is then set. For a list: its place there and the value. For
# a slider: the type of the number that its output then shows.
CONTROLS = [
    ("AttentionLab", "radio", "starts", {"query": 2}),
    ("AttentionLab", "checkbox", "Trainable projections", {"trainable": True}),
    ("AttentionLab", "checkbox", "Divide scores by √d_k", {"scaled": True}),
    ("AttentionLab", "checkbox", "Causal mask", {"causal": True}),
    ("MaskLab", "select", "Hide", {"part": (1, "tril")}),
    ("MaskLab", "range", "Diagonal", {"diagonal": int}),
    ("MaskLab", "select", "Fill with", {"fill": (2, "-1e9")}),
    ("MaskLab", "select", "Fill with", {"fill": (1, "0")}),
    ("MaskLab", "select", "When", {"place": (1, "after")}),
    ("MaskLab", "checkbox", "Divide rows by their sum", {"renormalized": True}),
    ("MaskLab", "select", "Hide all of row", {"hidden_row": (3, 2)}),
    ("MaskLab", "select", "Change token", {"nudged": (3, 2)}),
    ("MaskLab", "range", "by", {"nudge": float}),
    ("ScaleLab", "range", "d_k", {"d_k": int}),
    ("ScaleLab", "number", "exactly", {"d_k": 77}),
    ("ScaleLab", "select", "Divide by", {"divisor": (3, "other")}),
    ("ScaleLab", "select", "Divide by", {"divisor": (1, "root")}),
    ("ScaleLab", "select", "Divide by", {"divisor": (2, "full")}),
    ("ScaleLab", "number", "another d", {"other": 9}),
    ("ScaleLab", "button", "New draws", {"seed": 2}),
    ("DropoutLab", "select", "Mask", {"source": (2, "draw")}),
    ("DropoutLab", "select", "Mask", {"source": (1, "b")}),
    ("DropoutLab", "range", "p", {"p": float}),
    ("DropoutLab", "button", "Draw again", {"draw": 2, "source": "draw"}),
    ("DropoutLab", "range", "Mean over", {"draws": int}),
    ("DropoutLab", "checkbox", "train(), not eval()", {"training": False}),
    ("HeadSplitLab", "radio", "3. scores", {"step": 3}),
    *[
        ("HeadSplitLab", "radio", label, {"step": step})
        for step, label in ((0, "0. x"), (1, "1. view"), (4, "4. transpose back"))
    ],
    ("HeadSplitLab", "select", "b", {"batch": (0, 1)}),
    ("HeadSplitLab", "range", "t", {"num_tokens": int}),
    ("HeadSplitLab", "select", "d_out", {"d_out": (3, 8)}),
    ("HeadSplitLab", "select", "h", {"num_heads": (2, 4)}),
    ("MultiHeadLab", "range", "num_heads", {"num_heads": int}),
    ("MultiHeadLab", "range", "d_out of one head", {"d_head": int}),
    ("MultiHeadLab", "select", "Show weights of", {"head": (1, 1)}),
]


def find(root, kind, label):
    if kind == "range":  # its name ends with its value, since the label holds both
        text_ = root.page.locator(f'span:text-is("{label}")')
        return root.locator("label.al-control").filter(has=text_).locator("input")
    role = {"select": "combobox", "number": "spinbutton"}.get(kind, kind)
    return root.get_by_role(role, name=label, exact=True)


def read_output(control, kind):
    words = control.evaluate("bar => bar.parentElement.querySelector('output').value")
    return kind(float(words.split()[0]))


def with_mouse(page, control, kind, wanted):
    if kind == "range":
        control.scroll_into_view_if_needed()
        box = control.bounding_box()
        page.mouse.click(box["x"] + box["width"] * 0.8, box["y"] + box["height"] / 2)
    elif kind == "select":
        control.select_option(index=next(iter(wanted.values()))[0])
    elif kind == "number":
        control.click(click_count=3)
        page.keyboard.type(str(next(iter(wanted.values()))))
    else:
        control.click()


def with_keyboard(page, control, kind, wanted):
    control.focus()
    if kind == "range":
        page.keyboard.press("ArrowRight")
    elif kind == "select":
        way = next(iter(wanted.values()))[0] - control.evaluate("e => e.selectedIndex")
        for _ in range(abs(way)):
            page.keyboard.press("ArrowDown" if way > 0 else "ArrowUp")
    elif kind == "number":
        page.keyboard.press("Control+a")
        page.keyboard.type(str(next(iter(wanted.values()))))
    elif kind == "radio":
        # From the chosen one, as a reader would go.
        way = control.evaluate(
            """box => { const all = [...box.form.querySelectorAll('input[type=radio]')];
              const checked = all.findIndex(one => one.checked);
              all[checked].focus();
              return all.indexOf(box) - checked }"""
        )
        for _ in range(abs(way)):
            page.keyboard.press("ArrowRight" if way > 0 else "ArrowLeft")
    else:
        page.keyboard.press("Enter" if kind == "button" else "Space")


def set_in_python(lab, control, kind, wanted):
    for name, value in wanted.items():
        if isinstance(value, type):
            value = read_output(control, value)
        elif isinstance(value, tuple):
            value = value[1]
        setattr(lab, name, value)


@pytest.mark.parametrize("hand", [with_mouse, with_keyboard], ids=["mouse", "keyboard"])
@pytest.mark.parametrize("name", list(WHERE))
def test_controls(lab_on_page, name, hand):
    root, lab, one = lab_on_page(name)
    check(root, lab)
    for own, kind, label, wanted in CONTROLS:
        if own != name:
            continue
        if label == "by":  # it moves a token only if one is chosen
            root.get_by_label("Change token").select_option(index=1)
            lab.nudged = 0
        control = find(root, kind, label)
        before = lab.get_state()
        hand(one.page, control, kind, wanted)
        set_in_python(lab, control, kind, wanted)
        assert lab.get_state() != before, f"{label} changed nothing"
        check(root, lab)
        root.get_by_role("button", name="Reset").click()
        lab = type(lab)()
        check(root, lab)
    assert one.left == []
    assert one.errors == []


def test_width_that_heads_do_not_divide_falls_back_to_one_head(lab_on_page):
    root, lab, _ = lab_on_page("HeadSplitLab")
    root.get_by_role("combobox", name="h", exact=True).select_option("4")
    root.get_by_role("combobox", name="d_out", exact=True).select_option("6")
    lab.num_heads = 1
    lab.d_out = 6
    check(root, lab)


def test_presets_are_left_and_entered_with_p(lab_on_page):
    root, lab, _ = lab_on_page("DropoutLab")
    slider = find(root, "range", "p")
    slider.focus()
    slider.press("ArrowLeft")
    lab.p = 0.45
    assert lab.source == "draw"
    check(root, lab)
    root.get_by_role("combobox", name="Mask").select_option(index=1)
    lab.p = 0.5
    lab.source = "b"
    check(root, lab)


# ---- editing, reading, moving ----


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


SUMS = [
    ("1. Scores ω", 1, 0, "0.55·0.43 + 0.87·0.15 + 0.66·0.89 = 0.9544"),
    ("2. Weights α = softmax(ω)", 1, 0, "exp(0.9544) / (exp(0.9544) + exp(1.495)"),
    ("3. Context z = Σ α · v", 1, 0, "0.1385·0.43 + 0.2379·0.55 + 0.2333·0.57"),
]


def test_a_cell_reads_its_sum(lab_on_page):
    root, _, _ = lab_on_page("AttentionLab")
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
    keys = one.page.keyboard
    table = root.get_by_role("grid", name="2. Weights α = softmax(ω)")
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
    assert root.get_by_label("with", exact=True).is_checked()
    assert "with attends most to" in root.locator(".al-summary").text_content()
    table.locator("tbody th").nth(4).click()
    assert root.get_by_label("one", exact=True).is_checked()
    lab.query = 4
    check(root, lab)


def test_keys_stay_within_the_lab(lab_on_page):
    root, _, one = lab_on_page("AttentionLab")
    one.page.evaluate(
        "document.addEventListener('keydown', e => (window.heard = e.key))"
    )
    root.get_by_role("grid").nth(1).locator('[tabindex="0"]').focus()
    for key in ("ArrowDown", "a", "Enter", "/"):
        one.page.keyboard.press(key)
    assert one.page.evaluate("window.heard") is None


@pytest.mark.parametrize("page_name", ["one", "two"])
def test_every_control_has_a_name_and_a_visible_focus(visit, served, page_name):
    page = visit().open(f"{served}/{page_name}.html", until="domcontentloaded")
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


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (1300, "light")])
@pytest.mark.parametrize("name", ["one", "two", "big"])
def test_page_renders_and_stays_at_home(visit, served, name, width, theme):
    one = visit(viewport={"width": width, "height": 800}, color_scheme=theme)
    page = one.open(f"{served}/{name}.html")
    page.locator(".attn-lab").first.wait_for()
    assert page.locator(".attn-lab").count() == (1 if name == "big" else 3)
    assert page.locator(".attn-static").count() == 0
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, "the page scrolls sideways"
    clipped = page.locator(".attn-lab .al-scroll").evaluate_all(
        """all => all.filter(part => part.scrollWidth > part.clientWidth)
                     .map(part => getComputedStyle(part).overflowX)"""
    )
    assert set(clipped) <= {"auto"}, "a table that is too wide cannot be scrolled"
    assert clipped or width > 390
    ink, ground = page.evaluate(CONTRAST)
    assert contrast(ink, ground) >= 4.5
    assert one.left == []
    assert one.errors == []


# The ink of a lab's title and the page behind it.
CONTRAST = """() => {
  const numbers = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  return [numbers(getComputedStyle(document.querySelector('.al-title')).color),
          numbers(getComputedStyle(document.body).backgroundColor)];
}"""


def contrast(first, second):
    def light(color):
        parts = [c / 255 for c in color]
        linear = [
            c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, bright = sorted((light(first), light(second)))
    return (bright + 0.05) / (dark + 0.05)


def test_every_lab_of_the_book_renders(visit, site, serving):
    home = serving(site)
    pages = [
        path
        for path in sorted(site.rglob("*.html"))
        if VIEW in path.read_text(encoding="utf-8")
    ]
    assert pages, "no page of the book has a lab"
    for path in pages:
        one = visit()
        page = one.open(f"{home}/{path.relative_to(site).as_posix()}")
        views = page.locator(f'script[type="{VIEW}"]').count()
        assert page.locator(".attn-lab").count() == views, path.name
        assert page.locator(".attn-static").count() == 0, path.name
        assert one.left == []
        assert one.errors == []


def test_opened_from_a_folder(visit, lab_site):
    one = visit()
    page = one.open(f"file://{lab_site}/one.html")
    root = page.locator('.attn-lab[aria-label="Attention lab"]')
    root.wait_for()
    check(root, labs.AttentionLab())
    root.get_by_label("Causal mask").check()
    check(root, labs.AttentionLab(causal=True))
    assert page.locator(".attn-lab").count() == 3
    # Fonts of the theme may not load from a folder; the labs must not complain.
    assert not [error for error in one.errors if "/labs." in error]


def test_without_javascript_the_static_figures_stand(visit, served):
    one = visit(java_script_enabled=False)
    page = one.open(f"{served}/one.html")
    assert page.locator(".attn-static").count() == 3
    assert page.locator(".attn-static table").first.is_visible()
    assert "0.2379" in page.locator(".attn-static").first.inner_text()


def test_a_lab_that_fails_leaves_its_figure(visit, served):
    one = visit()
    one.page.add_init_script(
        "Object.fromEntries = (old => pairs => "
        "{ const found = old(pairs); if ('d_k' in found) throw Error('planted'); "
        "return found; })(Object.fromEntries)"
    )
    page = one.open(f"{served}/one.html")
    page.locator(".attn-lab").first.wait_for()
    assert page.locator(".attn-lab").count() == 2
    assert page.locator(".attn-static").count() == 1
    assert any("ScaleLab cannot be shown" in error for error in one.errors)


def test_a_change_shows_within_one_frame(visit, served):
    page = visit().open(f"{served}/big.html")
    page.locator(".attn-lab").wait_for()
    session = page.context.new_cdp_session(page)
    # The thread's own time: what else runs on the machine does not count.
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent():
        metrics = session.send("Performance.getMetrics")["metrics"]
        return 1000 * next(m["value"] for m in metrics if m["name"] == "TaskDuration")

    change = """async () => {
      const box = document.querySelectorAll('.attn-lab input[type=checkbox]')[1];
      for (let n = 0; n < 30; n++) {
        box.click();
        await new Promise(requestAnimationFrame);
      }
    }"""
    page.evaluate(change)
    before = spent()
    page.evaluate(change)
    each = (spent() - before) / 30
    print(f"12 x 16: a change takes {each:.1f} ms")
    assert 0.1 < each <= 16


def test_mask_lab_says_what_goes_wrong(lab_on_page):
    root, _, _ = lab_on_page("MaskLab")
    summary = root.locator(".al-summary")
    assert summary.text_content() == "All rows sum to 1."
    root.get_by_label("Change token").select_option(label="starts")
    assert "moves starts, with, one, step: no earlier token" in summary.text_content()
    root.get_by_label("Fill with").select_option("0")
    assert "Hidden scores do not get the weight 0." in summary.text_content()
    assert "the future leaks into Your, journey." in summary.text_content()
    root.get_by_label("When").select_option(label="after softmax")
    assert "5 of 6 rows do not sum to 1." in summary.text_content()
    assert "Hidden" not in summary.text_content()


def test_head_split_lab_says_what_is_mixed(lab_on_page):
    root, _, _ = lab_on_page("HeadSplitLab")
    summary = root.locator(".al-summary")
    assert "Shape (2, 2, 3, 2), stride (12, 2, 4, 1), not contiguous" in (
        summary.text_content()
    )
    assert "mixes tokens in 4 of 4 heads" in summary.text_content()
    root.get_by_role("combobox", name="h", exact=True).select_option("1")
    assert "happens to be right here" in summary.text_content()
