"""Section 3.6 on several devices: each computes some of the heads.

Heads are independent, so they can be computed on different devices. Each rank holds
the rows of ``W_query``, ``W_key`` and ``W_value`` that make its heads, and the columns
of ``out_proj`` that read them. One sum over all ranks at the end joins the heads
(tensor parallelism: Shoeybi et al., 2019, Megatron-LM, section 3).

This uses ``torch.distributed.tensor`` (PyTorch 2.5 or later). Start the program once
for each device, with ``torchrun --nproc-per-node=4 program.py``::

    torch.distributed.init_process_group("gloo")  # "nccl" on GPUs
    torch.manual_seed(123)  # the same weights on every rank
    layer = FusedMultiHeadAttention(768, 768, 1024, 0.0, 12)
    split_heads(layer, heads_mesh())
    layer(x)  # the same x, and the same result, on every rank
"""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import nn

try:
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )
except ImportError as error:
    raise ImportError(
        f"attention.parallel needs PyTorch 2.5 or later with torch.distributed, and "
        f"this is {torch.__version__}. Everything else in attention runs without it."
    ) from error

from attention import validate
from attention.fused import FusedMultiHeadAttention
from attention.multi_head import MultiHeadAttention

Layer = TypeVar("Layer", MultiHeadAttention, FusedMultiHeadAttention)


def heads_mesh(device_type: str = "cpu") -> DeviceMesh:
    """Create a mesh of all started processes, each with one device.

    Args:
        device_type: ``"cpu"`` or ``"cuda"``.

    Returns:
        A one-dimensional ``DeviceMesh`` named "heads".

    Raises:
        RuntimeError: there is no process group.
    """
    _check_process_group()
    return init_device_mesh(
        device_type, (dist.get_world_size(),), mesh_dim_names=("heads",)
    )


def split_heads(layer: Layer, mesh: DeviceMesh) -> Layer:
    """Keep on each rank only its share of the heads, in place.

    Padding, ``memory``, windows, rotary positions and caches work as before; each
    rank's cache stores its own heads.

    Afterwards ``num_heads``, ``num_kv_heads`` and ``d_out`` count what this rank
    computes, and the parameters are ``DTensor``: each rank keeps its part, and
    ``parameter.full_tensor()`` collects the whole. Every rank must start with
    the same parameters and pass the same input; it gets the whole result, and
    gradients as if it had computed alone. The ranks communicate once per forward pass,
    and once per backward pass if ``x`` needs its gradient. An optimizer created after
    the split updates each part where it is.

    With dropout, each rank must draw different numbers: seed each differently after
    the split.

    Args:
        layer: a :class:`~attention.MultiHeadAttention` or
            :class:`~attention.FusedMultiHeadAttention`.
        mesh: a one-dimensional ``DeviceMesh``, such as :func:`heads_mesh` creates, or
            one dimension of a larger mesh, ``mesh["heads"]``.

    Returns:
        ``layer``.

    Raises:
        RuntimeError: there is no process group.
        TypeError: ``layer`` has another class.
        ValueError: ``mesh`` has several dimensions, its size doesn't divide the heads,
            or the layer has been split already.
    """
    _check_process_group()
    validate.instance("mesh", mesh, DeviceMesh, "Pass heads_mesh().")
    if mesh.ndim != 1:
        raise ValueError(
            f"mesh must have one dimension, along which heads are split, but got "
            f"{mesh.ndim}: {mesh.mesh_dim_names}. Pass one of them by name, such as "
            f'mesh["heads"].'
        )
    if not isinstance(layer, MultiHeadAttention | FusedMultiHeadAttention):
        raise TypeError(
            f"layer must be a MultiHeadAttention or FusedMultiHeadAttention, but got "
            f"{type(layer).__name__}. Pass the attention layers of a model one by one."
        )
    if any(isinstance(p, DTensor) for p in layer.parameters()):
        raise ValueError(
            "layer must be whole, but it has been split already. Build a new one to "
            "split again."
        )
    counts: list[str] = [n for n in ("num_heads", "num_kv_heads") if hasattr(layer, n)]
    for name in counts:
        validate.divisible(**{name: getattr(layer, name), "ranks": mesh.size()})
    rows, columns = ColwiseParallel(), RowwiseParallel()
    plan = {"W_query": rows, "W_key": rows, "W_value": rows, "out_proj": columns}
    parallelize_module(layer, mesh, plan)
    layer.register_forward_pre_hook(_mark_tokens(mesh), with_kwargs=True)
    for name in (*counts, "d_out"):
        setattr(layer, name, getattr(layer, name) // mesh.size())
    return layer


def _check_process_group() -> None:
    if not dist.is_initialized():
        raise RuntimeError(
            "there is no process group. Start the program with torchrun "
            "--nproc-per-node=N program.py, and call "
            'torch.distributed.init_process_group("gloo") in it first.'
        )


def _mark_tokens(mesh: DeviceMesh) -> Callable[..., tuple[Any, Any]]:
    """Make a hook that marks x and memory as equal on every rank.

    All three projections read them. With the mark, each rank first adds the three
    gradients of x, and the ranks sum once; without it, they would sum three times.
    """

    def mark(value: Any) -> Any:
        # A padding mask is used by this rank's own heads, so it stays a plain tensor.
        projected = isinstance(value, torch.Tensor) and value.is_floating_point()
        if projected and not isinstance(value, DTensor):
            return DTensor.from_local(value, mesh, [Replicate()], run_check=False)
        return value

    def prepare(_: nn.Module, args: Any, kwargs: Any) -> tuple[Any, Any]:
        args = tuple(mark(a) for a in args)
        return args, {name: mark(value) for name, value in kwargs.items()}

    return prepare


def parameters_here(module: nn.Module) -> int:
    """Count the parameters on this rank.

    Args:
        module: any ``nn.Module``, split or not.

    Returns:
        An integer: the parts of split parameters, plus the others in full.
    """
    return sum(
        (p.to_local() if isinstance(p, DTensor) else p).numel()
        for p in module.parameters()
    )
