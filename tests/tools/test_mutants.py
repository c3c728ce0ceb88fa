"""The tool that breaks the product finds its places, and breaks pages as people do."""

import json
import os
from pathlib import Path

import pytest
from coverage import CoverageData

from tools.mutants import cover, runner
from tools.mutants.__main__ import drawn, shown
from tools.mutants.places import Place, places

ROOT = Path(__file__).resolve().parents[2]
PAGE = """```{{code-cell}} ipython3
:name: figure-a

x = a @ b  # ({shape}, d_in)
show(x, caption=f"The {{n}} {word} row is {{k}}")
```

The {place} token is 0.4{digit} <!-- = row:1 -->

| `{code} d_in` | z |

$x / \\sqrt{{{width}}}$
"""
RIGHT = {"shape": "t", "word": "first", "place": "last", "digit": "4", "code": "3 *",
         "width": "d_k"}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "what", "wrong"),
    [
        ("shape comment", "shape", "d_in"),
        ("caption or alternative text", "word", "last"),
        ("number word or place in prose", "place", "first"),
        ("digit in prose", "digit", "7"),
        ("table", "code", "4 *"),
        ("formula", "width", "d_in"),
    ],
)
def test_a_page_is_broken_in_each_way(kind, what, wrong):
    text = PAGE.format(**RIGHT)
    found = [p for p in places("book/page.md", text) if p.kind == kind]
    broken = {text[: p.start] + p.new + text[p.end :] for p in found}
    assert PAGE.format(**RIGHT | {what: wrong}) in broken


def test_what_only_tests_read_of_an_exercise_is_not_broken():
    assert not list(places("book/a.md", "<!-- written by b -->\n\nLast.<!-- end -->"))
    text = "# A\n\nThe first.\n\n## Facts\n\n- first: `1`\n\n## Sizes\n\nThe last."
    found = places("coding_attention/exercises/tasks/a.md", text)
    assert [text[p.start : p.end] for p in found] == ["first", "last"]
    assert len(list(places("book/a.md", text))) == 3


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ("Every answer is right: what is left is no longer one.", []),
        ("It moves to the right of the left half.", ["right", "left"]),
        (
            "It goes from left to right, upper left first.",
            ["left", "right", "upper", "left", "first"],
        ),
        ("Ten bytes a second for the second token.", ["second"]),
        ("A triangle of ones hides the old ones of a longer text.", ["ones", "longer"]),
        ('The width of a key and "first" are left one after another.', []),
        ("Whether one comes after the last key", ["after", "last", "key"]),
        ("The coordinates of a key or query", ["key", "query"]),
        ("First, this. Which of the two is last? The second.", ["second"]),
        ("### Why is the last row first?", ["last", "row", "first"]),
        ("Two lines: how many rows are left?", []),
        ("Case two\n\nHow many rows?", ["two"]),
    ],
)
def test_words_are_facts_where_they_state_one(line, facts):
    found = [p for p in places("book/page.md", line) if p.kind.startswith("number")]
    assert [line[p.start : p.end] for p in found] == facts


@pytest.mark.parametrize(
    ("path", "text", "broken"),
    [
        ("attention/a.py", "x = a + b\n", {"x = a - b\n"}),
        ("attention/a.py", "x = f(n=2)  # first\n", {"x = f(n=3)  # first\n"}),
        ("attention/a.py", "x = 80 * 9\n",
         {"x = 160 * 9\n", "x = 80 / 9\n", "x = 80 * 10\n"}),
        ("attention/a.py", "import ones\nseed = 2\n", set()),
        ("attention/a.py", "zip(a, b, strict=True)\n", set()),
        ("coding_attention/exercises/a.py", 'h = "the first state"\n',
         {'h = "the last state"\n'}),
        ("coding_attention/exercises/a.py", 'h = "right.py" + "first.png"\n', set()),
        ("theme/a.js", "if (a < 1) b = 'x < 1';\n",
         {"if (a >= 1) b = 'x < 1';\n", "if (a < 2) b = 'x < 1';\n"}),
        ("theme/a.js", "a = b ?? 1e-12;\n", set()),  # next to nothing, either way
    ],
)  # fmt: skip
def test_code_is_broken_and_what_is_no_code_is_not(path, text, broken):
    found = places(path, text)
    assert {text[: p.start] + p.new + text[p.end :] for p in found} == broken


def test_a_right_class_is_right_with_a_bias_too():
    code = "a = nn.Linear(d_in, d_out, bias=False)\nb = f(False)\n"
    for path, count in (("gallery/correct_variants.py", 3), ("gallery/cases.py", 4)):
        assert len(list(places(f"coding_attention/{path}", code))) == count


def test_the_same_seed_draws_the_same_places_and_every_kind():
    found = drawn(ROOT, 40, seed=3)
    assert found == drawn(ROOT, 40, seed=3)
    assert len(set(found)) == 40
    kinds = {place.kind for place in found}
    assert len(kinds) >= 18
    assert {"formula", "hint or message", "JavaScript of the labs"} <= kinds


def test_the_pages_follow_a_changed_task(tmp_path):
    path = "coding_attention/exercises/tasks/a.md"
    for name in (path, *runner.MADE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    line = "x = y  # (b, t)"
    (tmp_path / path).write_text(f"{line}\n")
    (tmp_path / runner.MADE[0]).write_text("Another line.\n")
    (tmp_path / runner.MADE[1]).write_text(f"Words.\n{line}\n")
    start = line.index("b, t")
    place = Place("shape comment", path, start, start + 1, "t")
    changed = line.replace("b,", "t,")
    assert runner.broken(tmp_path, place) == {
        path: f"{changed}\n",
        runner.MADE[1]: f"Words.\n{changed}\n",
    }


def test_the_stored_half_of_a_page_follows_a_changed_caption(tmp_path):
    """So that a wrong word is not noticed by comparing it with its old copy."""
    (tmp_path / "book").mkdir()
    page = tmp_path / "book/a.md"
    source = '    caption="The last row is dark.",'
    page.write_text(source + "\n")
    cell = {"source": [source], "outputs": ["Figure: The last row is dark."]}
    (tmp_path / "book/a.ipynb").write_text(json.dumps(cell))
    start = source.index("last")
    place = Place("caption or alternative text", "book/a.md", start, start + 4, "first")
    edits = runner.broken(tmp_path, place)
    assert json.loads(edits["book/a.ipynb"]) == {
        "source": [source.replace("last", "first")],
        "outputs": ["Figure: The first row is dark."],
    }
    where, before, after = shown(place, page.read_text())
    assert (where, before.replace("last", "first")) == ("book/a.md:1", after)


@pytest.mark.parametrize(
    ("log", "killer"),
    [
        ("FAILED a.py::test_x - assert a[1] == 2", "a.py::test_x"),
        ("FAILED a.py::test_x[a: no mask] - E[0]", "a.py::test_x[a: no mask]"),
        ("FAILED a.py::test_x[1-2]\n1 failed", "a.py::test_x[1-2]"),
        ("ERROR b.py - ImportError", "b.py"),
    ],
)  # fmt: skip
def test_the_killer_is_read_from_the_summary(log, killer):
    assert runner.FAILED.search(f"...F\n{log}\n")[1] == killer


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        ("attention/convert.py", "tests/attention/test_convert.py"),
        ("attncheck/probes/basics.py", "tests/attncheck"),
        ("coding_attention/grading/submissions.py",
         "tests/coding_attention/grading/test_submissions.py"),
        ("coding_attention/labs/dropout.js",
         "tests/coding_attention/labs/test_dropout.py"),
        ("coding_attention/labs/draw.js", "tests/coding_attention/labs"),
        ("theme/lean_site/scripts/place.js", "tests/theme"),
        ("theme/lean_site/scripts/search.js", "tests/theme/test_search.py"),
        ("theme/slides/deck.py", "tests/theme/test_slides.py"),
        ("coding_attention/exercises/tasks/ring.md",
         "tests/coding_attention/exercises"),
        ("book/02_simple_self_attention.md", "tests/book/test_general_02.py"),
        ("coding_attention/figures/runs.py", "book/09_watch_heads_learn.ipynb"),
        ("coding_attention/figures/labels.py", "book/02_simple_self_attention.ipynb"),
    ],
)  # fmt: skip
def test_a_file_maps_to_its_tests(path, tests):
    assert tests in [argument for run in runner.runs(path, 0) for argument in run]


@pytest.mark.parametrize("fails", ["tests/a.py", "tests/a.py::test_b"])
@pytest.mark.parametrize("unbroken", [True, False])
def test_what_fails_unbroken_has_noticed_nothing(fails, unbroken, monkeypatch):
    place = Place("any", "attention/cache.py", 0, 1, "?")
    monkeypatch.setattr(
        runner, "_killer", lambda copy, run, edits: None if fails in run else fails
    )
    monkeypatch.setattr(runner, "passes", lambda copy, run: not unbroken)
    monkeypatch.setattr(runner, "_log", lambda copy: "")
    expected = None if unbroken else fails
    assert runner.noticed(ROOT, place, against=["tests"]) == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a second process")
@pytest.mark.parametrize(
    ("body", "passed"), [("pass", True), ("assert False", False),
                         ("__import__('os')._exit(0)", False)],
)  # fmt: skip
def test_a_run_passes_that_comes_to_its_end(tmp_path, body, passed):
    (copy := tmp_path / "book").mkdir()
    (copy / "test_one.py").write_text(f"def test_one(): {body}\n")
    assert runner.passes(copy, ["test_one.py"]) is passed


def test_a_run_is_restricted_to_a_tier():
    quick, browser = "tests/theme/test_codes.py::test_x", "tests/theme/test_folds.py"
    restricted = runner._in_tier([quick, browser, "-k", "a"], "test")
    assert restricted == [quick, "-k", "a", "--tier", "test"]
    assert runner._in_tier([browser, "-k", "a"], "test") == []  # not: every test
    assert runner._in_tier([browser], None) == [browser]


def test_a_line_that_was_recorded_maps_to_the_tests_that_ran_it(tmp_path, monkeypatch):
    monkeypatch.setattr(cover, "DATA", tmp_path / "recorded")
    cover._lines.cache_clear()
    recorded = CoverageData(basename=str(cover.DATA))
    here = "test_the_stored_half_of_a_page_follows_a_changed_caption"
    for context in (here, "test_that_is_gone", ""):
        recorded.set_context(context and f"tests.tools.test_mutants.{context}")
        recorded.add_lines({"/elsewhere/attention/base.py": [46]})
    recorded.write()
    assert cover.tests_on("attention/base.py", 46) == [
        f"tests/tools/test_mutants.py::{here}"
    ]
    assert cover.tests_on("attention/base.py", 47) == []
    cover._lines.cache_clear()
