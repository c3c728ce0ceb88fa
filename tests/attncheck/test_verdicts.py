"""The verdict: never green without a comparison, and what it leaves open is said."""

import json

import pytest
import torch
from torch import nn

import attention
import attncheck
from attncheck.commandline import main
from attncheck.report import Finding, Report, Result, worst
from coding_attention.gallery.planted import BASES, HEADER, PLANTED, compiled

MULTI_HEAD = BASES["multi_head"][0]


def made(*changes, source=MULTI_HEAD):
    """Return a class with pairs (right, wrong) of its text exchanged."""
    for right, wrong in changes:
        assert right in source, right
        source = source.replace(right, wrong)
    return compiled(HEADER + source, "made.py")


LINES = 15  # of a report that is not asked for more


def found(report):
    return [finding.mistake for finding in report.findings]


def finding(severity, mistake="differs"):
    return Finding(mistake, "t", "test", "d", "s", "m", "l", "04_causal_attention",
                   severity, "ATT991")  # fmt: skip


@pytest.mark.parametrize(
    ("report", "verdict", "status"),
    [
        (Report("a", compared=True), "passed", 0),
        (Report("a"), "not judged", 3),  # nothing says that it was compared
        (Report("a", compared=True, findings=[finding("warning")]), "passed", 0),
        (Report("a", findings=[finding("error")]), "failed", 1),
        (Report("a", compared=True, findings=[finding("error")]), "failed", 1),
        (
            Report("a", compared=True, findings=[finding("error", "forward_raises")]),
            "passed",
            0,
        ),
        (
            Report("a", compared=True, results=[Result("t", "broken", "x")]),
            "not judged",
            3,
        ),
        (Report("a", usable=False, problem="no file"), "not usable", 2),
    ],
)
def test_the_verdict_is_decided_in_one_place(report, verdict, status):
    assert (report.verdict, report.exit_status) == (verdict, status)
    assert report.ok == (status == 0)


def test_of_several_reports_the_worst_counts():
    failed, passed = (
        Report("a", findings=[finding("error")]),
        Report("b", compared=True),
    )
    lost, open_ = Report("c", usable=False), Report("d")
    assert worst([passed, open_, lost, failed]) == 1
    assert worst([passed, open_, lost]) == 2
    assert worst([passed, open_]) == 3
    assert worst([passed]) == 0


def test_what_was_compared_stands_below_the_verdict():
    report = attncheck.check(attention.MultiHeadAttention)
    first, *rest = str(report).splitlines()
    assert first.startswith("PASSED: MultiHeadAttention(d_in=16")
    assert "Compared with attention, causal, 4 heads of 4, weights by names" in (
        " ".join(rest)
    )


def test_an_unnamed_difference_is_not_judged_unless_all_was_declared():
    gated = ("context = weights @ values", "context = torch.tanh(weights @ values)")
    report = attncheck.check(made(gated))
    assert (report.verdict, report.findings) == ("not judged", [])
    assert "isn't that of plain attention" in str(report)
    rope = BASES["rope"][0].replace(
        "q, k = rotate(q)", "v = v.tanh(); q, k = rotate(q)"
    )
    report = attncheck.check(compiled(HEADER + rope, "rope.py"), rope="halves")
    assert (report.verdict, found(report)) == ("failed", ["differs"])


def test_a_leak_stands_behind_a_difference_that_has_no_name():
    gated = ("context = weights @ values",
             "context = torch.tanh(weights @ values) + values.mean(2, keepdim=True)",
             )  # fmt: skip
    report = attncheck.check(made(gated))
    assert (report.verdict, found(report)) == ("failed", ["future_leaks"])
    assert report.not_compared


TAKES_A_MASK = (
    ("forward(self, x)", "forward(self, x, mask=None)"),
    ("scores = scores.masked_fill(hidden, -torch.inf)",
     "scores = scores if mask is None else scores.masked_fill(mask, -torch.inf)"),
    ("        hidden = self.mask[:t, :t].bool()\n", ""),
    ("        mask = torch.triu(torch.ones(context_length, context_length), "
     "diagonal=1)\n", ""),
    ('        self.register_buffer("mask", mask)\n', ""),
)  # fmt: skip


def test_a_mask_that_the_caller_gives_stands_in_the_verdict():
    report = attncheck.check(made(*TAKES_A_MASK))
    assert report.verdict == "passed", str(report)
    assert report.promised == "causal only with `mask`"
    assert "causal only with `mask`" in " ".join(str(report).split())


def test_who_promises_to_be_causal_fails_if_a_mask_has_to_be_given():
    report = attncheck.check(made(*TAKES_A_MASK), causal=True)
    assert (report.verdict, found(report)) == ("failed", ["mask_missing"])
    assert "leaks the future unless `mask` is given" in " ".join(str(report).split())
    flag = ("qkv_bias=False", "qkv_bias=False, causal=True")
    report = attncheck.check(made(*TAKES_A_MASK, flag))
    assert (report.verdict, found(report)) == ("failed", ["mask_missing"])
    report = attncheck.check(made(*TAKES_A_MASK[:-1]).__mro__[0])  # a triangle is held
    assert "mask_missing" not in found(report)  # but one that nobody registered


def test_an_argument_that_nobody_tried_stands_in_the_verdict():
    cls = made(("forward(self, x)", "forward(self, x, temperature=1.0, mask=None)"),
               ("scores = scores.masked", "scores = scores / temperature\n        "
                "scores = scores.masked"))  # fmt: skip
    report = attncheck.check(cls)
    assert report.verdict == "passed"
    assert report.not_tried == ["`temperature`"]
    assert "not tried: `temperature`" in " ".join(str(report).split())


def test_what_only_asks_for_more_to_be_returned_changes_nothing():
    cls = made(("forward(self, x)", "forward(self, x, return_weights=False)"),
               ("return self.out_proj(context)",
                "y = self.out_proj(context)\n        "
                "return (y, weights) if return_weights else y"))  # fmt: skip
    report = attncheck.check(cls)
    assert (report.verdict, report.not_tried) == ("passed", [])


def test_a_mask_that_is_there_is_tried():
    report = attncheck.check(compiled(HEADER + BASES["padded"][0], "padded.py"))
    assert (report.verdict, report.not_tried) == ("passed", [])
    tests = {result.test: result.outcome for result in report.results}
    assert tests["masks"] == "passed"
    report = attncheck.check(compiled(HEADER + BASES["cached"][0], "cached.py"))
    assert (report.verdict, report.not_tried) == ("passed", [])
    assert {r.test: r.outcome for r in report.results}["a cache"] == "passed"


def test_chunks_that_the_comments_leave_out_stand_in_the_verdict():
    source = BASES["cached"][0].replace(
        "i = torch.arange(old, old + t, device=x.device)[:, None]",
        "# with a cache, x is one token\n        "
        "i = torch.arange(t, device=x.device)[:, None] + old * (t == 1)",
    )
    report = attncheck.check(compiled(HEADER + source, "cached.py"))
    assert report.verdict == "passed", str(report)
    assert any("chunks with a cache" in one for one in report.not_tried)


@pytest.mark.parametrize("name", ["scale_missing", "mask_missing", "heads_viewed",
                                  "random_in_eval", "padding_batch", "cache_order",
                                  "rope_pairing"])  # fmt: skip
def test_a_report_of_one_finding_has_fifteen_lines_at_most(name):
    bug = PLANTED[name]
    report = attncheck.check(bug.build(), **bug.settings)
    assert len(str(report).splitlines()) <= LINES
    assert len(report.text(verbose=True).splitlines()) > 25
    assert "Tests" not in str(report)
    for label in ("Seen", "Instead", "Read"):
        assert f"   {label:<12}" in str(report)


def test_a_right_class_takes_three_lines_and_a_broken_one_few():
    assert len(str(attncheck.check(attention.CausalAttention)).splitlines()) <= 4

    class Broken(nn.Module):
        def __init__(self, d_in):
            super().__init__()
            self.linear = nn.Linear(d_in, d_in)

        def forward(self, x):
            return self.linear(x).view(1, 2, 3)

    report = attncheck.check(Broken)
    text = str(report)
    assert report.exit_status == 3
    assert len(text.splitlines()) <= LINES
    assert "return self.linear(x).view(1, 2, 3)" in " ".join(text.split())
    assert text.count("call=lambda") == 1


def test_what_to_write_instead_has_the_readers_names():
    named = (("queries", "q"), ("keys", "k"), ("scores", "att"), ("weights", "probs"))
    source = MULTI_HEAD
    for ours, theirs in named:
        source = source.replace(ours, theirs)
    source = source.replace("probs = torch.softmax(att / self.head_dim**0.5, dim=-1)",
                            "probs = torch.softmax(att, dim=-1)")  # fmt: skip
    report = attncheck.check(compiled(HEADER + source, "theirs.py"))
    assert found(report) == ["scale_missing"]
    assert "k.shape[-1]" in report.findings[0].line
    assert "keys" not in report.findings[0].line


def test_json_holds_what_the_text_says(tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text(PLANTED["scale_missing"].source(), encoding="utf-8")
    assert main([f"{path}:Attention", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "failed"
    assert told["exit_status"] == 1
    (only,) = told["findings"]
    assert (only["mistake"], only["code"]) == ("scale_missing", "ATT307")
    assert only["place"][1] > 1
    assert {test["outcome"] for test in told["tests"]} >= {"passed", "failed"}
    assert main([str(path), str(path), "--json"]) == 1
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_a_notebook_shows_a_table_and_escapes_what_is_not_ours():
    report = attncheck.check(PLANTED["scale_missing"].build())
    report.notes.append("<script>")
    html = report._repr_html_()
    assert "<table>" in html
    assert "&lt;script&gt;" in html
    assert "<script>" not in html
    assert report.findings[0].title in html.replace("&#x27;", "'")


def test_expected_and_actual_weights_stand_side_by_side():
    report = attncheck.check(PLANTED["mask_missing"].build())
    lines = report.findings[0].table()
    rows = [[float(n) for n in line.split()] for line in lines[1:]]
    assert [len(row) for row in rows] == [8] * 4
    assert rows[0][:4] == [1.0, 0.0, 0.0, 0.0]
    assert min(rows[0][4:]) > 0
    assert lines[1] in report.text(verbose=True)


def test_an_assertion_raises_with_the_report():
    attncheck.assert_attention(attention.MultiHeadAttention)
    with pytest.raises(attncheck.CheckFailed, match=r"^scale_missing \(ATT307\)"):
        attncheck.assert_attention(PLANTED["scale_missing"].build())
    with pytest.raises(attncheck.CheckFailed, match="NOT JUDGED"):
        attncheck.assert_attention(attention.MultiHeadAttention, reference=False)


def test_what_fails_inside_a_test_is_no_mistake_of_the_class():
    class Small(compiled(HEADER + MULTI_HEAD, "small.py")):
        def forward(self, x):
            if len(x) > 8:
                raise ValueError("at most 8 sequences")
            return super().forward(x)

    report = attncheck.check(Small)
    assert (report.verdict, report.findings) == ("passed", []), str(report)


def test_tokens_of_another_dtype_come_back_in_it():
    module = attention.MultiHeadAttention(16, 16, 8, 0.0, 4).to(torch.bfloat16)
    assert attncheck.check(module).ok
