"""A mask of padding hides the padded tokens, and nothing else."""

import contextlib
import functools
import inspect
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import torch
from torch import nn

from attncheck.calling import (
    LINKS,
    Way,
    as_mask,
    counts,
    mask_names,
    memory_way,
    plain_way,
)
from attncheck.collector import Collector, SkipTest
from attncheck.following import scores_of
from attncheck.numbers import changed
from attncheck.probes.basics import tell_changed
from attncheck.subject import CallFailed, How, Subject, guarded
from attncheck.trace import tensors
from attncheck.walk import walked

HOWS = ("hides", "keeps", "numbers", "added")  # likely ones first
SHAPES = ((), (1,), (1, 1))  # axes between that of sequences and that of tokens
PAIRS = (-1,)  # an axis of queries between them, with a row for each
BY_MASK = {
    "mask_after_softmax": "Weights were set to 0 after softmax.",
    "mask_fill_zero": "Scores were set to 0 before softmax.",
}
WAYS = {"hides": "hides", "keeps": "keeps", "numbers": "keeps"}
WORDS = {"hides": r"(pad|hid|ignor|masked)", "keeps": r"(real|valid|keep|kept|visible)"}
# What a mask holds, and what follows it in words, up to those on the other.
SAID = [
    (rf"({word}|{digit}s?(?=\s*(=|:|for|where|means|is|at)))", rf"(?!({others})\b)\w+")
    for word, digit, others in (("True", 1, "0|False"), ("False", 0, "1|True"))
]
OPPOSITE = {"hides": "keeps", "keeps": "hides"}
NEGATED = re.compile(r"\b(not|no|non|un\w+)\b|n't\b")
INVERTED = {"hides": ("attention_mask",), "keeps": ("pad",), "numbers": ("pad",)}


def padded(subject: Subject, found: Collector) -> None:
    """Hide two tokens of one sequence, and put other numbers there."""
    if isinstance(subject.pristine, nn.MultiheadAttention):
        raise SkipTest("PyTorch's own layer needs no test")
    for masked in masks(subject):
        tried(masked, found)


def masks(subject: Subject) -> list["Masked"]:
    """Return the layer with each of the arguments that may take a mask of padding.

    Raises:
        SkipTest: there is none.
    """
    plain = memory_way if subject.layer.memory else plain_way
    if subject.how.call is not None:
        way = _written(subject)
    else:
        way = subject.how.way or plain(subject.pristine)
    if isinstance(subject.pristine, nn.MultiheadAttention) and way and subject.causal:
        way = replace(way, others=(("attn_mask", ("mask", "hides", 2)),))
    names = mask_names(subject.pristine, way) if way else []
    if subject.causal and not subject.layer.memory:  # which hides the last ones anyway
        names = [name for name in names if not counts(name)]
    # A mask for queries sets their own rows to 0; keys have another.
    names = [name for name in names if "query" not in name] or names
    if way is None or not names:
        raise SkipTest("no argument takes a padding mask")
    if way.image != "btd" or way.sides:
        raise SkipTest("padding masks aren't tried for images")
    return [Masked(subject, way, name) for name in names]


def _written(subject: Subject) -> Way | None:
    """Return the arguments that the reader's call gives, or None: not the tokens."""
    module, x = subject.copy(), subject.tokens(b=2)
    given: dict[str, Any] = {}

    def look(_: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        bound = inspect.signature(type(module).forward).bind(module, *args, **named)
        given.update(list(bound.arguments.items())[1:])

    module.register_forward_pre_hook(look, with_kwargs=True)
    subject(x, module)
    first = next(tensors(given), None)
    whole = x.transpose(0, 1) if subject.layout == "tbd" else x
    if first is None or first.shape != whole.shape or not torch.equal(first, whole):
        return None
    return Way(tuple(given))


def _with_mask(call: Callable[..., Any], name: str, mask: Any) -> Callable[..., Any]:
    """Return the reader's call, with a mask given, too."""

    @functools.wraps(call)
    def masked(module: nn.Module, *given: Any) -> Any:
        hook = module.register_forward_pre_hook(
            lambda _, args, named: (args, named | {name: mask}),
            with_kwargs=True,
            prepend=True,  # what looks at all arguments has to see it, too
        )
        try:
            return call(module, *given)
        finally:
            hook.remove()

    return masked


class Masked:
    """A subject that is called with a mask of padding.

    Args:
        subject: the layer.
        way: how forward is called without it.
        name: the argument that takes it.

    Attributes:
        means: what True in it does, where the reader said so.
        counted: whether it takes the number of each sequence's tokens.
        forms: (axes between that of sequences and that of tokens, what is in the mask),
            likely ones first.
    """

    def __init__(self, subject: Subject, way: Way, name: str) -> None:
        self.subject, self.way, self.name = subject, way, name
        self.x, self.means = subject.tokens(b=2), ""
        t = subject.layer.memory or self.x.shape[1]
        self.hidden = torch.zeros(2, t, dtype=torch.bool)
        # A causal mask hides what comes last anyway.
        first = subject.causal and not counts(name)
        self.hidden[0, slice(2) if first else slice(t - 2, t)] = True
        own = not subject.layer.memory
        self.real = ~self.hidden[0] if own else torch.ones(self.x.shape[1]).bool()
        self.plain = subject(self.x)
        self.forms = list[tuple[tuple[int, ...], str]](product(SHAPES, HOWS))
        self.counted = counts(name) and self._runs_with_counts()

    def _runs_with_counts(self) -> bool:
        """Whether it takes the number of each sequence's tokens; keep that it does."""
        try:
            self.call(self.x, self.hidden, "counts", ())
        except CallFailed:
            return False
        self.forms = [((), "counts")]
        return True

    def call(
        self,
        x: torch.Tensor,
        hidden: torch.Tensor,
        how: str,
        shape: tuple[int, ...],
        **options: Any,
    ) -> torch.Tensor:
        """Return the output for tokens of which some are hidden, (b, t).

        What a :class:`Subject` takes for a call goes into ``options``.
        """
        kept = self.x, self.hidden, self.subject.how
        self.x, self.hidden = x, hidden
        try:
            self.subject.how = self._how(how, shape)
            return self.subject(x, **options)
        finally:
            self.x, self.hidden, self.subject.how = kept

    def outputs(
        self, how: str, shape: tuple[int, ...]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the outputs with padding, and with other numbers in its places."""
        subject, other, hidden = self.subject, self.x.clone(), self.hidden
        y = self.call(self.x, hidden, how, shape)
        try:
            if subject.layer.memory:
                subject.replaced_memory = hidden.shape[1] - 1
            else:
                other[:, hidden[0]] = 3 * subject.tokens(b=2, seed=5)[:, hidden[0]]
            return y, self.call(other, hidden, how, shape)
        finally:
            subject.replaced_memory = None

    def steps(self, how: str, shape: tuple[int, ...]) -> list[str]:
        """Return the names of steps that are wrong by themselves, with the mask."""
        subject, kept = self.subject, self.subject.how
        subject.how = self._how(how, shape)
        try:
            return [step.mistake for step in walked(subject, self.x)]
        except Exception:  # what is captured may have any form
            return []
        finally:
            subject.how = kept

    def _how(self, how: str, shape: tuple[int, ...]) -> How:
        if shape == PAIRS:
            hidden = self.hidden[:, None].expand(-1, self.x.shape[1], -1)
        else:
            hidden = self.hidden.view(len(self.hidden), *shape, -1)
        hidden = hidden.to(self.x.device, copy=True)  # forward may change it
        mask, given = as_mask(how, hidden, self.x), self.subject.how
        if given.call is not None:
            return replace(given, call=_with_mask(given.call, self.name, mask))
        return replace(given, way=self.way.with_values({self.name: mask}))

    def replaces(self) -> bool:
        """Whether a mask that hides nothing acts: as one by default stays out then."""
        none, acts = torch.zeros_like(self.hidden), []
        for shape, how in self.forms:
            with contextlib.suppress(CallFailed):
                y = self.call(self.x, none, how, shape)
                acts.append(changed(y, self.plain, 1e-4))
        return bool(acts) and all(acts)

    def forgets_causal(self) -> bool:
        """Whether a mask with a number for each token puts the causal one out."""
        subject, none = self.subject, torch.zeros_like(self.hidden)
        if not subject.causal or subject.layer.memory:
            return False
        other, leaks = self.x.clone(), []
        other[:, -1] = subject.tokens(b=2, seed=5)[:, -1]
        for how in [how for shape, how in self.forms if not shape]:
            with contextlib.suppress(CallFailed):
                y, z = (self.call(x, none, how, ())[:, :-1] for x in (self.x, other))
                if y.isfinite().all():
                    leaks.append(changed(y, z, 1e-4))
        return any(leaks)  # what means the opposite hides all

    def takes_pairs(self) -> bool:
        """Whether a mask of pairs of tokens, (b, t, t), hides padding as it should."""
        for how in HOWS if not self.counted else ():
            with contextlib.suppress(CallFailed):
                if self.judged(*self.outputs(how, PAIRS))[0]:
                    return True
        return False

    def hides_rows(self, y: torch.Tensor) -> bool:
        """Return whether it changes what padded tokens get, and nothing else."""
        if self.subject.layer.memory:
            return False
        rows = [
            changed(y[0, r], self.plain[0, r], 1e-4) for r in (~self.real, self.real)
        ]
        return rows == [True, False] and not changed(y[1], self.plain[1], 1e-4)

    def scored(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield the scores without the mask and with it, in each form that it may have.

        Both are (2, heads, t, keys), for the two sequences.
        """
        kept, plain = self.subject.how, scores_of(self.subject, self.x)
        for shape, how in self.forms if plain is not None else ():
            with contextlib.suppress(CallFailed):
                self.subject.how = self._how(how, shape)
                try:
                    taken = scores_of(self.subject, self.x)
                finally:
                    self.subject.how = kept
                if plain is None or taken is None or taken.shape != plain.shape:
                    continue
                yield plain.unflatten(0, (2, -1)), taken.unflatten(0, (2, -1))

    def in_rows(self) -> bool:
        """Whether it adds one number to all scores of a query, which does nothing."""
        for plain, taken in self.scored() if not self.subject.layer.memory else ():
            more = taken.double().clamp_min(-1e9) - plain.double()
            seen = plain > -1e3
            if not seen.any(-1).all():
                continue  # a query that sees nothing tells nothing
            least = more.masked_fill(~seen, math.inf).amin(-1)  # of each query
            most = more.masked_fill(~seen, -math.inf).amax(-1)
            even = (most - least < 1e-6 * most.abs().clamp_min(1e4)).all()
            if even and (most.amax(-1) - most.amin(-1)).max() > 1:
                return True
        return False

    def empties_rows(self) -> bool:
        """Whether it hides scores in rows of padded tokens alone, not in columns."""
        for plain, taken in self.scored() if not self.subject.layer.memory else ():
            was, now = plain[0] < -1e3, taken[0] < -1e3
            if now.shape[-1] != len(self.real):
                continue
            new, seen = now & ~was, ~was[:, self.real][..., ~self.real]
            if seen.any() and new[:, ~self.real].any() and not new[:, self.real].any():
                return True
        return False

    def shows_future(self) -> bool:
        """Whether a mask shows tokens to earlier ones, where it hides none of them."""
        both = self.scored() if self.subject.causal else ()
        return any(bool(((p[1] < -1e3) & (t[1] > -1e3)).any()) for p, t in both)

    def judged(self, y: torch.Tensor, z: torch.Tensor) -> tuple[bool, bool, bool]:
        """Return whether real tokens know nothing of padding, and what else changed."""
        real = y[0, self.real]
        known = real.isfinite().all() and not changed(real, z[0, self.real], 1e-4)
        acts, other = (changed(y[i], self.plain[i], 1e-4) for i in (0, 1))
        return bool(known) and acts and not other, acts or other, other


def tried(
    masked: Masked, found: Collector, declared: bool = False
) -> tuple[str, tuple[int, ...]] | None:
    """Return (what is in the mask, its axes) where it hides padding; else tell why not.

    With ``declared``, the reader said that it is one of padding.
    """
    seen, given, steps = [], [], list[str]()
    for axes in SHAPES:
        for shape, how in masked.forms:
            if shape != axes:
                continue
            try:
                y, z = masked.outputs(how, shape)
            except CallFailed:
                continue
            right, acts, mixed = masked.judged(y, z)
            if right:
                with masked.subject.arguments_changed() as others:
                    masked.call(masked.x, masked.hidden, how, shape)
                tell_changed(others, found)
                _tell_inverted(masked, how, found)
                _tell_nan(masked, how, shape, found, declared)
                return how, shape
            if acts and not mixed:  # or it may hide what it's to keep
                steps += [s for s in masked.steps(how, shape) if s in BY_MASK]
            seen.append((acts, mixed))
            given.append(y)
        if seen:
            break
    if steps:
        done = f"Passed a mask as {masked.name}, and looked at each step."
        found.add("padding_leaks" if declared else steps[0], done, BY_MASK[steps[0]])
        return None
    if re.search(LINKS, masked.name.lower()):
        return None  # it may say what is added to the scores
    alike = len(masked.forms) > 1 and not any(changed(y, given[0]) for y in given)
    if any(acts for acts, _ in seen) and alike:
        return None  # a switch: what it holds is of no matter
    # Who speaks of padding promises it; other masks may serve something else.
    told = re.compile(rf"\b{masked.name}\b.*\b(pad\w*|real|valid)\b", re.IGNORECASE)
    promised = declared or "pad" in masked.name.lower()
    promised = promised or bool(_said(masked) and masked.subject.says(told))
    severity = "error" if promised else "warning"
    if masked.replaces():
        if masked.forgets_causal():
            done = f"Passed {masked.name}, with a number for each token, that hides "
            done += "none, and replaced the last token."
            found.add("padding_future", done, "Earlier outputs changed.", severity)
        return None
    acting = [mixed for acts, mixed in seen if acts]
    # Where a mask means the opposite, all of the other sequence is hidden.
    done = f"Passed a padding mask as {masked.name} for one of two sequences, then put "
    done += "other numbers in the padded positions."
    rows = masked.in_rows()
    if acting and all(acting) and not rows:
        found.add("padding_batch", done, "The output of the other sequence changed.")
    elif masked.takes_pairs():
        return None  # a row for each query, broadcast from one for each sequence
    elif rows:
        text = "All scores of a padded token change alike, and none of its column."
        found.add("padding_rows", done, text)
    elif masked.shows_future():
        text = "With it, tokens see later ones, even in the other sequence."
        found.add("padding_future", done, text)
    elif any(masked.hides_rows(y) for y in given) or masked.empties_rows():
        text = "It changed the outputs of padded tokens only: others still see them."
        found.add("padding_rows", done, text)
    elif acting:
        text = "The mask has an effect, but real tokens still change with padded ones, "
        text += "whether True hides or keeps."
        found.add("padding_leaks", done, text)
    elif seen:
        text = f"{masked.name} changes nothing, whatever is in it."
        found.add("padding_leaks", done, text, severity)
    return None


def _tell_nan(
    masked: Masked, how: str, shape: tuple[int, ...], found: Collector, declared: bool
) -> None:
    """Tell where real rows are finite, and a loss of them can't go back."""
    module = masked.subject.copy()
    try:
        y = masked.call(masked.x, masked.hidden, how, shape, module=module, grad=True)
    except CallFailed:
        return
    if bad := lost_gradients(masked.subject, module, y[0, masked.real]):
        done = f"Hid the first tokens by {masked.name}, and sent back the sum of the "
        # Who pads at the end alone never meets this.
        severity = None if declared else "warning"
        done, text = f"{done}real tokens' outputs.", f"{LOST}: {', '.join(bad)}."
        found.add("padding_not_finite", done, text, severity)


LOST = "These are finite, and gradients of parameters are NaN"


def lost_gradients(
    subject: Subject, module: nn.Module, real: torch.Tensor
) -> list[str]:
    """Return the parameters whose gradient is NaN for real rows that are finite."""
    if not real.isfinite().all() or not real.requires_grad:
        return []
    try:
        guarded(subject.worker, real.sum().backward, "backward_raises")
    except CallFailed:
        return []
    return [
        name
        for name, p in module.named_parameters()
        if p.grad is not None and p.grad.isnan().any()
    ]


def _tell_inverted(masked: Masked, how: str, found: Collector) -> None:
    """Tell where the mask means the opposite of what its name usually does."""
    name, said = masked.name.lower(), masked.means or _said(masked)
    words = "what you said" if masked.means else "its words"
    if said and how == "added":
        done = f"Passed a padding mask as {masked.name}."
        text = f"It's added to the scores, and by {words}, True {said}: that adds 1."
        found.add("padding_leaks", done, text)
    elif said and how in WAYS and said != WAYS[how]:
        done = f"Passed a padding mask as {masked.name}."
        text = f"It {WAYS[how]} where it's True, and by {words}, True {said}."
        found.add("padding_inverted", done, text)
    elif not said and any(part in name for part in INVERTED.get(how, ())):
        done = f"Passed a padding mask as {masked.name}."
        text = "It hides where it's False." if how != "hides" else "True hides."
        # PyTorch says what True means under this name; under others, both are in use.
        severity = "error" if name == "key_padding_mask" else "warning"
        found.add("padding_inverted", done, text, severity)


def _said(masked: Masked) -> str:
    """Return what True in the mask does by the words beside its name, or ""."""
    text = masked.subject.source
    found = {
        OPPOSITE[does] if bool(NEGATED.search(match["told"])) != bool(no) else does
        for line in text.splitlines()
        for does, words in WORDS.items()
        for no, (held, word) in enumerate(SAID)
        for match in re.finditer(
            rf"\b{masked.name}\b.*\b{held}(?P<told>\W+({word}\W+){{0,5}}?{words})", line
        )
    }
    return found.pop() if len(found) == 1 else ""
