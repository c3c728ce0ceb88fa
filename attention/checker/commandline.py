"""``python -m attention.check path/to/file.py:ClassName``."""

import argparse
import ast
import importlib
import importlib.util
import inspect
import sys
from pathlib import Path

from torch import nn

from attention.checker.build import DEFAULTS, UnusableError, first_line
from attention.checker.limits import TimedOutError, Worker
from attention.checker.run import check

EPILOG = """exit status: 0 nothing found, 1 something found, 2 nothing that could be
tested. Example: python -m attention.check my_attention.py:CausalAttention --d-in 16"""


def main(arguments=None):
    """Check the class that the command line names, print the report.

    Returns:
        The exit status: 0, 1, or 2 for unusable input.
    """
    options = _parser().parse_args(arguments)
    try:
        given = {name: getattr(options, name) for name in DEFAULTS}
        given = {name: value for name, value in given.items() if value is not None}
        given |= dict(_setting(text) for text in options.set)
        cls = load(options.target, options.time_limit)
    except UnusableError as error:
        print(f"{options.target}: could not be tested\n\n{error}", file=sys.stderr)
        return 2
    report = check(
        cls,
        causal=options.causal,
        layout=options.layout,
        time_limit=options.time_limit,
        **given,
    )
    print(report, file=sys.stdout if report.usable else sys.stderr)
    return report.exit_status


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m attention.check",
        description="Test an attention class by what it does, and name the mistake.",
        epilog=EPILOG,
    )
    parser.add_argument("target", help="path/to/file.py:ClassName or module:ClassName")
    for name in ("d_in", "d_out", "context_length", "num_heads"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, metavar="N")
    parser.add_argument("--dropout", type=float, metavar="P")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another argument of the constructor; may be given several times",
    )
    parser.add_argument(
        "--no-causal",
        dest="causal",
        action="store_false",
        help="every token may see all tokens",
    )
    parser.add_argument("--layout", choices=("btd", "tbd"), default="btd")
    parser.add_argument(
        "--time-limit", type=float, default=10.0, metavar="S", help="seconds per call"
    )
    return parser


def _setting(text):
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise UnusableError(f"--set wants NAME=VALUE, but got {text!r}.")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


def load(target, time_limit=10.0):
    """Return the class, function or module that ``target`` names.

    Args:
        target: "path/to/file.py:Name" or "package.module:Name". The name may be left
            out where a file holds a single class derived from ``nn.Module``.
        time_limit: seconds that running the file may take.

    Raises:
        UnusableError: no such file or name, or running the file fails.
    """
    place, name = _parts(target)
    worker = Worker(time_limit)
    try:
        module = worker.call(lambda: _import(place))
    except UnusableError:
        raise
    except TimedOutError:
        raise UnusableError(
            f"running {place} did not end within {time_limit:g} s. Put training loops "
            f'under `if __name__ == "__main__":`.'
        ) from None
    except SyntaxError as error:
        line = f"line {error.lineno}: {error.msg}"
        raise UnusableError(f"{place} has a syntax error in {line}.") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise UnusableError(
            f"running {place} raised {type(error).__name__}: {first_line(error)}."
        ) from None
    finally:
        worker.close()
    return _pick(module, place, name)


def _parts(target):
    place, colon, name = target.rpartition(":")
    # A colon may also belong to a Windows path such as C:\file.py.
    if not colon or not (name.isidentifier() or name == "") or target.endswith(".py"):
        return target, ""
    return place, name


def _import(place):
    path = Path(place)
    if path.suffix != ".py":
        if path.exists() or "/" in place or "\\" in place:
            raise UnusableError(f"{place} is no Python file (.py).")
        return importlib.import_module(place)
    if not path.is_file():
        raise UnusableError(f"there is no file {place}. Looked in {Path.cwd()}.")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # the file may import its neighbors
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickle look a class's module up by name.
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


def _pick(module, place, name):
    layers = [
        key
        for key, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, nn.Module)
        and value.__module__ == module.__name__
    ]
    if name:
        if hasattr(module, name):
            return getattr(module, name)
        held = ", ".join(layers) or "none"
        raise UnusableError(
            f"{place} holds no {name}. Its classes derived from nn.Module: {held}."
        )
    if len(layers) == 1:
        return getattr(module, layers[0])
    raise UnusableError(
        f"say which class of {place} to check, as in {place}:ClassName. Its classes "
        f"derived from nn.Module: {', '.join(layers) or 'none'}."
    )
