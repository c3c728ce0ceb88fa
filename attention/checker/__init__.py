"""Tests any attention class by what it does, and names the mistake.

The work goes in steps: :mod:`build <attention.checker.build>` makes the module,
:mod:`subject <attention.checker.subject>` calls it within limits, the probes look
for symptoms, :mod:`parity <attention.checker.parity>` compares it with attention
that has one mistake at a time, and :mod:`report <attention.checker.report>` says
what came out. Nothing is concluded from the source code of the reader. The presets
in :mod:`contracts <attention.checker.contracts>` test caches, padding and
cross-attention.
"""

from attention.checker.contracts import check_cache, check_cross, check_padding
from attention.checker.mistakes import MISTAKES, Mistake
from attention.checker.report import CheckFailed, Finding, Report, Result
from attention.checker.run import check

__all__ = [
    "MISTAKES",
    "CheckFailed",
    "Finding",
    "Mistake",
    "Report",
    "Result",
    "check",
    "check_cache",
    "check_cross",
    "check_padding",
]
