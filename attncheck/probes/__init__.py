"""The tests, one function each, in the order in which they run."""

from attncheck.collector import COMPARES
from attncheck.probes.basics import (
    input_kept,
    same_in_eval,
    shapes,
    state,
    too_many_tokens,
)
from attncheck.probes.cached import cache
from attncheck.probes.compare import compare
from attncheck.probes.masks import masks
from attncheck.probes.meaning import (
    batch,
    dependence,
    equal_tokens,
    finite,
    large_scores,
    memory,
)
from attncheck.probes.storage import devices, dtypes, saved
from attncheck.probes.training import dropout, gradients, same_in_training

PROBES = [
    ("state between calls", state),
    ("output shape", shapes),
    ("input unchanged", input_kept),
    ("same output in eval()", same_in_eval),
    (COMPARES, compare),
    ("finite numbers", finite),
    ("sequences of a batch are independent", batch),
    ("what each position depends on", dependence),
    ("a memory", memory),
    ("masks", masks),
    ("a cache", cache),
    ("weights of a token sum to 1", equal_tokens),
    ("large scores", large_scores),
    ("same output in training without dropout", same_in_training),
    ("dropout", dropout),
    ("gradients", gradients),
    ("weights are saved", saved),
    (".to(device)", devices),
    ("float64, bfloat16, float16", dtypes),
    ("too many tokens", too_many_tokens),
]
