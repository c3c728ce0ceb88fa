"""How a module wants to be called: with x alone, or with masks, tables, a memory."""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from math import prod
from typing import Any

import torch
from torch import nn

from attncheck.build import FunctionModule, UnusableError

MEMORIES = ("memory", "context", "encoder_output", "encoder_hidden_states", "enc_out",
            "enc_output", "encoder_out", "key_value", "kv", "y", "cond", "source", "xa",
            "mem", "ctx", "key_value_states", "encoder_states", "encoder_outputs",
            "cross_states", "kv_input", "x_kv", "image", "images", "image_features",
            "audio", "media")  # fmt: skip
DOCUMENTS = ("doc", "seg", "seq", "packed")  # how the name of such an argument begins
TRIES, MOST = 400, 100_000
NO_PADDING = re.compile(
    r"^pre_|^post|head|causal|future|triang|tgt|look|len|(?<!attn)_bias$"
).search
# What a module may be told before it keeps keys and values between calls.
STARTERS = ("start", "start_streaming", "start_cache", "begin", "enable_cache",
            "init_cache", "setup_cache", "setup_caches")  # fmt: skip
# How many tokens are in the cache, as a number.
BEFORE = r"^(past|cached?|prev|prefix)_?(kv_?|seq_?)?len(gth)?$"
STARTS = re.compile(rf"start|offset|past_len|pos|{BEFORE}")
CAUSAL = re.compile("causal|casual")
# Flags that have forward return more, or compute the same in another way.
ASKS = (
    r"^(need|return|output|get)_|^(with_)?(weights|attn)$|average_attn|flash|training"
)
# How many tokens of each sequence are real, in arguments that may take that.
COUNTS = re.compile(
    r"^((x|input|valid|key|seq|src|token|frame)_?)?len(gth)?s$|^(set_)?sizes$"
)
ASKS_CACHE = r"^(use|return)\w*(cache|past)|(cache|kv|past)_(append|update|write|grow)$"
LINKS = r"^adj|^edges?$|_adj$"  # which nodes of a graph see each other
# What an argument of forward is by its name; the first that fits.
KINDS = {
    "flag": r"causal|^(use|return|output|need|is(?!_valid|_real|_present)|do|with)_|"
    r"training|weights$|attn$",
    "lengths": r"lengths?$|lens?$",
    "padding": r"pad|src_|length",
    "pairs": r"pair|^edge_?(attr|feat|emb|rep)",
    "mask": r"mask|bias$|^(is_)?(valid|present|real|observed|visible)$",
    "cache": r"cache|past|state$|store$",
    "cos": r"cos(?!.*sin)",
    "sin": r"^sin$|(?<!cos)_sin$|^sin_(?!.*cos)",
    "turn": r"cos_?(and_?)?sin|sin_?(and_?)?cos|freq|rope|"
    r"rotary|pos.*emb|^rel_pos$|sinusoid|pos_cis|^pe$",
    "positions": r"position|^pos$|(input|token|seq|segment|seg)_pos|pos_ids",
    "number": r"start|offset|step|index|_idx|layer|^pos\d?",
    "memory": f"^({'|'.join(MEMORIES)})$|context|memory|encoder|cond|^kv|^(c|z)$|"
    r"^key_?val",
}
QUERIES = r"^q$|quer|latent|^tgt$|^target"  # arguments that keys don't come from
# Numbers before those that are added: (1 - mask) * -10000 takes both, and moves all
# scores with the latter.
WORDS = {"hides": "True hides", "keeps": "True stays visible",
         "numbers": "1 stays visible", "added": "0 or -inf"}  # fmt: skip
MASKS = [("mask", how, axes) for how in WORDS for axes in (2, 4, 3)]
OPEN = [("open", how, axes) for _, how, axes in MASKS]
OPEN += [("open", how, 1) for how in ("numbers", "keeps", "hides", "added")]
SHARES = (1, 0.5)
FORMS = [(form, share) for share in SHARES for form in (
    "1td", "td", "halved", "11td", "1halved", "1td neighbors",
    "td neighbors")]  # fmt: skip
TURNS = [("turn", form, share) for share in SHARES for form in (
    "complex", "stacked", "pair", "pair td", "pair halved", "pair halved 1t1",
    "turned pair", "angles", "half angles", "matrix", "distances",
    "tokens")]  # fmt: skip


@dataclass(frozen=True)
class Way:
    """How forward is called.

    Attributes:
        tokens: names of the arguments that take x.
        others: (name, kind or value) of what else it is given.
        memory: the name of the argument that takes a memory, or "key value", or None.
        memory_width: how wide the memory's tokens are; None for those of x.
        form: the form of a table of rotary positions, and which share turns.
        base: of the rotary positions in a table.
    """

    tokens: tuple[str, ...]
    others: tuple[tuple[str, Any], ...] = ()
    memory: str | None = None
    memory_width: int | None = None
    form: tuple[str, float] | None = None
    base: float = 10000.0

    @property
    def turns(self) -> bool:
        """Whether it is given a table of rotary positions."""
        return any(
            kind in ("cos", "sin") or _is(kind, "turn") for _, kind in self.others
        )

    @property
    def masked(self) -> bool:
        """Whether it is given a mask that hides the future."""
        return any(_is(kind, "mask") for _, kind in self.others)

    @property
    def opened(self) -> bool:
        """Whether it is given a mask that hides nothing."""
        return any(_is(kind, "open") for _, kind in self.others)

    def call(
        self,
        module: nn.Module,
        x: torch.Tensor,
        b: int,
        t: int,
        d_head: int,
        memory: torch.Tensor | None = None,
        start: int = 0,
    ) -> Any:
        """Return what forward returns for x, (b, t, d) or as the layout has it.

        With ``start``, x continues a sequence of which so many tokens are cached.
        """
        given: dict[str, Any] = dict.fromkeys(self.tokens, x)
        keys = t if memory is None else memory.shape[1]
        if self.memory:
            given |= dict.fromkeys(self.memory.split(), memory)
        for name, kind in self.others:
            kind = "start" if kind == 0 and start and STARTS.search(name) else kind
            given[name] = _made(kind, x, b, t, d_head, self.form, start, self.base)
            if kind == "lengths":
                given[name] = torch.full((b,), keys, device=x.device)
        parameters = inspect.signature(module.forward).parameters
        # Those in front are given by place: some have names that nobody may use.
        front = []
        for name, parameter in parameters.items():
            if name not in given or parameter.kind is parameter.KEYWORD_ONLY:
                break
            front.append(given.pop(name))
        return module(*front, **given)

    def with_values(self, more: Mapping[str, Any]) -> "Way":
        """Return the way with other arguments given, too."""
        more = {name: Given(value) for name, value in more.items()}
        return replace(self, others=tuple((dict(self.others) | more).items()))

    def words(self) -> str:
        """Return what is given besides x, in words."""
        told = [f"{self.memory}=a memory with other tokens"] if self.memory else []
        told += [f"{name}={_told(kind)}" for name, kind in self.others]
        return ", ".join(told)


@dataclass(frozen=True, eq=False)
class Given:
    """A value for an argument, as it is."""

    value: Any


def mask_names(module: nn.Module, way: Way) -> list[str]:
    """Return the arguments of forward that may take a mask of padding."""
    taken = {*way.tokens, *(way.memory or "").split()}
    taken |= {name for name, kind in way.others if _is(kind, "mask")}
    names = [name for name in _named(module) if name not in taken]
    if any("pad" in name for name in names):  # then the other hides by pairs
        names = [name for name in names if name != "memory_mask"]
    masks = [n for n in names if _kind(n) in ("mask", "padding") and not NO_PADDING(n)]
    masks += [name for name in names if counts(name)]
    return masks + [n for n in names if re.search(LINKS, n.strip("_").lower())]


def counts(name: str) -> bool:
    """Whether an argument of this name takes the number of each sequence's tokens."""
    return bool(COUNTS.fullmatch(name.strip("_").lower()))


def _is(kind: Any, what: str) -> bool:
    return isinstance(kind, tuple) and kind[0] == what


def _told(kind: Any) -> str:
    if _is(kind, "mask"):
        return f"a causal mask ({WORDS[kind[1]]})"
    if _is(kind, "open"):
        return f"a mask that hides nothing ({WORDS[kind[1]]})"
    if _is(kind, "turn") or kind in ("cos", "sin"):
        return "a table of rotary positions"
    if _is(kind, "pairs"):
        return "numbers for each pair of tokens"
    return "the positions" if _is(kind, "positions") else str(kind)


def _made(
    kind: Any,
    x: torch.Tensor,
    b: int,
    t: int,
    d_head: int,
    form: tuple[str, float] | None,
    start: int,
    base: float,
) -> Any:
    """Return the value of an argument."""
    if isinstance(kind, Given):
        return kind.value
    places = torch.arange(start, start + t, device=x.device)
    if _is(kind, "pairs"):
        return _pairs(kind[1] or x.shape[-1], x, b, places)
    if _is(kind, "mask") or _is(kind, "open"):
        return _mask(kind, x, b, places)
    if _is(kind, "positions"):
        return places if kind[1] == 1 else places.expand(b, t)
    if kind in ("cos", "sin"):
        assert form is not None, "a table has a form"
        return _table(kind, form, x, places, d_head, base)
    if _is(kind, "turn"):
        return _turn(kind, x, places, d_head, base)
    if kind == "start":
        return start
    return kind


def _pairs(width: int, x: torch.Tensor, b: int, places: torch.Tensor) -> torch.Tensor:
    """Return numbers without a pattern for each pair of tokens, (b, t, t, width)."""
    i, j = places[:, None, None], places[:, None]
    k = torch.arange(width, device=x.device)
    made = torch.sin(12.9 * i + 78.2 * j + 37.7 * k + 5.3 * i * (j + k)).to(x.dtype)
    return made.expand(b, *made.shape)


def _mask(
    kind: tuple[str, str, int], x: torch.Tensor, b: int, places: torch.Tensor
) -> torch.Tensor:
    what, how, axes = kind
    keys = torch.arange(int(places[-1]) + 1, device=x.device)
    hidden = (keys > places[:, None]) & (what == "mask")
    if axes == 1:  # one for each token of each sequence
        hidden = hidden[-1].expand(b, -1)
    if axes > 2:
        hidden = hidden.expand(b, *([1] * (axes - 3)), *hidden.shape)
    return as_mask(how, hidden, x)


def as_mask(how: str, hidden: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return what hides, for x, what ``hidden`` says, in one of several ways."""
    if how == "hides":
        return hidden
    if how == "counts":
        return (~hidden).sum(dim=-1)
    if how == "added":
        return torch.zeros_like(hidden, dtype=x.dtype).masked_fill(hidden, -torch.inf)
    return ~hidden if how == "keeps" else (~hidden).to(x.dtype)


def _angles(
    x: torch.Tensor, places: torch.Tensor, d: int, base: float = 10000.0
) -> torch.Tensor:
    steps = torch.arange(0, d, 2, device=x.device, dtype=x.dtype)
    return places.to(x.dtype)[:, None] * base ** (-steps / d)


def _table(
    which: str,
    form: tuple[str, float],
    x: torch.Tensor,
    places: torch.Tensor,
    d_head: int,
    base: float,
) -> torch.Tensor:
    """Return cosines or sines of rotary positions in one of several forms."""
    how, share = form
    angles = _angles(x, places, int(d_head * share), base)
    if how.endswith("neighbors"):
        angles = angles.repeat_interleave(2, dim=-1)
    elif "halved" not in how:
        angles = torch.cat([angles, angles], dim=-1)
    table = angles.cos() if which == "cos" else angles.sin()
    return table[(None,) * how.count("1")]


def _turn(
    kind: tuple[str, str, float],
    x: torch.Tensor,
    places: torch.Tensor,
    d_head: int,
    base: float,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    _, how, share = kind
    angles = _angles(x, places, int(d_head * share), base)
    if how == "complex":  # which bfloat16 does not have
        angles = angles if x.dtype == torch.float64 else angles.float()
        return torch.polar(torch.ones_like(angles), angles)
    if how == "tokens":  # one row for each, as wide as it
        wide = _angles(x, places, x.shape[-1])
        return torch.cat([wide.sin(), wide.cos()], dim=-1).expand(*x.shape)
    if how == "distances":  # of all pairs, the largest first, as wide as a token
        far = torch.arange(len(places) - 1, -len(places), -1, device=x.device)
        wide = _angles(x, far, x.shape[-1])
        return torch.cat([wide.sin(), wide.cos()], dim=-1)[None]
    if how == "matrix":
        rows = [angles.cos(), -angles.sin(), angles.sin(), angles.cos()]
        return torch.stack(rows, dim=-1).unflatten(-1, (2, 2))
    both = torch.cat([angles, angles], dim=-1)
    if how == "stacked":
        return torch.stack([angles.cos(), angles.sin()], dim=-1)
    if how == "half angles":
        return angles
    if how == "angles":
        return both
    if how == "turned pair":
        return angles.sin()[None, None], angles.cos()[None, None]
    angles = angles if "halved" in how else both[None] if how == "pair" else both
    if how.endswith("1t1"):  # for heads behind the tokens
        angles = angles[None, :, None]
    return angles.cos(), angles.sin()


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
    parameters = _named(module)
    if not parameters:
        return
    names = list(parameters)
    required = [name for name in names if parameters[name].default is inspect._empty]
    kinds = {name: _kind(name) for name in names}
    given = ("cos", "sin", "turn", "positions", "mask")
    more = [n for n in names if n not in required and kinds[n] in given]
    wanted = [*required, *(more if optional else [])]
    three = _three(names)
    if three and set(three) <= {*required}:
        if not memory:
            yield from _ways_with([*three], wanted, {}, causal, memory_widths, False)
        elif len({*three}) == 3:
            kinds[pair := " ".join(three[1:])] = "memory"
            wanted = [pair, *(n for n in wanted if n not in three)]
            yield from _ways_with(three[:1], wanted, kinds, False, memory_widths, True)
        return
    if three and optional and not memory and {*required} <= {*three}:
        # They may be left out by the signature, and forward may still ask for them.
        yield from _ways_with([*three], three, {}, causal, memory_widths, False)
    firsts, second = names[:1], [] if optional else required[1:2]
    if second and (re.search(QUERIES, second[0].lower()) or memory_first(names)):
        firsts = [*second, *firsts]
    elif second and kinds[second[0]] is None:
        firsts = [*firsts, *second]
    for first in firsts:
        own = {name: kind for name, kind in kinds.items() if name != first}
        if first != names[0]:  # then what comes first is the memory
            own[names[0]] = "memory"
        yield from _ways_with([first], wanted, own, causal, memory_widths, memory)


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
    kinds = {name: kinds.get(name, _kind(name)) for name in {*kinds, *rest}}
    memories = [name for name in rest if kinds[name] == "memory"]
    if not memories:  # one that may be left out, or the second argument
        memories = [name for name in kinds if kinds[name] == "memory"][:1]
        memories += [name for name in rest[:1] if kinds[name] is None]
    must = memory or any(kinds[name] == "memory" for name in rest)
    chosen: list[str | None] = [*memories] if must else [None, *memories]
    for one in chosen:
        left = [name for name in rest if name != one]
        options = [_options(kinds[name], causal and one is None) for name in left]
        for name, values in zip(left, options, strict=True):
            if kinds[name] == "pairs" or name.lower().endswith("bias"):
                values += [("pairs", width) for width in memory_widths]
        masks = [place for place, name in enumerate(left) if kinds[name] == "mask"]
        for place in masks[1:]:  # one is enough to hide the future
            options[place] = [None, *OPEN]
        for width in memory_widths if one else (None,):
            for tried in _likely(options):
                others = tuple(zip(left, tried, strict=True))
                turned = any(kind in ("cos", "sin") for kind in tried)
                for form in FORMS if turned else (None,):
                    yield Way(tuple(tokens), others, one, width, form)
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
    if letters[1:] == ["k", "v"]:
        return first
    # With a mask among them.
    known = {n.strip("_")[:1].lower(): n for n in names[:4] if not _kind(n)}
    return [known[n] for n in "qkv"] if sorted(known) == ["k", "q", "v"] else []


def masked_ways(module: nn.Module, way: Way) -> Iterator[Way]:
    """Yield ways that also give a causal mask where forward takes one."""
    given = {*way.tokens, way.memory}
    for name, parameter in _named(module).items():
        kind, flag = _kind(name), parameter.default is False
        values: list[Any] = MASKS if kind == "mask" and not flag else []
        if CAUSAL.search(name.lower()) or (flag and kind == "mask"):
            values = [True]
        for value in values if name not in given else ():
            others = dict(way.others) | {name: value}
            yield Way(way.tokens, tuple(others.items()), form=way.form, base=way.base)


def plain_way(module: nn.Module) -> Way | None:
    """Return the way that :func:`inputs` tells, or None."""
    try:
        places, names = inputs(module)
    except UnusableError:
        return None
    return Way((*list(_named(module))[:places], *names))


def memory_way(module: nn.Module) -> Way | None:
    """Return the way in which :func:`with_memory` calls a module, or None."""
    names = list(inspect.signature(module.forward).parameters)
    if _three(names) == names[:3]:
        return Way((names[0],), memory=" ".join(names[1:3]))
    if memory_first(names):
        return Way((names[1],), memory=names[0])
    known = [name for name in MEMORIES if name in names[1:]] or names[1:2]
    return Way((names[0],), memory=known[0]) if known else None


def own_memories(module: nn.Module, way: Way) -> list[str]:
    """Return the names of arguments that may take a memory, and may be left out."""
    parameters = _named(module)
    given = {*way.tokens, *dict(way.others)}
    left = [n for n in MEMORIES if n in parameters and n not in given]
    return [name for name in left if parameters[name].default is None]


def memory_first(names: Sequence[str]) -> bool:
    """Whether the first argument is the memory by its name, and the second isn't."""
    told = [bool(re.search("context|memory|encoder", n.lower())) for n in names[:2]]
    return told == [True, False]


def cached_way(module: nn.Module, way: Way) -> tuple[Way | None, str | None]:
    """Return (way, name of the argument that takes a cache or None), or Nones.

    The way gives flags that ask for a cache, and where the tokens start.
    """
    given = {*way.tokens, way.memory, *dict(way.others)}
    others, cache = dict(way.others), None
    inside = any(STARTS.search(n) for n, kind in way.others if kind == 0)
    for name in _named(module):
        plain = name.strip("_").lower()
        kind = _kind(name)
        if re.search(ASKS_CACHE, plain):
            others[name] = inside = True
        elif kind == "cache" and cache is None:
            cache = name
        elif kind == "number" and STARTS.search(plain) and name not in given:
            others[name], inside = 0, True
        elif kind == "positions" and name not in given:
            others[name] = ("positions", 1 if plain == "input_pos" else 2)
    for name in [name for name in others if name == cache]:
        del others[name]
    if cache is None and not inside:
        inside = any(callable(getattr(module, name, None)) for name in STARTERS)
    if cache is None and not inside:
        return None, None
    return Way(way.tokens, tuple(others.items()), form=way.form, base=way.base), cache


def open_arguments(module: nn.Module, way: Way | None) -> list[str]:
    """Return the arguments of forward that nobody gave, and that could change much.

    A flag that only asks for more to be returned is no such argument.
    """
    way = way or plain_way(module)
    if way is None or is_pytorchs(module):
        return []
    given = {*way.tokens, *(way.memory or "").split()}
    given |= {name for name, kind in way.others if kind is not None}
    return [
        name
        for name, one in _named(module).items()
        if name not in given
        and one.default is not one.empty
        and not re.search(ASKS, name.lower())
    ]


def kinds_of(module: nn.Module) -> dict[str, str | None]:
    """Return {argument of forward: what it is by its name, or None}."""
    return {name: _kind(name) for name in list(_named(module))[1:]}


def _named(module: nn.Module) -> dict[str, inspect.Parameter]:
    if isinstance(module, FunctionModule):
        return {}
    return {
        name: p
        for name, p in inspect.signature(module.forward).parameters.items()
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    }


def _kind(name: str) -> str | None:
    """Return what an argument is by its name, or None."""
    plain = name.strip("_").lower()
    if re.search(BEFORE, plain):
        return "number"
    return next((kind for kind, form in KINDS.items() if re.search(form, plain)), None)


def _options(kind: str | None, causal: bool) -> list[Any]:
    """Return what an argument of this kind may be given, likely ones first."""
    values: dict[str | None, list[Any]] = {
        "flag": [False],
        "padding": [None],
        "lengths": [None, "lengths"],
        "mask": [*MASKS, None, *OPEN] if causal else [None, *OPEN],
        "cache": [None],
        "cos": ["cos"],
        "sin": ["sin"],
        "turn": TURNS,
        "positions": [("positions", 2), ("positions", 1)],
        "number": [0],
    }
    return values.get(kind, [None, 0])


def inputs(module: nn.Module) -> tuple[int, list[str]]:
    """Return how often forward wants x, and by which names.

    Once, or for query, key and value; keyword-only arguments by their names.

    Raises:
        UnusableError: it wants something else.
    """
    if isinstance(module, FunctionModule):
        return 1, []
    parameters = inspect.signature(module.forward).parameters
    required = [
        name
        for name, p in parameters.items()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    by_name = [
        n for n in required if parameters[n].kind is inspect.Parameter.KEYWORD_ONLY
    ]
    takes_any = any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
    if _three(required) == required or len(required) == 1:
        return len(required) - len(by_name), by_name
    if not required and (takes_any or parameters):
        return 1, []
    raise UnusableError(
        f"forward takes ({', '.join(parameters)}), and what to pass isn't clear. "
        f"For cross-attention, pass memory=6, its number of tokens; for packed "
        f"documents, documents=True. Otherwise say how to call it, as in "
        f"check(…, call={example_call(module)}), or on the command line "
        f'--call "{example_call(module)}".'
    )


def example_call(module: nn.Module) -> str:
    """Return the text of a function that calls forward, to be completed."""
    parameters = _named(module)
    needed = [n for n, p in parameters.items() if p.default is p.empty][1:]
    return f"lambda module, x: module({', '.join(['x', *(f'{n}=…' for n in needed)])})"


def with_memory(
    module: nn.Module,
) -> Callable[[nn.Module, torch.Tensor, torch.Tensor], Any]:
    """Return a function (module, x, memory) that calls forward with a memory.

    Raises:
        UnusableError: it is not known how to pass the memory.
    """
    if is_pytorchs(module):
        return lambda module, x, memory: module(x, memory, memory, need_weights=False)
    if (way := memory_way(module)) is not None:
        return lambda module, x, memory: way.call(module, x, 0, 0, 0, memory)
    names = ", ".join(inspect.signature(module.forward).parameters)
    raise UnusableError(
        f"forward takes ({names}), but no memory. Say how to pass it, "
        f"as in check_cross(…, call=lambda module, x, memory: module(x, memory))."
    )


def with_documents(module: nn.Module, x: torch.Tensor, document: torch.Tensor) -> Any:
    """Call forward with the number of each token's document (b, t)."""
    names = list(inspect.signature(module.forward).parameters)
    known = [name for name in names[1:] if name.strip("_").startswith(DOCUMENTS)]
    known += [name for name in names[1:] if name.startswith("cu_")]
    if takes_bounds(module):  # where each begins, and the last ends
        document = torch.cat(
            [
                torch.zeros_like(document[0, :1]),
                document[0].unique_consecutive(return_counts=True)[1],
            ]
        )
        document = document.cumsum(0).int()  # fmt: skip
    return module(x, **{known[0]: document}) if known else module(x, document)


def takes_bounds(module: nn.Module) -> bool:
    """Whether documents are told by where they begin, the same for all rows."""
    return any(name.startswith("cu_") for name in _named(module))


def is_pytorchs(module: nn.Module) -> bool:
    """Whether it is PyTorch's own layer, and its forward is, too."""
    own = isinstance(module, nn.MultiheadAttention)
    return own and type(module).forward is nn.MultiheadAttention.forward


def mask_of_pytorch(
    module: nn.MultiheadAttention, x: torch.Tensor, causal: bool
) -> dict[str, Any]:
    """Return the keyword arguments with which PyTorch's own layer is causal."""
    if not causal:
        return {"need_weights": False}
    t = x.shape[1] if module.batch_first else x.shape[0]
    hidden = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
    return {"need_weights": False, "attn_mask": hidden}


def _initials(names: Iterable[str]) -> list[str]:
    return [name.strip("_")[:1].lower() for name in names]
