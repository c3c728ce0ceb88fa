"""Figures of the book: tensors in, matplotlib Axes out.

Every function returns Axes, so a figure can be changed and tested like any other;
`show` puts finished Axes into a notebook with a caption and a text alternative.
Needs the extra ``figures``: ``pip install "coding-attention[figures]"``.
"""

from attention.chapter.figures.averaging import product, running_mean, spread
from attention.chapter.figures.base import matrix, new_axes, number
from attention.chapter.figures.causal import cropped_mask, dropped, steps
from attention.chapter.figures.flow import flow
from attention.chapter.figures.future import writing
from attention.chapter.figures.heads import circuit, curves, pattern
from attention.chapter.figures.multi_head import lanes, memory, tagged
from attention.chapter.figures.one_path import one_path
from attention.chapter.figures.overview import look, mechanisms
from attention.chapter.figures.plane import plane
from attention.chapter.figures.ring import ring
from attention.chapter.figures.roofline import roofline
from attention.chapter.figures.runs import runs
from attention.chapter.figures.shown import show
from attention.chapter.figures.simple import arrows, bars
from attention.chapter.figures.speed import amounts, by_tokens, kept, shards
from attention.chapter.figures.stacked import stacked_projection
from attention.chapter.figures.tiles import online_softmax_tiles
from attention.chapter.figures.trainable import growth, one_query
from attention.chapter.figures.why import (
    against_length,
    alignment,
    bottleneck,
    look_back,
)

__all__ = [
    "against_length",
    "alignment",
    "amounts",
    "arrows",
    "bars",
    "bottleneck",
    "by_tokens",
    "circuit",
    "cropped_mask",
    "curves",
    "dropped",
    "flow",
    "growth",
    "kept",
    "lanes",
    "look",
    "look_back",
    "matrix",
    "mechanisms",
    "memory",
    "new_axes",
    "number",
    "one_path",
    "one_query",
    "online_softmax_tiles",
    "pattern",
    "plane",
    "product",
    "ring",
    "roofline",
    "running_mean",
    "runs",
    "shards",
    "show",
    "spread",
    "stacked_projection",
    "steps",
    "tagged",
    "writing",
]
