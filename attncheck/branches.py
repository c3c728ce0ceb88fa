"""Which branches of the reader's code never ran, so that nothing is known of them."""

import ast
import linecache
import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

# What is installed, and this package, is nobody's class.
OTHERS = (*sysconfig.get_paths().values(), str(Path(__file__).parent), "<frozen")
SHOWN = 3  # branches that a note lists


class Branches:
    """Keeps the lines that ran, of each function of the reader's files.

    Where a debugger or a measurement of coverage traces already, it keeps nothing.
    """

    def __init__(self) -> None:
        self.ran: dict[CodeType, set[int]] = {}
        self._all = False  # branches were taken, of each function that ran

    def during(self, function: Callable[[], Any]) -> Any:
        """Run a function, and keep which lines ran."""
        if self._all or sys.gettrace() is not None:
            return function()
        sys.settrace(self._enter)
        try:
            return function()
        finally:
            sys.settrace(None)

    def look(self) -> None:
        """See whether all branches were taken: tracing is slow.

        Not in the thread of the call, which may be left behind: Python 3.11 parses in
        one thread at a time.
        """
        self._all = self._all or (bool(self.ran) and not self.untaken())

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        own = code.co_name == "__call__" or not code.co_name.startswith(("__", "<"))
        if not own or code.co_filename.startswith(OTHERS):
            return None
        if _within(frame, "__init__"):  # sizes that it wasn't built with
            return None
        lines = self.ran.setdefault(code, set())

        def line(frame: FrameType, event: str, arg: Any) -> Any:
            lines.add(frame.f_lineno)
            return line

        return line

    def untaken(self) -> list[tuple[str, int, str]]:
        """Return (file, line, what it says) of each branch that never ran."""
        found = {
            (code.co_filename, *branch)
            for code, lines in self.ran.items()
            for branch in _untaken(_function(code), lines)
        }
        return sorted(found)

    def note(self) -> str:
        """Return what a report says of them, or ""."""
        found = self.untaken()
        told = [f"line {line} of {Path(file).name} (`{text}`)"
                for file, line, text in found[:SHOWN]]  # fmt: skip
        if len(found) > SHOWN:
            told.append(f"{len(found) - SHOWN} more")
        begin = "Branches that never ran, and so weren't tested"
        return f"{begin}: {', '.join(told)}." if told else ""


def _within(frame: FrameType | None, name: str) -> bool:
    while frame is not None and frame.f_code.co_name != name:
        frame = frame.f_back
    return frame is not None


@cache
def _function(code: CodeType) -> ast.FunctionDef | None:
    """Return the tree of a function, with the lines of its file, where it's known."""
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
    return None


def _untaken(
    function: ast.FunctionDef | None, lines: set[int]
) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of the outermost branches of which no line ran."""
    todo: list[ast.stmt] = [function] if function else []
    while todo:
        node = todo.pop()
        for part in ("body", "orelse"):
            steps = getattr(node, part, None)
            if not isinstance(steps, list) or not steps:
                continue  # of a conditional expression, it's no list
            if isinstance(node, ast.If) and not _any_ran(steps, lines):
                text = f"if {ast.unparse(node.test)}"
                if not any(_raises(step) for step in steps):  # of what is refused
                    yield node.lineno, text if part == "body" else f"else of {text}"
            else:
                todo += steps
                yield from _behind_return(steps, lines)


def _behind_return(steps: list[ast.stmt], lines: set[int]) -> Iterator[tuple[int, str]]:
    for step, after in pairwise(steps):
        if not isinstance(step, ast.If) or not isinstance(step.body[-1], ast.Return):
            continue
        if _any_ran([step], lines) and not _any_ran([after], lines):
            yield after.lineno, f"behind if {ast.unparse(step.test)}"


def _raises(step: ast.stmt) -> bool:
    return any(isinstance(one, ast.Raise) for one in ast.walk(step))


def _any_ran(steps: list[ast.stmt], lines: set[int]) -> bool:
    last = steps[-1].end_lineno or steps[-1].lineno
    return any(steps[0].lineno <= line <= last for line in lines)
