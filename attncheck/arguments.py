"""What the arguments of forward are by their names, and how to give all of them."""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from math import prod
from typing import Any

from torch import nn

from attncheck.errors import UnusableError
from attncheck.layer import Layer
from attncheck.ways import BEFORE, MASKS, OPEN, STARTS, Way, is_kind

MEMORIES = ("memory", "context", "encoder_output", "encoder_hidden_states", "enc_out",
            "enc_output", "encoder_out", "key_value", "kv", "y", "cond", "source", "xa",
            "mem", "ctx", "key_value_states", "encoder_states", "encoder_outputs",
            "cross_states", "kv_input", "x_kv", "image", "images", "image_features",
            "audio", "media")  # fmt: skip
DOCUMENTS = ("doc", "seg", "seq", "packed")  # how the name of such an argument begins
TRIES, MOST = 400, 100_000  # ways that are tried, and those they are chosen from
NO_PADDING = re.compile(
    r"^pre_|^post|head|causal|future|triang|tgt|look|len|(?<!attn)_bias$"
).search
# Methods that make a module keep keys and values between calls.
STARTERS = ("start", "start_streaming", "start_cache", "begin", "enable_cache",
            "init_cache", "setup_cache", "setup_caches")  # fmt: skip
CAUSAL = re.compile("causal|casual")
# Flags that only make forward return more, or compute the same another way.
ASKS = (
    r"^(need|return|output|get)_|^(with_)?(weights|attn)$|average_attn|flash|training"
)
ASKS_CACHE = r"^(use|return)\w*(cache|past)|(cache|kv|past)_(append|update|write|grow)$"
# What an argument of forward is by its name; the first that fits.
KINDS = {
    "flag": r"causal|^(use|return|output|need|is(?!_valid|_real|_present)|do|with)_|"
    r"training|weights$|attn$",
    "padding": r"pad|src_|length",
    "mask": r"mask|bias$|^(is_)?(valid|present|real|observed|visible)$",
    "cache": r"cache|past|state$|store$",
    "positions": r"position|^pos$|(input|token|seq|segment|seg)_pos|pos_ids",
    "number": r"start|offset|step|index|_idx|layer|^pos\d?",
    "memory": f"^({'|'.join(MEMORIES)})$|context|memory|encoder|cond|^kv|^(c|z)$|"
    r"^key_?val",
}


def parameters_of_forward(module: nn.Module) -> dict[str, inspect.Parameter]:
    """Return the arguments of forward that have a name."""
    return {
        name: p
        for name, p in inspect.signature(module.forward).parameters.items()
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    }


def kind_of(name: str) -> str | None:
    """Return what an argument is by its name, or None."""
    plain = name.strip("_").lower()
    if re.search(BEFORE, plain):
        return "number"
    return next((kind for kind, form in KINDS.items() if re.search(form, plain)), None)


def usual_way(module: nn.Module, layer: Layer, causal: bool) -> Way:
    """Return how forward is called by its signature, without trying.

    Raises:
        UnusableError: it wants what nobody can tell.
    """
    names = list(parameters_of_forward(module))
    if is_pytorchs(module):
        return _way_of_pytorch(layer, causal)
    if layer.documents:
        found = [name for name in names[1:] if name.strip("_").startswith(DOCUMENTS)]
        if found or names[1:]:
            return Way((names[0],), (((found or names[1:])[0], "documents"),))
    elif layer.memory:
        three = _three(names)
        if three and three == names[:3]:
            return Way((names[0],), memory=" ".join(names[1:3]))
        found = [name for name in MEMORIES if name in names[1:]] or names[1:2]
        if found:
            return Way((names[0],), memory=found[0])
    else:
        needed = _required(module)
        if len(needed) == 1 or (needed and _three(needed) == needed):
            return Way(tuple(needed))
        if not needed and inspect.signature(module.forward).parameters:
            return Way(tuple(names[:1]))
    raise UnusableError(
        f"forward takes ({', '.join(names)}), and what to pass isn't clear. "
        f"For cross-attention, pass memory=6, its number of tokens; for packed "
        f"documents, documents=True. Otherwise say how to call it, as in "
        f"check(…, call={example_call(module)}), or on the command line "
        f'--call "{example_call(module)}".'
    )


def _way_of_pytorch(layer: Layer, causal: bool) -> Way:
    """Return how PyTorch's own layer is called."""
    given: list[tuple[str, Any]] = [("need_weights", False)]
    if layer.memory:
        return Way(("query",), tuple(given), memory="key value")
    given += [("attn_mask", MASKS[0])] if causal else []
    return Way(("query", "key", "value"), tuple(given))


def is_pytorchs(module: nn.Module) -> bool:
    """Whether it is PyTorch's own layer, and its forward is, too."""
    own = isinstance(module, nn.MultiheadAttention)
    return own and type(module).forward is nn.MultiheadAttention.forward


def _required(module: nn.Module) -> list[str]:
    parameters = parameters_of_forward(module).items()
    return [name for name, one in parameters if one.default is one.empty]


def example_call(module: nn.Module) -> str:
    """Return the text of a function that calls forward, to be completed."""
    needed = [f"{name}=…" for name in _required(module)[1:]]
    return f"lambda module, x: module({', '.join(['x', *needed])})"


def ways(
    module: nn.Module,
    causal: bool,
    memory_widths: Sequence[int | None] = (None,),
    memory: bool = False,
    optional: bool = False,
) -> Iterator[Way]:
    """Yield the ways in which forward may want to be called, likely ones first.

    Args:
        module: its forward is read, not called.
        causal: whether a mask is to hide the future.
        memory_widths: how wide the tokens of a memory may be.
        memory: whether there has to be one.
        optional: also give what may be left out.
    """
    parameters = parameters_of_forward(module)
    if not parameters:
        return
    names, required = list(parameters), _required(module)
    kinds = {name: kind_of(name) for name in names}
    given = ("positions", "mask")
    more = [n for n in names if n not in required and kinds[n] in given]
    wanted = [*required, *(more if optional else [])]
    three = _three(names)
    if three and not memory and {*three} <= {*required}:
        yield from _ways_with([*three], wanted, {}, causal, memory_widths, False)
        return
    del kinds[names[0]]
    yield from _ways_with(names[:1], wanted, kinds, causal, memory_widths, memory)


def _ways_with(
    tokens: list[str],
    wanted: list[str],
    kinds: Mapping[str, str | None],
    causal: bool,
    memory_widths: Sequence[int | None],
    memory: bool,
) -> Iterator[Way]:
    """Yield the ways in which these arguments take x, and these others are wanted."""
    rest = [name for name in wanted if name not in tokens]
    kinds = {name: kinds.get(name, kind_of(name)) for name in {*kinds, *rest}}
    memories = [name for name in rest if kinds[name] == "memory"]
    if not memories:  # one that may be left out, or the second argument
        memories = [name for name in kinds if kinds[name] == "memory"][:1]
        memories += [name for name in rest[:1] if kinds[name] is None]
    must = memory or any(kinds[name] == "memory" for name in rest)
    chosen: list[str | None] = [*memories] if must else [None, *memories]
    for one in chosen:
        left = [name for name in rest if name != one]
        options = [_options(kinds[name], causal and one is None) for name in left]
        masks = [place for place, name in enumerate(left) if kinds[name] == "mask"]
        for place in masks[1:]:  # one is enough to hide the future
            options[place] = [None, *OPEN]
        for width in memory_widths if one else (None,):
            for tried in _likely(options):
                others = tuple(zip(left, tried, strict=True))
                yield Way(tuple(tokens), others, one, width)
    if must and not memory and len(memories) == 1:  # the tokens themselves, then
        left = [name for name in rest if name != memories[0]]
        options = [_options(kinds[name], causal) for name in left]
        for tried in _likely(options):
            yield Way((*tokens, memories[0]), tuple(zip(left, tried, strict=True)))


def _likely(options: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield one of each; of too many, those that change least from the first ones."""
    ranges = [range(len(values)) for values in options]
    every: Iterator[tuple[int, ...]] = product(*ranges)
    if prod(map(len, options)) > TRIES:
        every = iter(sorted(islice(every, MOST), key=sum)[:TRIES])
    for places in every:
        yield tuple(one[at] for one, at in zip(options, places, strict=True))


def _options(kind: str | None, causal: bool) -> list[Any]:
    """Return what an argument of this kind may be given, likely ones first."""
    values: dict[str | None, list[Any]] = {
        "flag": [False],
        "padding": [None],
        "mask": [*MASKS, None, *OPEN] if causal else [None, *OPEN],
        "cache": [None],
        "positions": [("positions", 2), ("positions", 1)],
        "number": [0],
    }
    return values.get(kind, [None, 0])


def _three(names: Sequence[str]) -> list[str]:
    """Return the names of the first arguments if they are queries, keys and values."""
    first = list(names[:3])
    begun = {name.partition("_")[0] for name in first}
    if len(begun) == 1:  # as in x_query, x_key, x_value
        letters = _initials(name.partition("_")[2] for name in first)
    else:
        letters = _initials(first)
    if sorted(letters) == ["k", "q", "v"]:
        return [first[letters.index(letter)] for letter in "qkv"]
    # With a mask among them.
    known = {n.strip("_")[:1].lower(): n for n in names[:4] if not kind_of(n)}
    return [known[n] for n in "qkv"] if sorted(known) == ["k", "q", "v"] else []


def _initials(names: Iterable[str]) -> list[str]:
    return [name.strip("_")[:1].lower() for name in names]


def masked_ways(module: nn.Module, way: Way) -> Iterator[Way]:
    """Yield ways that also give a causal mask where forward takes one."""
    given = {*way.tokens, way.memory}
    for name, parameter in parameters_of_forward(module).items():
        kind, flag = kind_of(name), parameter.default is False
        values: list[Any] = MASKS if kind == "mask" and not flag else []
        if CAUSAL.search(name.lower()) or (flag and kind == "mask"):
            values = [True]
        for value in values if name not in given else ():
            others = dict(way.others) | {name: value}
            yield Way(way.tokens, tuple(others.items()))


def mask_names(module: nn.Module, way: Way) -> list[str]:
    """Return the arguments of forward that may take a mask of padding."""
    taken = {*way.tokens, *(way.memory or "").split()}
    taken |= {name for name, kind in way.others if is_kind(kind, "mask")}
    names = [name for name in parameters_of_forward(module) if name not in taken]
    if any("pad" in name for name in names):  # then the other one is a mask of pairs
        names = [name for name in names if name != "memory_mask"]
    kinds = ("mask", "padding")
    return [n for n in names if kind_of(n) in kinds and not NO_PADDING(n)]


def own_memories(module: nn.Module, way: Way) -> list[str]:
    """Return the names of arguments that may take a memory, and may be left out."""
    parameters = parameters_of_forward(module)
    given = {*way.tokens, *dict(way.others)}
    left = [n for n in MEMORIES if n in parameters and n not in given]
    return [name for name in left if parameters[name].default is None]


def cached_way(module: nn.Module, way: Way) -> tuple[Way | None, str | None]:
    """Return (way, name of the argument that takes a cache or None), or Nones.

    The way gives flags that ask for a cache, and where the tokens start.
    """
    given = {*way.tokens, way.memory, *dict(way.others)}
    others, cache = dict(way.others), None
    inside = any(STARTS.search(n) for n, kind in way.others if kind == 0)
    for name in parameters_of_forward(module):
        plain, kind = name.strip("_").lower(), kind_of(name)
        if re.search(ASKS_CACHE, plain):
            others[name] = inside = True
        elif kind == "cache" and cache is None:
            cache = name
        elif kind == "number" and STARTS.search(plain) and name not in given:
            others[name], inside = 0, True
        elif kind == "positions" and name not in given:
            others[name] = ("positions", 1 if plain == "input_pos" else 2)
    others.pop(cache or "", None)
    if cache is None and not inside:
        inside = any(callable(getattr(module, name, None)) for name in STARTERS)
    if cache is None and not inside:
        return None, None
    return Way(way.tokens, tuple(others.items())), cache


def open_arguments(module: nn.Module, way: Way) -> list[str]:
    """Return the arguments of forward that nobody gave, and that could change much.

    A flag that only asks for more to be returned is no such argument.
    """
    if is_pytorchs(module):
        return []
    given = {*way.tokens, *(way.memory or "").split()}
    given |= {name for name, kind in way.others if kind is not None}
    return [
        name
        for name, one in parameters_of_forward(module).items()
        if name not in given
        and one.default is not one.empty
        and not re.search(ASKS, name.lower())
    ]
