"""A mask that the caller gives hides what it says, and nothing else."""

import re
from dataclasses import dataclass, replace
from itertools import product

import torch
from torch import Tensor, nn

from attncheck.arguments import mask_names
from attncheck.collector import Collector, SkipTest
from attncheck.errors import CallFailed
from attncheck.numbers import changed
from attncheck.subject import How, Subject
from attncheck.ways import Way, as_mask

HOWS = ("hides", "keeps", "numbers", "added")  # likely ones first
# Axes between that of sequences and that of keys; the last two have a row for each
# query.
SHAPES = ((), (1,), (1, 1), (-1,), (1, -1))
# Names under which True (or 1) usually means the opposite of what the class does.
INVERTED = {"hides": ("attention_mask",), "keeps": ("pad",), "numbers": ("pad",)}
DONE = "Hid some tokens of one of two sequences by {}, then put other numbers there."


def masks(subject: Subject, found: Collector) -> None:
    """Hide two tokens of one sequence, by each argument that may take a mask.

    Raises:
        SkipTest: there is none.
    """
    if isinstance(subject.pristine, nn.MultiheadAttention):
        raise SkipTest("PyTorch's own layer needs no test")
    way = subject.way
    if subject.how.call is not None or way is None:
        raise SkipTest("the way to call it was given")
    names = mask_names(subject.pristine, way)
    names = [name for name in names if "query" not in name] or names
    if not names:
        raise SkipTest("no argument takes a mask")
    for name in names:
        _Masked(subject, way, name).tell(found)


@dataclass(frozen=True)
class _Outcome:
    """What a mask in one form did.

    Attributes:
        right: real tokens know nothing of hidden ones, and only their output changed.
        acts: it changed the output of the sequence whose tokens it hides.
        mixed: it changed that of the other sequence.
        y: the output.
    """

    right: bool
    acts: bool
    mixed: bool
    y: Tensor


class _Masked:
    """A subject that is called with a mask.

    Args:
        subject: the layer.
        way: how forward is called without it.
        name: the argument that takes it.
    """

    def __init__(self, subject: Subject, way: Way, name: str) -> None:
        self.subject, self.way, self.name = subject, way, name
        self.x = subject.tokens(b=2)
        t = subject.layer.memory or self.x.shape[1]
        self.hidden = torch.zeros(2, t, dtype=torch.bool)
        # A causal mask hides what comes last anyway.
        self.hidden[0, slice(2) if subject.causal else slice(t - 2, t)] = True
        own = not subject.layer.memory
        self.real = ~self.hidden[0] if own else torch.ones(self.x.shape[1]).bool()
        self.plain = subject(self.x)

    def tell(self, found: Collector) -> None:
        """Try all forms that it may have, and tell what is wrong with each of them."""
        seen = self._outcomes()
        if not seen:
            if self._square():
                found.tried.add(self.name)
                done = f"Passed a mask (b, queries, keys) as {self.name}."
                text = "It runs with as many keys as queries, and raises with fewer."
                found.add("mask_square", done, text)
            return
        found.tried.add(self.name)
        right = [how for how, one in seen if one.right]
        if right:
            self._tell_inverted(right[0], found)
            return
        alike = len(seen) > 1 and all(not changed(o.y, seen[0][1].y) for _, o in seen)
        acting = [one for _, one in seen if one.acts or one.mixed]
        if acting and alike:
            return  # a switch, or what is added to the scores
        if self._replaces():
            return
        done = DONE.format(self.name)
        if acting and all(one.mixed for one in acting):
            text = "The output of the other sequence changed."
            found.add("padding_batch", done, text)
        elif acting:
            text = "The mask has an effect, but the other tokens still change with "
            text += "hidden ones, whether True hides or keeps."
            found.add("padding_leaks", done, text)
        else:
            told = re.compile(rf"\b{self.name}\b.*\b(pad\w*|real|valid)\b", re.I)
            promised = "pad" in self.name.lower() or self.subject.says(told)
            text = f"{self.name} changes nothing, whatever is in it."
            severity = "error" if promised else "warning"
            found.add("padding_leaks", done, text, severity)

    def _outcomes(self) -> list[tuple[str, _Outcome]]:
        """Return (what the mask holds, what it did), in the first shapes it takes.

        Those with a row for each query are tried where no other is right.
        """
        seen: list[tuple[str, _Outcome]] = []
        for shape in SHAPES:
            pairs = -1 in shape
            if seen and (not pairs or any(one.right for _, one in seen)):
                continue
            made = [(how, self._outcome(how, shape)) for how in HOWS]
            taken = [(how, one) for how, one in made if one is not None]
            if not seen or any(one.right for _, one in taken):
                seen = taken
        return seen

    def _outcome(self, how: str, shape: tuple[int, ...]) -> _Outcome | None:
        subject, other = self.subject, self.x.clone()
        try:
            y = self._call(self.x, how, shape)
            if subject.layer.memory:
                subject.replaced_memory = self.hidden.shape[1] - 1
            else:
                moved = 3 * subject.tokens(b=2, seed=5)
                other[:, self.hidden[0]] = moved[:, self.hidden[0]]
            z = self._call(other, how, shape)
        except CallFailed:
            return None
        finally:
            subject.replaced_memory = None
        real = y[0, self.real]
        known = real.isfinite().all() and not changed(real, z[0, self.real], 1e-4)
        acts, mixed = (changed(y[i], self.plain[i], 1e-4) for i in (0, 1))
        return _Outcome(bool(known) and acts and not mixed, acts, mixed, y)

    def _call(
        self, x: Tensor, how: str, shape: tuple[int, ...],
        hidden: Tensor | None = None
    ) -> Tensor:  # fmt: skip
        kept = self.subject.how
        try:
            self.subject.how = self._how(how, shape, hidden)
            return self.subject(x)
        finally:
            self.subject.how = kept

    def _how(self, how: str, shape: tuple[int, ...], hidden: Tensor | None) -> How:
        hidden = self.hidden if hidden is None else hidden
        if -1 in shape:
            hidden = hidden[:, None].expand(-1, self.x.shape[1], -1)
            hidden = hidden[:, None] if len(shape) > 1 else hidden
        else:
            hidden = hidden.view(len(hidden), *shape, -1)
        mask = as_mask(how, hidden.to(self.x.device, copy=True), self.x)
        way = self.way.with_values({self.name: mask})
        return replace(self.subject.how, way=way)

    def _replaces(self) -> bool:
        """Whether a mask that hides nothing acts: as one by default stays out then."""
        none = torch.zeros_like(self.hidden)
        acts = []
        for how, shape in product(HOWS, SHAPES):
            try:
                y = self._call(self.x, how, shape, none)
            except CallFailed:
                continue
            acts.append(changed(y, self.plain, 1e-4))
        return bool(acts) and all(acts)

    def _square(self) -> bool:
        """Whether it takes a mask of pairs only with as many keys as queries."""
        subject, kept = self.subject, self.subject.layer
        if not kept.memory:
            return False
        t = self.x.shape[1]
        subject.layer = replace(kept, memory=t)
        try:
            other = _Masked(subject, self.way, self.name)
            return any(one.right for _, one in other._outcomes())
        except CallFailed:
            return False
        finally:
            subject.layer = kept

    def _tell_inverted(self, how: str, found: Collector) -> None:
        """Tell where the mask means the opposite of what its name usually does."""
        name = self.name.lower()
        if any(part in name for part in INVERTED.get(how, ())):
            text = "It hides where it's False." if how != "hides" else "True hides."
            # PyTorch defines the meaning of this name; others are used both ways.
            severity = "error" if name == "key_padding_mask" else "warning"
            done = f"Passed a mask as {self.name}."
            found.add("padding_inverted", done, text, severity)
