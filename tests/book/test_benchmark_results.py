"""What the page on time says in words holds in the stored results."""

import math
import runpy

import pytest

from coding_attention.models import stored
from coding_attention.published_values import ROOT

KINDS = ("forward", "forward_backward")


@pytest.fixture(scope="module")
def results():
    return stored.load_results("attention_speed")


@pytest.fixture(scope="module")
def sizes(results):
    return {size["t"]: size for size in results["speed"]}


def test_the_intervals_hold_the_median_in_19_of_20_cases():
    interval = runpy.run_path(str(ROOT / "benchmarks" / "timing.py"))["interval"]
    for n in range(6, 40):
        low, high = interval(list(range(n, 0, -1)))
        # The median lies outside if fewer than `low` rounds fall on one side of it.
        outside = 2 * sum(math.comb(n, i) for i in range(low)) / 2**n
        assert high == n + 1 - low
        assert outside <= 0.05
        if low + 1 <= n - low:  # and it is the shortest of its kind
            assert outside + 2 * math.comb(n, low) / 2**n > 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_the_longer_the_text_the_more_the_fused_form_gains(kind, sizes):
    gains = [
        sizes[t][kind]["listing"]["ratio"] / sizes[t][kind]["fused"]["ratio"]
        for t in (256, 1024, 4096)
    ]
    assert gains == sorted(gains)


def test_not_every_change_gains_and_the_kernel_goes_below_the_floor(results, sizes):
    steps = [step for kind in KINDS for step in results["steps"][kind].values()]
    assert any(round(step["ratio_interval"][1], 2) >= 1 for step in steps)
    assert any(round(step["ratio_interval"][1], 2) < 1 for step in steps)
    assert sizes[1024]["forward"]["sdpa"]["ratio"] < 1


def test_a_cached_step_takes_a_fraction_of_the_time(results):
    last = results["decoding"]["rows"][-1]
    assert last["t"] == 1024
    assert last["steps"]["fused, recomputed"]["ratio_interval"][0] > 10


def test_a_mask_saves_no_time_and_leaving_out_what_it_hides_does(results):
    """The four windows are compared with causal attention over everything."""
    masks = results["masks"]["masks"]
    for name in ("causal, as a matrix", "window, as a matrix"):
        assert masks[name]["ratio_interval"][0] > 1
    assert masks["window, cut into bands"]["ratio_interval"][1] < 1
    assert masks["window, FlexAttention"]["ratio_interval"][1] < 1


def test_a_batch_shares_its_parameters_and_no_cache(results):
    steps = results["batched"]["steps"]
    last = results["batched"]["batches"][-1]
    assert steps["parameters"][str(last)]["ratio_interval"][1] / last < 0.5
    assert steps["cache"][str(last)]["ratio_interval"][0] / last > 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_fused_memory_grows_with_tokens_not_their_square(kind, results):
    rows = {row["t"]: row[kind] for row in results["memory"]["fused"]}
    fused = rows[4096]["allocated"] / rows[1024]["allocated"]
    assert fused == pytest.approx(4, rel=0.15)
    rows = {row["t"]: row[kind] for row in results["memory"]["listing"]}
    assert rows[4096]["allocated"] / rows[1024]["allocated"] > 12
