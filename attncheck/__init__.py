"""Tests any attention class by what it does, and names the mistake.

The work goes in steps: :mod:`loading <attncheck.loading>` finds the class,
:mod:`source <attncheck.source>` builds it, :mod:`first_call <attncheck.first_call>`
finds out how to call it, the probes compare it with attention that has one mistake at
a time and look for symptoms, :mod:`collector <attncheck.collector>` names what explains
them, and :mod:`report <attncheck.report>` decides the verdict. Nothing is concluded
from the source code of the reader.

PyTorch is imported when a name of this package is first used: the pytest plugin,
which lies here too, is imported by every test run.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
]

_MODULES = {
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
