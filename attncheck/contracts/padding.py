"""The contract of a mask of padding: what stands in padded places is of no matter."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from attncheck.build import UnusableError
from attncheck.collector import Collector
from attncheck.contracts.base import Called, accepts, run
from attncheck.numbers import changed
from attncheck.report import Report

MASKS = ("key_padding_mask", "padding_mask", "is_padding", "src_key_padding_mask",
         "pad_mask", "attention_mask", "attn_mask", "mask")  # fmt: skip
T = 6
LENGTHS = (4, 6, 2)
Call = Callable[[nn.Module, torch.Tensor, torch.Tensor], torch.Tensor]


def check_padding(
    module_or_class: object,
    *,
    call: Callable[[nn.Module, torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
    hidden: bool = True,
    causal: bool = True,
    left: bool | None = None,
    time_limit: float = 10.0,
    strict: bool = False,
    **arguments: Any,
) -> Report:
    """Test that padding changes nothing for real tokens.

    Args:
        module_or_class: a class derived from ``nn.Module``, or an instance.
        call: function (module, x, mask), mask (b, t). Without it, forward's argument
            is taken that is called like a mask of padding.
        hidden: whether True in the mask means padding; False: it means a real token.
        causal: whether tokens may not see the future.
        left: whether padding comes first; None: both are tried. At the end a causal
            mask hides it from all real tokens anyway.
        time_limit: seconds that one call may take.
        strict: whether warnings fail too.
        **arguments: for the constructor.

    Returns:
        :class:`attncheck.Report`.

    Example:
        >>> from attention import FusedMultiHeadAttention
        >>> from attncheck import check_padding
        >>> check_padding(FusedMultiHeadAttention).ok
        True
    """
    sides = (False, True) if left is None else (left,)

    def test(
        function: Callable[["Padded", Collector, bool], None],
    ) -> Callable[[Called, Collector], None]:
        def on_each_side(layer: Called, found: Collector) -> None:
            for side in sides:
                function(Padded(layer, call, hidden, side), found, causal)

        return on_each_side

    tests = [
        ("junk in padded places", test(junk)),
        ("padded and alone", test(alone)),
        ("finite numbers", test(finite)),
        ("sequences keep their own lengths", test(own_lengths)),
        ("the future stays hidden", test(future)),
    ]
    return run(module_or_class, tests, arguments, causal, time_limit, strict)


class Padded:
    """A layer that is called with padding.

    Args:
        layer: :class:`attncheck.contracts.base.Called`.
        call, hidden, left: as of :func:`check_padding`.

    Raises:
        UnusableError: it is not known how to pass the mask.
    """

    def __init__(
        self, layer: Called, call: Call | None, hidden: bool, left: bool
    ) -> None:
        self.layer, self.hidden, self.left = layer, hidden, left
        self.call = call or self._found(layer.module())

    @staticmethod
    def _found(module: nn.Module) -> Call:
        name = accepts(module, MASKS)
        if name is None:
            raise UnusableError(
                "the checker can't tell how to pass a padding mask. Say it: "
                "check_padding(…, call=lambda module, x, mask: module(x, mask))."
            )
        return lambda module, x, mask: module(x, **{name: mask})

    def padding(self, lengths: Sequence[int] = LENGTHS) -> torch.Tensor:
        """Return (b, t), True where padding stands."""
        places = torch.arange(T)[None]
        counts = torch.tensor(lengths)[:, None]
        return places < T - counts if self.left else places >= counts

    def __call__(self, x: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        """Return the output for tokens with padding."""
        mask = padding if self.hidden else ~padding
        mask = mask.to(x.device)
        return self.layer.call(self.call, self.layer.module(), x, mask)

    def tokens(self, seed: int = 0) -> torch.Tensor:
        """Return random tokens for three sequences."""
        return self.layer.tokens(3, T, seed)


def junk(padded: Padded, found: Collector, causal: bool) -> None:
    """Put other numbers into padded places."""
    x, padding = padded.tokens(), padded.padding()
    other = torch.where(padding[..., None].to(x.device), 3 * padded.tokens(5), x)
    y, z = padded(x, padding), padded(other, padding)
    real = ~padding
    if not changed(y[real], z[real], 1e-4):
        return
    done = "Put other numbers in padded positions and compared real tokens' outputs."
    turned = padded(x, ~padding), padded(other, ~padding)
    if not changed(turned[0][real], turned[1][real], 1e-4):
        found.add("padding_inverted", done, "They changed. With the mask inverted, "
                  "they don't.")  # fmt: skip
        return
    none = torch.zeros_like(padding)
    if not causal and not changed(y[real], padded(x, none)[real], 1e-4):
        found.add("padding_rows", done, "They changed, as they do with no mask.")
        return
    found.add("padding_leaks", done, "They changed.")


def alone(padded: Padded, found: Collector, causal: bool) -> None:
    """Compare a padded sequence with the same one alone and without padding."""
    x, padding = padded.tokens(), padded.padding()
    y = padded(x, padding)
    real = ~padding[0]
    short = x[:1, real]
    none = torch.zeros(1, int(real.sum()), dtype=torch.bool)
    z = padded(short, none)
    if changed(y[:1, real], z, 1e-4) and not found.found:
        done = "Compared a padded sequence with the same one alone, unpadded."
        found.add("padding_leaks", done, "The real tokens' outputs differ.")


def finite(padded: Padded, found: Collector, causal: bool) -> None:
    """Look for NaN, also where a sequence is padding throughout."""
    x = padded.tokens()
    for lengths in (LENGTHS, (4, 6, 0)):
        padding = padded.padding(lengths)
        y = padded(x, padding)
        if not y.isfinite().all():
            done = f"Padded sequences of {', '.join(map(str, lengths))} tokens to {T}."
            bad = (~y.isfinite().all(-1)).nonzero()[0].tolist()
            seen = f"NaN or inf, first in sequence {bad[0]} at position {bad[1]}."
            found.add("padding_not_finite", done, seen)
            return


def own_lengths(padded: Padded, found: Collector, causal: bool) -> None:
    """Give the other sequences of a batch other lengths, and look at each alone."""
    x = padded.tokens()
    for place in range(3):
        one, other = [5, 5, 5], [2, 2, 2]
        one[place] = other[place] = 4
        real = ~padded.padding(one)[place]
        y, z = (padded(x, padded.padding(lengths)) for lengths in (one, other))
        if changed(y[place, real], z[place, real], 1e-4):
            done = "Changed the lengths of all sequences but one."
            seen = f"The output for sequence {place} changed."
            found.add("padding_batch", done, seen)
            return


def future(padded: Padded, found: Collector, causal: bool) -> None:
    """With padding, too, a token may not see the future."""
    if not causal:
        return
    x, padding = padded.tokens(), padded.padding((6, 6, 6))
    padding[:, 0 if padded.left else -1] = True
    place = T - 1 if padded.left else T - 2
    other = x.clone()
    other[:, place] = padded.tokens(9)[:, place]
    y, z = padded(x, padding), padded(other, padding)
    start = 1 if padded.left else 0
    if changed(y[:, start:place], z[:, start:place], 1e-4):
        done = "Replaced the last real token."
        found.add("padding_future", done, "Earlier outputs changed.")
