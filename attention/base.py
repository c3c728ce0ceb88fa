"""What the listings' classes have beyond ``nn.Module``: they can start from nothing.

A layer from the meta device gets memory that nobody has filled. ``reset_parameters``
fills what no ``nn.Linear`` fills: plain parameters, and the mask. The mask is a buffer,
as in the chapter, so it is saved and loaded and follows the weights; one that a
checkpoint lacks, or that comes empty from the meta device, is written anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import nn


class CausalModule(nn.Module):
    """An ``nn.Module`` whose buffer ``mask`` (t, t) hides the future, come what may.

    A checkpoint without a mask leaves the right one, also in a layer from the meta
    device, and a strict load takes it. One that has a mask is loaded as it is.
    """

    mask: torch.Tensor

    def reset_parameters(self) -> None:
        """Write the mask again. The projections draw their own numbers."""
        with torch.no_grad():
            self.mask.fill_(1).triu_(1)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        was_empty = self.mask.is_meta
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if was_empty and not self.mask.is_meta:  # to_empty: there was nothing to copy
            self.reset_parameters()
        return self

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *rest: Any
    ) -> None:
        # The caller hands over a dict of its own, so adding changes no checkpoint.
        if prefix + "mask" not in state_dict:
            weight = state_dict.get(prefix + "W_query.weight", self.mask)
            ones = torch.ones(self.mask.shape, dtype=weight.dtype, device=weight.device)
            state_dict[prefix + "mask"] = ones.triu(1)
        super()._load_from_state_dict(state_dict, prefix, *rest)


class DrawnModule(nn.Module):
    """An ``nn.Module`` whose own parameters come from ``torch.rand``."""

    def reset_parameters(self) -> None:
        """Draw the parameters again, in the order in which they were made."""
        for parameter in self.parameters(recurse=False):
            nn.init.uniform_(parameter)  # over [0, 1), the numbers of torch.rand
