"""One rank of test_parallel.py, and an example of a program with split heads.

    torchrun --nproc-per-node=2 tests/attention/parallel_worker.py

Every rank computes each layer alone and split, and reports how far the two differ.
"""

import argparse
import copy
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.nn import functional as F

from attention import FusedMultiHeadAttention, KeyValueCache, MultiHeadAttention
from attention.parallel import heads_mesh, parameters_here, split_heads

D_IN, D_OUT, TOKENS, HEADS = 24, 32, 10, 8
LAYERS = {
    "listing": lambda: MultiHeadAttention(D_IN, D_OUT, 16, 0.0, HEADS, True),
    "fused": lambda: FusedMultiHeadAttention(D_IN, D_OUT, 16, 0.0, HEADS),
    "grouped": lambda: FusedMultiHeadAttention(
        D_IN, D_OUT, 16, 0.0, HEADS, qkv_bias=True, num_kv_heads=4
    ),
    "windowed": lambda: FusedMultiHeadAttention(
        D_IN, D_OUT, 16, 0.0, HEADS, num_kv_heads=4, window=3, rope_theta=100.0
    ),
    "encoder": lambda: FusedMultiHeadAttention(
        D_IN, D_OUT, 16, 0.0, HEADS, qkv_bias=True, causal=False
    ),
}
PADDING = torch.zeros(2, TOKENS, dtype=torch.bool)
PADDING[0, :3] = PADDING[1, 7:] = True


def whole(tensor):
    """Collect a split tensor from all ranks."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def difference(a, b):
    return (whole(a) - whole(b)).abs().max().item()


def train_one_step(layer, x, target):
    """Do one optimizer step; return the output and the gradient of the input."""
    # Not Adam: it would blow up the rounding error of a bias whose gradient is zero.
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
    x = x.clone().requires_grad_()
    output = layer(x)
    F.mse_loss(output, target).backward()
    optimizer.step()
    return output.detach(), x.grad


def compare(make_layer, mesh):
    """Measure how a split layer differs from the same layer alone."""
    torch.manual_seed(123)  # the same weights and tokens on every rank
    alone = make_layer()
    split = split_heads(copy.deepcopy(alone), mesh)
    x, target = torch.randn(2, TOKENS, D_IN), torch.randn(2, TOKENS, D_OUT)
    start = copy.deepcopy(alone)
    seen = {"parameters": parameters_here(split), "alone": parameters_here(alone)}
    output, x_grad = train_one_step(alone, x, target)
    split_output, split_x_grad = train_one_step(split, x, target)
    seen["forward"] = difference(output, split_output)
    seen["input gradient"] = difference(x_grad, split_x_grad)
    named = dict(split.named_parameters())
    pairs = [(p, named[name]) for name, p in alone.named_parameters()]
    seen["gradients"] = max(difference(p.grad, q.grad) for p, q in pairs)
    seen["step"] = max(difference(p, q) for p, q in pairs)
    # What these differences are measured against. A key bias adds the same number to
    # all scores of a query, so softmax cancels it and its gradient is zero.
    names = [name for name, _ in alone.named_parameters() if name != "W_key.bias"]
    after, before = dict(alone.named_parameters()), dict(start.named_parameters())
    seen["size of gradients"] = min(after[n].grad.abs().max().item() for n in names)
    seen["size of step"] = min(difference(after[n], before[n]) for n in names)
    if isinstance(split, FusedMultiHeadAttention):
        seen |= called_in_other_ways(alone, split, x)
    return seen


@torch.no_grad()
def called_in_other_ways(alone, split, x):
    """Measure the difference with padding, with a memory, with a cache, with both."""
    padding = {"key_padding_mask": PADDING}
    seen = {"padded": difference(split(x, **padding), alone(x, **padding))}
    # What a mask of no effect would leave of the bound.
    seen["size of padding"] = difference(alone(x, **padding), alone(x))
    if not alone.causal:
        memory = padding | {"memory": x.flip(1)}
        other, same = split(x, **memory), alone(x, **memory)
        return seen | {"memory": difference(other, same)}
    for name, hidden in (("cached", None), ("cached and padded", PADDING)):
        cache, steps = KeyValueCache(), []
        for i, token in enumerate(x.split(1, dim=1)):
            part = None if hidden is None else hidden[:, : i + 1]
            steps.append(split(token, cache=cache, key_padding_mask=part))
        whole = alone(x, key_padding_mask=hidden)
        seen[name] = difference(torch.cat(steps, dim=1), whole)
    return seen | {"cached bytes": cache.num_bytes}


def collectives(make_layer, mesh, tokens):
    """Count how often the ranks talk, forward and backward."""
    split = split_heads(make_layer(), mesh)
    x = torch.randn(2, tokens, D_IN, requires_grad=True)
    with CommDebugMode() as forward:
        loss = split(x).square().sum()
    with CommDebugMode() as backward:
        loss.backward()
    return [forward.get_total_counts(), backward.get_total_counts()]


def refuse(make_layer, mesh):
    """Return the message of the error that splitting raises."""
    try:
        split_heads(make_layer(), mesh)
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def refusals(mesh):
    split = split_heads(LAYERS["fused"](), mesh)
    return {
        "heads": refuse(lambda: MultiHeadAttention(6, 6, 4, 0.0, 3), mesh),
        "kv heads": refuse(
            lambda: FusedMultiHeadAttention(8, 8, 4, 0.0, 8, num_kv_heads=1), mesh
        ),
        "class": refuse(lambda: torch.nn.Linear(2, 2), mesh),
        "mesh": refuse(LAYERS["fused"], "heads"),
        "twice": refuse(lambda: split, mesh),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", type=Path, help="folder for one file per rank")
    parser.add_argument("--store", help="file where ranks meet, instead of a port")
    parser.add_argument("--fork", type=int, help="ranks to start, without torchrun")
    options = parser.parse_args()
    if options.fork:  # PyTorch is imported once
        start = torch.multiprocessing.start_processes
        start(run_rank, (options,), nprocs=options.fork, start_method="fork")
    else:
        run(options)


def run_rank(rank, options):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(options.fork))
    run(options)


def run(options):
    if options.store:
        rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        where = f"file://{options.store}"
        dist.init_process_group("gloo", where, rank=rank, world_size=ranks)
    else:
        dist.init_process_group("gloo")
    mesh = heads_mesh()
    report = {name: compare(make, mesh) for name, make in LAYERS.items()}
    report["refusals"] = refusals(mesh)
    report["collectives"] = [
        collectives(make, mesh, tokens)
        for make in LAYERS.values()
        for tokens in (1, 3, TOKENS)
    ]
    text = json.dumps(report, indent=2)
    if options.report:
        (options.report / f"{dist.get_rank()}.json").write_text(text)
    elif dist.get_rank() == 0:
        print(text)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
