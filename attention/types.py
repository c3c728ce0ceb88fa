"""What a type checker is told and Python cannot see."""

from typing import Protocol

import torch


class Call(Protocol):
    """How a layer is called and what it gives; ``nn.Module`` itself says ``Any``."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Compute ``forward`` and run the layer's hooks."""
        ...
