"""Layers in two processes: replicated (DDP) and cut up (FSDP), against one alone."""

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist

from tests.attention.public import LAYERS, build, tokens

RANKS = 2
ROOT = Path(__file__).parents[2]


@functools.cache
def in_two_processes():
    """Run this file in two processes; give {"ddp", "fsdp" or "dcp": {layer: note}}."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, "-m", "tests.attention.features_distributed", folder]
        ranks = [
            subprocess.Popen([*command, str(rank)], cwd=ROOT, env=environment,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for rank in range(RANKS)
        ]  # fmt: skip
        results = [rank.communicate(timeout=240) for rank in ranks]
    for rank, (_, stderr) in zip(ranks, results, strict=True):
        assert rank.returncode == 0, stderr[-4000:]
    first, second = (json.loads(out) for out, _ in results)
    assert first == second
    return first


def layer_and_input(name):
    torch.manual_seed(0)
    return build(name, bias=True).double(), tokens(2 * RANKS, 5, 3)


def ddp(name, rank):
    """The mean of the ranks' gradients is that of the whole batch."""
    layer, x = layer_and_input(name)
    alone, _ = layer_and_input(name)
    alone(x).square().mean().backward()
    wrapped = torch.nn.parallel.DistributedDataParallel(layer)
    wrapped(x.chunk(RANKS)[rank]).square().mean().backward()
    for a, b in zip(alone.parameters(), layer.parameters(), strict=True):
        torch.testing.assert_close(b.grad, a.grad)
    return ""


def fsdp(name, rank):
    """Each rank keeps a part of every weight; outputs and gradients are the same."""
    from torch.distributed.fsdp import fully_shard

    layer, x = layer_and_input(name)
    alone, _ = layer_and_input(name)
    whole = sum(p.numel() for p in layer.parameters())
    mesh = dist.device_mesh.init_device_mesh("cpu", (RANKS,))
    fully_shard(layer, mesh=mesh)
    kept = sum(p.to_local().numel() for p in layer.parameters())
    assert kept < whole
    torch.testing.assert_close(layer(x), alone(x))
    layer(x).square().mean().backward()
    alone(x).square().mean().backward()
    for a, b in zip(alone.parameters(), layer.parameters(), strict=True):
        torch.testing.assert_close(b.grad.full_tensor(), a.grad)
    return ""


def in_a_model(layer):
    return torch.nn.Sequential(torch.nn.Sequential(layer))


def dcp(name, rank):
    """What a sharded model saved, another loads: in parts, whole, and from files."""
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint import state_dict
    from torch.distributed.fsdp import fully_shard

    alone, x = layer_and_input(name)
    mesh = dist.device_mesh.init_device_mesh("cpu", (RANKS,))

    def sharded(scale):
        layer, _ = layer_and_input(name)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.mul_(scale)
        model = in_a_model(layer)
        fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        return model

    def require_same(model):
        torch.testing.assert_close(model(x), alone(x))

    parts = state_dict.get_model_state_dict(sharded(1))
    whole = state_dict.StateDictOptions(full_state_dict=True, cpu_offload=True)
    full = state_dict.get_model_state_dict(sharded(1), options=whole)
    if rank == 0:  # only this rank has it
        expected = in_a_model(alone).state_dict()
        assert set(full) == set(expected)
        assert all(torch.equal(full[key], expected[key]) for key in expected)
    in_parts, at_once, from_files = sharded(2), sharded(2), sharded(2)
    assert not torch.allclose(in_parts(x), alone(x))
    state_dict.set_model_state_dict(in_parts, parts)
    require_same(in_parts)
    sent = state_dict.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    state_dict.set_model_state_dict(at_once, full, options=sent)
    require_same(at_once)
    with shared_folder() as folder:
        checkpoint.save(parts, checkpoint_id=folder)
        empty = state_dict.get_model_state_dict(from_files)
        checkpoint.load(empty, checkpoint_id=folder)
        state_dict.set_model_state_dict(from_files, empty)
        require_same(from_files)
    return ""


@contextlib.contextmanager
def shared_folder():
    """Give one folder to all ranks; rank 0 removes it when all are done."""
    name = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(name)
    yield name[0]
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(name[0])


def main(folder, rank):
    store = dist.FileStore(str(Path(folder) / "store"), RANKS)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=RANKS)
    notes = {
        kind.__name__: {name: kind(name, rank) for name in LAYERS}
        for kind in (ddp, fsdp, dcp)
    }
    dist.destroy_process_group()
    print(json.dumps(notes))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
