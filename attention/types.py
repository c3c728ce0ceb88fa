"""Types for type checkers only."""

from typing import Protocol

import torch


class Call(Protocol):
    """The call signature of a layer; ``nn.Module`` itself says ``Any``."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Compute ``forward`` and run the layer's hooks."""
        ...
