"""The stored results: made by this code, and as the pages tell them, for every seed."""

import dataclasses
import itertools
import json
import math

import pytest
import torch

from coding_attention.models import (
    agreement,
    bottleneck,
    halves,
    heads,
    induction,
    root,
    stored,
    text,
)
from experiments import runs
from experiments.__main__ import NAMES

MODULES = {
    "agreement": agreement,
    "bottleneck": bottleneck,
    "halves": halves,
    "induction": induction,
    "root": root,
    "text": text,
}
WEIGHTS = {*bottleneck.KEPT, "induction", "text"}


@pytest.fixture(scope="module")
def results():
    return {name: stored.load_results(name) for name in NAMES}


# ---- whole, and made by this code ----


@pytest.mark.parametrize("name", NAMES)
def test_results_were_made_by_this_code(name, results):
    module = MODULES[name]
    code = runs.fingerprint(module.Config(), *module.CODE)
    assert results[name]["code"] == code, f"run: python -m experiments {name}"
    config = json.loads(json.dumps(dataclasses.asdict(module.Config())))
    assert results[name]["config"] == config


@pytest.mark.parametrize("name", NAMES)
def test_every_part_is_there_with_its_cost(name, results):
    module = MODULES[name]
    parts = ["-".join(map(str, part)) for part in module.parts(module.Config())]
    assert len(results[name]["runs"]) == len(parts)
    made_with = results[name]["made_with"]
    cost = made_with.get("seconds", made_with.get("cost"))
    assert list(cost) == parts


def test_weights_are_small_and_a_page_loads_each():
    # The trained model of English has a test of its own.
    files = {path.stem: path for path in runs.RESULTS.glob("[!r]*.safetensors")}
    assert set(files) == WEIGHTS
    assert all(path.stat().st_size <= 2**20 for path in files.values())


# ---- why attention ----


def of(results, task, kind):
    return [
        r
        for r in results["bottleneck"]["runs"]
        if (r["task"], r["kind"]) == (task, kind)
    ]


def test_with_attention_every_length_is_mastered_for_every_seed(results):
    for run in of(results, "reversal", "with"):
        assert min(run["full"]["accuracy"]) > 0.93, run["seed"]


def test_without_attention_each_length_is_harder_for_every_seed_and_budget(results):
    for run in of(results, "reversal", "without"):
        for budget in ("few", "full"):
            accuracy = run[budget]["accuracy"]
            assert accuracy[0] > 0.95, run["seed"]
            pairs = list(itertools.pairwise(accuracy))
            assert accuracy[0] >= accuracy[1], run["seed"]
            assert all(a > b for a, b in pairs[1:]), run["seed"]  # from four letters


def test_without_attention_longer_training_helps_at_every_length_but_not_enough(
    results,
):
    worst = min(r["full"]["accuracy"][-1] for r in of(results, "reversal", "with"))
    for run in of(results, "reversal", "without"):
        few, full = run["few"]["accuracy"], run["full"]["accuracy"]
        assert all(b > a for a, b in zip(few[1:], full[1:], strict=True)), run["seed"]
        assert full[-1] < 0.5 < worst, run["seed"]


def test_without_attention_the_loss_of_four_of_five_was_still_falling(results):
    runs_ = of(results, "reversal", "without")
    assert sum(run["loss"][-1] < run["loss"][-6] for run in runs_) == 4


def test_early_attention_is_ahead_at_every_length_but_the_shortest(results):
    columns = {
        kind: list(
            zip(
                *(r["few"]["accuracy"] for r in of(results, "reversal", kind)),
                strict=True,
            )
        )
        for kind in bottleneck.KINDS
    }
    pairs = list(zip(columns["with"], columns["without"], strict=True))
    assert all(min(w) > max(without) for w, without in pairs[1:])


def test_attention_learns_in_fewer_steps_for_every_seed(results):
    def steps(run):
        pairs = zip(run["steps"], run["loss"], strict=True)
        return next(step for step, loss in pairs if loss <= 0.4)

    slowest = max(map(steps, of(results, "reversal", "with")))
    assert 2 * slowest < min(map(steps, of(results, "reversal", "without")))


def test_the_alignment_is_learned_in_the_grammar_and_not_in_the_reversal(results):
    (run,) = of(results, "grammar", "with")
    assert min(run["full"]["aligned"]) > 0.95
    first = of(results, "reversal", "with")[0]
    assert first["full"]["aligned"][-1] < 0.2 < 0.95 < first["full"]["accuracy"][-1]


@pytest.mark.parametrize(
    ("task", "kind"),
    [("reversal", "without"), ("reversal", "with"), ("grammar", "with")],
)
def test_stored_weights_reach_the_stored_accuracy(task, kind, results):
    config = bottleneck.Config()
    model = bottleneck.build(config, task, kind)
    model.load_state_dict(stored.load_weights(f"bottleneck_{task}_{kind}"))
    run = of(results, task, kind)[0]
    measured = bottleneck.measure(model, task, config)
    for name in ("accuracy", "aligned"):
        if run["full"][name] is not None:
            assert measured[name] == pytest.approx(run["full"][name], abs=0.002)


# ---- watch heads learn ----


def inductions(results, blocks=2):
    return [r for r in results["induction"]["runs"] if r["blocks"] == blocks]


def found(results):
    """The trainings that found the trick."""
    return [r for r in inductions(results) if r["loss"][-1] < 0.5]


def test_the_loss_stays_near_guessing_and_then_drops(results):
    guessing = math.log(induction.Config().vocab_size)
    for run in found(results):
        loss = dict(zip(run["steps"], run["loss"], strict=True))
        assert loss[200] > guessing - 0.2, run["seed"]
        # Most of the fall happens within a fifth of the training.
        falls = [loss[s] - loss[s + 240] for s in range(0, 961, 20)]
        assert max(falls) > 0.6 * (loss[0] - loss[1200]), run["seed"]


def test_heads_form_while_the_loss_drops(results):
    for run in found(results):
        shown = run["shown"]
        drops = [a["loss"] - b["loss"] for a, b in itertools.pairwise(shown)]
        for score, block in (("previous", 0), ("induction", 1)):
            best = [max(s[score][block]) for s in shown]
            rises = [b - a for a, b in itertools.pairwise(best)]
            apart = abs(rises.index(max(rises)) - drops.index(max(drops)))
            assert apart <= 1, (run["seed"], score)


def strongest(run):
    scores = run["shown"][-1]["previous"][0]
    return scores.index(max(scores))


@pytest.mark.parametrize("way", ["zero", "mean"])
def test_every_head_is_missed(way, results):
    for run in found(results):
        losses = run["ablated"][way]
        assert min(x for block in losses for x in block) > run["loss"][-1]


@pytest.mark.parametrize("way", ["zero", "mean"])
def test_the_keys_are_the_wire_that_matters(way, results):
    for run in found(results):
        cut, intact = run["cut"][way][strongest(run)], run["loss"][-1]
        keys, others = cut["keys"] - intact, (cut["queries"], cut["values"])
        assert keys > 0.5, run["seed"]
        assert keys > 0.7 * (cut["all"] - intact), run["seed"]
        assert max(others) - intact < 0.2 * keys, run["seed"]


def test_an_induction_head_rests_on_the_first_token(results):
    for run in found(results):
        last = run["shown"][-1]
        pairs = zip(last["induction"][1], last["sink"][1], strict=True)
        assert max(sink for score, sink in pairs if score > 0.8) > 0.5, run["seed"]


def test_patterns_are_stored_for_the_lab(results):
    first, *others = results["induction"]["runs"]
    assert all("patterns" not in run for run in others)
    patterns = torch.tensor(first["patterns"])
    assert patterns.shape == (10, 2, 2, 12, 12)
    assert patterns.triu(1).eq(0).all()
    assert (patterns.sum(dim=-1) - 1).abs().max() < 0.01
    model = induction.build(induction.Config()).eval()
    model.load_state_dict(stored.load_weights("induction"))
    now = heads.attention_weights(model, induction.sentence())[0]
    assert (now - patterns[-1]).abs().max() < 0.002


# ---- the model that writes ----
