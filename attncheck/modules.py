"""Copies of somebody's module, with weights of which each shows in the output."""

import copy
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from attncheck.errors import UnusableError, first_line

CLOSED = 2e-3  # a gate below this hides what it multiplies


class FunctionModule(nn.Module):
    """A plain function from tokens to context vectors, as a module."""

    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        """Apply the function."""
        return self.function(x)


def duplicate(module: nn.Module) -> nn.Module:
    """Copy a module, with the tensors of an earlier call that it may have kept.

    Raises:
        UnusableError: it cannot be copied.
    """
    memo: dict[int, Any] = {}
    for part in module.modules():
        for value in vars(part).values():
            # deepcopy refuses tensors that belong to a graph.
            if isinstance(value, Tensor) and not value.is_leaf:
                memo[id(value)] = value.detach().clone()
            # A module has ten of hooks, and deepcopy is slow with them.
            elif type(value) is OrderedDict and not value:
                memo[id(value)] = OrderedDict()
    try:
        return copy.deepcopy(module, memo)
    except Exception as error:
        raise UnusableError(
            f"the instance can't be copied ({type(error).__name__}: "
            f"{first_line(error)}), and the check works on a copy. "
            f"Check the class, or a new instance."
        ) from None


def randomize(module: nn.Module) -> None:
    """Give weights and biases new random values, of a size that spreads softmax out.

    A fresh layer may hold zeros (biases) or weights so small or large that mistakes
    hardly show. Parameters that look like a mask, with two values or infinite ones,
    and vectors other than biases, sinks, zeros and gates near 0 stay as they are.
    """
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            closed = _is_closed(parameter)
            if not parameter.is_floating_point():
                continue
            if parameter.numel() == 1 and closed:
                parameter.fill_(0.7)
            elif parameter.dim() >= 2 and not _is_mask(parameter):
                rows, columns = parameter.shape[-2:]
                size = max(rows * columns, 1) ** -0.25
                parameter.copy_(
                    torch.randn(parameter.shape, generator=generator) * size
                )
            elif parameter.dim() == 1 and ("bias" in name or "sink" in name or closed):
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)


def _is_closed(parameter: Tensor) -> bool:
    """Whether it is a gate that begins closed, or nearly so as in LayerScale."""
    flat = parameter.detach().flatten()
    return bool(len(flat) and (flat == flat[0]).all() and flat[0].abs() < CLOSED)


def _is_mask(parameter: Tensor) -> bool:
    flat = parameter.detach().flatten()
    if not len(flat) or not flat.isfinite().all():
        return True
    low, high = flat.min(), flat.max()
    return bool(low != high and ((flat == low) | (flat == high)).all())
