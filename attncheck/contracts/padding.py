"""The contract of a mask of padding: what stands in padded places is of no matter."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from attncheck.collector import Collector, SkipTest
from attncheck.contracts.base import run
from attncheck.numbers import changed
from attncheck.probes.basics import tell_changed
from attncheck.probes.padded import LOST, Masked, lost_gradients, masks, tried
from attncheck.report import Report
from attncheck.subject import Subject

T = 6
Call = Callable[..., torch.Tensor]


def check_padding(
    module_or_class: object,
    *,
    call: Callable[[nn.Module, torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
    hidden: bool | None = None,
    left: bool | None = None,
    **arguments: Any,
) -> Report:
    """Test that padding changes nothing for real tokens.

    Args:
        module_or_class: what :func:`check` takes.
        call: function (module, x, mask), mask (b, t). Without it, forward's argument
            is taken that is called like a mask of padding, in the form that it wants.
        hidden: whether True in the mask means padding; False: it means a real token.
            None: with ``call`` it means padding; else either may be, as long as the
            name and the words of the class don't say the opposite.
        left: whether padding comes first; None: both are tried. At the end a causal
            mask hides it from all real tokens anyway.
        **arguments: for the constructor, and what :func:`check` takes.

    Returns:
        :class:`attncheck.Report`. Where no mask is found, it holds what :func:`check`
        finds, and the verdict is never "passed".

    Example:
        >>> from attention import FusedMultiHeadAttention
        >>> from attncheck import check_padding
        >>> check_padding(FusedMultiHeadAttention).ok
        True
    """
    sides = (False, True) if left is None else (left,)
    now: list[torch.Tensor] = []  # the padding that a test gives

    def written(module: nn.Module, x: torch.Tensor) -> Any:
        assert call is not None, "it is used where there is one"
        b, t = x.shape[1::-1] if arguments.get("layout") == "tbd" else x.shape[:2]
        padding = now[-1] if now else torch.zeros(b, t, dtype=torch.bool)
        mask = ~padding if hidden is False else padding
        return call(module, x, mask.to(x.device))

    def prepare(subject: Subject, found: Collector) -> list[Padded]:
        if subject.tokens(t=T).shape[1] < T:
            raise SkipTest("the layer doesn't take enough tokens")

        def given(x: torch.Tensor, padding: torch.Tensor, **how: Any) -> torch.Tensor:
            now.append(padding)
            try:
                return subject(x, **how)
            finally:
                now.pop()

        if call:
            return [Padded(subject, given, side) for side in sides]
        masked, how = _sought(subject, found, hidden)
        # The number of each sequence's tokens says nothing of any in front.
        places = [side for side in sides if not (side and masked.counted)]
        return [Padded(subject, how, side) for side in places] if how else []

    tests = [
        ("the mask stays as it was", mask_kept),
        ("junk in padded places", junk),
        ("padded and alone", alone),
        ("finite numbers", finite),
        ("sequences keep their own lengths", own_lengths),
        ("the future stays hidden", future),
    ]
    options = ({"call": written} if call else {}) | arguments
    needed = "say how to pass the mask: call=lambda module, x, mask: …"
    return run(module_or_class, prepare, tests, options, needed)


def _sought(
    subject: Subject, found: Collector, hidden: bool | None
) -> tuple[Masked, Call | None]:
    """Return the layer, and how a mask is passed that hides padding, if one does.

    Raises:
        SkipTest: no argument takes one.
    """
    masked = min(masks(subject), key=lambda one: "pad" not in one.name)
    masked.means = {True: "hides", False: "keeps", None: ""}[hidden]
    before = len(found.found)
    form = tried(masked, found, declared=True)
    if form is None and len(found.found) == before:
        raise SkipTest(f"{masked.name} takes no padding mask that was tried")
    if form is None:
        return masked, None
    return masked, lambda x, padding, **how: masked.call(x, padding, *form, **how)


class Padded:
    """A layer that is called with padding.

    Args:
        subject: the layer.
        call: function (x, padding), True where padding stands, that takes what
            :class:`Subject` takes for a call, as ``grad``.
        left: whether padding comes first.
    """

    def __init__(self, subject: Subject, call: Call, left: bool) -> None:
        self.subject, self.call, self.left = subject, call, left
        self.t = subject.tokens(t=T).shape[1]
        self.usual = self.padding(self.t - 2, self.t, self.t - 4)

    def padding(self, *lengths: int) -> torch.Tensor:
        """Return (b, t), True where padding stands."""
        places = torch.arange(self.t)[None]
        counts = torch.tensor(lengths)[:, None]
        return places < self.t - counts if self.left else places >= counts

    def tokens(self, seed: int = 0) -> torch.Tensor:
        """Return random tokens for three sequences."""
        return self.subject.tokens(3, T, seed)


def mask_kept(padded: Padded, found: Collector) -> None:
    """Compare the mask before and after: a model gives it to all its layers."""
    with padded.subject.arguments_changed() as others:
        padded.call(padded.tokens(), padded.usual.clone())
    tell_changed(others, found)


def junk(padded: Padded, found: Collector) -> None:
    """Put other numbers into padded places."""
    x, padding = padded.tokens(), padded.usual
    other = torch.where(padding[..., None].to(x.device), 3 * padded.tokens(5), x)
    y, z = padded.call(x, padding), padded.call(other, padding)
    real = ~padding
    if not changed(y[real], z[real], 1e-4):
        return
    done = "Put other numbers in padded positions and compared real tokens' outputs."
    turned = padded.call(x, ~padding), padded.call(other, ~padding)
    if not changed(turned[0][real], turned[1][real], 1e-4):
        first = real & (real.cumsum(dim=1) == 1)
        moved = torch.where(first[..., None].to(x.device), 3 * padded.tokens(5), x)
        rest, again = real & ~first, padded.call(moved, ~padding)
        if changed(turned[0][rest], again[rest], 1e-4):
            found.add("padding_inverted", done, "They changed. With the mask inverted, "
                      "they don't.")  # fmt: skip
        else:  # the rows of real tokens are hidden then
            text = "They changed. With the mask inverted, real tokens see themselves "
            found.add("padding_rows", done, text + "alone.")
        return
    none = torch.zeros_like(padding)
    if not padded.subject.causal and not changed(
        y[real], padded.call(x, none)[real], 1e-4
    ):
        found.add("padding_rows", done, "They changed, as they do with no mask.")
        return
    found.add("padding_leaks", done, "They changed.")


def alone(padded: Padded, found: Collector) -> None:
    """Compare a padded sequence with the same one alone and without padding."""
    if padded.subject.fixed_length:
        raise SkipTest(f"it takes only {padded.t} tokens")
    x, padding = padded.tokens(), padded.usual
    y = padded.call(x, padding)
    real = ~padding[0]
    short = x[:1, real]
    none = torch.zeros(1, int(real.sum()), dtype=torch.bool)
    z = padded.call(short, none)
    if changed(y[:1, real], z, 1e-4) and not found.found:
        done = "Compared a padded sequence with the same one alone, unpadded."
        found.add("padding_leaks", done, "The real tokens' outputs differ.")


def finite(padded: Padded, found: Collector) -> None:
    """Look for NaN, also where a sequence is padding throughout."""
    x = padded.tokens()
    t = padded.t
    for last, severity in ((t - 4, None), (0, "warning")):
        lengths = (t - 2, t, last)
        y = padded.call(x, padded.padding(*lengths))
        if not y.isfinite().all():
            done = f"Padded sequences of {', '.join(map(str, lengths))} tokens to {t}."
            bad = (~y.isfinite().all(-1)).nonzero()[0].tolist()
            seen = f"NaN or inf, first in sequence {bad[0]} at position {bad[1]}."
            found.add("padding_not_finite", done, seen, severity)
            return
    padding, module = padded.usual, padded.subject.copy()
    y = padded.call(x, padding, module=module, grad=True)
    if bad := lost_gradients(padded.subject, module, y[~padding]):
        done = "Sent back the sum of the real tokens' outputs."
        found.add("padding_not_finite", done, f"{LOST}: {', '.join(bad)}.")


def own_lengths(padded: Padded, found: Collector) -> None:
    """Give the other sequences of a batch other lengths, and look at each alone."""
    x = padded.tokens()
    for place in range(3):
        one, other = [padded.t - 1] * 3, [2, 2, 2]
        one[place] = other[place] = 4
        real = ~padded.padding(*one)[place]
        y, z = (padded.call(x, padded.padding(*lengths)) for lengths in (one, other))
        if changed(y[place, real], z[place, real], 1e-4):
            done = "Changed the lengths of all sequences but one."
            seen = f"The output for sequence {place} changed."
            found.add("padding_batch", done, seen)
            return


def future(padded: Padded, found: Collector) -> None:
    """With padding, too, a token may not see the future."""
    if not padded.subject.causal:
        return
    x, padding = padded.tokens(), padded.padding(*[padded.t - 1] * 3)
    place = padded.t - (1 if padded.left else 2)
    other = x.clone()
    other[:, place] = padded.tokens(9)[:, place]
    y, z = padded.call(x, padding), padded.call(other, padding)
    start = 1 if padded.left else 0
    if changed(y[:, start:place], z[:, start:place], 1e-4):
        done = "Replaced the last real token."
        found.add("padding_future", done, "Earlier outputs changed.")
