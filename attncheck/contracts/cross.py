"""The contract of cross-attention: queries look at a memory, and at nothing else."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from attncheck.build import ALIASES
from attncheck.collector import Collector, SkipTest
from attncheck.contracts.base import run
from attncheck.numbers import changed
from attncheck.probes.meaning import dependence
from attncheck.probes.padded import padded
from attncheck.report import Report
from attncheck.subject import CallFailed, Subject

T = 5  # queries, and tokens of memory


def check_cross(
    module_or_class: object,
    *,
    call: Callable[[nn.Module, torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
    **arguments: Any,
) -> Report:
    """Test that queries look at all of a memory and at nothing else.

    Args:
        module_or_class: what :func:`check` takes.
        call: function (module, x, memory). Without it, the memory is passed by the
            names of forward's arguments, as (x, memory, memory) where it wants
            query, key and value.
        **arguments: for the constructor, and what :func:`check` takes.

    Returns:
        :class:`attncheck.Report`.

    Example:
        >>> from torch import nn
        >>> from attncheck import check_cross
        >>> check_cross(nn.MultiheadAttention(16, 4, batch_first=True)).ok
        True
    """
    tests = [
        ("lengths of queries and memory", sizes),
        (
            "what an output depends on",
            lambda one, found: dependence(one.subject, found),
        ),
        ("order of the memory", order),
        ("sequences of a batch are independent", batch),
        ("padding", lambda one, found: padded(one.subject, found)),
    ]
    # In the first call, as many as queries: lengths are a test of their own.
    options = {"memory": 6, "causal": False, "call": call} | arguments
    needed = "say how to pass the memory: call=lambda module, x, memory: …"

    def tried(options: dict[str, Any]) -> Report:
        return run(
            module_or_class, lambda one, _: [Crossed(one)], tests, options, needed
        )

    report = tried(options)
    if report.exit_status == 0 and (own := _masks_itself(module_or_class, arguments)):
        usual = tried(options | {"own": own})
        return usual if usual.exit_status == 1 else report
    return report


def _masks_itself(given: object, arguments: Mapping[str, Any]) -> dict[str, bool]:
    """Return the setting that hides the future in self-attention, as it is by default.

    A layer that may be called without a memory keeps it on: it must not act on one.
    """
    if not inspect.isclass(given) or "causal" in arguments:
        return {}
    forward = getattr(given, "forward", given.__call__)
    taken = [*inspect.signature(forward).parameters.values()][2:]
    if any(one.default is one.empty for one in taken if one.kind != one.VAR_KEYWORD):
        return {}
    made = inspect.signature(given).parameters
    names = [n for n in ALIASES["causal"] if n in made and n not in arguments]
    return {n: True for n in names if made[n].default is True}


class Crossed:
    """A layer that is called with queries and a memory.

    Args:
        subject: the layer.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    def __call__(self, x: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        """Return the output for queries and a memory."""
        self.subject.own_memory = memory
        try:
            return self.subject(x)
        finally:
            self.subject.own_memory = None

    def memory(self, t: int, seed: int = 1) -> torch.Tensor:
        """Return a random memory for two sequences, as wide as it wants to be."""
        way, x = self.subject.how.way, self.subject.tokens(2, 1)
        width = way.memory_width if way and way.memory_width else x.shape[-1]
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(2, t, width, generator=generator).to(x)


def sizes(crossed: Crossed, found: Collector) -> None:
    """Try memories shorter and longer than the queries."""
    for t_q, t_k in ((4, 4), (3, 6), (6, 2), (1, 5), (5, 1)):
        done = f"Passed {t_q} queries and {t_k} tokens of memory."
        try:
            y = crossed(crossed.subject.tokens(2, t_q), crossed.memory(t_k))
        except CallFailed as failure:
            found.add("cross_sizes", done, f"It raised {failure}.")
            return
        if y.shape[:2] != (2, t_q):
            seen = f"The output has the shape {tuple(y.shape)}."
            found.add("cross_sizes", done, seen)
            return


def order(crossed: Crossed, found: Collector) -> None:
    """Shuffle the memory: a weighted sum stays what it is."""
    if "cross_masked" in found.found:
        raise SkipTest("part of the memory is hidden")
    x, memory = crossed.subject.tokens(2, T), crossed.memory(T)
    if changed(crossed(x, memory), crossed(x, memory[:, [3, 1, 4, 0, 2]]), 1e-4):
        done = "Put the tokens of the memory in another order."
        found.add("cross_order", done, "The outputs changed.")


def batch(crossed: Crossed, found: Collector) -> None:
    """Replace the memory of one sequence and look at the other."""
    x, memory = crossed.subject.tokens(2, T), crossed.memory(T)
    y = crossed(x, memory)
    for place in (0, 1):
        other = memory.clone()
        other[place] = crossed.memory(T, 3)[place]
        if changed(y[1 - place], crossed(x, other)[1 - place]):
            done = f"Replaced the memory of sequence {place}."
            seen = f"The output for sequence {1 - place} changed."
            found.add("samples_mixed", done, seen)
            return
