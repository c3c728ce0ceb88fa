"""What continuous integration needs: codes, formats, lines, parity with Python."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

import attention
from attncheck import MISTAKES
from attncheck.checking import classes_of
from attncheck.commandline import main
from attncheck.mistakes import BASES, HEADER, compiled

ROOT = Path(__file__).parents[2]
CODES = Path(__file__).with_name("codes.json")
BASE = HEADER + BASES["multi_head"][0]
WRONG = BASE.replace("scores / self.head_dim**0.5", "scores")


@pytest.fixture
def wrong(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(WRONG)
    return "mine.py:Attention"


def test_codes_are_distinct_and_never_given_to_another():
    codes = {mistake.code: name for name, mistake in MISTAKES.items()}
    assert len(codes) == len(MISTAKES)
    kept = json.loads(CODES.read_text())
    # New codes are added with a release: until then they may still change.
    assert {code: codes.get(code) for code in kept} == kept
    assert all(re.fullmatch(r"ATT[1-9]\d\d", code) for code in codes)


def test_select_and_ignore_take_codes_their_starts_and_names():
    unscaled = compiled(WRONG, "unscaled.py")
    assert attention.check(unscaled).exit_status == 1
    for ignored in ("ATT307", "ATT3", ["scale_missing"], "att3,ATT9"):
        report = attention.check(unscaled, ignore=ignored)
        assert report.ok, ignored
    assert attention.check(unscaled, select="ATT2").ok
    assert not attention.check(unscaled, select="ATT3 ATT2").ok


def test_the_line_of_the_reader_is_quoted_with_expected_and_actual_weights(
    wrong, capsys
):
    assert main([wrong]) == 1
    text = capsys.readouterr().out
    line = next(i for i, one in enumerate(WRONG.splitlines(), 1) if "softmax(" in one)
    assert f"mine.py:{line}: weights = torch.softmax(scores, dim=-1)" in text
    assert "expected weights" in text
    (finding,) = attention.check(compiled(WRONG, "unscaled.py")).findings
    expected, actual = finding.example
    assert expected.shape == actual.shape == (4, 4)
    ones = torch.ones(4, dtype=expected.dtype)
    torch.testing.assert_close(expected.sum(-1), ones)
    assert (expected.triu(1) == 0).all()
    # Unscaled, the largest weight of a row is larger.
    assert (actual.amax(-1)[1:] > expected.amax(-1)[1:]).all()


def test_json(wrong, capsys):
    assert main([wrong, "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["exit_status"] == 1
    (finding,) = told["findings"]
    assert finding["code"] == MISTAKES["scale_missing"].code
    assert finding["place"]["file"] == "mine.py"
    assert len(finding["expected_weights"]) == 4


def test_sarif(wrong, capsys):
    assert main([wrong, "--format", "sarif"]) == 1
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    (result,) = run["results"]
    assert result["ruleId"] == run["tool"]["driver"]["rules"][0]["id"] == "ATT307"
    assert "helpUri" not in run["tool"]["driver"]["rules"][0]  # no address is set
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "mine.py"
    assert "softmax" in place["region"]["snippet"]["text"]


def test_github(wrong, capsys):
    assert main([wrong, "--format", "github"]) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("::error file=mine.py,line=")
    assert "ATT307 The scores aren't scaled" in first


def test_junit(wrong, capsys):
    assert main([wrong, "--format", "junit"]) == 1
    (suite,) = ElementTree.fromstring(capsys.readouterr().out)
    needed = {"id", "package", "timestamp", "hostname", "time"}  # by the schema
    assert needed <= set(suite.attrib)
    assert suite.attrib["failures"] == "1"
    (failed,) = [case for case in suite if case.find("failure") is not None]
    assert "ATT307" in failed.find("failure").attrib["message"]
    assert int(suite.attrib["tests"]) == len(suite)


def test_what_was_not_compared_is_not_judged(tmp_path, capsys):
    path = tmp_path / "mine.py"
    right = "context = weights @ values"
    path.write_text(BASE.replace(right, f"{right} * torch.sigmoid(values)"))
    assert main([f"{path}:Attention"]) == 3
    text = " ".join(capsys.readouterr().out.split())
    assert "NOT JUDGED" in text
    assert "attention-check" not in text  # no option describes a gate
    assert "write a correct class or function" in text


TARGETS = {
    "a factory": (BASE + "\ndef make(h=2):\n    return Attention(8, 8, 8, 0.0, h)\n",
                  "mine.py:make(h=4)", []),
    "a config": (BASE.replace("d_in, d_out, context_length, dropout, num_heads, "
                              "qkv_bias=False):", "config):\n        d_in = d_out = "
                              "config.width\n        context_length, num_heads = 8, "
                              "config['heads']\n        dropout = 0.0\n"
                              "        qkv_bias = False"),
                 "mine.py:Attention", ["--config", "width=16", "--config", "heads=4"]),
    "a file that trains": (BASE + "\nraise RuntimeError('no data')\n",
                           "mine.py:Attention", []),
    "another call": (BASE.replace("forward(self, x):", "forward(self, x, mask):"),
                     "mine.py:Attention", ["--call", "lambda m, x: m(x, None)"]),
    "a reference": (BASE, "mine.py:Attention", ["--reference", "mine.py:Attention"]),
    "weights": (BASE.replace("W_", "layer_").replace("layer_query", "a"),
                "mine.py:Attention",
                ["--weights", "lambda m: {'query': m.a, 'key': m.layer_key, 'value': "
                 "m.layer_value, 'out': m.out_proj, 'num_heads': 4}"]),
}  # fmt: skip


@pytest.mark.parametrize(("source", "target", "more"), TARGETS.values(), ids=TARGETS)
def test_the_command_line_can_do_what_python_can(
    tmp_path, monkeypatch, capsys, source, target, more
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(source)
    assert main([target, *more]) == 0, capsys.readouterr()
    text = " ".join(capsys.readouterr().out.split())
    assert "nothing wrong found" in text
    assert "NOT JUDGED" not in text


def test_a_class_of_a_notebook(tmp_path, capsys):
    cells = [
        {"cell_type": "markdown", "source": ["# Mine"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "import torch\n",
                                         "from torch import nn\n"]},
        {"cell_type": "code", "source": BASE.partition("class ")[1:] and
         ["class " + BASE.partition("class ")[2]]},
        {"cell_type": "code", "source": ["1 / 0"]},
    ]  # fmt: skip
    path = tmp_path / "mine.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    assert main([f"{path}:Attention"]) == 0, capsys.readouterr()


def test_names_do_not_matter():
    for names in (("alpha", "beta", "gamma"), ("w_qs", "w_ks", "w_vs")):
        source = BASE
        for ours, other in zip(("W_query", "W_key", "W_value"), names, strict=True):
            source = source.replace(ours, other)
        source = source.replace("out_proj", "w_concat")
        report = attention.check(compiled(source, "renamed.py"))
        outcomes = {result.test: result.outcome for result in report.results}
        assert outcomes["same output as attention with these weights"] == "passed"
        wrong = source.replace("scores / self.head_dim**0.5", "scores")
        report = attention.check(compiled(wrong, "renamed.py"))
        assert [f.mistake for f in report.findings] == ["scale_missing"], str(report)


def test_the_checker_stands_alone():
    for path in (ROOT / "attncheck").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in getattr(node, "names", [])]
            place = getattr(node, "module", None) or ""
            assert not any(
                name.split(".")[0] in ("attention", "coding_attention")
                for name in [*names, place]
            ), path


def test_the_plugin_imports_no_torch():
    code = "import sys, attncheck.pytest_plugin; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_the_plugin_names_the_finding_first_and_has_a_subtest_a_test(tmp_path):
    (tmp_path / "test_mine.py").write_text(
        f"{WRONG}\n\n"
        "def test_whole(check_attention):\n    check_attention(Attention)\n\n"
        "def test_parts(attention_subtests):\n    attention_subtests(Attention)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"COLUMNS": "400"},
    )
    assert done.returncode == 1
    summary = done.stdout[done.stdout.index("short test summary") :]
    assert "scale_missing (ATT307)" in summary, done.stdout
    assert "same output as attention with these weights" in done.stdout
    # What a reader wrote, and the finding; none of our own lines between them.
    assert "pytest_plugin.py" not in done.stdout.replace("\\", "/")


def test_hidden_folders_within_a_folder_are_left_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("src/mine.py", "src/.kept/old.py", "src/deep/.kept/old.py"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(BASE)
    assert classes_of("src") == ["src/mine.py:Attention"]
