"""Every planted bug is caught, and by its own name."""

import re
import textwrap
from collections import Counter
from pathlib import Path

import pytest
import torch

import attncheck
from attncheck import MISTAKES
from attncheck.mistakes import BASES, HEADER, PLANTED, SYMPTOMS, Planted, compiled
from attncheck.mistakes.records import _read, families
from attncheck.report import PAGES

UNKNOWN = {"W_query": "alpha", "W_key": "beta", "W_value": "gamma"}
MULTI_HEAD = HEADER + BASES["multi_head"][0]

# Mistakes that no change of a line in a class makes: other tests provoke them.
ELSEWHERE = {
    "alibi_unused", "cache_batch", "cache_positions", "changes_settings",
    "constructor_raises", "cross_ignores_queries", "cross_mixes_queries", "cross_order",
    "differs", "differs_from_reference", "distances_lost", "forward_raises",
    "future_leaks", "hangs", "length_matters", "mask_unwanted", "not_a_tensor",
    "not_finite", "out_of_memory", "output_bias_repeated", "padding_rows",
    "prenorm_partly", "prenorm_unused", "qk_norm_axis", "qk_norm_unused",
    "residual_after_norm", "residual_moved", "residual_unused", "rope_directions",
    "sum_normed",
    "rope_offset", "rows_do_not_sum_to_one", "scores_scaled_apart", "slow",
    "tokens_moved", "tokens_not_mixed", "training_differs", "window_one_sided",
    "distance_not_alone",
    "alibi_one_sided",
    "keys_viewed",
    "qk_norm_late", "qk_norm_shared",
    "rope_rest_lost", "rope_rest_moved", "sink_unshifted",
    "cache_rotated_again", "output_repeated", "qk_norm_formula", "third_token_counts",
}  # fmt: skip

# What is named when the weights have names that the check does not know.
BLACK_BOX = (
    "mask_missing",
    "mask_upside_down",
    "mask_off_by_one",
    "mask_fill_finite: fill minus 10000",
    "softmax_over_queries",
    "scale_missing",
    "scale_by_tokens",
    "heads_viewed",
    "heads_attend_heads",
)
# Found, and called by what follows from them.
ANOTHER_NAME = {"low_precision: weights rounded"}
REPORTS = {}
# What the book's game explains, and one bug of each stage: in make test. The others run
# with the checker's tests.
FIRST = [mistake.planted[0] for mistake in MISTAKES.values() if mistake.planted]
OF_STAGE = {MISTAKES[bug.mistake].stage: bug for bug in reversed(FIRST)}
SHOWN = [bug for bug in FIRST if bug.cause or bug in OF_STAGE.values()]
OTHERS = [bug for bug in PLANTED.values() if bug not in SHOWN]


def report_on(bug):
    if bug.name not in REPORTS:
        preset = getattr(attncheck, bug.preset)
        REPORTS[bug.name] = preset(bug.build(), **bug.settings)
    return REPORTS[bug.name]


def check(planted, source=None):
    cls = compiled(source, f"{planted.mistake}.py") if source else planted.build()
    report = attncheck.check(cls, **planted.settings)
    assert [r for r in report.results if r.outcome == "broken"] == []
    return report


def names(report):
    return [finding.mistake for finding in report.findings]


def is_named(bug):
    report = report_on(bug)
    assert [r for r in report.results if r.outcome == "broken"] == []
    assert report.findings, str(report)
    assert bug.mistake in names(report)[:2] or bug.name in ANOTHER_NAME, str(report)
    # Warnings do not fail, unless that is asked for.
    fails = any(finding.severity == "error" for finding in report.findings)
    assert report.exit_status == fails
    report.strict, kept = True, report.strict
    assert report.exit_status == 1
    report.strict = kept


@pytest.mark.parametrize("bug", SHOWN, ids=lambda bug: bug.name)
def test_planted_bug_is_named_first_or_second(bug):
    is_named(bug)


@pytest.mark.parametrize("bug", OTHERS, ids=lambda bug: bug.name)
def test_another_bug_is_named_as_well(bug):
    is_named(bug)


@pytest.mark.parametrize("bugs", [SHOWN, OTHERS], ids=["shown", "others"])
def test_nearly_all_are_named_first(bugs):
    places = Counter(
        names(report_on(bug)).index(bug.mistake)
        for bug in bugs
        if bug.name not in ANOTHER_NAME
    )
    assert places[0] >= len(bugs) - 3, places


@pytest.mark.parametrize("base", BASES)
def test_without_the_change_nothing_is_found(base):
    source, preset, arguments = BASES[base]
    cls = compiled(HEADER + source, f"{base}.py")
    if base == "library":
        arguments = arguments | {"causal": False}
    report = getattr(attncheck, preset)(cls, **arguments)
    assert report.ok, str(report)
    assert not report.not_compared


ONE_QUERY_WEIGHT = [
    ("d_model, d_model,", "d_model, d_model + n_heads * d_rope,"),
    ("        self.W_qr = nn.Linear(d_model, n_heads * d_rope, bias=False)\n", ""),
    ("q, q_turned, k, v", "q, k, v"),
    ("self.W_qr(x), ", ""),
    (
        "        k_turned",
        """\
        q, q_turned = q.split([k.shape[-1], k.shape[-1] // 2], dim=-1)
        k_turned""",
    ),
]


@pytest.mark.parametrize(
    ("base", "changes", "arguments", "note"),
    [
        ("sink", [], {}, "Equal to attention with a learned sink for each head"),
        ("latent", [], {}, "Equal to attention with rotary positions"),
        ("latent", ONE_QUERY_WEIGHT, {"rope": "halves"}, ""),
        (
            "packed",
            [("forward(self, x, document)", "forward(self, document, x)")],
            {"documents": True, "call": lambda module, x, given: module(given, x)},
            "",
        ),
    ],
)
def test_a_layer_of_today_is_compared_however_it_is_given(
    base, changes, arguments, note
):
    source = BASES[base][0]
    for right, other in changes:
        assert right in source
        source = source.replace(right, other, 1)
    cls = compiled(HEADER + source, "given.py")
    report = attncheck.check(cls, **arguments)
    assert report.findings == [], str(report)
    assert not report.not_compared
    assert note in " ".join(report.notes)


def test_documents_that_see_each_other_show_without_known_weights():
    bug = PLANTED["documents_unused"]
    source = bug.source().replace("self.wq", "self.alpha").replace("self.wk", "self.b")
    report = check(bug, source)
    assert names(report) == ["documents_unused"]


@pytest.mark.parametrize("name", BLACK_BOX)
def test_something_is_found_under_unknown_names(name):
    planted = PLANTED[name]
    source = planted.source()
    for known, unknown in UNKNOWN.items():
        source = source.replace(known, unknown)
    report = check(planted, source)
    assert report.findings, str(report)
    # By its cause, or by a symptom; never by another cause.
    causes = set(names(report)) - SYMPTOMS - {"mask_fill_finite", "dropout_on_scores"}
    assert causes <= {planted.mistake}, str(report)


def test_the_records_are_as_distinct_as_they_say():
    assert sum(map(len, families().values())) == len(MISTAKES)
    assert len({bug.name for bug in PLANTED.values()}) == len(PLANTED)
    assert len({bug.source() for bug in PLANTED.values()}) == len(PLANTED)
    assert {bug.mistake for bug in PLANTED.values()} | ELSEWHERE == set(MISTAKES)
    assert not {bug.mistake for bug in PLANTED.values()} & ELSEWHERE


def test_the_record_that_contributors_are_shown_is_complete(tmp_path, monkeypatch):
    monkeypatch.setattr("attncheck.parity.TRIES", 600)
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"   ```toml\n(.*?)   ```", text, re.DOTALL)
    record = tmp_path / "shown.toml"
    # The field of Recipe that it speaks of is the contributor's own.
    record.write_text(textwrap.dedent(shown), encoding="utf-8")
    (mistake,) = _read(record)
    assert mistake.code not in {known.code for known in MISTAKES.values()}
    assert mistake.page in PAGES
    (bug,) = mistake.planted
    assert attncheck.check(bug.build()).exit_status, "what is planted goes unnoticed"


def test_a_change_that_does_not_apply_is_refused():
    planted = Planted("mask_missing", "typo", "typo", (("no such text", ""),))
    with pytest.raises(ValueError, match="no such text"):
        planted.source()


FILL, SPLIT = (PLANTED[n].changes[0] for n in ("mask_missing", "heads_viewed"))


def test_two_mistakes_at_once_are_both_named():
    changes = (FILL, ("self.head_dim**0.5", "1"))
    planted = Planted("mask_missing", "two", "two", changes)
    assert set(names(check(planted))) == {"mask_missing", "scale_missing"}


def test_three_mistakes_at_once_are_all_named():
    changes = (("-torch.inf", "0"), ("self.head_dim**0.5", "1"), SPLIT)
    planted = Planted("mask_fill_zero", "three", "three", changes)
    expected = {"mask_fill_zero", "scale_missing", "heads_viewed"}
    assert set(names(check(planted))) == expected


def test_what_follows_from_the_named_cause_is_told_with_it():
    report = check(PLANTED["mask_missing"])
    (finding,) = report.findings
    assert "Position 0 changed when token 1 changed" in finding.seen
    assert "masked_fill" in finding.line


def test_an_unknown_difference_is_not_given_a_wrong_name(monkeypatch):
    monkeypatch.setattr("attncheck.parity.TRIES", 600)
    source = MULTI_HEAD.replace(
        "weights = self.dropout",
        "weights = weights.square()\n" + 8 * " " + "weights = self.dropout",
    )
    planted = Planted("differs", "squared", "squared", ())
    # The squares do not sum to 1: that is the symptom, and there is no cause.
    assert names(check(planted, source)) == ["rows_do_not_sum_to_one"]
    source = MULTI_HEAD.replace("= self.W_key(x)", "= self.W_key(x).sin()")
    assert names(check(planted, source)) == ["differs"]


def test_every_mistake_leads_to_a_page_and_has_all_its_words():
    for mistake in MISTAKES.values():
        assert mistake.page in PAGES
        assert mistake.severity in ("error", "warning")
        assert mistake.title
        assert mistake.stage
        assert mistake.means.endswith(".")
        assert mistake.line


@pytest.mark.parametrize("held", [0.0, 3.0, -1e30, torch.inf])
def test_what_memory_holds_decides_nothing(held, monkeypatch):
    empty = torch.empty

    def as_found(*sizes, **options):
        made = empty(*sizes, **options)
        if made.is_meta or made.isnan().any():  # NaN: the checker's
            return made
        return made.fill_(held)

    monkeypatch.setattr(torch, "empty", as_found)
    assert names(check(PLANTED["init_missing"])) == ["init_missing"]


def test_findings_are_the_same_every_time():
    planted = PLANTED["dropout_not_rescaled"]
    first = repr(check(planted))
    torch.rand(17)
    assert repr(check(planted)) == first
    assert "0x" not in first
