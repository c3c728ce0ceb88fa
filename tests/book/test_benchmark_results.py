"""What the page on time says in words holds in the stored results."""

import itertools
import math
import runpy
import statistics

import pytest

from coding_attention.models import stored
from coding_attention.published_values import ROOT

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


def test_it_was_quiet_or_other_programs_were_not_counted(results):
    machine = results["machine"]
    quiet = machine["load_average_before"] < machine["cores"]
    assert quiet or (machine["threads"], machine["clock"]) == (1, "processor")


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


def test_every_interval_is_that_of_its_rounds(results, sizes):
    interval = runpy.run_path(str(ROOT / "benchmarks" / "timing.py"))["interval"]
    for kind in KINDS:
        for name, row in sizes[1024][kind].items():
            base = sizes[1024][kind]["floor"]["rounds_s"]
            found = interval(
                [a / b for a, b in zip(row["rounds_s"], base, strict=True)]
            )
            assert row["ratio_interval"] == pytest.approx(found, rel=1e-3), name


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
        low, high = step["ratio_interval"]
        assert ratios[0] <= low <= step["ratio"] <= high <= ratios[-1]


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
    assert results["decoding"]["largest_difference"] < 1e-5


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
