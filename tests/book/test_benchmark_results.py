"""What the page on time says in words holds in the stored results."""

import itertools
import statistics

import pytest

from coding_attention.models import stored

KINDS = ("forward", "forward_backward")
STEPS = ["listing", "combined", "queries", "added", "sdpa"]


@pytest.fixture(scope="module")
def results():
    return stored.load_results("attention_speed")


@pytest.fixture(scope="module")
def sizes(results):
    return {size["t"]: size for size in results["speed"]}


def test_the_machine_is_named(results):
    machine, peaks = results["machine"], results["peaks"]
    assert machine["processor"]
    assert machine["virtual"] in (True, False)
    assert all(peaks[name] > 0 for name in ("flops_per_s", "bytes_per_s", "page_s"))


def test_it_was_quiet(results):
    """On a busy machine ratios say little; two cores, so two programs at most."""
    assert results["machine"]["load_average_before"] < results["machine"]["cores"]


def test_mask_softmax_and_one_more_token_wait_for_memory(results):
    ridge = results["peaks"]["flops_per_s"] / results["peaks"]["bytes_per_s"]
    h, d_head = 12, 64
    assert ridge > 5 / 8  # softmax: five FLOPs, one float read and one written
    assert ridge > (4 * d_head + 6) * h / (8 * d_head * h)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_compared_round_by_round_with_the_one_before(kind, results, sizes):
    assert list(results["steps"][kind]) == STEPS[1:]
    for before, name in itertools.pairwise(STEPS):
        rounds = [sizes[1024][kind][n]["rounds_s"] for n in (name, before)]
        ratios = sorted(a / b for a, b in zip(*rounds, strict=True))
        step = results["steps"][kind][name]
        assert step["ratio"] == pytest.approx(statistics.median(ratios), rel=1e-3)
        low, high = step["ratio_quartiles"]
        assert ratios[0] <= low <= step["ratio"] <= high <= ratios[-1]


def test_the_longer_the_text_the_more_the_fused_form_gains(sizes):
    gains = [
        sizes[t]["forward"]["listing"]["ratio"] / sizes[t]["forward"]["fused"]["ratio"]
        for t in (256, 1024, 4096)
    ]
    assert gains == sorted(gains)


def test_a_cached_step_takes_a_fraction_of_the_time(results):
    last = results["decoding"]["rows"][-1]
    assert last["t"] == 1024
    assert last["steps"]["fused, recomputed"]["ratio_quartiles"][0] > 10
    assert results["decoding"]["largest_difference"] < 1e-5


def test_fused_memory_grows_with_tokens_not_their_square(results):
    rows = {row["t"]: row["forward"] for row in results["memory"]["fused"]}
    fused = rows[4096]["allocated"] / rows[1024]["allocated"]
    assert fused == pytest.approx(4, rel=0.05)
    rows = {row["t"]: row["forward"] for row in results["memory"]["listing"]}
    assert rows[4096]["allocated"] / rows[1024]["allocated"] > 12
