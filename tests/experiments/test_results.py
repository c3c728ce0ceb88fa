"""The stored results: made by this code, and as the pages tell them, for every seed."""

import dataclasses
import itertools
import json
import math

import pytest
import torch

from attention.chapter.models import bottleneck, heads, induction, stored, text
from experiments import runs
from experiments.__main__ import NAMES
from tests.book.pages import BOOK, Page
from tools.printed_values import numbers, text_of

MODULES = {"bottleneck": bottleneck, "induction": induction, "text": text}
WEIGHTS = {
    "bottleneck_reversal_with", "bottleneck_reversal_without",
    "bottleneck_grammar_with", "bottleneck_grammar_without", "induction", "text",
}  # fmt: skip


@pytest.fixture(scope="module")
def results():
    return {name: stored.load_results(name) for name in NAMES}


# ---- whole, and made by this code ----


def test_every_experiment_is_checked():
    assert set(MODULES) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_results_were_made_by_this_code(name, results):
    module = MODULES[name]
    code = runs.fingerprint(module.Config(), *module.CODE)
    assert results[name]["code"] == code, f"run: python -m experiments {name}"
    config = json.loads(json.dumps(dataclasses.asdict(module.Config())))
    assert results[name]["config"] == config


@pytest.mark.parametrize("name", NAMES)
def test_every_seed_is_there_with_its_cost(name, results):
    seeds = {run["seed"] for run in results[name]["runs"]}
    assert seeds == set(results[name]["config"]["seeds"])
    made_with = results[name]["made_with"]
    assert set(made_with) == {"python", "torch", "cost"}
    assert len(made_with["cost"]) == len(results[name]["runs"])
    for cost in made_with["cost"].values():
        assert cost["seconds"] > 0
        assert 100 < cost["peak_mib"] < 2000


def test_weights_are_small_and_all_there():
    files = {path.stem: path for path in runs.RESULTS.glob("*.safetensors")}
    assert set(files) == WEIGHTS
    assert all(path.stat().st_size <= 2**20 for path in files.values())


def test_pages_use_every_result():
    pages = "".join(p.read_text(encoding="utf-8") for p in BOOK.glob("0[19]_*.md"))
    for name in NAMES:
        assert f'load_results("{name}")' in pages


# ---- why attention ----


def of(results, task, kind):
    return [
        r
        for r in results["bottleneck"]["runs"]
        if (r["task"], r["kind"]) == (task, kind)
    ]


@pytest.mark.parametrize("task", ["reversal", "grammar"])
def test_budgets_are_equal(task, results):
    sizes = {
        r["kind"]: r["parameters"]
        for r in results["bottleneck"]["runs"]
        if r["task"] == task
    }
    assert abs(sizes["without"] / sizes["with"] - 1) < 0.03


@pytest.mark.parametrize("task", ["reversal", "grammar"])
def test_with_attention_every_length_is_mastered(task, results):
    for run in of(results, task, "with"):
        assert min(run["accuracy"]) > 0.95, run["seed"]


@pytest.mark.parametrize("task", ["reversal", "grammar"])
def test_without_attention_each_length_is_harder(task, results):
    for run in of(results, task, "without"):
        accuracy = run["accuracy"]
        assert accuracy[0] > 0.95, run["seed"]
        assert accuracy == sorted(accuracy, reverse=True), run["seed"]
        assert accuracy[-1] < 0.5, run["seed"]


@pytest.mark.parametrize("task", ["reversal", "grammar"])
def test_seeds_differ_less_than_kinds(task, results):
    columns = [
        [r["accuracy"][-1] for r in of(results, task, kind)]
        for kind in ("with", "without")
    ]
    spread = max(max(c) - min(c) for c in columns)
    assert min(columns[0]) - max(columns[1]) > 4 * spread


def test_the_alignment_is_learned_in_the_grammar(results):
    for run in of(results, "grammar", "with"):
        assert min(run["aligned"]) > 0.95, run["seed"]


def test_the_alignment_is_less_clear_in_the_reversal(results):
    grammar = min(r["aligned"][-1] for r in of(results, "grammar", "with"))
    for run in of(results, "reversal", "with"):
        assert run["aligned"][-1] < grammar - 0.05, run["seed"]


@pytest.mark.parametrize("kind", ["with", "without"])
@pytest.mark.parametrize("task", ["reversal", "grammar"])
def test_stored_weights_reach_the_stored_accuracy(task, kind, results):
    config = bottleneck.Config()
    model = bottleneck.build(config, task, kind)
    model.load_state_dict(stored.load_weights(f"bottleneck_{task}_{kind}"))
    run = of(results, task, kind)[0]
    arguments = run["lengths"][-1], config.test_count, config.test_seed
    right, aligned = bottleneck.accuracy(model, task, *arguments)
    assert right == pytest.approx(run["accuracy"][-1], abs=0.002)
    if kind == "with":
        assert aligned == pytest.approx(run["aligned"][-1], abs=0.002)


# ---- watch heads learn ----


def inductions(results):
    return results["induction"]["runs"]


def test_the_loss_stays_and_then_drops(results):
    guessing = math.log(induction.Config().vocab_size)
    for run in inductions(results):
        loss = dict(zip(run["steps"], run["loss"], strict=True))
        assert loss[200] > guessing - 0.1, run["seed"]
        # Most of the fall happens within a fifth of the training.
        falls = [loss[s] - loss[s + 240] for s in range(0, 961, 20)]
        assert max(falls) > 0.75 * (loss[0] - loss[1200]), run["seed"]
        assert loss[1200] < 0.15, run["seed"]


def test_previous_token_heads_form_in_the_first_block(results):
    for run in inductions(results):
        first, second = run["shown"][-1]["previous"]
        assert max(first) > 0.9, run["seed"]
        assert max(second) < 0.25, run["seed"]
        assert max(run["shown"][0]["previous"][0]) < 0.25, run["seed"]


def test_induction_heads_form_in_the_second_block(results):
    for run in inductions(results):
        first, second = run["shown"][-1]["induction"]
        assert min(second) > 0.85, run["seed"]  # all of them
        assert max(first) < 0.1, run["seed"]
        assert max(run["shown"][0]["induction"][1]) < 0.1, run["seed"]


def test_heads_form_while_the_loss_drops(results):
    for run in inductions(results):
        shown = run["shown"]
        drops = [a["loss"] - b["loss"] for a, b in itertools.pairwise(shown)]
        for score, block in (("previous", 0), ("induction", 1)):
            best = [max(s[score][block]) for s in shown]
            rises = [b - a for a, b in itertools.pairwise(best)]
            apart = abs(rises.index(max(rises)) - drops.index(max(drops)))
            assert apart <= 1, (run["seed"], score)


def test_without_the_best_previous_token_head_much_is_lost(results):
    for run in inductions(results):
        scores = run["shown"][-1]["previous"][0]
        losses = run["ablated"][0]
        strongest = scores.index(max(scores))
        assert losses[strongest] > 2, run["seed"]
        assert losses[strongest] == max(losses), run["seed"]


def test_every_head_is_missed(results):
    for run in inductions(results):
        assert min(x for block in run["ablated"] for x in block) > run["loss"][-1]


def test_patterns_are_stored_for_the_lab(results):
    first, *others = inductions(results)
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


def test_most_sentences_are_right(results):
    for run in results["text"]["runs"]:
        assert run["right"] > 0.9, run["seed"]
        assert run["loss"][-1] < run["loss"][0] / 2, run["seed"]


def test_gpt2_layers_have_the_parameters_of_exercise_3_3():
    def shown(page, name):
        (cell,) = (c for c in Page(page).code_cells if c.metadata.name == name)
        return {n for n in numbers(text_of(cell).replace(",", "")) if len(n) > 6}

    here = shown("09_watch_heads_learn", "exercise-3-3-again")
    assert len(here) == 4
    assert here == shown("05_multi_head_attention", "exercise-3-3")
