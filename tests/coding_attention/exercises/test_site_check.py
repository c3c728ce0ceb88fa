"""The site's check and the check in Python say the same of the same answers."""

import dataclasses
import json
import math
import random
import re
import subprocess
from pathlib import Path

import pytest
import torch

from coding_attention.exercises import EXERCISES, check_exercise, site
from coding_attention.exercises.build import check_of
from coding_attention.exercises.table import Table
from tests.coding_attention.exercises.answers import list_answers
from tests.coding_attention.exercises.fill_in import fill_in
from theme import practice

HERE = Path(__file__).parent
ON_SITE = list(site.entries())
GRIDS = [name for name in ON_SITE if site.grid_of(EXERCISES[name])]
RUBBISH = ("abc", "-", "1/0", "two, three", "<b>", "()", "1e999", "∞", "[[1, 2], 3]")


@pytest.fixture(scope="module")
def on_site(node):
    """A function from pairs (exercise, entries) to the verdicts of check.js."""

    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "encoding": "utf-8"}
    command = [node.executable, str(HERE / "check_answers.mjs")]
    with subprocess.Popen(command, **pipes) as process:

        def send(given):
            process.stdin.write(json.dumps(given) + "\n")
            process.stdin.flush()

        def check(cases):
            send(cases)
            answer = process.stdout.readline()
            assert answer, "check.js threw: see what Node wrote"
            return json.loads(answer)

        send(practice.write_tables())
        yield check


def test_the_file_is_up_to_date():
    assert not site.is_stale(), "answers.json: run make notebooks"
    assert site.FILE.read_text(encoding="utf-8") == site.text(), "run make notebooks"


def test_what_is_no_code_is_answered_on_the_site():
    assert len(ON_SITE) >= 20
    for name in EXERCISES:
        if isinstance(check_of(name), Table):
            assert name in ON_SITE


def test_where_a_grid_differs_first_is_named(on_site):
    right = check_of("causal-mask").right

    def wrong(t):
        return right(t) ^ (torch.arange(t * t).view(t, t) == t + 2)  # one entry alone

    (said,) = on_site([("causal-mask", fill_in("causal-mask", wrong))])
    place = "the row of token 2, column token 3"
    assert f"Look at {place}: see should be hide." in said["text"]
    first, last, name = ["1", "0", "0"], ["0.33", "0.333", "1/3"], "mean-of-the-past"
    near, far = on_site(
        [(name, [[first, row, last]]) for row in (["0.5", "1/2", "0"], ["0.4"] * 3)]
    )
    assert near["outcome"] == "right"
    place = "the row of token 2, column token 1"
    assert f"Look at {place}: 0.4000 should be 0.5000." in far["text"]


@pytest.mark.parametrize("name", GRIDS)
def test_the_right_answer_of_a_grid_has_its_rows_and_columns(name):
    """Made anew: the file of answers would have what was right when it was written."""
    grid, (right, *_) = site.grid_of(EXERCISES[name]), site.table_of(name).rules
    (rows,) = right.when["grid"]
    assert [len(row) for row in rows] == [len(grid["columns"])] * len(grid["rows"])
    shown = rows if grid["kind"] == "mask" else [[str(x) for x in row] for row in rows]
    (given,) = fill_in(name, check_of(name).right)
    for number, row in enumerate(given):
        assert row == shown[number] or number in grid["free"]


def test_a_mistake_that_fits_no_grid_is_no_answer_there(monkeypatch):
    check = check_of("mean-of-the-past")
    rules = site.table_of("mean-of-the-past").rules
    beside = [(lambda x: check.right(x)[:, :2], "too few rows"),
              (lambda x: check.right(x) / 0, "infinite")]  # fmt: skip
    more = dataclasses.replace(check, mistakes=[*check.mistakes, *beside])
    monkeypatch.setattr("coding_attention.exercises.build.check_of", lambda name: more)
    assert site.table_of("mean-of-the-past").rules == rules


def test_each_mistake_of_a_grid_has_one_rule(monkeypatch):
    check = check_of("mean-of-the-past")
    last = (lambda x: x, "the inputs")
    twice = [last, (lambda x: x.clone(), "again"), (check.right, "right")]
    more = dataclasses.replace(check, mistakes=twice)
    monkeypatch.setattr("coding_attention.exercises.build.check_of", lambda name: more)
    said = [rule.say for rule in site.table_of("mean-of-the-past").rules]
    assert said[:2] == [check.praise, "the inputs"]
    assert len(said) == 3


@pytest.mark.parametrize("name", ON_SITE)
def test_the_answers_of_the_tests_get_the_same_words(name, on_site):
    answers = [one.answer for one in list_answers(name)]
    cases = [(a, e) for a in answers if (e := fill_in(name, a)) is not None]
    outcomes = set()
    for (answer, entries), said in zip(
        cases, on_site([(name, e) for _, e in cases]), strict=True
    ):
        expected = check_exercise(name, answer)
        outcomes.add(expected.outcome)
        if ". Expected " in expected.text:  # here it names a type of Python
            asked = expected.text.partition(", but ")[0]
            assert said["text"].partition(", but ")[0] == asked
            continue
        if expected.outcome == "not right" and "It was called" in expected.text:
            assert said["outcome"] == "not right"  # no known mistake: what is seen
            continue
        assert (said["outcome"], said["text"]) == (expected.outcome, expected.text), (
            entries
        )
    assert outcomes == {"right", "not right"}
    assert len(cases) >= 4


def test_rows_and_what_hides_in_them_get_the_same_words(on_site):
    draw = random.Random(2)
    pool = (0.5, -3.0, 1000.0, -1e9, -1e9 + 64, -1e9 + 128, -2e9, -5e8, 3e38, -3e38)
    answers = [
        (
            torch.tensor([draw.choice(pool) for _ in range(3)]),
            torch.tensor([draw.random() < 0.5 for _ in range(3)]),
        )
        for _ in range(200)
    ]
    cases = [("fill", fill_in("fill", answer)) for answer in answers]
    said = on_site(cases)
    assert {s["outcome"] for s in said} == {"right", "not right"}
    for answer, one in zip(answers, said, strict=True):
        assert one["text"] == check_exercise("fill", answer).text, answer


def nonsense(name, rubbish):
    """One entry for each field, or None where nothing can be written."""
    entries = []
    for field in site.table_of(name).fields:
        if field.kind in ("mask", "flags"):
            return None
        if field.kind == "matrix":
            entries.append([[rubbish] * 3] * 3)
        elif field.kind == "numbers":
            entries.append([rubbish] * field.length)
        else:
            entries.append(rubbish)
    return entries


@pytest.mark.parametrize("name", ON_SITE)
def test_rubbish_gets_clear_words(name, on_site):
    tried = [nonsense(name, rubbish) for rubbish in RUBBISH]
    if None in tried:
        return
    wanted = site.table_of(name).wanted
    known = (f"Expected {wanted}, but", "Only minus infinity", "must be finite")
    for said in on_site([(name, entries) for entries in tried]):
        assert said["outcome"] == "not right"
        assert any(words in said["say"] for words in known), said
        assert "undefined" not in said["text"]
        assert "NaN" not in said["text"]


@pytest.mark.parametrize("name", ON_SITE)
def test_what_is_empty_is_no_mistake(name, on_site):
    empty = {"mask": [[False] * 4] * 4, "matrix": [[""] * 3] * 3}
    entries = [
        empty.get(f.kind)
        or ([""] * f.length if f.kind == "numbers" else None)
        or ([False] * f.length if f.kind == "flags" else "")
        for f in site.table_of(name).fields
    ]
    (said,) = on_site([(name, entries)])
    if any(f.kind == "mask" for f in site.table_of(name).fields):
        assert said["outcome"] == "not right"  # it hides nothing, which is an answer
    else:
        assert said == {
            "outcome": "nothing yet",
            "say": "",
            "text": f"Exercise {name}: nothing to check yet.",
        }


def test_half_an_answer_is_asked_for_the_rest(on_site):
    (said,) = on_site([("dropout", ["0.625", ""])])
    assert said["outcome"] == "not right"
    assert "a part of it is empty" in said["say"]


def test_what_python_writes_is_read(on_site):
    cases = [
        ("guessing", ["math.log(8)"]),
        ("cache-bytes", ["24,576"]),
        ("cache-bytes", ["24_576"]),
        ("shapes", ["torch.Size([2, 6, 6])", "2 6 3"]),
        ("shapes", ["2 × 6 × 6", "[2, 6, 3]"]),
        ("scale", ["√16"]),
    ]
    assert [said["outcome"] for said in on_site(cases)] == ["right"] * len(cases)


@pytest.fixture(scope="module")
def numbers(node):
    """A function from texts to what check.js reads in them."""
    check = json.dumps(site.FILE.with_name("check.js").as_uri())
    script = (
        "import { readFileSync } from 'node:fs';"
        f"import {{ readNumber }} from {check};"
        "const texts = JSON.parse(readFileSync(0, 'utf-8'));"
        "console.log(JSON.stringify(texts.map((t) => String(readNumber(t)))));"
    )

    def read(texts):
        done = node("--input-type=module", "-e", script, input=json.dumps(texts))
        assert done.returncode == 0, done.stderr[-2000:]
        return [float(x.replace("Infinity", "inf")) for x in json.loads(done.stdout)]

    return read


# What a reader of Python might write: signs, precedence, functions, spaces.
EXPRESSIONS = """1/8 | .125 | 7. | 1e2 | 5e-1 | 1 / 8 | -(1 - 3) | --2 | +3 | 6/2/3
8 - 2 - 1 | 2 + 3*4 | (2 + 3)*4 | 2*-3 | -2**2 | 2**-1 | 2**3**2 | (2**3)**2 | -2**-2
-sqrt(4) | -math.sqrt(4) | sqrt(1/64) | 2*sqrt(2)**2 | math.log(8) | exp(-1) | pi/2
log2(8) | log10(1000) | -math.sqrt(2)/exp(1) | exp(log(3)*2) - 3**2 | sqrt(2)**-3"""


def test_the_site_reads_numbers_as_python_does(numbers):
    texts = re.split(r" \| |\n", EXPRESSIONS)
    names = vars(math) | {"math": math}
    wanted = [eval(text, dict(names)) for text in texts]
    assert numbers(texts) == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_what_is_no_number_is_not_read(numbers):
    texts = ["", "-", "2 3 +", "sqrt", "(1", "1)", "2**", "a", "1,5", "sqrt()", "∞",
             "1/0", "sqrt(-1)", "log(0)", "(-8)**.5"]  # fmt: skip
    assert not any(math.isfinite(value) for value in numbers(texts))
