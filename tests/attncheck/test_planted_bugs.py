"""Every planted bug is caught, and by its own name."""

import pytest
import torch

import attention
from attncheck import MISTAKES
from attncheck.mistakes import SYMPTOMS
from attncheck.report import PAGES
from coding_attention.gallery import planted_bugs
from coding_attention.gallery.more_bugs import MORE

PLANTED = planted_bugs.PLANTED
BASES = planted_bugs.BASES
UNKNOWN = {"W_query": "alpha", "W_key": "beta", "W_value": "gamma"}

# Mistakes that other tests provoke: no change of a line in the class makes them.
ELSEWHERE = {
    "constructor_raises",
    "out_of_memory",
    "hangs",
    "slow",
    "forward_raises",
    "not_a_tensor",
    "mask_unwanted",
    "future_leaks",
    "tokens_not_mixed",
    "not_finite",
    "rows_do_not_sum_to_one",
    "length_matters",
    "differs",
    "differs_from_reference",
}

# Told by the presets, by tests of bugs around attention, and by others.
ELSEWHERE |= {bug.expected for bug in MORE} | {
    "changes_settings",
    "alibi_unused",
    "rope_offset",
    "rope_directions",
    "qk_norm_unused",
    "qk_norm_axis",
    "prenorm_unused",
    "prenorm_partly",
    "cache_positions",
    "cache_batch",
    "padding_rows",
    "cross_ignores_queries",
    "cross_mixes_queries",
    "cross_order",
    "training_differs",
}

# What is named when the weights have names that the check does not know.
BLACK_BOX = (
    "mask_forgotten",
    "tril_for_triu",
    "diagonal_2",
    "fill_minus_10000",
    "softmax_over_queries",
    "not_scaled",
    "scaled_by_tokens",
    "view_without_transpose",
    "attention_among_heads",
)


def check(planted, source=None):
    cls = planted_bugs.compiled(source or planted.source(), f"{planted.name}.py")
    report = attention.check(cls, **planted.arguments)
    assert [r for r in report.results if r.outcome == "broken"] == []
    return report


def names(report):
    return [finding.mistake for finding in report.findings]


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_planted_bug_is_named_first_or_second(planted):
    report = check(planted)
    assert planted.expected in names(report)[:2], str(report)
    # Warnings do not fail, unless that is asked for.
    fails = any(finding.severity == "error" for finding in report.findings)
    assert report.exit_status == fails
    report.strict = True
    assert report.exit_status == 1


@pytest.mark.parametrize("base", BASES)
def test_without_the_change_nothing_is_found(base):
    cls = planted_bugs.compiled(planted_bugs.HEADER + BASES[base], f"{base}.py")
    report = attention.check(cls, causal=base != "library")
    assert report.ok, str(report)


@pytest.mark.parametrize("name", BLACK_BOX)
def test_something_is_found_under_unknown_names(name):
    planted = next(planted for planted in PLANTED if planted.name == name)
    source = planted.source()
    for known, unknown in UNKNOWN.items():
        source = source.replace(known, unknown)
    report = check(planted, source)
    found = [f for f in report.findings if f.severity == "error"]
    assert found, str(report)
    # By its cause, or by a symptom; never by another cause.
    causes = set(names(report)) - SYMPTOMS - {"mask_fill_finite", "dropout_on_scores"}
    assert causes <= {planted.expected}, str(report)


def test_the_table_is_as_large_and_as_distinct_as_it_says():
    assert len(PLANTED) >= 40
    assert len({planted.name for planted in PLANTED}) == len(PLANTED)
    assert len({planted.source() for planted in PLANTED}) == len(PLANTED)
    expected = {planted.expected for planted in PLANTED}
    assert expected | ELSEWHERE == set(MISTAKES)


def test_a_change_that_does_not_apply_is_refused():
    planted = planted_bugs.Planted("typo", "mask_missing", (("no such text", ""),))
    with pytest.raises(ValueError, match="no such text"):
        planted.source()


def test_two_mistakes_at_once_are_both_named():
    changes = ((planted_bugs._FILL, "scores"), ("self.head_dim**0.5", "1"))
    planted = planted_bugs.Planted("two", "mask_missing", changes)
    assert set(names(check(planted))) == {"mask_missing", "scale_missing"}


def test_three_mistakes_at_once_are_all_named():
    changes = (
        ("-torch.inf", "0"),
        ("self.head_dim**0.5", "1"),
        (planted_bugs._SPLIT, planted_bugs._VIEWED),
    )
    planted = planted_bugs.Planted("three", "mask_fill_zero", changes)
    expected = {"mask_fill_zero", "scale_missing", "heads_viewed"}
    assert set(names(check(planted))) == expected


def test_what_follows_from_the_named_cause_is_told_with_it():
    report = check(next(p for p in PLANTED if p.name == "mask_forgotten"))
    (finding,) = report.findings
    assert "Position 0 changed when token 1 changed" in finding.seen
    assert "equal to attention without a mask" in finding.seen
    assert "masked_fill" in finding.line


def test_an_unknown_difference_is_not_given_a_wrong_name():
    source = planted_bugs.HEADER + BASES["multi_head"]
    source = source.replace(
        "weights = self.dropout",
        "weights = weights.square()\n" + 8 * " " + "weights = self.dropout",
    )
    planted = planted_bugs.Planted("squared", "differs", ())
    # The squares do not sum to 1: that is the symptom, and there is no cause.
    assert names(check(planted, source)) == ["rows_do_not_sum_to_one"]
    source = planted_bugs.HEADER + BASES["multi_head"].replace("0.5, dim", "0.3, dim")
    assert names(check(planted, source)) == ["differs"]


def test_every_mistake_leads_to_a_page_and_has_all_its_words():
    for mistake in MISTAKES.values():
        assert mistake.page in PAGES
        assert mistake.severity in ("error", "warning")
        assert mistake.title
        assert mistake.means.endswith(".")
        assert mistake.line


def test_findings_are_the_same_every_time():
    planted = next(p for p in PLANTED if p.name == "dropout_not_rescaled")
    first = repr(check(planted))
    torch.rand(17)
    assert repr(check(planted)) == first
    assert "0x" not in first
