"""The tests, one function each, in the order in which they run."""

from attention.checker.probes.basics import (
    input_kept,
    same_in_eval,
    shapes,
    state,
    too_many_tokens,
)
from attention.checker.probes.meaning import (
    batch,
    compare,
    dependence,
    equal_tokens,
    finite,
    large_scores,
    prefix,
)
from attention.checker.probes.storage import devices, dtypes, saved
from attention.checker.probes.training import dropout, gradients

PROBES = [
    ("state between calls", state),
    ("output shape", shapes),
    ("input unchanged", input_kept),
    ("same output in eval()", same_in_eval),
    ("same output as attention with these weights", compare),
    ("finite numbers", finite),
    ("sequences of a batch are independent", batch),
    ("what each position depends on", dependence),
    ("shorter inputs", prefix),
    ("weights of a token sum to 1", equal_tokens),
    ("large scores", large_scores),
    ("dropout", dropout),
    ("gradients", gradients),
    ("weights are saved", saved),
    (".to(device)", devices),
    ("float64, bfloat16, float16", dtypes),
    ("too many tokens", too_many_tokens),
]
