"""A class that has a cache computes with it what it computes at once."""

import contextlib
import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attncheck import parity
from attncheck.arguments import STARTERS, cached_way
from attncheck.collector import Collector, SkipTest
from attncheck.errors import CallFailed
from attncheck.numbers import changed
from attncheck.subject import Subject, fields_of, run_guarded, seed_everything
from attncheck.trace import tensors
from attncheck.ways import Way

RESETS = ("reset_cache", "clear_cache", "reset", "empty_cache", *STARTERS)
T = 6
ONE_BY_ONE, IN_CHUNKS = [1] * T, [2, 3, 1]
INSIDE = object()  # the cache is in the module
NewCache = Callable[[nn.Module], Any]
CHUNKS = "chunks with a cache"
DONE = "Compared all tokens at once with one by one through the cache."
CACHE = re.compile("cache|kv|past|store|memory")
MAKES = re.compile(r"(new|make|init|create|empty|fresh|start|get)_(\w+_)?(cache|past)")
# What a method that makes a cache may want: how many sequences, and how many tokens.
SIZES = ((2, re.compile(r"^(b|bs|bsz|n)$|batch")),
         (T, re.compile(r"len|seq|tokens|positions")))  # fmt: skip
# Words by which a cache takes one token at a time.
SINGLE = re.compile(
    r"\b(one|single|1|new|current) (\w+ )?(token|query|position|step)\b"
    r"|\b(only|just|of|for) the (newest|latest) (token|query|position)\b"
    r"|\btokens? (by|at a) t(oken|ime)|step by step|one by one"
    r"|[(\[]([a-z]\w*, ?){1,2}1, ?[\w./ ]+[)\]]",  # a shape with one token
    re.IGNORECASE,
)


def cache(subject: Subject, found: Collector) -> None:
    """Give the tokens one by one, then in chunks, with the cache that it has.

    Raises:
        SkipTest: there is no cache, or none that changes anything.
    """
    stepped = _find_cache(subject)
    x = stepped.tokens()
    found.tried |= {*stepped.names}
    _tell_alone(stepped, x, found)
    if not any(name.startswith("cache_") for name in found.found):
        _tell_chunks(stepped, x, found)


def _tell_alone(stepped: "_Stepped", x: Tensor, found: Collector) -> None:
    """Give one token at a time."""
    wanted = stepped.subject(x)
    seen = stepped.outputs(x, ONE_BY_ONE[: x.shape[1]])
    if not changed(wanted, seen, 1e-4):
        return
    alone = stepped.outputs(x[:, 1:2], [1])
    if not changed(seen[:, 1:2], alone, 1e-4):
        text = "The second output is the same as for its token alone."
        found.add("cache_unused", DONE, text)
        return
    text = f"They differ from token {_first(wanted, seen)} on."
    if _is_blind(stepped, x, seen):
        text += " With the cache, the order of tokens has no effect."
        found.add("cache_positions", DONE, text)
    else:
        name, why = _hypothesis(stepped, x, seen)
        found.add(name, DONE, f"{text} {why}".strip())


def _is_blind(stepped: "_Stepped", x: Tensor, seen: Tensor) -> bool:
    """Whether the cache loses the order of tokens, which counts without it."""
    other = x.clone()
    other[:, [0, 2]] = x[:, [2, 0]]
    subject = stepped.subject
    matters = changed(subject(x)[:, -1], subject(other)[:, -1], 1e-4)
    shuffled = stepped.outputs(other, ONE_BY_ONE)
    return matters and not changed(seen[:, -1], shuffled[:, -1], 1e-4)


def _hypothesis(stepped: "_Stepped", x: Tensor, seen: Tensor) -> tuple[str, str]:
    """Return the mistake that gives these outputs, one by one, and what it does."""
    places = torch.arange(x.shape[1])
    i, j = places[:, None], places
    turned = torch.where(j <= i, i - j, j)  # keys newest first, values oldest first
    past = j <= i
    for name, order, visible, words in (
        ("cache_order", turned, past, "So do keys in the opposite order of values."),
        ("cache_forgets", None, (j == 0) | (j == i), "It sees the first token alone."),
        ("cache_forgets", None, j >= i - 1, "It sees the last token alone."),
        ("cache_forgets", None, (j < 3) | (j == i), "It sees the oldest three alone."),
    ):
        for reading in stepped.subject.candidates():
            made = parity.with_weights(
                x.cpu(), reading, stepped.subject.layer, order, visible & past
            )
            if parity.distance(seen, made) < parity.TOLERANCE:
                return name, words
    return "cache_differs", ""


def _tell_chunks(stepped: "_Stepped", x: Tensor, found: Collector) -> None:
    """Give several tokens at a time: the mask must know what is in the cache."""
    told = stepped.subject
    if told.says(SINGLE):
        found.report.not_tried.append(f"{CHUNKS} (its comments speak of one token)")
        return
    done = f"Compared all tokens at once with chunks of {IN_CHUNKS}."
    wanted = told(x)
    try:
        seen = stepped.outputs(x, IN_CHUNKS)
    except CallFailed as failure:
        text = f"One by one, they agree; in chunks, it raised {failure}."
        found.add("cache_mask_offset", done, text)
        return
    if changed(wanted, seen, 1e-4):
        text = f"They differ from token {_first(wanted, seen)} on; one by one, they "
        found.add("cache_mask_offset", done, f"{text}agree.")


def _find_cache(subject: Subject) -> "_Stepped":
    """Return the layer with a cache that is made in the first way that acts.

    Raises:
        SkipTest: there is no cache, or none that changes anything.
    """
    why, way = "no cache was found", subject.way
    if not subject.causal or way is None or way.memory or not _runs_so(subject, way):
        raise SkipTest(why)
    asking, name = cached_way(subject.pristine, way)
    if asking is None:
        raise SkipTest(why)
    caches = [None, *_of_its_own(subject), *_of_its_file(subject)]
    for new_cache, b in [(one, 2) for one in caches] + [(None, 1)]:  # room for one
        stepped = _Stepped(subject, asking, name, new_cache, b)
        x = stepped.tokens()
        if x.shape[1] < T:
            raise SkipTest("the layer doesn't take enough tokens")
        try:
            seen = stepped.outputs(x, ONE_BY_ONE)
            alone = stepped.outputs(x[:, 1:2], [1])
        except CallFailed as failure:
            why = f"its cache couldn't be used: {failure}"
            continue
        returned = new_cache is None and stepped.returned
        if returned or changed(seen[:, 1:2], alone, 1e-4):
            return stepped
        why = "what looks like a cache changes nothing"
        if subject.speaks_of("use_cache"):
            asked = [name for name in stepped.names if "use_cache" in name]
            if asked and new_cache is None:
                return stepped
    raise SkipTest(why)


def _of_its_own(subject: Subject) -> list[NewCache]:
    """Return the methods of the layer that make a cache, of known sizes if of any."""
    made: list[NewCache] = []
    for name in dir(type(subject.pristine)):
        method = getattr(type(subject.pristine), name)
        if MAKES.fullmatch(name) and inspect.isfunction(method):
            wanted = [*inspect.signature(method).parameters.values()][1:]
            needed = [one.name for one in wanted if one.default is one.empty]
            sizes = {n: s for n in needed for s, known in SIZES if known.search(n)}
            if len(sizes) == len(needed):
                made.append(functools.partial(method, **sizes))
    return made


def _of_its_file(subject: Subject) -> list[NewCache]:
    """Return functions that make a cache of each class beside it that is one."""
    beside = getattr(type(subject.pristine).forward, "__globals__", {})
    made: list[NewCache] = []
    for name, kind in list(beside.items()):
        if inspect.isclass(kind) and CACHE.search(name.lower()):
            with contextlib.suppress(Exception):  # it may need unknown arguments
                kind()
                made.append(lambda _, kind=kind: kind())  # type: ignore[misc]
    return made


class _Stepped:
    """A layer that is called chunk by chunk.

    Args:
        subject: the layer.
        asking: how forward is called, with flags that ask for a cache.
        name: the argument that takes the cache, or None where it is in the module.
        new_cache: function (module) that returns an empty cache, or None.
        b: how many sequences are given at once.

    Attributes:
        names: the arguments that are given besides the tokens.
        returned: whether it returned a cache.
    """

    def __init__(
        self,
        subject: Subject,
        asking: Way,
        name: str | None,
        new_cache: NewCache | None,
        b: int,
    ) -> None:
        self.subject, self.asking, self.name = subject, asking, name
        self.new_cache, self.b = new_cache, b
        self.names = [*dict(asking.others), *([name] if name else [])]
        self.returned = False
        self._place: int | None = None  # of the cache in what is returned

    def tokens(self) -> Tensor:
        """Return random tokens, no more than are allowed."""
        return self.subject.tokens(b=self.b, t=T)

    def outputs(self, x: Tensor, sizes: Sequence[int]) -> Tensor:
        """Return the outputs of chunks in a row, from a new cache.

        Raises:
            Failure: a call raised or hung.
        """
        module = self.subject.copy().eval()

        def job() -> Tensor:
            seed_everything(0, self.subject.device)
            with torch.no_grad():
                return self._run(module, x, sizes)

        made: Tensor = run_guarded(self.subject.worker, job, "forward_raises")
        return made

    def _run(self, module: nn.Module, x: Tensor, sizes: Sequence[int]) -> Tensor:
        for name in RESETS:
            if _begins(module, name):
                getattr(module, name)()
        cache = self.new_cache(module) if self.new_cache else None
        outputs, start = [], 0
        turned = self.subject.layout == "tbd"
        for size in sizes:
            chunk = x[:, start : start + size].contiguous()
            chunk = chunk.transpose(0, 1) if turned else chunk
            y, cache = self._step(module, chunk, cache, start)
            y = _first_tensor(y)
            outputs.append(y.transpose(0, 1) if turned else y)
            start += size
        return torch.cat(outputs, 1)

    def _step(
        self, module: nn.Module, chunk: Tensor, cache: Any, start: int
    ) -> tuple[Any, Any]:
        given: dict[str, Any] = {}
        if self.name and cache is not None and cache is not INSIDE:
            given = {self.name: cache}
        way = self.asking.with_values(given)
        y = self.subject.call_by(way, module, chunk, start=start)
        if self.name and start == 0:
            self._place = _place_of_cache(y, chunk.shape[self.subject.layout == "btd"])
            self.returned = self._place is not None
        if not self.name or self._place is None:
            return y, cache if self.new_cache else INSIDE
        if self.new_cache and type(y[self._place]) is not type(cache):
            return y, cache  # it is filled in place
        return y, y[self._place]


def _runs_so(subject: Subject, way: Way) -> bool:
    """Whether it is called in this way, also where the reader wrote the call."""
    if subject.how.call is None:
        return True
    kept, x = subject.how, subject.tokens()
    y = subject(x)
    try:
        subject.how = type(kept)(way=way, layout=kept.layout, layer=kept.layer)
        return not changed(y, subject(x), 1e-4)
    except CallFailed:
        return False
    finally:
        subject.how = kept


def _begins(module: nn.Module, name: str) -> bool:
    """Whether a method has this name and needs no arguments."""
    method = getattr(module, name, None)
    with contextlib.suppress(TypeError, ValueError):
        if callable(method):
            inspect.signature(method).bind()
            return True
    return False


def _first_tensor(y: Any) -> Tensor:
    """Return the output of a call that may return more.

    Raises:
        TypeError: there is none.
    """
    if isinstance(y, tuple | list) and y:
        return _first_tensor(y[0])
    y = next((v for v in fields_of(y).values() if isinstance(v, Tensor)), y)
    if not isinstance(y, Tensor):
        raise TypeError(f"the call returned {type(y).__name__}, not a tensor.")
    return y


def _place_of_cache(y: Any, t: int) -> int | None:
    """Return where in a tuple the cache may be: not weights, and with tensors."""
    for place in range(len(y) - 1, 0, -1) if isinstance(y, tuple | list) else ():
        entry = y[place]
        weights = isinstance(entry, Tensor) and entry.shape[-1] == t
        if any(True for _ in tensors(entry)) and not weights:
            return place
    return None


def _first(wanted: Tensor, seen: Tensor) -> int:
    gaps = [changed(wanted[:, i], seen[:, i], 1e-4) for i in range(wanted.shape[1])]
    return gaps.index(True) if True in gaps else 0
