"""Training: the loss falls, and a run that was stopped ends where it would have."""

import dataclasses

import pytest
import torch

from coding_attention.models import (
    bottleneck,
    induction,
    stored,
    text,
    training,
)
from experiments import runs

SMALL = dataclasses.replace(
    induction.Config(),
    steps=12,
    shown=(0, 12),
    loss_every=4,
    test_count=4,
    batch_size=4,
)


def test_the_loss_falls():
    config = dataclasses.replace(
        text.Config(), steps=40, loss_every=10, test_count=1, num_blocks=1, batch_size=4
    )  # fmt: skip
    losses = text.fit(config, seed=0)["loss"]
    assert len(losses) == 4
    assert losses[-1] < losses[0] - 0.3
    assert losses[-1] < 3.0  # guessing among 28 letters: 3.33


def test_the_loss_falls_for_both_kinds_of_translator():
    config = dataclasses.replace(
        bottleneck.Config(), few_steps=50, steps=100, check_every=50,
        test_count=50, lengths=(("reversal", (2,)),), tested=(("reversal", (2,)),),
    )  # fmt: skip
    for kind in bottleneck.KINDS:
        result = bottleneck.fit(config, "reversal", kind, 0)
        assert result["steps"] == [0, 50, 100]
        assert result["loss"][0] > result["loss"][1] > result["loss"][2], kind
        (few,), (full,) = (result[b]["accuracy"] for b in ("few", "full"))
        assert 0.15 < few < full, kind  # guessing among 16 letters: 0.06


class StoppedError(Exception):
    """Stands for a power cut."""


def run(folder, monkeypatch, stop_at=None, every=5):
    """Train a small model with checkpoints; stop before step ``stop_at``."""
    plain, counted = induction.draw, [0]

    def draw(config, count, generator):
        if count == config.batch_size and generator.initial_seed() == 0:
            if counted[0] == stop_at:
                raise StoppedError
            counted[0] += 1
        return plain(config, count, generator)

    train = training.train
    monkeypatch.setattr(induction, "draw", draw)
    monkeypatch.setattr(
        training, "train", lambda *args, **kw: train(*args, every=every, **kw)
    )
    result = induction.fit(SMALL, 2, seed=0, checkpoint=folder / "0.pt")
    monkeypatch.undo()
    return result, counted[0]


def test_going_on_from_a_checkpoint_gives_the_same_weights(tmp_path, monkeypatch):
    whole, steps = run(tmp_path / "whole", monkeypatch)
    assert steps == 12
    with pytest.raises(StoppedError):
        run(tmp_path / "cut", monkeypatch, stop_at=8)
    monkeypatch.undo()
    torch.manual_seed(99)  # whatever happened in between
    resumed, steps = run(tmp_path / "cut", monkeypatch)
    assert steps == 12 - 5  # from the checkpoint after step 5, not from the start
    for name, weight in whole.pop("weights").items():
        assert torch.equal(weight, resumed["weights"][name]), name
    resumed.pop("weights")
    assert resumed == whole


def test_the_learning_rate_of_a_smaller_budget_is_that_of_a_run_made_for_it():
    """Level up to its steps; from there it falls with the root of the step."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))])
    config = dataclasses.replace(bottleneck.Config(), few_steps=100, rate=2.0)
    rates = {}
    for index in (0, 24, 49, 99, 399):
        bottleneck.set_rate(optimizer, index, config)
        rates[index + 1] = optimizer.param_groups[0]["lr"]
    wanted = {1: 0.04, 25: 1.0, 50: 2.0, 100: 2.0, 400: 1.0}
    assert rates == pytest.approx(wanted)


def test_both_kinds_of_translator_see_the_same_sequences(monkeypatch):
    draw, *words = bottleneck.TASKS["reversal"]
    seen = {kind: [] for kind in bottleneck.KINDS}
    config = dataclasses.replace(
        bottleneck.Config(), few_steps=3, steps=3, check_every=3, test_count=5
    )
    for kind, drawn in seen.items():

        def noted(count, length, generator, drawn=drawn):
            found = draw(count, length, generator)
            if generator.initial_seed() == 7:
                drawn.append(found[0].tolist())
            return found

        monkeypatch.setitem(bottleneck.TASKS, "reversal", (noted, *words))
        bottleneck.fit(config, "reversal", kind, 7)
    assert len(seen["with"]) == 3
    assert seen["with"] == seen["without"]


# ---- fingerprints and files ----


@pytest.fixture
def code(tmp_path, monkeypatch):
    """Write a module into a folder and give the fingerprint of it and a config."""
    monkeypatch.setattr(runs, "CODE", tmp_path)

    def fingerprint(source, config=SMALL):
        (tmp_path / "module.py").write_text(source)
        return runs.fingerprint(config, "module")

    return fingerprint


def test_fingerprint_follows_config_and_code(code):
    first = code("def f(x):\n    return x + 1\n")
    assert first == code("def f(x):\n    return x + 1\n")
    assert first != code("def f(x):\n    return x + 2\n")
    assert first != code("def f(x):\n    return x - 1\n")
    assert first != code("def f(y):\n    return y + 1\n")
    other = dataclasses.replace(SMALL, rate=0.1)
    assert first != code("def f(x):\n    return x + 1\n", other)


def test_fingerprint_leaves_out_comments_docstrings_and_imports(code):
    first = code("def f(x):\n    return x + 1\n")
    same = (
        '"""M."""\nfrom m import f\ndef f(x):\n    """Add."""\n    # why\n'
        "    return (x\n     + 1)\n"
    )
    assert first == code(same)


def test_results_are_read_as_written(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "RESULTS", tmp_path)
    monkeypatch.setattr(stored, "RESULTS", tmp_path)
    results = {"a": [1, 2.5], "b": [[1, 2], [3, 4]], "c": [], "d": {"e": ["x,", "]"]}}
    runs.save_results("r", results)
    assert stored.load_results("r") == results
    assert '"a": [1, 2.5]' in (tmp_path / "r.json").read_text()
    weights = {"w": torch.arange(6.0).view(2, 3).T}
    runs.save_weights("r", weights)
    assert torch.equal(stored.load_weights("r")["w"], weights["w"])
