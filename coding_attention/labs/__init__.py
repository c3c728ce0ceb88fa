"""Interactive figures: move a value and see what follows, with a kernel or without.

Each lab is one cell, such as ``AttentionLab()``. It needs anywidget, which
``pip install "coding-attention[pages]"`` brings.
"""

try:
    import anywidget
except ImportError as error:
    raise ImportError(
        "the labs need anywidget, which is not installed. Install it with "
        "pip install anywidget, and restart the kernel."
    ) from error

from coding_attention.labs.attention import AttentionLab
from coding_attention.labs.dropout import DropoutLab
from coding_attention.labs.head_split import HeadSplitLab
from coding_attention.labs.look import LookLab
from coding_attention.labs.mask import MaskLab
from coding_attention.labs.multi_head import MultiHeadLab
from coding_attention.labs.scale import ScaleLab
from coding_attention.labs.tiny_gpt import TinyGptLab
