"""The tests, one function each, in the order in which they run."""

from attncheck.probes.basics import (
    input_kept,
    same_in_eval,
    shapes,
    state,
    too_many_tokens,
)
from attncheck.probes.cached import cached
from attncheck.probes.first_weights import first_weights, shared, written
from attncheck.probes.meaning import (
    batch,
    dependence,
    equal_tokens,
    finite,
    large_scores,
    prefix,
)
from attncheck.probes.modes import dropout_place, order, same_in_training
from attncheck.probes.padded import padded
from attncheck.probes.places import by_name, distances, places
from attncheck.probes.settings import compared
from attncheck.probes.storage import devices, dtypes, precision, saved
from attncheck.probes.training import dropout, gradients

PROBES = [
    ("first weights are written", written),
    ("state between calls", state),
    ("output shape", shapes),
    ("input unchanged", input_kept),
    ("same output in eval()", same_in_eval),
    ("same output as attention with these weights", compared),
    ("finite numbers", finite),
    ("sequences of a batch are independent", batch),
    ("parameters by their names", by_name),
    ("scores by distance", distances),
    ("where each token goes", places),
    ("what each position depends on", dependence),
    ("shorter inputs", prefix),
    ("the cache against the whole", cached),
    ("padding", padded),
    ("weights of a token sum to 1", equal_tokens),
    ("large scores", large_scores),
    ("same output in training without dropout", same_in_training),
    ("dropout", dropout),
    ("where dropout acts", dropout_place),
    ("gradients", gradients),
    ("weights are not shared", shared),
    ("first weights", first_weights),
    ("weights are saved", saved),
    (".to(device)", devices),
    ("float64, bfloat16, float16", dtypes),
    ("precision", precision),
    ("too many tokens", too_many_tokens),
    ("whether order matters", order),
]
