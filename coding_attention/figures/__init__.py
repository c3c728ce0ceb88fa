"""Figures of the book: tensors in, matplotlib Axes out.

Every function returns Axes, so a figure can be changed and tested like any other;
`show` puts finished Axes into a notebook with a caption and a text alternative.
Needs the extra ``pages``: ``pip install "coding-attention[pages]"``.
"""

from coding_attention.figures.averaging import product, running_mean, spread
from coding_attention.figures.base import matrix, new_axes, number
from coding_attention.figures.causal import dropped, steps
from coding_attention.figures.flow import flow
from coding_attention.figures.future import writing
from coding_attention.figures.heads import circuit, curves, pattern
from coding_attention.figures.multi_head import lanes, tagged
from coding_attention.figures.one_path import one_path
from coding_attention.figures.overview import look, mechanisms
from coding_attention.figures.plane import plane
from coding_attention.figures.ring import ring
from coding_attention.figures.roofline import roofline
from coding_attention.figures.runs import runs
from coding_attention.figures.shown import show
from coding_attention.figures.simple import arrows, bars
from coding_attention.figures.speed import amounts, by_tokens, kept, shards
from coding_attention.figures.stacked import stacked_projection
from coding_attention.figures.tiles import online_softmax_tiles
from coding_attention.figures.trainable import growth, one_query
from coding_attention.figures.why import (
    against_length,
    alignment,
    bottleneck,
    look_back,
)
