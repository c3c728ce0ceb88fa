"""The page for teachers and the sheet: what they say of exercises, labs and shapes."""

import re
from types import SimpleNamespace

import pytest
import torch

from attention import (
    CausalAttention,
    MultiHeadAttention,
    SelfAttention_v1,
    SelfAttention_v2,
)
from coding_attention.book import list_pages
from coding_attention.grading import ASSIGNMENTS
from tests.book.pages import BOOK

PAGE = (BOOK / "teaching.md").read_text(encoding="utf-8")
SHEET = (BOOK / "summary.md").read_text(encoding="utf-8")


def test_the_assignments_are_those_of_the_grader():
    section = PAGE.partition("## Four graded assignments")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.M) == list(ASSIGNMENTS)
    totals = {name: sheet.total for name, sheet in ASSIGNMENTS.items()}
    assert set(totals.values()) == {10}, (
        f"{totals}: give each ten points in assignments.py, or say on teaching.md what "
        f"they have"
    )


def test_the_commands_of_the_page_are_understood():
    from coding_attention.grading.commandline import _parser

    commands = re.findall(r"^python -m coding_attention\.grading (.+)$", PAGE, re.M)
    assert len(commands) == 3
    for line in commands:
        assert _parser().parse_args(line.split()).assignment in ASSIGNMENTS


def test_every_lab_has_its_row_and_every_row_its_lab():
    pages = {e.removeprefix("book/") for e in list_pages()}
    labs = {
        f"{name}.ipynb#{lab}"
        for name in sorted(pages)
        if name[0] == "0"
        for lab in re.findall(
            r"^:name: (lab-\S+)$", (BOOK / f"{name}.md").read_text("utf-8"), re.M
        )
    }
    told = set(re.findall(r"\((\w+\.ipynb#lab-[\w-]+)\)", PAGE))
    assert len(labs) >= 8
    assert told == labs


def blocks():
    """The numbered parts of the sheet's code."""
    code = re.search(r"```\{code-block\} python\n(.*?)```", SHEET, re.S)[1]
    return re.split(r"(?=^# \d\. )", code, flags=re.M)[1:]


def names(sizes, multiple):
    """What the lines of the sheet are about, with weights of the package's classes."""
    b, t, d_in, d_out, h = sizes
    torch.manual_seed(3)
    layer = MultiHeadAttention(d_in, d_out, t, 0.0, h)
    one = SelfAttention_v2(d_in, d_out)
    source = layer if multiple else one
    return {
        "torch": torch, "x": torch.randn(b, t, d_in), "b": b, "t": t, "h": h,
        "d_head": d_out // h, "dropout": torch.nn.Dropout(0.0),
        "W_query": source.W_query, "W_key": source.W_key, "W_value": source.W_value,
        "out_proj": layer.out_proj, "layer": layer, "one": one,
        "future": torch.ones(t, t).triu(1).bool(),
    }  # fmt: skip


SIZES = [(2, 5, 3, 8, 2), (3, 7, 6, 6, 3), (1, 4, 2, 12, 4)]


@pytest.mark.parametrize("sizes", SIZES)
def test_each_line_of_the_sheet_makes_the_shape_of_its_comment(sizes):
    b, t, d_in, d_out, h = sizes
    letters = SimpleNamespace(b=b, t=t, d_in=d_in, d_out=d_out, h=h, d_head=d_out // h)
    checked = 0
    for number, code in enumerate(blocks(), 1):
        given = names(sizes, number == 4)
        if number == 3:
            exec(blocks()[1], given)
        for line in code.splitlines():
            exec(line, given)
            shape = re.search(r"# \(([^)]*)\)", line)
            if shape is None or " = " not in line:
                continue
            wanted = tuple(getattr(letters, n) for n in shape[1].split(", "))
            for name in line.partition(" = ")[0].split(", "):
                assert tuple(given[name].shape) == wanted, line
                checked += 1
    assert checked == 3 + 6 + 4 + 9


@pytest.mark.parametrize("sizes", SIZES)
def test_the_sheet_computes_what_the_classes_do(sizes):
    b, t, d_in, d_out, _ = sizes
    for number, code in enumerate(blocks(), 1):
        given = names(sizes, number == 4)
        if number == 3:
            causal = given["one"] = CausalAttention(d_in, d_out, t, 0.0)
            given |= {n: getattr(causal, n) for n in ("W_query", "W_key", "W_value")}
            exec(blocks()[1], given)
        exec(code, given)
        if number == 1:
            torch.testing.assert_close(
                given["weights"].sum(-1), torch.ones(b, t), rtol=1e-5, atol=1e-6
            )
        if number in (2, 3):
            torch.testing.assert_close(given["context"], given["one"](given["x"]))
        if number == 4:
            torch.testing.assert_close(given["result"], given["layer"](given["x"]))


def test_the_parameters_of_the_sheet():
    for _, t, d_in, d_out, h in SIZES:
        single = sum(p.numel() for p in SelfAttention_v1(d_in, d_out).parameters())
        layer = MultiHeadAttention(d_in, d_out, t, 0.0, h)
        assert single == eval("3 * d_in * d_out")
        more = sum(p.numel() for p in layer.parameters()) - single
        assert more == eval("d_out**2 + d_out")
    assert "`3 * d_in * d_out` | the same | plus `d_out**2 + d_out`" in SHEET
