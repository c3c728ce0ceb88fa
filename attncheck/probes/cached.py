"""A class that has a cache computes with it what it computes at once."""

import contextlib
import functools
import inspect
import re
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from attncheck.build import UnusableError
from attncheck.calling import Way, cached_way, plain_way
from attncheck.collector import Collector, SkipTest
from attncheck.numbers import changed
from attncheck.probes.stepped import (
    ONE_BY_ONE,
    RESETS,
    NewCache,
    Stepped,
    T,
    chunks,
    second,
    tokens_alone,
)
from attncheck.subject import CallFailed, Subject
from attncheck.trace import tensors
from attncheck.variants import with_gains


def cached(subject: Subject, found: Collector) -> None:
    """Give the tokens one by one, then in chunks, with the cache that it has."""
    subject = with_gains(subject)  # what is normed twice would show no difference
    _cached(subject, found)
    name, size = subject.named_window
    if not name:  # by another name, it counts if it hides what is far
        told = [(n, v) for n, v in subject.given.items() if KEPT.search(n)]
        name, size = next(((n, v) for n, v in told if type(v) is int), ("", 0))
    unused = name in subject.given and subject.given[name] is None
    if not (size > T or unused) or found.found or subject.layer.window:
        return
    narrow = subject.variant(own={name: NARROW})
    if narrow is not None and not subject.named_window[0] and not _hides(narrow):
        return
    if narrow is not None:  # so that the cache has to forget some tokens
        with contextlib.suppress(SkipTest, CallFailed):
            _cached(narrow, found, narrow=True)


def _hides(narrow: Subject) -> bool:
    """Whether the last token, without a cache, does without the first."""
    x = narrow.tokens()
    other = x.clone()
    other[:, 0] = narrow.tokens(seed=5)[:, 0]
    with contextlib.suppress(CallFailed):
        return not changed(narrow(x)[:, -1], narrow(other)[:, -1])
    return False


def _cached(subject: Subject, found: Collector, narrow: bool = False) -> None:
    stepped = sought(subject, found)
    if stepped is None or any(name.startswith("cache_") for name in found.found):
        return
    if stepped.halves == ONE_BY_ONE:
        return  # one token at a time is all it takes
    several(stepped, found, narrow)
    if any(hasattr(subject.pristine, name) for name in RESETS):
        second(stepped, found)


def several(stepped: Stepped, found: Collector, narrow: bool = False) -> None:
    """Give several tokens at a time, if the class doesn't say that it takes one."""
    told = stepped.subject
    one = "warning" if told.says(SINGLE) and not told.says(PARTS) else None
    chunks(stepped, found, one, forgets=narrow)


def sought(
    subject: Subject,
    found: Collector,
    given: NewCache | None = None,
    declared: bool = False,
) -> Stepped | None:
    """Give the tokens one by one, with a cache that is made in the first way that acts.

    Args:
        subject: the layer.
        found: gets what is wrong.
        given: function (module) that returns an empty cache, the reader's own.
        declared: whether the reader said that there is a cache.

    Returns:
        The layer with this cache, or None where it refuses the one that it returned.

    Raises:
        SkipTest: there is no cache, or none that changes anything.
    """
    why, raised, severity = "no cache was found", None, None
    idle: Stepped | None = None
    usual: tuple[NewCache, ...] = (
        lambda module: KeysAndValues(),
        lambda module: (),
        lambda module: {},
    )
    caches = [None, *_of_its_own(subject), *_of_its_file(subject), *usual]
    caches = [given] if given else caches
    for new_cache, b in [(one, 2) for one in caches] + [(caches[0], 1)]:  # room for one
        stepped = _stepped(subject, new_cache, b)
        if stepped is None:
            raise SkipTest(why)
        x = stepped.tokens()
        if x.shape[1] < T:
            raise SkipTest("the layer doesn't take enough tokens")
        try:
            seen = stepped.outputs(stepped.module(), x, ONE_BY_ONE)
            alone = stepped.outputs(stepped.module(), x[:, 1:2], [1])
        except CallFailed as failure:
            why = f"its cache couldn't be used: {failure}"
            # It gave a cache, and refuses it: arguments may be missing.
            if new_cache is usual[-1] and _is_filled(stepped, x):
                raised, severity = failure, None  # all that is in it is its own
            elif not raised and _gives_one(stepped, x):
                raised, severity = failure, "warning"
            continue
        if changed(seen[:, 1:2], alone, 1e-4):
            break
        why = "what looks like a cache changes nothing"
        if declared and (given or _gives_one(stepped, x)):
            idle = idle or stepped
    else:
        if raised and not (declared and severity):
            done = "Passed the same tokens one by one, with the cache it returned."
            found.add("cache_differs", done, f"It raised {raised}.", severity)
            return None
        if idle is None:
            raise SkipTest(why)
        stepped = idle
    _tell_alone(stepped, found, declared)
    return stepped


def _tell_alone(stepped: Stepped, found: Collector, declared: bool) -> None:
    """Give one token at a time, and look at whether the caller joins caches."""
    x, subject = stepped.tokens(), stepped.subject
    tokens_alone(stepped, found)
    lost = {"cache_differs", "cache_forgets"} & {*found.found}
    if lost and _agrees_joined(stepped, x):
        _, done, _ = found.found.pop(lost.pop())
        text = (
            "It returns only the new keys and values. With the old ones joined here, "
        )
        text += "the outputs agree."
        # GPT-2's first code returns them in one tensor, and its caller joins these:
        # who says that there is a cache says that in `step`.
        one = isinstance(stepped.first(x), torch.Tensor)
        joins = subject.says(JOINS) or (one and not declared)
        found.add("cache_forgets", done, text, "warning" if joins else None)
        return
    try:
        stepped.outputs(stepped.module(), x, stepped.halves)
    except CallFailed:
        stepped.halves = ONE_BY_ONE


def _of_its_own(subject: Subject) -> list[NewCache]:
    """Return the methods of the layer that make a cache, of known sizes if of any."""
    made: list[NewCache] = []
    for name in dir(type(subject.pristine)):
        method = getattr(type(subject.pristine), name)
        if MAKES.fullmatch(name) and inspect.isfunction(method):
            wanted = [*inspect.signature(method).parameters.values()][1:]
            needed = [one.name for one in wanted if one.default is one.empty]
            sizes = {
                one: size
                for one in needed
                for size, known in ((2, BATCH), (T, LENGTH))
                if known.search(one)
            }
            if len(sizes) == len(needed):
                made.append(functools.partial(method, **sizes))
    return made


def _of_its_file(subject: Subject) -> list[NewCache]:
    """Return functions that make a cache of each class beside it that is one."""
    beside = getattr(type(subject.pristine).forward, "__globals__", {})
    made: list[NewCache] = []
    for name, kind in list(beside.items()):
        if not inspect.isclass(kind) or not CACHE.search(name.lower()):
            continue
        with contextlib.suppress(Exception):  # it may want what nobody knows
            kind()

            def new(module: nn.Module, kind: type = kind) -> Any:
                return kind()

            made.append(new)
    return made


def _agrees_joined(stepped: Stepped, x: torch.Tensor) -> bool:
    """Whether outputs agree where the caller joins what each call returns."""
    if stepped.new_cache:
        return False
    once = stepped.step

    def step(
        module: nn.Module, chunk: torch.Tensor, cache: Any
    ) -> tuple[torch.Tensor, Any]:
        y, new = once(module, chunk, cache)
        return y, new if cache is None or cache is INSIDE else _joined(cache, new)

    joined = Stepped(stepped.subject, step, None, stepped.b)
    try:
        seen = joined.outputs(joined.module(), x, ONE_BY_ONE)
    except (CallFailed, UnusableError):
        return False
    return not changed(stepped.subject(x), seen, 1e-4)


def _joined(old: Any, new: Any) -> Any:
    """Join two caches along the axis of tokens, where each holds its own."""
    if isinstance(new, torch.Tensor):
        return torch.cat([old, new], dim=-2)
    if isinstance(new, list | tuple):
        return tuple(_joined(*pair) for pair in zip(old, new, strict=True))
    return new


def _is_filled(stepped: Stepped, x: torch.Tensor) -> bool:
    """Whether the first call puts tensors into an empty dictionary."""
    cache: dict[Any, Any] = {}
    try:
        stepped.first(x[:, :1], cache)
    except CallFailed:
        return False
    return any(True for _ in tensors(cache))


def _gives_one(stepped: Stepped, x: torch.Tensor) -> bool:
    """Whether one call returns a cache of its own."""
    if stepped.new_cache:
        return False
    try:
        return stepped.first(x[:, :1]) is not INSIDE
    except CallFailed:
        return False


def _stepped(
    subject: Subject, new_cache: NewCache | None, b: int = 2
) -> Stepped | None:
    """Return the layer called chunk by chunk, or None where there is no cache."""
    way = subject.how.way or plain_way(subject.pristine)
    if (
        not subject.causal
        or not _called_so(subject, way)
        or way is None
        or way.memory
        or way.image != "btd"
        or way.sides
    ):
        return None
    asking, name = cached_way(subject.pristine, way)
    if asking is None:
        return None
    place: list[int | None] = [None]  # of the cache in what is returned

    def step(
        module: nn.Module, chunk: torch.Tensor, cache: Any
    ) -> tuple[torch.Tensor, Any]:
        start = stepped.start
        if start == 0:
            Stepped.reset(module)
        b, t = chunk.shape[:2] if subject.layout == "btd" else chunk.shape[1::-1]
        more = (
            {name: cache} if name and cache is not None and cache is not INSIDE else {}
        )
        y = asking.with_values(more).call(
            module, chunk, b, t, subject._d_head(), start=start
        )
        if name and start == 0:
            place[0] = _place_of_cache(y, t)
        if not name or place[0] is None:
            return y, cache if new_cache else INSIDE
        if new_cache and type(y[place[0]]) is not type(cache):
            return y, cache  # it is filled in place
        return y, y[place[0]]

    stepped = Stepped(subject, step, new_cache, b)
    return stepped


def _called_so(subject: Subject, way: Way | None) -> bool:
    """Whether it is called in this way, also where the reader wrote the call."""
    if subject.how.call is None or way is None:
        return subject.how.call is None
    kept, x = subject.how, subject.tokens()
    y = subject(x)
    try:
        subject.how = replace(kept, call=None, way=way)
        return not changed(y, subject(x), 1e-4)
    except CallFailed:
        return False
    finally:
        subject.how = kept


CACHE = re.compile("cache|kv|past|store|memory")
MAKES = re.compile(r"(new|make|init|create|empty|fresh|start|get)_(\w+_)?(cache|past)")
# What such a method may want: how many sequences, and how many tokens.
BATCH = re.compile(r"^(b|bs|bsz|n)$|batch")
LENGTH = re.compile(r"len|seq|tokens|positions")
NARROW = 3  # tokens of a window, fewer than are passed
# What a window may be called besides.
KEPT = re.compile(r"^(left_?|past_?|attn_?|max_?)?(context|history|span|past|memory)"
                  r"(_(left|size|frames|tokens|len))?$|look_?back")  # fmt: skip
# Words by which a cache takes one token at a time.
SINGLE = re.compile(
    r"\b(one|single|1|new|current) (\w+ )?(token|query|position|step)\b"
    r"|\b(only|just|of|for) the (newest|latest) (token|query|position)\b"
    r"|\btokens? (by|at a) t(oken|ime)|step by step|one by one"
    r"|[(\[]([a-z]\w*, ?){1,2}1, ?[\w./ ]+[)\]]",  # a shape with one token
    re.IGNORECASE,
)

PARTS = re.compile(r"\b(part|chunk|piece|rest)s? of (a|the) (prompt|sequence|text)\b"
                   r"|\b(one|single|1) or (more|several|many)\b"
                   r"|\b(several|many|more) (new )?tokens\b", re.I)  # fmt: skip


# Words by which the caller joins what each call returns.
JOINS = re.compile(
    r"\bcallers? (\w+ ){0,3}(append|concat|join|stor|merg|updat|extend)"
    r"|\b(only|just) the (new|current|latest)|\bnew (keys|kv|key_value)"
    r"|\b(append|concat|stor|updat|extend|join|merg)\w* (\w+ )?(outside|elsewhere)",
    re.IGNORECASE,
)


class KeysAndValues:
    """A cache as many layers expect one: it joins new keys and values to the old."""

    def __init__(self) -> None:
        self.keys: dict[int, torch.Tensor] = {}
        self.values: dict[int, torch.Tensor] = {}
        self.current_length = 0

    def update(self, *given: Any, **named: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Return all keys and values of a layer, with the new ones."""
        new = [
            one for one in [*given, *named.values()] if isinstance(one, torch.Tensor)
        ]
        layer = next((one for one in given if type(one) is int), 0)
        for held, one in zip((self.keys, self.values), new, strict=False):
            old = [held[layer]] if layer in held else []
            held[layer] = torch.cat([*old, one], dim=-2)
        self.current_length = self.keys[layer].shape[-2]
        return self.keys[layer], self.values[layer]

    def __len__(self) -> int:
        return self.current_length

    def get_seq_length(self, layer: int = 0) -> int:
        """Return how many tokens are held."""
        return self.current_length

    num_items = get_seq_length


INSIDE = object()  # the cache is in the module


def _place_of_cache(y: Any, t: int) -> int | None:
    """Return where in a tuple the cache may be: not weights, and with tensors."""
    for place in range(len(y) - 1, 0, -1) if isinstance(y, tuple | list) else ():
        entry = y[place]
        weights = isinstance(entry, torch.Tensor) and entry.shape[-1] == t
        if any(True for _ in tensors(entry)) and not weights:
            return place
    return None
