"""A layer in steps: in chunks it computes with its cache what it computes at once."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from attncheck.calling import STARTERS
from attncheck.collector import Collector, SkipTest
from attncheck.following import _followed, _rows
from attncheck.numbers import changed
from attncheck.recorded import Recorded, Walk, _close
from attncheck.subject import CallFailed, Subject, fields_of, guarded, seed_everything

RESETS = ("reset_cache", "clear_cache", "reset", "empty_cache", *STARTERS)
T = 6
ONE_BY_ONE = [1] * T
WIDEST = 64  # of a window whose end is tried
IN_CHUNKS, ONE_AND_REST = [2, 3, 1], [1, T - 1]
Step = Callable[[nn.Module, torch.Tensor, Any], tuple[torch.Tensor, Any]]
NewCache = Callable[[nn.Module], Any]


class Stepped:
    """A layer that is called chunk by chunk.

    Args:
        subject: the layer.
        step: function (module, chunk, cache) that returns (output, cache).
        new_cache: function (module) that returns an empty cache, or None.
        b: how many sequences are given at once, unless a test says another number.

    Attributes:
        start: how many tokens came before the chunk that ``step`` is given.
        halves: the chunks of a sequence, where any will do.
    """

    def __init__(
        self, subject: Subject, step: Step, new_cache: NewCache | None, b: int = 2
    ) -> None:
        self.subject, self.b = subject, b
        self.step, self.new_cache = step, new_cache
        self.start, self.halves = 0, [3, 3]

    def module(self) -> nn.Module:
        """Return a copy that no call has touched, in eval()."""
        return self.subject.copy().eval()

    @staticmethod
    def reset(module: nn.Module) -> None:
        """Call what begins a new sequence."""
        for name in RESETS:
            if begins(module, name):
                getattr(module, name)()

    def tokens(self, **sizes: int) -> torch.Tensor:
        """Return random tokens, no more than are allowed."""
        return self.subject.tokens(**({"b": self.b, "t": T} | sizes))

    def call(self, function: Callable[[], Any]) -> Any:
        """Return ``function()``, called within limits and without gradients.

        Raises:
            Failure: it raised or hung.
        """

        def job() -> Any:
            seed_everything(0, self.subject.device)
            with torch.no_grad():
                return function()

        return guarded(self.subject.worker, job, "forward_raises")

    def outputs(
        self, module: nn.Module, x: torch.Tensor, sizes: Sequence[int]
    ) -> torch.Tensor:
        """Return the outputs of all chunks in a row, from a new cache."""
        made: torch.Tensor = self.call(
            lambda: torch.cat(self._steps(module, x, sizes, self._new(module))[0], 1)
        )
        return made

    def first(self, x: torch.Tensor, cache: Any = None) -> Any:
        """Return the cache after a first chunk."""
        module = self.module()
        return self.call(lambda: self._steps(module, x, [x.shape[1]], cache)[1])

    def _new(self, module: nn.Module) -> Any:
        return self.new_cache(module) if self.new_cache else None

    def _steps(
        self,
        module: nn.Module,
        x: torch.Tensor,
        sizes: Sequence[int],
        cache: Any,
        start: int = 0,
    ) -> tuple[list[torch.Tensor], Any]:
        """Return the outputs of chunks (b, t, d), and the cache after them."""
        outputs, turned = [], self.subject.layout == "tbd"
        for size in sizes:
            self.start = start
            chunk = x[:, start : start + size]
            y, cache = self.step(
                module, chunk.transpose(0, 1) if turned else chunk, cache
            )
            y = first_tensor(y)
            outputs.append(y.transpose(0, 1) if turned else y)
            start += size
        return outputs, cache

    def followed(
        self, x: torch.Tensor, sizes: Sequence[int]
    ) -> tuple[Walk | None, Walk | None]:
        """Return the steps of the last chunk, and those of all tokens at once."""
        module = self.module()
        watch, cut = Recorded(module), x.shape[1] - sizes[-1]

        def last() -> torch.Tensor:
            _, cache = self._steps(module, x, sizes[:-1], self._new(module))
            with watch:
                return self._steps(module, x, sizes[-1:], cache, cut)[0][0]

        ended = _followed(watch, x[:, cut:], self.call(last))
        whole = Recorded(other := self.module())
        return ended, _followed(whole, x, self.subject(x, other, mode=whole))


def first_tensor(y: Any) -> torch.Tensor:
    """Return the output of a call that may return more.

    Raises:
        TypeError: there is none.
    """
    if isinstance(y, tuple | list) and y:
        return first_tensor(y[0])
    y = next((v for v in fields_of(y).values() if isinstance(v, torch.Tensor)), y)
    if not isinstance(y, torch.Tensor):
        raise TypeError(f"the call returned {type(y).__name__}, not a tensor.")
    return y


def tokens_alone(stepped: Stepped, found: Collector) -> None:
    """Give one token at a time."""
    x = stepped.tokens()
    wanted = stepped.subject(x)
    seen = stepped.outputs(stepped.module(), x, ONE_BY_ONE[: x.shape[1]])
    if not changed(wanted, seen, 1e-4):
        _beyond(stepped, found)
        return
    done = "Compared all tokens at once with one by one through the cache."
    alone = stepped.outputs(stepped.module(), x[:, 1:2], [1])
    if not changed(seen[:, 1:2], alone, 1e-4):
        text = "The second output is the same as for its token alone."
        found.add("cache_unused", done, text)
        return
    first = _first(wanted, seen)
    # A layer whose positions stand still sees no order of what is cached.
    other = x.clone()
    other[:, [0, 2]] = x[:, [2, 0]]
    matters = changed(stepped.subject(x)[:, -1], stepped.subject(other)[:, -1], 1e-4)
    shuffled = stepped.outputs(stepped.module(), other, ONE_BY_ONE)
    blind = matters and not changed(seen[:, -1], shuffled[:, -1], 1e-4)
    if blind and _counts_alone(stepped, x):
        found.add("cache_positions", done, f"They differ from token {first} on, and "
                  f"with the cache, the order of tokens has no effect.")  # fmt: skip
        return
    name, why = _by_steps(stepped, x, ONE_BY_ONE[: x.shape[1]])
    found.add(name, done, f"They differ from token {first} on. {why}".strip())


def _beyond(stepped: Stepped, found: Collector) -> None:
    """Give more tokens than a window holds: the cache may have to drop some."""
    subject = stepped.subject
    window = subject.layer.window or subject.given_window or 0
    if not T - 2 < window <= WIDEST or "cache_unused" in found.found:
        return
    x = stepped.tokens(t=window + T)
    if x.shape[1] < window + 2:
        return  # it doesn't take as many
    ones = [1] * x.shape[1]
    try:
        wanted, seen = subject(x), stepped.outputs(stepped.module(), x, ones)
    except CallFailed:
        return  # nobody said that it takes as many
    if changed(wanted, seen, 1e-4):
        done = f"Compared {len(ones)} tokens at once with one by one, window {window}."
        name, why = _by_steps(stepped, x, ones)
        text = f"They differ from token {_first(wanted, seen)} on. {why}"
        found.add(name, done, text.strip())


def _by_steps(stepped: Stepped, x: torch.Tensor, sizes: list[int]) -> tuple[str, str]:
    """Return the mistake that shows in the last chunk's steps, and what was seen."""
    nothing = "cache_differs", ""
    try:
        last, whole = stepped.followed(x, sizes)
    except (CallFailed, RuntimeError, IndexError, ValueError):
        return nothing  # what is captured may have any form
    if last is None or whole is None or len(last.key) != len(whole.key):
        return nothing
    keys, t = whole.key.shape[1], sizes[-1]
    if mixed := _mixed_up(last, whole, t):
        return mixed
    if _close(last.key[:, :keys], whole.key):  # there may be room for more behind it
        last = replace(last, key=last.key[:, :keys])
    held = last.key.shape[1]
    unseen = held < keys and not (whole.weights[:, -t:, : keys - held] > 0).any()
    sizes_held = [one.norm(dim=-1) for one in (last.key, whole.key[:, -held:])]
    if unseen and _close(*sizes_held):  # what left the cache is behind a window
        whole = replace(
            whole,
            key=whole.key[:, -held:],
            values=whole.values[:, -held:],
            weights=whole.weights[..., -held:],
        )
        keys = held
    if held != keys:
        name = "cache_forgets" if _forgets(last, whole) else "cache_differs"
        return name, f"It has {held} keys then, not {keys}."
    for name, own, meant in (
        ("queries", last.query, whole.query[:, -t:]),
        ("keys", last.key, whole.key),
    ):
        if own.shape != meant.shape:
            return nothing
        if not _close(own, meant):
            if name == "keys" and _close(own[:, -t:], meant[:, -t:]):
                if _close(own.norm(dim=-1), meant.norm(dim=-1)):
                    told = "The cached keys are rotated further then."
                    return "cache_rotated_again", told
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


def _mixed_up(last: Walk, whole: Walk, t: int) -> tuple[str, str] | None:
    """Return (mistake, words) where cached keys and values are in others' places."""
    if last.key.shape != whole.key.shape or last.values.shape != whole.values.shape:
        return None
    own = [one[:, :-t] for one in (last.key, last.values)]
    meant = [one[:, :-t] for one in (whole.key, whole.values)]
    sizes = whole.key.norm(dim=-1)  # before they are rotated, keys have the same
    before = [rows for one in (*whole.before, *whole.projected)
              if (rows := _rows(one, whole.key.shape[1])) is not None
              and rows.shape == whole.key.shape
              and _close(rows.norm(dim=-1), sizes)]  # fmt: skip
    keys = [whole.key, *before]
    if own[0].shape == meant[1].shape:
        if _swapped(own[0], meant[0], meant[1]):
            return "cache_swapped", "Values are among the cached keys."
        if any(_swapped(own[1], meant[1], one[:, :-t]) for one in keys):
            return "cache_swapped", "Keys are among the cached values."
    orders = [_order(*pair) for pair in ((last.key, whole.key),
                                         (last.values, whole.values))]  # fmt: skip
    usual = list(range(whole.key.shape[1]))
    if None not in orders and orders != [usual, usual]:
        return "cache_order", (
            f"The keys are those of tokens {orders[0]}, the values of {orders[1]}."
        )
    return None


def _swapped(own: torch.Tensor, meant: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether each token's row is one of two, and some are the one not meant."""
    right, wrong = ([_close(own[:, i], one[:, i]) for i in range(own.shape[1])]
                    for one in (meant, other))  # fmt: skip
    known = all(one or two for one, two in zip(right, wrong, strict=True))
    return known and not all(right)


def _order(own: torch.Tensor, meant: torch.Tensor) -> list[int] | None:
    """Return which token's row each row is, or None where one is no token's."""
    rows = [one.transpose(0, 1).flatten(1) for one in (own, meant)]
    gaps = torch.stack([(rows[1] - row).abs().amax(dim=1) for row in rows[0]])
    if gaps.min(dim=1).values.max() > 1e-4 * rows[1].abs().max():
        return None
    return [int(place) for place in gaps.argmin(dim=1)]


def _forgets(last: Walk, whole: Walk) -> bool:
    """Whether a cached key is missing that the last token is to see."""
    counts = (whole.weights[..., -1, : whole.key.shape[1]] > 0).any(dim=0)
    every, held = (one.transpose(0, 1).flatten(1) for one in (whole.key, last.key))
    if len(held) >= len(every) or held.shape[1] != every.shape[1]:
        return False
    gaps = torch.stack([(held - row).abs().amax(dim=1).min() for row in every])
    return bool((gaps[counts] > 1e-4 * every.abs().max()).any())


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
    pair = stepped.outputs(stepped.module(), x[:, [0, 3]], [1, 1])
    many = x[:, [0, 0, 0, 3, 3, 3]]
    every = stepped.outputs(stepped.module(), many, ONE_BY_ONE)
    return not changed(pair[:, -1], every[:, -1], 1e-4)


def chunks(
    stepped: Stepped,
    found: Collector,
    severity: str | None = None,
    forgets: bool = False,
) -> None:
    """Give several tokens at a time: the mask must know what is in the cache.

    With ``forgets``, it does, as long as the cache holds all tokens.
    """
    x, counts = stepped.tokens(), IN_CHUNKS
    wanted = stepped.subject(x)
    done = f"Compared all tokens at once with chunks of {counts}."
    try:
        seen = stepped.outputs(stepped.module(), x, counts)
        windows = stepped.subject.layer.window or stepped.subject.given_window
        if windows and not changed(wanted, seen, 1e-4):
            # The first of many is the one whose window is cut off with the rest's.
            counts, forgets = ONE_AND_REST, True
            done = f"Compared all tokens at once with chunks of {counts}."
            seen = stepped.outputs(stepped.module(), x, counts)
    except CallFailed as failure:
        found.add("cache_mask_offset", done, f"It raised {failure}.", severity)
        return
    if not changed(wanted, seen, 1e-4) or "cache_unused" in found.found:
        return
    text = f"They differ from token {_first(wanted, seen)} on."
    alone = stepped.outputs(stepped.module(), x, ONE_BY_ONE)
    if not changed(wanted, alone, 1e-4):
        name, why = _by_steps(stepped, x, counts)
        if not why:
            name = "cache_forgets" if forgets else "cache_mask_offset"
        told = f"{text} One by one, they agree. {why}".strip()
        found.add(name, done, told, severity)
    elif not found.found:
        found.add("cache_differs", done, text)


def second(stepped: Stepped, found: Collector) -> None:
    """Start a new sequence with the same instance."""
    x, other = stepped.tokens(), stepped.tokens(seed=1)
    module = stepped.module()
    wanted = stepped.outputs(stepped.module(), x, stepped.halves)
    stepped.outputs(module, other, stepped.halves)
    done = "Started a new sequence with a new cache, after another one."
    try:
        seen = stepped.outputs(module, x, stepped.halves)
    except CallFailed as failure:
        found.add("cache_not_reset", done, f"It raised {failure}.")
        return
    if changed(wanted, seen, 1e-4):
        found.add("cache_not_reset", done, "The outputs differ from a new instance's.")


def batches(stepped: Stepped, found: Collector) -> None:
    """Use another number of sequences after a reset."""
    if stepped.b < 2:
        raise SkipTest("the cache has room for one sequence")
    module = stepped.module()
    done = "Passed two sequences, then three with a new cache."
    stepped.outputs(module, stepped.tokens(b=2), stepped.halves)
    if "cache_not_reset" in found.found:
        raise SkipTest("the cache isn't reset")
    try:
        stepped.outputs(module, stepped.tokens(b=3), stepped.halves)
    except CallFailed as failure:
        found.add("cache_batch", done, f"It raised {failure}.")


def _first(wanted: torch.Tensor, seen: torch.Tensor) -> int:
    gaps = [changed(wanted[:, i], seen[:, i], 1e-4) for i in range(wanted.shape[1])]
    return gaps.index(True) if True in gaps else 0
