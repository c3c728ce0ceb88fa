"""One row for each lab: how tests make it, what it must show, and how it is moved.

What a lab must show for a state is computed by PyTorch. A test that holds for every lab
goes through the rows; a lab that has none fails there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import pytest
import torch

from coding_attention import labs
from coding_attention.labs.tiny_gpt import TinyGptLab
from coding_attention.models import induction, stored

# ---- what a lab must show for a state, computed by PyTorch ----


def text(x):
    x = x.item() if isinstance(x, torch.Tensor) else x
    if isinstance(x, bool):
        return str(x)
    if abs(x) >= 1e6 and abs(x) != torch.inf:
        return f"{x:.4e}"
    return f"{x:.4f}"


def short(x):
    """As the labs spell a number in a sum."""
    return f"{x:.4f}".rstrip("0").rstrip(".")


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


# What labs draw as squares or bars: by title, numbers and shares. A share says how dark
# a square or how long a bar is; numbers may be words.


def drawn_attention(lab):
    weights = lab.compute()[1]
    row = weights[lab.query].unsqueeze(-1)
    return {
        "Weights α of the query": (row, row),
        "Weights α of all queries": (weights, weights),
    }


def drawn_mask(lab):
    _, weights, context = lab.compute()
    moved = (lab.compute(nudged=True)[2] - context).abs().amax(dim=-1)
    most = moved[moved.isfinite()].max().clamp(min=1e-12)
    bars = torch.stack((moved, weights.sum(-1)), dim=-1)
    shares = torch.stack(((moved / most).nan_to_num(1), bars[:, 1]), dim=-1)
    return {"Weights α": (weights, weights), "Outputs that move": (bars, shares)}


def drawn_scale(lab):
    weights = lab.compute()["weights"].unsqueeze(-1)
    return {"Weights α of the first query": (weights, weights)}


def drawn_dropout(lab):
    weights = torch.tensor(lab.weights, dtype=torch.float64)
    dropped, mean = lab.compute()
    shown = {"Weights α": weights, "The last draw": dropped}
    shown["Mean over the draws"] = mean
    return {title: (values, values) for title, values in shown.items()}


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
    for title, lead, block in split_blocks(lab, name):
        words = [
            [f"{[*lead, i, j]}: {origin(lab, x)}" for j, x in enumerate(row)]
            for i, row in enumerate(block.tolist())
        ]
        shown[title] = (words, torch.zeros(block.shape))
        if name == "scores":
            words = [[str(n) for n in row] for row in block.tolist()]
            shown[title] = (words, block / block.max().clamp(min=1))
    return shown


def origin(lab, x):
    d = lab.d_out
    batch = f" of batch {x // (d * lab.num_tokens)}" if lab.batch > 1 else ""
    return f"entry {x} is feature {x % d} of token {x // d % lab.num_tokens}{batch}"


# ---- labs without grids ----


def near(numbers):
    """Give shares from 0 to 1 as the screen rounds them, in tenths of a percent."""
    return pytest.approx([100 * x for x in numbers], abs=0.051)


# Of each word of the look lab: its text, the number that is told, its shade, whether it
# asks, and where it stands; of each line its thickness and its two ends; of each row of
# the picture its numbers.
READ_LOOK = """root => [
  [...root.querySelectorAll('.lk-word:not([hidden])')].map(e => {
    const { x, width } = e.getBoundingClientRect();
    const tone = e.style.getPropertyValue('--tone');
    // A share that a sheet can't mix with leaves the word without a color.
    const mixes = CSS.supports('color', `color-mix(in srgb, red ${tone}, blue)`);
    return [e.firstChild.textContent, e.ariaLabel.split(' ').at(-1),
      mixes ? parseFloat(tone) : null, e.ariaPressed === 'true',
      x + width / 2];
  }),
  [...root.querySelectorAll('.lk-lines .lk-line')].map(e => [
    parseFloat(e.style.getPropertyValue('--weight')),
    ...[0, e.getTotalLength()].map(at =>
      e.getPointAtLength(at).matrixTransform(e.getScreenCTM()).x)]),
  [...root.querySelectorAll('.mc-board tbody tr')].map(row =>
    [...row.cells].slice(1).map(e => e.textContent).filter(text => text))]"""


def shows_look(root, lab):
    """Require words, weights, shades and lines to be those that are stored."""
    names, weights = lab.compute()
    words, lines, picture = root.evaluate(READ_LOOK)
    texts, told, tones, asks, places = zip(*words, strict=True)
    assert [*texts] == names
    assert [*told] == [f"{w:.2f}" for w in weights.tolist()]
    weighed = lab.stage >= 6
    assert [*tones] == near((weights * weighed).tolist())
    assert [*asks] == [i == lab.asked for i in range(len(names))]
    others = [(w, i) for i, w in enumerate(weights.tolist())
              if i != lab.asked and w >= 0.02 and weighed]  # fmt: skip
    for (weight, start, end), (wanted, other) in zip(lines, others, strict=True):
        assert weight == pytest.approx(wanted, abs=6e-4)
        assert (start, end) == pytest.approx((places[lab.asked], places[other]), abs=1)
    scores = lab.scenes[lab.scene]["inner"][lab.exchanged]["scores"][lab.asked]
    for i, (score, scaled, weight) in enumerate(picture):
        assert float(score) == pytest.approx(scores[i] / 1000, abs=0.0501)
        assert float(scaled) == pytest.approx(scores[i] / 1000 / 32**0.5, abs=0.00501)
        assert weight == told[i]


# Of each bar of the trained model: its word, its number, how long it is, and where all
# heads would end it; of each head whether it is on, and the shades of its cells.
READ_GPT = """root => [
  [...root.querySelectorAll('.tg-next')].filter(e => e.checkVisibility({
    visibilityProperty: true })).map(e => {
    const [bar, mark] = e.children[1].children;
    return [e.children[0].textContent, e.children[2].textContent,
      parseFloat(bar.style.width),
      mark.checkVisibility() ? parseFloat(mark.style.left) : null];
  }),
  [...root.querySelectorAll('.tg-head')].map(e => [
    e.querySelector('button').ariaPressed === 'true',
    [...e.querySelectorAll('g rect')].map(cell =>
      parseFloat(cell.style.getPropertyValue('--tone')))])]"""


def shows_tiny_gpt(root, lab):
    """Require the bars to be PyTorch's probabilities, and each head its own weights."""
    bars, heads = root.evaluate(READ_GPT)
    if lab.step < len(lab.history["steps"]) - 1:
        assert not bars
        return check_heads(heads, torch.tensor(lab.history["patterns"][lab.step]), [])
    patterns, chances = lab.compute()
    now = chances[lab.at]
    whole = tiny_gpt(tokens=lab.tokens, at=lab.at).compute()[1][lab.at]
    assert bars[0][0] == WORDS[int(now.argmax())]
    assert len({name for name, *_ in bars}) == len(bars) >= 3
    for name, number, length, mark in bars:
        token = WORDS.index(name)
        assert number == f"{now[token]:.2f}", name
        assert [length] == near([now[token].item()])
        assert [mark] == (near([whole[token].item()]) if lab.silenced else [None])
    return check_heads(heads, patterns.flatten(0, 1), lab.silenced)


def check_heads(heads, patterns, silenced):
    for n, ((on, tones), weights) in enumerate(zip(heads, patterns, strict=True)):
        assert on == (n not in silenced)
        lower = torch.ones_like(weights).tril().bool()
        assert tones == near(weights[lower].tolist())


# ---- the rows ----

WORDS = [*induction.SENTENCE[:6], *"abcdefghijklmnopqrstuvwxyz"]


def trained():
    model = induction.build(induction.Config()).eval()
    model.load_state_dict(stored.load_weights("induction"))
    return model


def tiny_gpt(**state):
    draws = torch.Generator().manual_seed(123)
    patterns = torch.rand(3, 4, 12, 12, generator=draws, dtype=torch.float64).tril()
    history = {
        "steps": [0, 50, 200], "losses": [2.5, 1.25, 0.125],
        "curve": [[0, 2.5], [50, 1.25], [100, 0.5], [200, 0.125]],
        "tokens": 2 * [*range(6)],
        "patterns": (patterns / patterns.sum(dim=-1, keepdim=True)).tolist(),
    }  # fmt: skip
    state = {"tokens": [0, 1, 2, 3, 4, 5, 0, 1, 2], "history": history} | state
    return TinyGptLab(trained(), WORDS, **state)


@dataclass(frozen=True)
class Row:
    """What tests know of one lab.

    ``numbers`` gives what its grids must hold, ``drawn`` its squares and bars; of a lab
    without grids, ``shows`` checks its numbers on screen.

    ``controls`` are moved one after another, each from the start: kind, label, and what
    is then set. For a list: its place there and the value. For a slider: the function
    that makes the value of the number beside it, such as ``int``.
    """

    make: Callable
    numbers: Callable | None = None
    drawn: Callable = lambda lab: {}
    shows: Callable | None = None
    controls: tuple = ()


ROWS = {
    "AttentionLab": Row(
        labs.AttentionLab,
        attention_numbers,
        drawn_attention,
        controls=(
            ("select", "Query", {"query": (2, 2)}),
            ("checkbox", "Plain mean", {"averaged": True}),
            ("checkbox", "Trainable projections", {"trainable": True}),
            ("checkbox", "Divide scores by √d_k", {"scaled": True}),
            ("checkbox", "Causal mask", {"causal": True}),
        ),
    ),
    "MaskLab": Row(
        labs.MaskLab,
        mask_numbers,
        drawn_mask,
        controls=(
            ("select", "Hide", {"part": (1, "tril")}),
            ("range", "Diagonal", {"diagonal": int}),
            ("select", "Fill with", {"fill": (2, "-1e9")}),
            ("select", "Fill with", {"fill": (1, "0")}),
            ("select", "When", {"place": (1, "after")}),
            ("checkbox", "Divide rows by their sum", {"renormalized": True}),
            ("select", "Hide all of row", {"hidden_row": (3, 2)}),
            ("select", "Change token", {"nudged": (3, 2)}),
            ("range", "by", {"nudge": float}),
            ("button", "Fill with 0", {"fill": "0"}),
            ("button", "Wrong polarity", {"part": "tril", "diagonal": 0}),
            ("button", "Zeros after softmax", {"fill": "0", "place": "after"}),
            ("button", "Hide all of a row", {"hidden_row": 3}),
        ),
    ),
    "ScaleLab": Row(
        labs.ScaleLab,
        scale_numbers,
        drawn_scale,
        controls=(
            ("range", "d_k", {"d_k": int}),
            ("number", "exactly", {"d_k": 77}),
            ("select", "Divide by", {"divisor": (3, "other")}),
            ("select", "Divide by", {"divisor": (1, "root")}),
            ("select", "Divide by", {"divisor": (2, "full")}),
            ("number", "another d", {"other": 9}),
            ("button", "New draws", {"seed": 2}),
        ),
    ),
    "DropoutLab": Row(
        labs.DropoutLab,
        dropout_numbers,
        drawn_dropout,
        controls=(
            ("range", "p", {"p": float}),
            ("button", "Draw once", {"draws": 101}),
            ("button", "Draw 100", {"draws": 200}),
            ("button", "New draws", {"seed": 2}),
            ("checkbox", "train(), not eval()", {"training": False}),
            ("button", "Forget to divide", {"bug": "undivided"}),
            ("button", "Left on in eval()", {"bug": "left on", "training": False}),
        ),
    ),
    "HeadSplitLab": Row(
        labs.HeadSplitLab,
        split_numbers,
        drawn_entries,
        controls=(
            ("select", "Step", {"step": (3, 3)}),
            ("select", "Step", {"step": (0, 0)}),
            ("select", "Step", {"step": (1, 1)}),
            ("select", "Step", {"step": (4, 4)}),
            ("select", "b", {"batch": (0, 1)}),
            ("range", "t", {"num_tokens": int}),
            ("select", "d_out", {"d_out": (3, 8)}),
            ("select", "h", {"num_heads": (2, 4)}),
            ("button", "Bug: one straight view", {"straight": True}),
        ),
    ),
    "MultiHeadLab": Row(
        labs.MultiHeadLab,
        multi_head_numbers,
        drawn_heads,
        controls=(
            ("range", "num_heads", {"num_heads": int}),
            ("range", "d_out of one head", {"d_head": int}),
            ("select", "Token", {"token": (2, 2)}),
            ("button", "head 1", {"silenced": [1]}),
            ("select", "Queries", {"sharper": (1, False)}),
        ),
    ),
    "LookLab": Row(
        labs.LookLab,
        shows=shows_look,
        controls=(
            ("button", "Next", {"stage": 1}),
            ("button", "Swap “they” for “it”", {"exchanged": True}),
            ("button", "Another sentence", {"scene": 1}),
            ("checkbox", "Plain mean", {"averaged": True}),
        ),
    ),
    "TinyGptLab": Row(
        tiny_gpt,
        shows=shows_tiny_gpt,
        controls=(
            ("button", "block 1, head 1: on", {"silenced": [0]}),
            ("button", "block 2, head 2: on", {"silenced": [3]}),
            ("button", "Let it write", {"tokens": [0, 1, 2, 3, 4, 5, 0, 1, 2, 3]}),
        ),
    ),
}
