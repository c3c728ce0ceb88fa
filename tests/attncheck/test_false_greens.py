"""What once passed though it was wrong: each stays found."""

import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
import torch
from torch import nn

import attention
from attncheck import isolated
from attncheck.commandline import main
from attncheck.mistakes import BASES, HEADER, PLANTED, compiled
from coding_attention.exercises import check_exercise

ROOT = Path(__file__).parents[2]
BASE = HEADER + BASES["multi_head"][0]
FUSED = HEADER + BASES["fused"][0]
WRAPPER = HEADER + BASES["wrapper"][0]
DROP = "weights = self.dropout(weights)"
CHECK = """\
        if t > self.context_length:
            raise ValueError(f"{t} tokens, {self.context_length} allowed")
"""


def changed(source, *changes):
    for right, wrong in changes:
        assert right in source
        source = source.replace(right, wrong)
    return compiled(source, "changed.py")


def errors(report):
    return [f.mistake for f in report.findings if f.severity == "error"]


# 1. A reference takes the parameters of the suspect and nothing else.
class Rotated(nn.Module):
    """Queries and keys are multiplied by a table, as rotary positions are."""

    def __init__(self, d_in=8, base=10.0):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_in, bias=False)
        self.W_key = nn.Linear(d_in, d_in, bias=False)
        self.W_value = nn.Linear(d_in, d_in, bias=False)
        table = base ** (-torch.arange(8.0))[:, None]
        self.register_buffer("table", table, persistent=False)

    def forward(self, x):
        t = x.shape[1]
        q, k = (f(x) * self.table[:t] for f in (self.W_query, self.W_key))
        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        scores = q @ k.mT / k.shape[-1] ** 0.5
        return scores.masked_fill(future, -torch.inf).softmax(-1) @ self.W_value(x)


class WrongTable(Rotated):
    def __init__(self, d_in=8):
        super().__init__(d_in, base=2.0)


def test_a_reference_does_not_take_the_suspects_tables():
    report = attention.check(WrongTable, reference=Rotated)
    assert "differs_from_reference" in errors(report), str(report)
    report = attention.check(WrongTable(), reference=Rotated())
    assert "differs_from_reference" in errors(report), str(report)
    assert attention.check(Rotated, reference=Rotated).ok


# 2. A difference that nothing else explains is told.
def test_a_warning_does_not_hide_a_difference():
    cls = changed(
        BASE,
        ("queries = self.W_query(x)", "queries = self.W_query(x).sin()"),
        (CHECK, "        hidden = torch.ones(t, t, device=x.device).triu(1).bool()\n"),
        ("        hidden = self.mask[:t, :t].bool()\n", ""),
    )
    report = attention.check(cls)
    assert errors(report) == ["differs"], str(report)
    assert "too_many_tokens_accepted" in [f.mistake for f in report.findings]
    assert report.exit_status == 1


# 3. A test that failed is listed as failed.
def test_a_failed_test_is_listed_as_failed_whatever_its_finding_is_called():
    planted = PLANTED["overflows"]
    report = attention.check(planted.build())
    outcomes = {result.test: result.outcome for result in report.results}
    # Both find that the numbers overflow; the name is told once.
    assert outcomes["large scores"] == "failed"
    assert outcomes["float64, bfloat16, float16"] == "failed"


# 4. Whatever the class does to its process.
class Exits(nn.Module):
    def __init__(self, d_in=16):
        super().__init__()

    def forward(self, x):
        os._exit(0)


def test_a_class_that_ends_the_process_is_found():
    report = attention.check(Exits)
    assert report.exit_status == 3  # not judged: nothing could be compared
    assert "os._exit" in report.findings[0].seen
    assert os._exit is not None
    assert os._exit.__module__ in ("posix", "nt")


ENDINGS = {
    "exit": "os._exit(0)",
    "replace": "os.execv('/bin/true', ['true'])",
    "kill": "os.kill(os.getpid(), 9)",
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a second process")
@pytest.mark.parametrize("how", ENDINGS.values(), ids=ENDINGS)
@pytest.mark.parametrize("where", ["forward", "file"])
def test_the_command_line_never_ends_green_without_a_report(tmp_path, how, where):
    path = tmp_path / "mine.py"
    text = "import os\n" + BASE
    if where == "file":
        text += f"\n{how}\n"
    else:
        text = text.replace("        b, t, _ = x.shape", f"        {how}")
    path.write_text(text)
    # One by the program itself, for its last line; the others need no new Python.
    alone = (where, how) == ("file", ENDINGS["exit"])
    status, told = (by_the_program if alone else by_a_fork)(path, tmp_path)
    assert status in (1, 2, 3), told
    assert told
    assert "Traceback" not in told


def by_the_program(path, folder):
    done = subprocess.run(
        [sys.executable, "-m", "attncheck", f"{path}:Attention"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=600,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a second process")
def test_a_run_that_is_interrupted_leaves_no_process(monkeypatch):
    """Not even one that has ended and that nobody has asked for."""
    children, fork = [], os.fork

    def interrupted(*given):
        raise KeyboardInterrupt

    def kept():
        children.append(fork())
        return children[-1]

    monkeypatch.setattr(isolated, "_received", interrupted)
    monkeypatch.setattr(isolated.os, "fork", kept)
    with pytest.raises(KeyboardInterrupt):
        isolated.isolated(lambda: 1, 60)
    with pytest.raises(ChildProcessError):
        os.waitpid(children[0], os.WNOHANG)


def test_what_was_sent_counts_to_the_end_of_the_last_second(monkeypatch):
    reading, writing = os.pipe()
    os.write(writing, (3).to_bytes(isolated.LENGTH, "big") + b"two")
    monkeypatch.setattr(isolated.time, "monotonic", lambda: 9.5)
    assert isolated._received(reading, 9.5) == (b"", False)
    assert isolated._received(reading, 10.0) == (b"two", True)
    os.close(reading), os.close(writing)


def by_a_fork(path, folder):
    """Do what the program does in a child that has PyTorch already."""
    with (folder / "told").open("w+") as told:
        child = os.fork()
        if child == 0:
            end = os._exit
            try:
                os.dup2(told.fileno(), 1)
                os.dup2(told.fileno(), 2)
                sys.stdout = sys.stderr = told
                status = main([f"{path}:Attention"])
                told.flush()
                end(status)
            except BaseException:
                traceback.print_exc()
                told.flush()
            finally:
                end(70)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        told.seek(0)
        return status, told.read()


def test_settings_of_the_process_are_given_back(tmp_path):
    class Leaves(attention.CausalAttention):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            torch.set_default_dtype(torch.float64)
            os.chdir(tmp_path)
            os.environ["LEFT_BEHIND"] = "1"

    before = os.getcwd()
    report = attention.check(Leaves, d_in=16, d_out=16, context_length=8, dropout=0.0)
    assert torch.get_default_dtype() == torch.float32
    assert os.getcwd() == before
    assert "LEFT_BEHIND" not in os.environ
    assert report.usable, str(report)


class Lazy(nn.Module):
    def __init__(self, d_out=16):
        super().__init__()
        self.W_query = nn.LazyLinear(d_out, bias=False)
        self.W_key = nn.LazyLinear(d_out, bias=False)
        self.W_value = nn.LazyLinear(d_out, bias=False)

    def forward(self, x):
        q, k = self.W_query(x), self.W_key(x)
        t = x.shape[1]
        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        scores = (q @ k.mT / k.shape[-1] ** 0.5).masked_fill(future, -torch.inf)
        return scores.softmax(-1) @ self.W_value(x)


def test_lazy_layers_and_impossible_sizes_get_an_answer():
    assert attention.check(Lazy).ok
    assert attention.check(Lazy()).ok
    for sizes in ({"d_in": 0}, {"d_in": -3}, {"context_length": 2.5}, {"d_out": "3"}):
        report = attention.check(attention.CausalAttention, **sizes)
        assert report.exit_status == 2
        assert "whole number" in report.problem


# 5. What no test looked at.
ELSEWHERE = {
    "on the values": (
        (DROP, "pass"),
        ("values = self.W_value(x)", "values = self.dropout(self.W_value(x))"),
    ),
    "on the outputs": (
        (DROP, "pass"),
        ("self.out_proj(context)", "self.dropout(self.out_proj(context))"),
    ),
    "on the inputs": (
        (DROP, "pass"),
        ("        queries = self.W_query(x)\n",
         "        x = self.dropout(x)\n        queries = self.W_query(x)\n"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("changes", ELSEWHERE.values(), ids=ELSEWHERE)
def test_dropout_in_another_place_is_found(changes):
    report = attention.check(changed(BASE, *changes))
    assert "dropout_elsewhere" in [f.mistake for f in report.findings], str(report)


def test_a_rate_that_ignores_its_argument_is_found():
    cls = changed(BASE, ("nn.Dropout(dropout)", "nn.Dropout(0.3)"))
    assert "dropout_rate_ignored" in errors(attention.check(cls))


def test_a_mask_in_eval_alone_is_found():
    masked = "scores.masked_fill(hidden, -torch.inf)"
    cls = changed(BASE, (masked, f"scores if self.training else {masked}"))
    assert errors(attention.check(cls))[0] == "mask_only_in_eval"


def test_a_leak_between_sequences_in_training_is_found():
    cls = changed(
        BASE,
        ("values = self.W_value(x)",
         "values = self.W_value(x)\n"
         "        if self.training:\n"
         "            values = values - values.mean(0, keepdim=True)"),
    )  # fmt: skip
    assert errors(attention.check(cls))[0] == "samples_mixed_in_training"


def test_heads_that_share_their_weights_are_found():
    loop = "[Head(d_in, d_out, context_length, dropout) for _ in range(num_heads)]"
    cls = changed(
        WRAPPER, (loop, "[Head(d_in, d_out, context_length, dropout)] * num_heads")
    )
    assert errors(attention.check(cls))[0] == "heads_shared"


def test_a_key_tied_to_its_query_is_found():
    line = "        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)\n"
    for tied in (
        "self.W_key = self.W_query",
        "self.W_key.weight = self.W_query.weight",
    ):
        made = line if "weight" in tied else ""
        cls = changed(BASE, (line, f"{made}        {tied}\n"))
        assert errors(attention.check(cls))[0] == "projections_tied"


INITS = {
    "nn.init.zeros_": "init_dead",
    "nn.init.ones_": "init_constant",
    "(lambda w: nn.init.normal_(w, 0.0, 3.0))": "init_too_large",
}


@pytest.mark.parametrize(("how", "expected"), INITS.items())
def test_the_classs_own_initialization_is_looked_at(how, expected):
    last = "        self.dropout = nn.Dropout(dropout)\n"
    loop = f"        for p in self.parameters():\n            {how}(p)\n"
    report = attention.check(changed(BASE, (last, last + loop)))
    assert expected in [f.mistake for f in report.findings], str(report)


def test_weights_that_are_all_positive_are_noted():
    (note,) = [n for n in attention.check(attention.SelfAttention_v1).notes
               if "positive" in n]  # fmt: skip
    assert "W_query" in note or "query" in note


def test_it_says_whether_positions_matter():
    class Positions(attention.CausalAttention):
        def forward(self, x):
            steps = torch.arange(x.shape[1], device=x.device).to(x.dtype)
            return super().forward(x + steps[:, None])

    def said(cls):
        return [n for n in attention.check(cls, reference=False).notes if "order" in n]

    assert "doesn't see the order" in said(attention.CausalAttention)[0]
    assert "sees the order" in said(Positions)[0]


def test_the_exercise_on_the_causal_class_wants_dropout_on_the_weights():
    verdict = check_exercise(
        "causal-class", changed(BASE, *ELSEWHERE["on the outputs"])
    )
    assert verdict.outcome == "not right"
    assert "something other than the attention weights" in verdict.text


def test_main_gives_the_status_of_the_report(tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text(BASE)
    assert main([f"{path}:Attention"]) == 0
    assert "nothing wrong found" in " ".join(capsys.readouterr().out.split())
