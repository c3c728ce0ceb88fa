"""The contract of a cache: in chunks the layer computes what it computes at once."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from attncheck.build import UnusableError
from attncheck.calling import STARTERS
from attncheck.collector import Collector, SkipTest
from attncheck.contracts.base import Called, accepts, first_tensor, run
from attncheck.numbers import changed
from attncheck.report import Report
from attncheck.subject import CallFailed
from attncheck.walk import Recorded, Walk, _close, _followed

CACHES = (
    "cache",
    "kv_cache",
    "past_key_value",
    "past_key_values",
    "past",
    "layer_past",
)
RESETS = ("reset_cache", "clear_cache", "reset", "empty_cache", *STARTERS)
T = 6
ONE_BY_ONE = [1] * T
IN_CHUNKS = [2, 3, 1]
Step = Callable[[nn.Module, torch.Tensor, Any], tuple[torch.Tensor, Any]]


def check_cache(
    module_or_class: object,
    *,
    step: Callable[[nn.Module, torch.Tensor, Any], tuple[torch.Tensor, Any]]
    | None = None,
    new_cache: Callable[[nn.Module], Any] | None = None,
    time_limit: float = 10.0,
    strict: bool = False,
    **arguments: Any,
) -> Report:
    """Test that a layer with a cache computes in chunks what it computes at once.

    Args:
        module_or_class: a class derived from ``nn.Module``, or an instance.
        step: function (module, chunk, cache) that returns (output, cache). For a new
            sequence the cache is what ``new_cache`` makes. Without it, these are
            tried: ``module(x, cache)`` under the names cache, kv_cache, past and
            past_key_value(s), and ``module(x, use_cache=True)`` with ``reset_cache``.
        new_cache: function (module) that returns an empty cache. Without it: None.
        time_limit: seconds that one call may take.
        strict: whether warnings fail too.
        **arguments: for the constructor.

    Returns:
        :class:`attncheck.Report`.

    Example:
        >>> from attention import FusedMultiHeadAttention, KeyValueCache
        >>> from attncheck import check_cache
        >>> new = lambda module: KeyValueCache()
        >>> check_cache(FusedMultiHeadAttention, new_cache=new).ok
        True
    """

    def test(
        function: Callable[["Stepped", Collector], None],
    ) -> Callable[[Called, Collector], None]:
        return lambda layer, found: function(Stepped(layer, step, new_cache), found)

    tests = [
        ("one token at a time", test(tokens_alone)),
        ("several tokens at a time", test(chunks)),
        ("a second sequence", test(second)),
        ("another number of sequences", test(batches)),
    ]
    return run(module_or_class, tests, arguments, True, time_limit, strict)


class Stepped:
    """A layer that is called chunk by chunk.

    Args:
        layer: :class:`attncheck.contracts.base.Called`.
        step, new_cache: as of :func:`check_cache`.
        at_once: function (x) that gives the output without any cache.
        b: how many sequences are given at once, unless a test says another number.

    Raises:
        UnusableError: it is not known how to pass a cache.
    """

    def __init__(
        self,
        layer: Called,
        step: Step | None,
        new_cache: Callable[[nn.Module], Any] | None,
        at_once: Callable[[torch.Tensor], torch.Tensor] | None = None,
        b: int = 2,
    ) -> None:
        self.layer, self.b = layer, b
        self.new_cache = new_cache
        self.at_once = at_once
        self.step = step or self._found_step(layer.module())

    def _found_step(self, module: nn.Module) -> Step:
        name = accepts(module, CACHES)
        if name is not None:

            def passed(
                module: nn.Module, chunk: torch.Tensor, cache: Any
            ) -> tuple[torch.Tensor, Any]:
                given = module(chunk, **{name: cache})
                if isinstance(given, tuple | list) and len(given) > 1:
                    return given[0], given[1]
                if cache is None:
                    raise UnusableError(
                        f"forward takes {name}= but returned no new cache, so it needs "
                        f"an empty one. Say how to make that, as in "
                        f"check_cache(…, new_cache=lambda module: KeyValueCache())."
                    )
                return given, cache

            return passed
        if accepts(module, ("use_cache",)):

            def kept(
                module: nn.Module, chunk: torch.Tensor, cache: Any
            ) -> tuple[torch.Tensor, Any]:
                if cache is None:
                    self.reset(module)
                return module(chunk, use_cache=True), module

            return kept
        raise UnusableError(
            "the checker can't tell how to pass a cache. Say it: check_cache(…, "
            "step=lambda module, chunk, cache: (output, cache))."
        )

    @staticmethod
    def reset(module: nn.Module) -> None:
        """Call what begins a new sequence."""
        for name in RESETS:
            if begins(module, name):
                getattr(module, name)()

    def tokens(self, **sizes: int) -> torch.Tensor:
        """Return random tokens, no more than are allowed."""
        return self.layer.tokens(**({"b": self.b, "t": T} | sizes))

    def outputs(
        self, module: nn.Module, x: torch.Tensor, sizes: Sequence[int]
    ) -> torch.Tensor:
        """Return the outputs of all chunks in a row, from a new cache."""
        return self.layer.call(lambda: self._all(module, x, sizes))

    def _all(
        self, module: nn.Module, x: torch.Tensor, sizes: Sequence[int]
    ) -> torch.Tensor:
        cache = self.new_cache(module) if self.new_cache else None
        outputs, start = [], 0
        for size in sizes:
            y, cache = self.step(module, x[:, start : start + size], cache)
            outputs.append(first_tensor(y))
            start += size
        return torch.cat(outputs, dim=1)

    def followed(
        self, x: torch.Tensor, sizes: Sequence[int]
    ) -> tuple[Walk | None, Walk | None]:
        """Return the steps of the last chunk, and those of all tokens at once."""
        module = self.layer.module()
        watch, cut = Recorded(module), x.shape[1] - sizes[-1]

        def last() -> torch.Tensor:
            cache, start = self.new_cache(module) if self.new_cache else None, 0
            for size in sizes[:-1]:
                _, cache = self.step(module, x[:, start : start + size], cache)
                start += size
            with watch:
                y, _ = self.step(module, x[:, cut:], cache)
            return first_tensor(y)

        ended = _followed(watch, x[:, cut:], self.layer.call(last))
        other = self.layer.module()
        whole = Recorded(other)

        def at_once() -> torch.Tensor:
            with whole:
                return first_tensor(other(x))

        if self.at_once:
            y = self.layer.subject(x, other, mode=whole)
        else:
            y = self.layer.call(at_once)
        return ended, _followed(whole, x, y)

    def whole(self, x: torch.Tensor) -> torch.Tensor:
        """Return the output at once, through an empty cache."""
        return self.outputs(self.layer.module(), x, [x.shape[1]])

    def plain(self, x: torch.Tensor) -> torch.Tensor:
        """Return the output without any cache, if forward allows that."""
        if self.at_once:
            return self.at_once(x)
        module = self.layer.module()
        try:
            return self.layer.call(module, x)
        except CallFailed:
            return self.whole(x)


def tokens_alone(stepped: Stepped, found: Collector) -> None:
    """Give one token at a time."""
    x = stepped.tokens()
    wanted = stepped.plain(x)
    seen = stepped.outputs(stepped.layer.module(), x, ONE_BY_ONE[: x.shape[1]])
    if not changed(wanted, seen, 1e-4):
        return
    done = "Compared all tokens at once with one by one through the cache."
    alone = stepped.outputs(stepped.layer.module(), x[:, 1:2], [1])
    if not changed(seen[:, 1:2], alone, 1e-4):
        text = "The second output is the same as for its token alone."
        found.add("cache_unused", done, text)
        return
    first = _first(wanted, seen)
    # A layer whose positions stand still sees no order of what is cached.
    other = x.clone()
    other[:, [0, 2]] = x[:, [2, 0]]
    matters = changed(stepped.plain(x)[:, -1], stepped.plain(other)[:, -1], 1e-4)
    shuffled = stepped.outputs(stepped.layer.module(), other, ONE_BY_ONE)
    blind = matters and not changed(seen[:, -1], shuffled[:, -1], 1e-4)
    if blind and _counts_alone(stepped, x):
        found.add("cache_positions", done, f"They differ from token {first} on, and "
                  f"with the cache, the order of tokens has no effect.")  # fmt: skip
        return
    name, why = _by_steps(stepped, x, ONE_BY_ONE[: x.shape[1]])
    found.add(name, done, f"They differ from token {first} on. {why}".strip())


def _by_steps(stepped: Stepped, x: torch.Tensor, sizes: list[int]) -> tuple[str, str]:
    """Return the mistake that shows in the last chunk's steps, and what was seen."""
    nothing = "cache_differs", ""
    try:
        last, whole = stepped.followed(x, sizes)
    except (CallFailed, RuntimeError, UnusableError, IndexError, ValueError):
        return nothing  # what is captured may have any form
    if last is None or whole is None or len(last.key) != len(whole.key):
        return nothing
    keys, t = whole.key.shape[1], sizes[-1]
    if last.key.shape[1] != keys:
        return "cache_differs", f"It has {last.key.shape[1]} keys then, not {keys}."
    for name, own, meant in (
        ("queries", last.query, whole.query[:, -t:]),
        ("keys", last.key, whole.key),
    ):
        if own.shape != meant.shape:
            return nothing
        if not _close(own, meant):
            if name == "keys" and _close(own[:, -t:], meant[:, -t:]):
                return "cache_differs", "The keys of the cache are others then."
            if _close(own.norm(dim=-1), meant.norm(dim=-1)):
                return "cache_positions", f"Its {name} have other positions then."
            return "cache_differs", f"Its {name} are others then."
    seen = [(one.weights > 0).sum(dim=-1)[0] for one in (last, whole)]
    hidden = [one.weights[..., :keys] == 0 for one in (last, whole)]
    if not torch.equal(hidden[0], hidden[1][:, -t:]):
        told = f"{seen[0][-1]} keys then, not {seen[1][-1]}"
        told = told if seen[0][-1] != seen[1][-1] else "other keys then"
        return "cache_mask_offset", f"Its last token sees {told}."
    same = last.values.shape == whole.values.shape
    if same and not _close(last.values, whole.values):
        return "cache_differs", "Its values are others then."
    return nothing


def begins(module: nn.Module, name: str) -> bool:
    """Whether a method has this name and needs no arguments."""
    method = getattr(module, name, None)
    if not callable(method):
        return False
    try:
        inspect.signature(method).bind()
    except (TypeError, ValueError):
        return False
    return True


def _counts_alone(stepped: Stepped, x: torch.Tensor) -> bool:
    """Whether three of each of two tokens give what one of each gives.

    So it is where nothing is rotated, and not where some of the keys are, or are gone.
    """
    if x.shape[1] < T or T != 6:
        return True
    pair = stepped.outputs(stepped.layer.module(), x[:, [0, 3]], [1, 1])
    many = x[:, [0, 0, 0, 3, 3, 3]]
    every = stepped.outputs(stepped.layer.module(), many, ONE_BY_ONE)
    return not changed(pair[:, -1], every[:, -1], 1e-4)


def chunks(stepped: Stepped, found: Collector, severity: str | None = None) -> None:
    """Give several tokens at a time: the mask must know what is in the cache."""
    x = stepped.tokens()
    wanted = stepped.plain(x)
    done = f"Compared all tokens at once with chunks of {IN_CHUNKS}."
    try:
        seen = stepped.outputs(stepped.layer.module(), x, IN_CHUNKS)
    except CallFailed as failure:
        found.add("cache_mask_offset", done, f"It raised {failure}.")
        return
    if not changed(wanted, seen, 1e-4) or "cache_unused" in found.found:
        return
    text = f"They differ from token {_first(wanted, seen)} on."
    alone = stepped.outputs(stepped.layer.module(), x, ONE_BY_ONE)
    if not changed(wanted, alone, 1e-4):
        name, why = _by_steps(stepped, x, IN_CHUNKS)
        name = name if why else "cache_mask_offset"
        told = f"{text} One by one, they agree. {why}".strip()
        found.add(name, done, told, severity)
    elif not found.found:
        found.add("cache_differs", done, text)


def second(stepped: Stepped, found: Collector) -> None:
    """Start a new sequence with the same instance."""
    x, other = stepped.tokens(), stepped.tokens(seed=1)
    module = stepped.layer.module()
    wanted = stepped.outputs(stepped.layer.module(), x, [3, 3])
    stepped.outputs(module, other, [3, 3])
    done = "Started a new sequence with a new cache, after another one."
    try:
        seen = stepped.outputs(module, x, [3, 3])
    except CallFailed as failure:
        found.add("cache_not_reset", done, f"It raised {failure}.")
        return
    if changed(wanted, seen, 1e-4):
        found.add("cache_not_reset", done, "The outputs differ from a new instance's.")


def batches(stepped: Stepped, found: Collector) -> None:
    """Use another number of sequences after a reset."""
    module = stepped.layer.module()
    done = "Passed two sequences, then three with a new cache."
    stepped.outputs(module, stepped.tokens(b=2), [3, 3])
    if "cache_not_reset" in found.found:
        raise SkipTest("the cache isn't reset")
    try:
        stepped.outputs(module, stepped.tokens(b=3), [3, 3])
    except CallFailed as failure:
        found.add("cache_batch", done, f"It raised {failure}.")


def _first(wanted: torch.Tensor, seen: torch.Tensor) -> int:
    gaps = [changed(wanted[:, i], seen[:, i], 1e-4) for i in range(wanted.shape[1])]
    return gaps.index(True) if True in gaps else 0
