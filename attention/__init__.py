"""Attention, from dot products to multiple heads: the classes behind the chapter.

Each listing of the book is a function or a class here, with the same names,
arguments, parameter names and order of random draws as in sections 3.3 to 3.6 of
Raschka, *Build a Large Language Model (From Scratch)* (Manning, 2024). So its
seeds print its values, its checkpoints load, and its later chapters run on this
package. Three more names are no listings: ``FusedMultiHeadAttention`` is the last
layer at full speed, ``KeyValueCache`` its memory, and ``check`` tests any class.

One legend of shapes holds for every docstring, comment, page and figure:

======== ================================================================
letter   meaning
======== ================================================================
b        batch: sequences that are computed side by side
t        tokens of one sequence (t_q queries, t_k keys where they differ)
d_in     numbers that describe one token on the way in
d_out    numbers that describe one token on the way out
h        heads
d_head   numbers that one head gives each token, d_out / h
d_k      width of a key, whose root divides the scores
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
        """Load the checker when it is first asked for: most programs never do."""
        if name == "check":
            from attncheck import check

            return check
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
