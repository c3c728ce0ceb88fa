"""Whether two outputs differ by more than rounding."""

import math

import torch
from torch import Tensor


def changed(before: Tensor, after: Tensor, tolerance: float = 1e-5) -> bool:
    """Whether two outputs differ by more than rounding. NaN equals NaN."""
    if before.shape != after.shape:
        return True
    scale = float(before.abs().max()) if before.numel() else math.inf
    if not math.isfinite(scale):
        finite = before[before.isfinite()]
        scale = float(finite.abs().max()) if len(finite) else 1.0
    bound = max(tolerance * scale, 1e-12)
    return not torch.allclose(before, after, rtol=0, atol=bound, equal_nan=True)
