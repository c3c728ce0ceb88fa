"""Heads split over 2 and 4 processes compute what one process computes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from attention import FusedMultiHeadAttention

if torch.__version__ < "2.5":
    pytest.skip("split heads need PyTorch 2.5", allow_module_level=True)

from attention.parallel import heads_mesh, parameters_here, split_heads

pytestmark = [pytest.mark.package, pytest.mark.site]  # site: starts six processes

ROOT = Path(__file__).parents[2]
WORKER = Path(__file__).with_name("parallel_worker.py")


@pytest.fixture(scope="module", params=[2, 4])
def reports(request, tmp_path_factory):
    """Run the worker once per number of ranks; give what each rank has seen."""
    ranks, folder = request.param, tmp_path_factory.mktemp("ranks")
    # Meet in files and talk over the loopback device: no port is open to others.
    command = [sys.executable, "-m", "torch.distributed.run"]
    command += [f"--nproc-per-node={ranks}", "--local-addr=127.0.0.1"]
    command += ["--rdzv-backend=c10d", f"--rdzv-endpoint={folder / 'meet'}"]
    command += ["--rdzv-conf=store_type=file"]
    # Two are started as readers do. More ranks need not import PyTorch once each.
    forked = ranks > 2 and sys.platform == "linux"
    command = [sys.executable] if forked else command
    command += [str(WORKER), *(["--fork", str(ranks)] if forked else [])]
    command += ["--report", str(folder), "--store", str(folder / "store")]
    quiet = {
        "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        command,
        env=os.environ | quiet,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads((folder / f"{i}.json").read_text()) for i in range(ranks)]


@pytest.mark.parametrize(
    "layer", ["listing", "fused", "grouped", "windowed", "encoder"]
)
def test_split_heads_equal_one_process(reports, layer):
    for report in reports:
        seen = report[layer]
        for what in ("forward", "input gradient", "gradients", "step"):
            assert seen[what] < 1e-6, what
        # The bound means something only beside numbers that are far larger.
        assert seen["size of gradients"] > 1e-3
        assert seen["size of step"] > 1e-4


def test_ranks_talk_once_forward_and_once_backward(reports):
    """Queries, keys and values share one sum of their input's gradient."""
    for report in reports:
        assert len(report["collectives"]) == 15  # five layers, three lengths
        assert all(counts == [1, 1] for counts in report["collectives"])


# Tokens and key heads that a cache keeps after 10 tokens; of a window of 3, two tokens.
CACHED = {"fused": (10, 8), "grouped": (10, 4), "windowed": (2, 4)}


@pytest.mark.parametrize("layer", CACHED)
def test_split_heads_decode_with_a_cache(reports, layer):
    tokens, heads = CACHED[layer]
    for report in reports:
        assert report[layer]["cached"] < 1e-6
        # Keys and values of 2 sequences, heads 4 wide, 4 bytes a number.
        share = heads // len(reports)
        assert report[layer]["cached bytes"] == 2 * 2 * tokens * share * 4 * 4


@pytest.mark.parametrize("layer", [*CACHED, "encoder"])
def test_split_heads_see_no_padding(reports, layer):
    for report in reports:
        seen = report[layer]
        ways = ["memory"] if layer == "encoder" else ["cached and padded"]
        assert all(seen[way] < 1e-6 for way in ["padded", *ways]), seen
        assert seen["size of padding"] > 1e-2


@pytest.mark.parametrize(
    ("layer", "split", "repeated"),
    [
        ("listing", 3 * 32 * 24 + 3 * 32 + 32 * 32, 32),
        ("fused", 3 * 32 * 24 + 32 * 32, 32),
        ("grouped", (32 + 2 * 16) * (24 + 1) + 32 * 32, 32),
    ],
)
def test_each_rank_holds_its_share_of_the_parameters(reports, layer, split, repeated):
    # Only the output bias, added after the sum over ranks, is whole on every rank.
    for report in reports:
        assert report[layer]["alone"] == split + repeated
        assert report[layer]["parameters"] == split // len(reports) + repeated


def test_what_does_not_split_is_refused(reports):
    ranks = len(reports)
    parts = {
        "heads": ["ValueError", "num_heads=3", f"ranks={ranks}", "can be 1, 3."],
        "kv heads": ["ValueError", "num_kv_heads=1", f"ranks={ranks}", "can be 1."],
        "class": ["TypeError", "Linear", "one by one"],
        "mesh": ["TypeError", "DeviceMesh", "str", "heads_mesh()"],
        "twice": ["ValueError", "split already", "Build a new one"],
    }
    for report in reports:
        for name, expected in parts.items():
            for part in expected:
                assert part in report["refusals"][name]


@pytest.mark.parametrize("call", [heads_mesh, lambda: split_heads(None, None)])
def test_without_a_process_group_the_way_out_is_named(call):
    assert not dist.is_initialized()
    with pytest.raises(RuntimeError, match=re.escape("torchrun --nproc-per-node=N")):
        call()


def test_parameters_of_a_whole_layer_are_counted_once():
    layer = FusedMultiHeadAttention(3, 4, 5, 0.0, 2)
    assert parameters_here(layer) == 3 * 3 * 4 + 4 * 4 + 4
    assert parameters_here(torch.nn.Linear(2, 3)) == 9
