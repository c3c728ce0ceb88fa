"""Tests any attention class by what it does, and names the mistake.

The work goes in steps: :mod:`build <attncheck.build>` makes the module,
:mod:`subject <attncheck.subject>` calls it within limits, the probes look
for symptoms, :mod:`parity <attncheck.parity>` compares it with attention
that has one mistake at a time, and :mod:`report <attncheck.report>` says
what came out. Nothing is concluded from the source code of the reader. The presets
in :mod:`contracts <attncheck.contracts>` test caches, padding and
cross-attention.

PyTorch is imported when a name of this package is first used: the pytest plugin,
which lies here too, is imported by every test run.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attncheck.contracts import check_cache, check_cross, check_padding
    from attncheck.mistakes import MISTAKES, Mistake
    from attncheck.report import CheckFailed, Finding, Report, Result
    from attncheck.run import assert_attention, check

__all__ = [
    "MISTAKES",
    "CheckFailed",
    "Finding",
    "Mistake",
    "Report",
    "Result",
    "assert_attention",
    "check",
    "check_cache",
    "check_cross",
    "check_padding",
]

_MODULES = {
    "contracts": ("check_cache", "check_cross", "check_padding"),
    "mistakes": ("MISTAKES", "Mistake"),
    "report": ("CheckFailed", "Finding", "Report", "Result"),
    "run": ("assert_attention", "check"),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}

if not TYPE_CHECKING:  # a type checker would take any name for granted

    def __getattr__(name: str) -> object:
        """Import the module that holds a public name when it is first used."""
        if name in _PLACES:
            module = importlib.import_module(f"attncheck.{_PLACES[name]}")
            return getattr(module, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
