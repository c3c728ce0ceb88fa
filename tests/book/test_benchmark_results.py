"""What the page on speed says in words holds in the stored results."""

import pytest

from attention.chapter.models import stored

EVERYTHING = {
    "fused", "sdpa", "listing", "divided", "wrapper", "torch", "torch_weights"
}  # fmt: skip


@pytest.fixture(scope="module")
def results():
    return stored.load_results("attention_speed")


@pytest.fixture(scope="module")
def fresh(results):
    """(t, kind) -> name -> time / floor."""
    return {
        (size["t"], kind): {name: row["ratio"] for name, row in size[kind].items()}
        for size in results["speed"]
        for kind in ("forward", "forward_backward")
    }


@pytest.fixture(scope="module")
def kept(results):
    size = results["kept_memory"]["speed"]
    return {
        kind: {name: row["ratio"] for name, row in size[kind].items()}
        for kind in ("forward", "forward_backward")
    }


def test_the_two_fused_forms_take_the_least(fresh):
    row = fresh[1024, "forward"]
    assert set(sorted(EVERYTHING, key=row.get)[:2]) == {"fused", "sdpa"}


def test_the_listing_loses_more_with_more_tokens(fresh):
    gaps = [
        fresh[t, "forward"]["listing"] / fresh[t, "forward"]["fused"]
        for t in (256, 1024, 4096)
    ]
    assert gaps == sorted(gaps)
    assert gaps[0] < 1.3, "little to gain in short sequences"
    assert gaps[2] > 2, "much in long ones"


@pytest.mark.parametrize("kind", ["forward", "forward_backward"])
def test_kept_memory_brings_the_listing_close_to_the_floor(kind, fresh, kept):
    before, after = fresh[1024, kind]["listing"] - 1, kept[kind]["listing"] - 1
    assert after < before / 2, "most of what it spends beyond the floor"
    assert fresh[1024, kind]["fused"] == pytest.approx(kept[kind]["fused"], rel=0.15)


@pytest.mark.parametrize("kind", ["forward", "forward_backward"])
def test_the_wrapper_wins_with_fresh_memory_only(kind, fresh, kept):
    assert fresh[1024, kind]["wrapper"] < fresh[1024, kind]["listing"]
    assert kept[kind]["wrapper"] > kept[kind]["listing"]


@pytest.mark.parametrize("kind", ["forward", "forward_backward"])
@pytest.mark.parametrize("t", [256, 4096])
def test_the_wrapper_does_not_win_at_other_sizes(t, kind, fresh):
    assert fresh[t, kind]["wrapper"] > fresh[t, kind]["listing"]


def test_a_few_heads_at_a_time_are_no_faster(results):
    heads = results["kept_memory"]["heads_at_a_time"]["heads"]
    assert all(row["ratio"] == pytest.approx(1, abs=0.1) for row in heads.values())
    assert min(row["ratio"] for row in heads.values()) == heads["12"]["ratio"] == 1


@pytest.mark.parametrize("t", [1024, 4096])
def test_pytorchs_own_layer_gets_faster_with_gradients(t, fresh):
    assert fresh[t, "forward"]["torch"] > 2, "it stores the scores"
    assert fresh[t, "forward_backward"]["torch"] < 1, "it does not"


@pytest.mark.parametrize("t", [1024, 4096])
def test_forms_that_store_scores_vary_more_in_long_sequences(t, results):
    row = next(size["forward"] for size in results["speed"] if size["t"] == t)

    def spread(name):
        low, high = row[name]["ratio_quartiles"]
        return high - low

    kernels = {"fused", "sdpa"}
    most = max(map(spread, kernels))
    assert all(spread(name) > most for name in EVERYTHING - kernels)


def test_mask_and_softmax_take_more_time_than_arithmetic(results):
    t, shares = 1024, results["steps"]["shares"]
    d, h, d_head = 768, 12, 64
    whole = 8 * t * d * d + (4 * h * d_head + 6 * h) * t * t
    arithmetic = 6 * h * t * t / whole
    assert shares["mask"] + shares["softmax"] > 5 * arithmetic
    assert shares["softmax"] > 3 * shares["mask"], "far more, with as many bytes"


def test_a_cached_step_is_at_least_twenty_times_cheaper(results):
    last = results["decoding"]["rows"][-1]
    assert last["t"] == 1024
    assert last["steps"]["fused, recomputed"]["ratio"] >= 20
    assert results["decoding"]["largest_difference"] < 1e-5


def test_what_was_aimed_at_is_reached(results):
    missed = [target for target in results["targets"] if not target["reached"]]
    assert missed == []


def test_fused_memory_grows_with_tokens_not_their_square(results):
    rows = {row["t"]: row["forward"] for row in results["memory"]["fused"]}
    fused = rows[4096]["allocated"] / rows[1024]["allocated"]
    assert fused == pytest.approx(4, rel=0.05)
    rows = {row["t"]: row["forward"] for row in results["memory"]["listing"]}
    assert rows[4096]["allocated"] / rows[1024]["allocated"] > 12
