"""Exercises on splitting a projection into heads."""

import torch

from attention.multi_head import MultiHeadAttention, MultiHeadAttentionWrapper
from coding_attention.exercises.core import (
    Exercise,
    Failed,
    FunctionCheck,
    NothingYet,
    NotRight,
    attempt,
    require_function,
    seeded,
)

PAGE = "05_multi_head_attention"
NAMES = ("W_query", "W_key", "W_value")


def _split(x, num_heads):
    b, t, d = x.shape
    return x.view(b, t, num_heads, d // num_heads).transpose(1, 2)


_SPLIT_MISTAKES = (
    (
        lambda x, h: x.reshape(len(x), h, x.shape[1], -1),
        "The shape is right, the entries are not: one view cuts the row of numbers in "
        "memory, so a head gets pieces of tokens. First (b, t, h, d_head), then "
        "exchange two axes.",
    ),
    (
        lambda x, h: _split(x, h).transpose(1, 2),
        "The heads are split off. Now bring them before the tokens: transpose(1, 2).",
    ),
    (
        lambda x, h: x.view(*x.shape[:2], -1, h).permute(0, 3, 1, 2),
        "Each head takes every h-th feature. Neighboring features belong to one head: "
        "in the view, h comes before d_head.",
    ),
    (
        lambda x, h: _split(x, h).transpose(2, 3),
        "The last two axes are exchanged. (b, h, t, d_head) is asked for.",
    ),
    (
        lambda x, h: _split(x, h).transpose(0, 1),
        "The heads come before the batch. (b, h, t, d_head) is asked for.",
    ),
    (
        lambda x, h: x.view(*x.shape[:2], -1, h).transpose(1, 2),
        "h and d_head have changed places. (b, h, t, d_head) is asked for.",
    ),
)


def _wrapper_into_split(answer):
    require_function(answer, "move_wrapper(wrapper, layer)")
    for h, d_head in ((2, 3), (3, 2)):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(h)
            wrapper = MultiHeadAttentionWrapper(4, d_head, 5, 0.0, h)
            layer = MultiHeadAttention(4, h * d_head, 5, 0.0, h)
        x = seeded(2, 5, 4)
        expected = wrapper(x).detach()
        old = {n: p.detach().clone() for n, p in layer.named_parameters()}
        result = attempt(answer, wrapper, layer)
        layer = result if isinstance(result, MultiHeadAttention) else layer
        if not torch.equal(wrapper(x), expected):
            raise NotRight("The wrapper has changed. Its weights are to be read only.")
        out = attempt(layer, x)
        if isinstance(result, Failed) or isinstance(out, Failed):
            _look_at_failure(layer, wrapper, result, out)
        if not torch.allclose(out, expected, atol=1e-5):
            _look_at_layer(layer, wrapper, old, result)
    return (
        "With the same weights both classes give the same output, for any input: they "
        "are one function. The identity in out_proj is what the wrapper lacks."
    )


def _look_at_failure(layer, wrapper, result, out):
    failed = result if isinstance(result, Failed) else out
    shape = tuple(layer.W_query.weight.shape)
    advice = "Weights must be nn.Parameter, or be copied under torch.no_grad()."
    if "size" in failed.text or "shape" in failed.text:
        advice = (
            "nn.Linear stores (d_out, d_in): the heads' rows are stacked along axis 0, "
            "torch.cat(weights), with no transpose."
        )
    raise NotRight(
        f"It raised {failed.kind}: {failed.text}. The W_query.weight of the layer has "
        f"the shape {shape}, that of one head "
        f"{tuple(wrapper.heads[0].W_query.weight.shape)}. {advice}"
    )


def _look_at_layer(layer, wrapper, old, result):
    now = dict(layer.named_parameters())
    untouched = [n for n, p in now.items() if torch.equal(p, old[n])]
    if len(untouched) == len(now) and result is None:
        raise NothingYet("The function leaves layer as it is.")
    for name in NAMES:
        weight = getattr(layer, name).weight
        parts = [getattr(head, name).weight for head in wrapper.heads]
        if torch.equal(weight, torch.cat(parts)):
            continue
        if torch.equal(weight, torch.cat(parts[::-1])):
            raise NotRight("The heads are stacked in reverse order.")
        interleaved = torch.stack(parts, dim=1).flatten(0, 1)
        if torch.equal(weight, interleaved):
            raise NotRight(
                "The rows of the heads take turns. Each head's rows belong together: "
                "torch.cat, not a stack along axis 1."
            )
        if f"{name}.weight" in untouched:
            raise NotRight(f"{name} of the layer still has its old weights.")
        for other in (n for n in NAMES if n != name):
            stacked = torch.cat([getattr(h, other).weight for h in wrapper.heads])
            if torch.equal(weight, stacked):
                raise NotRight(f"{name} got the weights of {other}.")
        raise NotRight(f"{name}.weight is not the stack of the heads' {name}.weight.")
    identity = torch.eye(len(layer.out_proj.weight))
    if not torch.equal(layer.out_proj.weight, identity):
        raise NotRight(
            "The three projections are right. out_proj still mixes the heads, which "
            "the wrapper does not do: which matrix changes nothing?"
        )
    raise NotRight(
        "The weights are all right. out_proj still adds its bias: set it to zero."
    )


EXERCISES = [
    Exercise(
        "split-heads",
        PAGE,
        "A function split(x, num_heads)",
        FunctionCheck(
            "split(x, num_heads)",
            _split,
            lambda: [(seeded(2, 3, 8), 2), (seeded(1, 6, 6, seed=1), 3)],
            _SPLIT_MISTAKES,
            "Each head gets its own features of all tokens.",
        ),
    ),
    Exercise(
        "wrapper-is-split",
        PAGE,
        "A function move_wrapper(wrapper, layer)",
        _wrapper_into_split,
    ),
]
