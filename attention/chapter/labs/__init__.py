"""Interactive figures: move a value and see what follows, with a kernel or without.

Each lab is one cell, such as ``AttentionLab()``. It needs anywidget, which
``pip install "coding-attention[labs]"`` brings.
"""

try:
    import anywidget  # noqa: F401
except ImportError as error:
    raise ImportError(
        "the labs need anywidget, which is not installed. Install it with "
        "pip install anywidget, and restart the kernel."
    ) from error

from attention.chapter.labs.attention import AttentionLab
from attention.chapter.labs.bank import BankLab
from attention.chapter.labs.dropout import DropoutLab
from attention.chapter.labs.head_split import HeadSplitLab
from attention.chapter.labs.mask import MaskLab
from attention.chapter.labs.multi_head import MultiHeadLab
from attention.chapter.labs.scale import ScaleLab
from attention.chapter.labs.training import TrainingLab

__all__ = [
    "AttentionLab",
    "BankLab",
    "DropoutLab",
    "HeadSplitLab",
    "MaskLab",
    "MultiHeadLab",
    "ScaleLab",
    "TrainingLab",
]
