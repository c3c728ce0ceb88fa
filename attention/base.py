"""Base classes of the listings: layers that can start on the meta device.

Moving a layer off the meta device leaves its memory uninitialized.
``reset_parameters`` fills what ``nn.Linear`` doesn't: plain parameters, and the mask.
The mask is a buffer, as in the chapter, so it is saved, loaded and moved with the
parameters. If a checkpoint lacks it, or it arrives empty, it is rebuilt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import nn


class CausalModule(nn.Module):
    """An ``nn.Module`` whose buffer ``mask`` (t, t) always hides the future.

    A checkpoint without a mask loads strictly and gets the right one, even on a layer
    from the meta device. A mask in the checkpoint is loaded unchanged.
    """

    mask: torch.Tensor

    def reset_parameters(self) -> None:
        """Rebuild the mask. The projections reset themselves."""
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
        """Draw the parameters again, in the order they were created."""
        for parameter in self.parameters(recurse=False):
            nn.init.uniform_(parameter)  # over [0, 1), the numbers of torch.rand
