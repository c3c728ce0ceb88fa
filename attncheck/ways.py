"""How forward is called: the values that its arguments are given besides the tokens."""

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from attncheck.layer import document_of

# The names of arguments that say how many tokens came before.
BEFORE = r"^(past|cached?|prev|prefix)_?(kv_?|seq_?)?len(gth)?$"
STARTS = re.compile(rf"start|offset|past_len|pos|{BEFORE}")
# What the entries of a mask mean. "numbers" comes before "added": (1 - mask) * -10000
# runs with both, and the latter moves all scores.
WORDS = {"hides": "True hides", "keeps": "True stays visible",
         "numbers": "1 stays visible", "added": "0 or -inf"}  # fmt: skip
MASKS = [("mask", how, axes) for how in WORDS for axes in (2, 4, 3)]
OPEN = [("open", how, axes) for _, how, axes in MASKS]
OPEN += [("open", how, 1) for how in ("numbers", "keeps", "hides", "added")]


@dataclass(frozen=True)
class Way:
    """How forward is called.

    Attributes:
        tokens: names of the arguments that take x.
        others: (name, kind or value) of what else it is given.
        memory: names of the arguments that take a memory, as "key value", or None.
        memory_width: how wide the memory's tokens are; None for those of x.
    """

    tokens: tuple[str, ...]
    others: tuple[tuple[str, Any], ...] = ()
    memory: str | None = None
    memory_width: int | None = None

    @property
    def mask(self) -> str:
        """The name of the argument that is given a mask of the future, or ""."""
        return next((n for n, kind in self.others if is_kind(kind, "mask")), "")

    @property
    def opened(self) -> bool:
        """Whether it is given a mask that hides nothing."""
        return any(is_kind(kind, "open") for _, kind in self.others)

    def call(
        self,
        module: nn.Module,
        x: Tensor,
        sizes: tuple[int, int],
        memory: Tensor | None = None,
        start: int = 0,
    ) -> Any:
        """Return what forward returns for x, (b, t, d) or as the layout has it.

        Args:
            module: the layer.
            x: the tokens.
            sizes: the numbers of sequences and of tokens.
            memory: what the keys come from, where that isn't x.
            start: how many tokens of the sequence are cached.
        """
        given: dict[str, Any] = dict.fromkeys(self.tokens, x)
        if self.memory:
            given |= dict.fromkeys(self.memory.split(), memory)
        for name, kind in self.others:
            kind = "start" if kind == 0 and start and STARTS.search(name) else kind
            given[name] = self._value(kind, x, sizes, start)
        # The first ones go by position: some names can't be used as keywords.
        front = [] if self.tokens else [x]
        for name, parameter in inspect.signature(module.forward).parameters.items():
            if name not in given or parameter.kind is parameter.KEYWORD_ONLY:
                break
            front.append(given.pop(name))
        return module(*front, **given)

    def _value(self, kind: Any, x: Tensor, sizes: tuple[int, int], start: int) -> Any:
        """Return the value of an argument."""
        b, t = sizes
        if isinstance(kind, Given):
            return kind.value
        places = torch.arange(start, start + t, device=x.device)
        if is_kind(kind, "mask") or is_kind(kind, "open"):
            return _mask(kind, x, b, places)
        if is_kind(kind, "positions"):
            return places if kind[1] == 1 else places.expand(b, t)
        if kind == "documents":
            return document_of(t).expand(b, t).to(x.device)
        return start if kind == "start" else kind

    def with_values(self, more: Mapping[str, Any]) -> "Way":
        """Return the way with other arguments given, too."""
        more = {name: Given(value) for name, value in more.items()}
        return replace(self, others=tuple((dict(self.others) | more).items()))

    def words(self) -> str:
        """Return what is given besides x, in words."""
        told = [f"{self.memory}=a memory with other tokens"] if self.memory else []
        told += [f"{name}={_describe(kind)}" for name, kind in self.others]
        return ", ".join(told)


@dataclass(frozen=True, eq=False)
class Given:
    """A value for an argument, as it is."""

    value: Any


def is_kind(kind: Any, what: str) -> bool:
    """Whether an argument is given one form of, for example, a "mask"."""
    return isinstance(kind, tuple) and kind[0] == what


def _describe(kind: Any) -> str:
    if is_kind(kind, "mask"):
        return f"a causal mask ({WORDS[kind[1]]})"
    if is_kind(kind, "open"):
        return f"a mask that hides nothing ({WORDS[kind[1]]})"
    return "the positions" if is_kind(kind, "positions") else str(kind)


def _mask(kind: tuple[str, str, int], x: Tensor, b: int, places: Tensor) -> Tensor:
    what, how, axes = kind
    keys = torch.arange(int(places[-1]) + 1, device=x.device)
    hidden = (keys > places[:, None]) & (what == "mask")
    if axes == 1:  # one for each token of each sequence
        hidden = hidden[-1].expand(b, -1)
    if axes > 2:
        hidden = hidden.expand(b, *([1] * (axes - 3)), *hidden.shape)
    return as_mask(how, hidden, x)


def as_mask(how: str, hidden: Tensor, x: Tensor) -> Tensor:
    """Return what hides, for x, what ``hidden`` says, in one of several ways."""
    if how == "hides":
        return hidden
    if how == "added":
        return torch.zeros_like(hidden, dtype=x.dtype).masked_fill(hidden, -torch.inf)
    return ~hidden if how == "keeps" else (~hidden).to(x.dtype)
