"""A class that has a cache computes with it what it computes at once."""

import contextlib
import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from attncheck.build import UnusableError
from attncheck.calling import Way, cached_way, plain_way
from attncheck.collector import Collector, SkipTest
from attncheck.contracts.base import Called
from attncheck.contracts.cache import (
    ONE_BY_ONE,
    RESETS,
    Stepped,
    T,
    chunks,
    second,
    tokens_alone,
)
from attncheck.numbers import changed
from attncheck.subject import CallFailed, Subject
from attncheck.trace import tensors


def cached(subject: Subject, found: Collector) -> None:
    """Give the tokens one by one, then in chunks, with the cache that it has."""
    why, raised, severity = "no cache was found", None, None
    usual: tuple[Callable[[nn.Module], Any], ...] = (
        lambda module: KeysAndValues(),
        lambda module: {},
    )
    caches = [None, *_of_its_own(subject), *_of_its_file(subject), *usual]
    for new_cache, b in [(one, 2) for one in caches] + [(None, 1)]:  # room for one
        stepped = _stepped(subject, new_cache, b)
        if stepped is None:
            raise SkipTest(why)
        x = stepped.tokens()
        if x.shape[1] < T:
            raise SkipTest("the layer doesn't take enough tokens")
        try:
            seen = stepped.outputs(stepped.layer.module(), x, ONE_BY_ONE)
            alone = stepped.outputs(stepped.layer.module(), x[:, 1:2], [1])
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
    else:
        if raised:
            done = "Passed the same tokens one by one, with the cache it returned."
            found.add("cache_differs", done, f"It raised {raised}.", severity)
            return
        raise SkipTest(why)
    tokens_alone(stepped, found)
    if "cache_differs" in found.found and _agrees_joined(subject, x):
        _, done, _ = found.found.pop("cache_differs")
        text = (
            "It returns only the new keys and values. With the old ones joined here, "
        )
        text += "the outputs agree."
        # GPT-2's first code returns them in one tensor, and its caller joins these.
        _, new = stepped.layer.raw(stepped.step, stepped.layer.module(), x, None)
        joins = subject.says(JOINS) or isinstance(new, torch.Tensor)
        found.add("cache_differs", done, text, "warning" if joins else None)
        return
    if any(name.startswith("cache_") for name in found.found):
        return
    try:
        stepped.outputs(stepped.layer.module(), x, [3, 3])
    except CallFailed:
        return  # one token at a time is all it takes
    chunks(stepped, found, "warning" if subject.says(SINGLE) else None)
    if any(hasattr(subject.pristine, name) for name in RESETS):
        second(stepped, found)


def _of_its_own(subject: Subject) -> list[Callable[[nn.Module], Any]]:
    """Return the methods of the layer that make a cache, and want nothing for it."""
    made: list[Callable[[nn.Module], Any]] = []
    for name in dir(type(subject.pristine)):
        method = getattr(type(subject.pristine), name)
        if MAKES.fullmatch(name) and inspect.isfunction(method):
            wanted = [*inspect.signature(method).parameters.values()][1:]
            if all(one.default is not one.empty for one in wanted):
                made.append(method)
    return made


def _of_its_file(subject: Subject) -> list[Callable[[nn.Module], Any]]:
    """Return functions that make a cache of each class beside it that is one."""
    beside = getattr(type(subject.pristine).forward, "__globals__", {})
    made: list[Callable[[nn.Module], Any]] = []
    for name, kind in list(beside.items()):
        if not inspect.isclass(kind) or not CACHE.search(name.lower()):
            continue
        with contextlib.suppress(Exception):  # it may want what nobody knows
            kind()

            def new(module: nn.Module, kind: type = kind) -> Any:
                return kind()

            made.append(new)
    return made


def _agrees_joined(subject: Subject, x: torch.Tensor) -> bool:
    """Whether outputs agree where the caller joins what each call returns."""
    stepped = _stepped(subject, None)
    assert stepped is not None, "it was called chunk by chunk"
    once = stepped.step

    def step(
        module: nn.Module, chunk: torch.Tensor, cache: Any
    ) -> tuple[torch.Tensor, Any]:
        y, new = once(module, chunk, cache)
        return y, new if cache is None or cache is INSIDE else _joined(cache, new)

    stepped.step = step
    try:
        seen = stepped.outputs(stepped.layer.module(), x, ONE_BY_ONE)
    except (CallFailed, UnusableError):
        return False
    return not changed(stepped.plain(x), seen, 1e-4)


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
        stepped.layer.raw(stepped.step, stepped.layer.module(), x[:, :1], cache)
    except CallFailed:
        return False
    return any(True for _ in tensors(cache))


def _gives_one(stepped: Stepped, x: torch.Tensor) -> bool:
    """Whether one call returns a cache of its own."""
    if stepped.new_cache:
        return False
    try:
        step = stepped.layer.raw(stepped.step, stepped.layer.module(), x[:, :1], None)
    except CallFailed:
        return False
    return step[1] is not INSIDE


def _stepped(
    subject: Subject, new_cache: Callable[[nn.Module], Any] | None, b: int = 2
) -> Stepped | None:
    """Return the layer called chunk by chunk, or None where there is no cache."""
    way = subject.how.way or plain_way(subject.pristine)
    usual = subject.layout == "btd" and subject.causal
    if (
        not usual
        or not _called_so(subject, way)
        or way is None
        or way.memory
        or way.image != "btd"
        or way.sides
    ):
        return None
    way, name = cached_way(subject.pristine, way)
    if way is None:
        return None
    started: dict[int | str, Any] = {}
    filled: dict[int, Any] = {}

    def step(
        module: nn.Module, chunk: torch.Tensor, cache: Any
    ) -> tuple[torch.Tensor, Any]:
        old = cache is not None
        if isinstance(cache, KeysAndValues | dict) and new_cache:
            old = bool(cache)
        elif new_cache:  # a class of its own: filled since the first call
            old = id(cache) in filled
            filled[id(cache)] = cache
        start = started.get(id(module), 0) if old else 0
        if start == 0:
            Stepped.reset(module)
        b, t = chunk.shape[:2]
        more = (
            {name: cache} if name and cache is not None and cache is not INSIDE else {}
        )
        given = way.with_values(more)
        y = given.call(module, chunk, b, t, subject._d_head(), start=start)
        started[id(module)] = start + t
        if new_cache:  # it is filled in place
            return y, cache
        if name and start == 0:
            started["place"] = _place_of_cache(y, t)
        place = started.get("place") if name else None
        return y, INSIDE if place is None else y[place]

    return Stepped(Called(subject), step, new_cache, subject, b)


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
# Words by which a cache takes one token at a time.
SINGLE = re.compile(
    r"\b(one|single|1|newest|new|current|latest) (\w+ )?(token|query|position|step)\b"
    r"|\btokens? (by|at a) t(oken|ime)|step by step|one by one|\(\w+, ?1, ?[\w.]+\)",
    re.IGNORECASE,
)


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
