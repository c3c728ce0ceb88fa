"""Shape comments of all packages are true, in whatever call they are read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shape_comments import comments
from tests.test_shape_comments import DRIVEN

ROOT = Path(__file__).resolve().parents[1]
# Tests that between them run each line with such a comment, at sizes that differ.
RUNS = {
    "attention": (
        ["attention.functional", "attention.fused"],
        "tests/attention/test_convert.py", "tests/attention/test_fused.py",
        "tests/attention/test_functional.py", "tests/attention/test_positions.py",
        "-k", "not compile and not exported and not gpt2 and not dropout",
    ),
    "attncheck": (
        ["attncheck.checking", "attncheck.inferred", "attncheck.scored",
         "attncheck.walk", "coding_attention.gallery.correct_variants"],
        "tests/attncheck/test_correct_variants.py", "tests/attncheck/test_walk.py",
        "tests/attncheck/test_inferred.py",
        "-k", "correct_variants or two_norms or to_one_side or a_step_is_named_where "
        "or never_acts or read_off",
    ),
    "coding_attention": (
        ["coding_attention", "coding_attention.labs.scale"],
        "tests/coding_attention/models", "tests/coding_attention/gallery",
        *(f"tests/coding_attention/figures/test_{name}.py" for name in
          ("causal", "multi_head", "trainable", "simple", "drawn_ideas")),
        "tests/coding_attention/labs/test_python_side.py",
        "tests/coding_attention/labs/test_core.py", "tests/experiments/test_data.py",
        "tests/experiments/test_heads.py", "tests/experiments/test_tiny_gpt.py",
        "-k", "not (stored_picture or pages_store or is_the_same)",
    ),
}  # fmt: skip
# These have a test of their own, in tests/attention.
LESSONS = {f"attention.{name}" for name in ("causal", "multi_head", "trainable")}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("room", RUNS)
def test_shape_comments_are_true(room):
    modules, *tests = RUNS[room]
    command = [sys.executable, "-m", "tests.traced", ",".join(modules)]
    result = subprocess.run(
        [*command, "--tier", "test,checker", *tests], cwd=ROOT, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False, capture_output=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    read, _, told = result.stdout.rpartition("READ")[2].partition("WRONG")
    assert told.split("\n")[1:-1] == []
    # A module that nobody imports has not been read.
    assert {*modules} - {"attncheck.checking", "coding_attention"} <= {*read.split()}


def test_each_comment_has_a_run_that_reads_it():
    """A module with shapes in its comments is named above, or driven on its own."""
    for room in ("attention", "attncheck", "coding_attention"):
        for file in sorted((ROOT / room).rglob("*.py")):
            name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            if comments(file.read_text("utf-8")) and name not in LESSONS | {*DRIVEN}:
                assert any(name in modules for modules, *_ in RUNS.values()), name
