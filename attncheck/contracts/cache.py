"""The contract of a cache: in chunks the layer computes what it computes at once."""

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from attncheck.build import UnusableError
from attncheck.collector import Collector
from attncheck.contracts.base import run
from attncheck.probes.cached import several, sought
from attncheck.probes.stepped import Stepped, batches, second, tokens_alone
from attncheck.report import Report
from attncheck.subject import Subject


def check_cache(
    module_or_class: object,
    *,
    step: Callable[[nn.Module, torch.Tensor, Any], tuple[torch.Tensor, Any]]
    | None = None,
    new_cache: Callable[[nn.Module], Any] | None = None,
    **arguments: Any,
) -> Report:
    """Test that a layer with a cache computes in chunks what it computes at once.

    Args:
        module_or_class: what :func:`check` takes.
        step: function (module, chunk, cache) that returns (output, cache), also
            taken as ``call``. For a new sequence the cache is what ``new_cache``
            makes. Without it, the cache is passed and found by the names of forward's
            arguments, as ``past``.
        new_cache: function (module) that returns an empty cache. Without it, and
            without ``step``, what usually is one is tried: None, a dictionary, or a
            class in the same file.
        **arguments: for the constructor, and what :func:`check` takes.

    Returns:
        :class:`attncheck.Report`. Where no cache is found, it holds what
        :func:`check` finds, and the verdict is never "passed".

    Example:
        >>> from attention import FusedMultiHeadAttention, KeyValueCache
        >>> from attncheck import check_cache
        >>> new = lambda module: KeyValueCache()
        >>> check_cache(FusedMultiHeadAttention, new_cache=new).ok
        True
    """
    if step is None and _takes_cache(arguments.get("call")):
        step = arguments.pop("call")  # as the other presets call what they are given

    def prepare(subject: Subject, found: Collector) -> list[Stepped]:
        if step is None:
            stepped = sought(subject, found, new_cache, declared=True)
        elif subject.layer.memory and not arguments.get("memory"):
            raise UnusableError("a memory was given that nobody spoke of")
        else:
            stepped = Stepped(subject, step, new_cache)
            tokens_alone(stepped, found)
        return [stepped] if stepped else []

    tests = [
        ("one token at a time", lambda stepped, found: None),
        ("several tokens at a time", several),
        ("a second sequence", second),
        ("another number of sequences", batches),
    ]

    def at_once(module: nn.Module, x: torch.Tensor) -> Any:
        assert step is not None, "it is given where there is a step"
        return step(module, x, new_cache(module) if new_cache else None)[0]

    needed = (
        "say how to make an empty cache, new_cache=lambda module: …, or how to pass "
        "one, step=lambda module, chunk, cache: (output, cache)"
    )
    otherwise = at_once if step else None
    return run(module_or_class, prepare, tests, arguments, needed, otherwise)


def _takes_cache(call: Any) -> bool:
    """Whether a function takes a third argument: a module, tokens and a cache."""
    if call is None:
        return False
    with contextlib.suppress(TypeError, ValueError):
        inspect.signature(call).bind(None, None, None)
        return True
    return False
