"""Attention, from dot products to multiple heads: the chapter's classes.

Each listing of the book is a function or class here, with the names, arguments,
parameter names and order of random draws of sections 3.3 to 3.6 of Raschka, *Build a
Large Language Model (From Scratch)* (Manning, 2024). That book's seeds print its
values, its checkpoints load, and its later chapters run on this package. Three names
aren't listings: ``FusedMultiHeadAttention`` is the last layer at full speed,
``KeyValueCache`` is its cache, and ``check`` tests any class.

Letters for shapes, in every docstring, comment, page and figure:

======== ================================================================
letter   meaning
======== ================================================================
b        sequences in a batch
t        tokens in a sequence (t_q queries, t_k keys where they differ)
d_in     coordinates of an input token
d_out    coordinates of an output token
h        heads
d_head   coordinates of a token in one head, d_out / h
d_k      coordinates of a key; scores are divided by its root
======== ================================================================

ω (omega) is an attention score, α (alpha) an attention weight, z a context vector.
"""

from typing import TYPE_CHECKING

from attention.cache import KeyValueCache
from attention.causal import CausalAttention
from attention.fused import FusedMultiHeadAttention
from attention.installation import refuse_mixed
from attention.multi_head import MultiHeadAttention, MultiHeadAttentionWrapper
from attention.simple import simple_self_attention, softmax_naive
from attention.trainable import SelfAttention_v1, SelfAttention_v2

if TYPE_CHECKING:
    from attncheck import check

refuse_mixed(__file__)

__version__ = "0.1.0"

__all__ = [
    "CausalAttention",
    "FusedMultiHeadAttention",
    "KeyValueCache",
    "MultiHeadAttention",
    "MultiHeadAttentionWrapper",
    "SelfAttention_v1",
    "SelfAttention_v2",
    "check",
    "simple_self_attention",
    "softmax_naive",
]

if not TYPE_CHECKING:  # a type checker would take any name for granted

    def __getattr__(name: str) -> object:
        """Load the checker on first use; most programs never need it."""
        if name == "check":
            from attncheck import check

            return check
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
