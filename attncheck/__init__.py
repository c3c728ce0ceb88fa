"""Tests any attention class by what it does, and names the mistake.

One pipeline, in :mod:`run <attncheck.run>`, goes from a class to its report:

load       ``loading`` finds the class that a command line names
build      ``source`` builds it, as ``constructor`` plans it from names in ``guesses``
call       ``first_call`` finds a way among those of ``arguments`` that runs
weights    ``projections`` finds the weights by their names, ``roles`` by what they do
compare    ``reference`` computes attention with them, right or with a mistake
name       ``parity`` finds the mistake that gives the same output
probes     ``probes`` lists all tests; the comparison is one of them
report     ``collector`` orders what was found, and ``report`` decides the verdict

Nothing is concluded from the source code of the reader.

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
