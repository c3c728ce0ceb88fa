"""Loads what a command line names: a class of a file, a module or a notebook."""

import ast
import contextlib
import importlib
import importlib.util
import inspect
import json
import re
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from attncheck.errors import UnusableError, first_line
from attncheck.limits import TimedOutError, Worker
from attncheck.report import Report

NAME = re.compile(r"[A-Za-z_][\w.]*(\(.*\))?")


def load(target: str, time_limit: float = 10.0, notes: list[str] | None = None) -> Any:
    """Return the class, function or module that ``target`` names.

    A file that raises, exits or trains when it is run is read for its imports,
    classes, functions and constants alone.

    Args:
        target: "path/to/file.py:Name", "path/to/file.py:factory()", the same with a
            notebook (.ipynb), or "package.module:Name". The name may be left out
            where a file holds a single class derived from ``nn.Module``.
        time_limit: seconds that running the file may take.
        notes: a list that gets what a reader should know.

    Raises:
        UnusableError: no such file or name, or running the file fails.
    """
    place, name = parts(target)
    worker = Worker(time_limit)
    try:
        module = _run(place, time_limit, worker)
    except _RunFailedError as failure:
        module = _definitions_of(place, name, failure)
        if notes is not None:
            notes.append(f"{failure} Its definitions alone were read.")
    finally:
        worker.close()
    return _pick(module, place, name, time_limit)


def parts(target: str) -> tuple[str, str]:
    """Return (place, name) of a target; the name may be empty."""
    place, colon, name = target.rpartition(":")
    if "(" in target and colon:  # a call may hold colons of its own
        place, colon, name = target.partition(":")
    # A colon may also belong to a Windows path such as C:\file.py.
    known = NAME.fullmatch(name) or name == ""
    if not colon or not known or target.endswith((".py", ".ipynb")):
        return target, ""
    return place, name


class _RunFailedError(UnusableError):
    """Running the file did not end well; its definitions may do."""


def _run(place: str, time_limit: float, worker: Worker) -> types.ModuleType:
    try:
        return worker.call(lambda: _import(place))
    except UnusableError:
        raise
    except TimedOutError:
        raise _RunFailedError(
            f"running {place} didn't finish within {time_limit:g} s. Put training "
            f'loops under `if __name__ == "__main__":`.'
        ) from None
    except SyntaxError as error:
        line = f"line {error.lineno}: {error.msg}"
        raise UnusableError(f"{place} has a syntax error in {line}.") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _RunFailedError(
            f"running {place} raised {type(error).__name__}: {first_line(error)}."
        ) from None


def _import(place: str) -> types.ModuleType:
    path = Path(place)
    if path.suffix == ".ipynb":
        return _definitions(path)
    if path.suffix != ".py":
        if path.exists() or "/" in place or "\\" in place:
            raise UnusableError(f"{place} isn't a Python file (.py) or a notebook.")
        return importlib.import_module(place)
    if not path.is_file():
        raise UnusableError(f"there is no file {place}. Looked in {Path.cwd()}.")
    path = path.resolve()
    root, names = _package(path)
    # The file may import its neighbors, and what lies where the command was given.
    for folder in (str(Path.cwd()), str(root)):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    _forget_namesakes(names[0], root)
    if len(names) > 1:
        return importlib.import_module(".".join(names))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None, "it ends in .py"
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickle look a class's module up by name.
    sys.modules.setdefault(path.stem, module)
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        if "relative import" not in str(error):
            raise
        # A folder without __init__.py is a package all the same.
        sys.path.insert(0, str(root.parent))
        sys.modules.pop(path.stem, None)
        return importlib.import_module(f"{root.name}.{path.stem}")
    return module


def _package(path: Path) -> tuple[Path, list[str]]:
    """Return (folder above the topmost package, the file's dotted name in parts)."""
    names, folder = [path.stem], path.parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    return folder, names if path.stem != "__init__" else names[:-1] or names


def _forget_namesakes(name: str, root: Path) -> None:
    """Forget a module of this name from elsewhere, such as one that is installed."""
    known = sys.modules.get(name)
    file = getattr(known, "__file__", None)
    if known is None or file is None or name in sys.stdlib_module_names:
        return
    if name in ("torch", "attncheck") or Path(file).resolve().is_relative_to(root):
        return
    for other in [n for n in sys.modules if n == name or n.startswith(f"{name}.")]:
        del sys.modules[other]


ATTENTION = re.compile(r"attention|attn", re.IGNORECASE)


def attention_classes(path: Path) -> list[str]:
    """Return the names of a file's classes of attention, without running it.

    These are classes derived from ``nn.Module`` with "attention" or "attn" in their
    names; or its only class derived from ``nn.Module``.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
        text = _cells(text, path)[0] if path.suffix == ".ipynb" else text
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError, UnusableError):
        return []
    layers: list[str] = []
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef):
            bases = {ast.unparse(base).split(".")[-1] for base in statement.bases}
            if bases & {"Module", *layers} or any(map(ATTENTION.search, bases)):
                layers.append(statement.name)
    named = [name for name in layers if ATTENTION.search(name)]
    return named or (layers if len(layers) == 1 else [])


def _definitions_of(
    place: str, name: str, failure: _RunFailedError
) -> types.ModuleType:
    """Return a module of the file's definitions, if they hold what is asked for."""
    path = Path(place)
    if path.suffix != ".py":
        raise failure
    module = _definitions(path)
    wanted = name.partition("(")[0].partition(".")[0]
    if wanted not in vars(module) if wanted else len(_layers(module)) != 1:
        raise failure
    return module


def _definitions(path: Path) -> types.ModuleType:
    """Run the imports, classes, functions and constants of a file or notebook."""
    if not path.is_file():
        raise UnusableError(f"there is no file {path}. Looked in {Path.cwd()}.")
    text = path.read_text(encoding="utf-8", errors="replace")
    name = path.stem
    if path.suffix == ".ipynb":
        text, path = _cells(text, path)
    module = types.ModuleType(name)
    module.__file__ = str(path)
    sys.modules.setdefault(name, module)
    for statement in ast.parse(text, filename=str(path)).body:
        if _defines(statement):
            code = compile(ast.Module([statement], []), str(path), "exec")
            # The class may not need an import that fails here.
            with contextlib.suppress(Exception, SystemExit):
                exec(code, vars(module))
    return module


def _defines(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        return not any(isinstance(n, ast.Call) for n in ast.walk(statement))
    kinds = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef)
    if isinstance(statement, ast.Try):
        return all(_defines(part) for part in statement.body)
    return isinstance(statement, kinds)


def _cells(text: str, path: Path) -> tuple[str, Path]:
    """Return the code of a notebook's cells that can be parsed, without magics."""
    try:
        cells = json.loads(text)["cells"]
    except (ValueError, KeyError, TypeError):
        raise UnusableError(f"{path} isn't a notebook that can be read.") from None
    codes = []
    for cell in cells:
        if cell.get("cell_type") != "code":
            continue
        source = "".join(cell["source"])
        lines = [
            "pass" if line.lstrip().startswith(("%", "!")) else line
            for line in source.splitlines()
        ]
        code = "\n".join(lines)
        with contextlib.suppress(SyntaxError):
            ast.parse(code)
            codes.append(code)
    return "\n\n".join(codes), path


def withdraw_unfinished(report: Report, notes: list[str]) -> None:
    """Take back a finding that only says that a name of the file is missing.

    Where the file could not be run, a class may lack what it calls.
    """
    first = report.findings[0] if report.findings else None
    raised = first is not None and first.mistake in (
        "forward_raises",
        "constructor_raises",
    )
    if notes and first and raised and "NameError" in first.seen:
        report.usable, report.findings, report.results = False, [], []
        report.problem = f"{notes[-1]} And the class needs more than that: {first.seen}"


def _layers(module: types.ModuleType) -> list[str]:
    return [
        key
        for key, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, nn.Module)
        and value.__module__ == module.__name__
    ]


def _pick(module: types.ModuleType, place: str, name: str, time_limit: float) -> Any:
    layers = _layers(module)
    held = ", ".join(layers) or "none"
    if not name:
        if len(layers) == 1:
            return getattr(module, layers[0])
        raise UnusableError(
            f"say which class of {place} to check, as in {place}:ClassName. Its "
            f"classes derived from nn.Module: {held}."
        )
    if "(" in name:
        return evaluate(name, vars(module), time_limit)
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise UnusableError(
                f"{place} has no {name}. Its classes derived from nn.Module: {held}."
            )
        found = getattr(found, part)
    return found


def evaluate(text: str, names: Mapping[str, Any], time_limit: float = 10.0) -> Any:
    """Return the value of an expression of the command line.

    Raises:
        UnusableError: it has none.
    """
    worker = Worker(time_limit)
    try:
        return worker.call(lambda: eval(text, dict(names)))
    except TimedOutError:
        raise UnusableError(f"{text} didn't finish within {time_limit:g} s.") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise UnusableError(
            f"{text} raised {type(error).__name__}: {first_line(error)}."
        ) from None
    finally:
        worker.close()
