"""The labs on screen: what each must show by PyTorch's account, and hands to move them.

For tests of the built page and of a live front end alike.
"""

from itertools import product

import torch
from playwright.sync_api import TimeoutError

from coding_attention import labs
from coding_attention.labs.training import TrainingLab

# ---- what a lab must show for a state, computed by PyTorch ----


def text(x):
    x = x.item() if isinstance(x, torch.Tensor) else x
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
        "2. Weights α": texts(weights),
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
    return {
        "Weights α": with_column(weights, weights.sum(dim=-1)),
        "The last draw": with_column(dropped, dropped.sum(dim=-1)),
        "Mean over the draws": with_column(mean, mean.sum(dim=-1)),
    }


SPLIT_STEPS = ["x", "view", "transpose", "scores", "transpose back", "join"]
SPLIT_AXES = {
    "x": ["batch", "token"],
    "view": ["batch", "token", "head"],
    "transpose": ["batch", "head", "token"],
    "scores": ["batch", "head", "query"],
    "transpose back": ["batch", "token", "head"],
    "join": ["batch", "token"],
}


def split_blocks(lab, name):
    """Give the blocks of a step, each with its index, by their titles."""
    axes = SPLIT_AXES["transpose" if lab.straight and name == "view" else name]
    x = lab.compute()[name]
    for lead in product(*map(range, x.shape[:-2])):
        title = ", ".join(f"{a} {i}" for a, i in zip(axes, lead, strict=False))
        yield ("scores: " if name == "scores" else "") + title, lead, x[lead]


def split_numbers(lab):
    return {
        title: [[str(n) for n in row] for row in block.tolist()]
        for title, _, block in split_blocks(lab, SPLIT_STEPS[lab.step])
    }


def multi_head_numbers(lab):
    found = lab.compute()
    shown = {
        f"Weights α of head {head}": texts(weights)
        for head, weights in enumerate(found["weights"])
    }
    return shown | {
        "MultiHeadAttentionWrapper": texts(found["wrapper"]),
        "MultiHeadAttention": texts(found["split"]),
        "Output of the token": texts(added_up(lab)),
    }


def added_up(lab):
    """Give what each head adds, the bias and the output: one row a feature."""
    found, bias = lab.compute(), lab.modules()[1].out_proj.bias.detach()
    return torch.stack((*found["added"], bias, found["output"]), dim=-1)


def training_numbers(lab):
    weights = [["" if x < 0.005 else f"{x:.2f}" for x in row] for row in lab.pattern()]
    scores = [scores[lab.at] for scores in lab.scores.values()]
    return {"Attention weights": weights, "Scores": texts(torch.tensor(scores).T)}


STEPS = [0, 50, 200]


def training_lab(**state):
    """A training lab with patterns of its own: 3 steps, 2 heads, 12 tokens."""
    draws = torch.Generator().manual_seed(123)
    patterns = torch.randn(3, 2, 12, 12, generator=draws, dtype=torch.float64)
    patterns = patterns.tril() + torch.full((12, 12), -torch.inf).triu(diagonal=1)
    return TrainingLab(
        tokens=list("abcdefabcdef"),
        steps=STEPS,
        losses=[2.5, 1.25, 0.125],
        heads=["block 1, head 1", "block 2, head 1"],
        scores={"induction": [[0.1, 0.2], [0.3, 0.4], [0.2, 0.9]]},
        patterns=patterns.softmax(dim=-1).tolist(),
        **state,
    )


MAKE = {
    "AttentionLab": labs.AttentionLab,
    "MaskLab": labs.MaskLab,
    "ScaleLab": labs.ScaleLab,
    "DropoutLab": labs.DropoutLab,
    "HeadSplitLab": labs.HeadSplitLab,
    "MultiHeadLab": labs.MultiHeadLab,
    "TrainingLab": training_lab,
}
NUMBERS = {
    "AttentionLab": attention_numbers,
    "MaskLab": mask_numbers,
    "ScaleLab": scale_numbers,
    "DropoutLab": dropout_numbers,
    "HeadSplitLab": split_numbers,
    "MultiHeadLab": multi_head_numbers,
    "TrainingLab": training_numbers,
}

# Numbers are on demand: the reader opens them.
READ = """root => {
  root.querySelectorAll('details').forEach(part => (part.open = true));
  return Object.fromEntries([...root.querySelectorAll('table[role=grid]')]
  .filter(table => table.checkVisibility() && !table.matches('.al-heat, .al-bars'))
  .map(table => [table.getAttribute('aria-label'), [...table.tBodies[0].rows].map(
    row => [...row.querySelectorAll('td')].map(
      cell => cell.firstElementChild?.value ?? cell.textContent))])) }
"""
# What squares and bars are drawn as: the share of color or length, and their name.
READ_DRAWN = """root => Object.fromEntries(
  [...root.querySelectorAll('.al-heat, .al-bars')]
  .filter(table => table.checkVisibility())
  .map(table => [table.getAttribute('aria-label').replace(', drawn', ''),
    [...table.tBodies[0].rows].map(row => [...row.querySelectorAll('td')].map(
      cell => [cell.getAttribute('aria-label'),
               parseFloat(cell.style.getPropertyValue('--tone')) || 0]))]))
"""


def check(root, lab):
    """Require every grid of the lab on screen to hold PyTorch's numbers."""
    expected = NUMBERS[type(lab).__name__](lab)
    found = root.evaluate(READ)
    assert set(found) == set(expected), lab
    for label, rows in expected.items():
        assert found[label] == rows, f"{lab}: {label}"
    check_drawn(root, lab)


def drawn(lab):
    """Give what the lab draws as squares or bars: by title, numbers and shares.

    A share says how dark a square or how long a bar is; numbers may be words.
    """
    if isinstance(lab, labs.AttentionLab):
        weights = lab.compute()[1]
        row = weights[lab.query].unsqueeze(-1)
        return {
            "Weights α of the query": (row, row),
            "Weights α of all queries": (weights, weights),
        }
    if isinstance(lab, labs.MaskLab):
        _, weights, context = lab.compute()
        moved = (lab.compute(nudged=True)[2] - context).abs().amax(dim=-1)
        most = moved[moved.isfinite()].max().clamp(min=1e-12)
        bars = torch.stack((moved, weights.sum(-1)), dim=-1)
        shares = torch.stack(((moved / most).nan_to_num(1), bars[:, 1]), dim=-1)
        return {"Weights α": (weights, weights), "Outputs that move": (bars, shares)}
    if isinstance(lab, labs.ScaleLab):
        weights = lab.compute()["weights"].unsqueeze(-1)
        return {"Weights α of the first query": (weights, weights)}
    if isinstance(lab, labs.MultiHeadLab):
        return drawn_heads(lab)
    if isinstance(lab, labs.HeadSplitLab):
        return drawn_entries(lab)
    if isinstance(lab, labs.DropoutLab):
        weights = torch.tensor(lab.weights, dtype=torch.float64)
        dropped, mean = lab.compute()
        shown = {"Weights α": weights, "The last draw": dropped}
        shown["Mean over the draws"] = mean
        return {title: (values, values) for title, values in shown.items()}
    return {}


def drawn_heads(lab):
    found = lab.compute()
    way = found["weights"][:, lab.token].T  # (t, h)
    shown = {
        f"Weights α of head {head}": (weights, weights)
        for head, weights in enumerate(found["weights"])
    }
    context, output = found["wrapper"][lab.token].unsqueeze(-1), added_up(lab)
    return shown | {
        "Weights α of the token": (way, way),
        "Context of the token": (context, context / context.abs().max()),
        "Output of the token": (output, output / output.abs().max()),
    }


def drawn_entries(lab):
    name = SPLIT_STEPS[lab.step]
    shown = {}
    if name == "scores":
        for title, _, block in split_blocks(lab, name):
            words = [[str(n) for n in row] for row in block.tolist()]
            shown[title] = (words, block / block.max().clamp(min=1))
        name = "transpose"
    for title, lead, block in split_blocks(lab, name):
        words = [
            [f"{[*lead, i, j]}: {origin(lab, x)}" for j, x in enumerate(row)]
            for i, row in enumerate(block.tolist())
        ]
        shown[title] = (words, torch.zeros(block.shape))
    return shown


def origin(lab, x):
    d = lab.d_out
    batch = f" of batch {x // (d * lab.num_tokens)}" if lab.batch > 1 else ""
    return f"entry {x} is feature {x % d} of token {x // d % lab.num_tokens}{batch}"


def check_drawn(root, lab):
    """Require squares and bars to be as dark or long as PyTorch's numbers are large."""
    found = root.evaluate(READ_DRAWN)
    expected = drawn(lab)
    if expected:
        assert set(found) == set(expected), lab
    for title, (values, shares) in expected.items():
        cells = [cell for row in found[title] for cell in row]
        words = values if isinstance(values, list) else texts(values)
        names = [word for row in words for word in row]
        assert [name for name, _ in cells] == names, f"{lab}: {title}"
        wanted = (
            100 * torch.as_tensor(shares).nan_to_num(0, 0, 0).clamp(-1, 1).flatten()
        )
        tones = torch.tensor([tone for _, tone in cells], dtype=torch.float64)
        torch.testing.assert_close(tones, wanted.double(), atol=0.051, rtol=0)


SHOWS = f"""([root, wanted]) => {{
  const plain = tables => JSON.stringify(Object.entries(tables).sort());
  return plain(({READ})(root)) === plain(wanted); }}"""


def wait_until_shown(page, root, lab, seconds=20):
    """Require what ``check`` does, once a message from a kernel may have come."""
    wanted = NUMBERS[type(lab).__name__](lab)
    try:
        page.wait_for_function(
            SHOWS, arg=[root.element_handle(), wanted], timeout=1000 * seconds
        )
    except TimeoutError:
        check(root, lab)  # says what differs
        raise


# ---- every control, and the hands that move it ----

# Lab, kind, label, and what is then set. For a list: its place there and the value. For
# a slider: what makes the value of the number that its output then shows.
CONTROLS = [
    ("AttentionLab", "radio", "starts", {"query": 2}),
    ("AttentionLab", "checkbox", "Plain mean", {"averaged": True}),
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
    ("DropoutLab", "range", "p", {"p": float}),
    ("DropoutLab", "button", "Draw once", {"draws": 101}),
    ("DropoutLab", "button", "Draw 100", {"draws": 200}),
    ("DropoutLab", "button", "New draws", {"seed": 2}),
    ("DropoutLab", "checkbox", "train(), not eval()", {"training": False}),
    ("DropoutLab", "button", "Forget to divide", {"bug": "undivided"}),
    (
        "DropoutLab",
        "button",
        "Left on in eval()",
        {"bug": "left on", "training": False},
    ),
    ("HeadSplitLab", "radio", "3. scores", {"step": 3}),
    *[
        ("HeadSplitLab", "radio", label, {"step": step})
        for step, label in ((0, "0. x"), (1, "1. view"), (4, "4. transpose back"))
    ],
    ("HeadSplitLab", "select", "b", {"batch": (0, 1)}),
    ("HeadSplitLab", "range", "t", {"num_tokens": int}),
    ("HeadSplitLab", "select", "d_out", {"d_out": (3, 8)}),
    ("HeadSplitLab", "select", "h", {"num_heads": (2, 4)}),
    ("HeadSplitLab", "button", "Bug: one straight view", {"straight": True}),
    ("MultiHeadLab", "range", "num_heads", {"num_heads": int}),
    ("MultiHeadLab", "range", "d_out of one head", {"d_head": int}),
    ("MultiHeadLab", "select", "Token", {"token": (2, 2)}),
    ("MultiHeadLab", "button", "head 1", {"silenced": [1]}),
    ("TrainingLab", "button", "Step on", {"at": 1}),
    ("TrainingLab", "select", "Head", {"head": (1, 1)}),
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
        if callable(value):
            value = read_output(control, value)
        elif isinstance(value, tuple):
            value = value[1]
        setattr(lab, name, value)
