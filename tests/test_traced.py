"""Shape comments of all packages are true, in whatever call they are read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# Tests that between them run each line with such a comment, at sizes that differ.
RUNS = {
    "attention.convert,attention.functional,attention.fused": [
        "tests/attention/test_convert.py", "tests/attention/test_fused.py",
        "tests/attention/test_functional.py", "tests/attention/test_positions.py",
        "-k", "not compile and not exported and not gpt2 and not dropout",
    ],
    "attncheck": [
        "tests/attncheck/test_correct_variants.py", "tests/attncheck/test_walk.py",
        "-k", "correct_variants or two_norms or to_one_side or a_step_is_named_where "
        "or never_acts",
    ],
    "coding_attention": [
        "tests/coding_attention/models", "tests/coding_attention/gallery",
        *(f"tests/coding_attention/figures/test_{name}.py" for name in
          ("causal", "multi_head", "trainable", "simple", "drawn_ideas")),
        "tests/coding_attention/labs/test_python_side.py",
        "tests/coding_attention/labs/test_core.py", "tests/experiments/test_data.py",
        "tests/experiments/test_heads.py", "tests/experiments/test_tiny_gpt.py",
        "-k", "not (stored_picture or pages_store or is_the_same)",
    ],
}  # fmt: skip


@pytest.mark.timeout(900)
@pytest.mark.parametrize("names", RUNS)
def test_shape_comments_are_true(names):
    command = [sys.executable, "-m", "tests.traced", names, "--tier", "test,checker"]
    result = subprocess.run(
        [*command, *RUNS[names]], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    assert result.stdout.rpartition("WRONG")[2].split("\n")[1:-1] == []
