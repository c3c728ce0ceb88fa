"""``python -m attncheck path/to/file.py:ClassName``."""

import argparse
import ast
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import torch

from attncheck.build import DEFAULTS, UnusableError
from attncheck.formats import FORMATS, rendered
from attncheck.isolated import EndedError, isolated
from attncheck.loading import evaluated, load, unfinished
from attncheck.report import Report
from attncheck.run import check

__all__ = ["load", "main"]

EPILOG = """exit status: 0 nothing found that fails, 1 something found, 2 nothing that
could be tested. Example: python -m attncheck my_attention.py:CausalAttention
--d-in 16"""
SPARE = 60.0  # seconds beside those of the class: for a slow start
LAYER = ("rope", "qk_norm", "prenorm")
FILE = re.compile(r"[^\s(]+\.(py|ipynb):[A-Za-z_][\w.]*(\(.*\))?")


class Config(SimpleNamespace):
    """Settings that can be read as attributes and as entries."""

    def __getitem__(self, name):
        return getattr(self, name)

    def get(self, name, default=None):
        """Return a setting, or the default."""
        return getattr(self, name, default)


def main(arguments: list[str] | None = None) -> int:
    """Check the class that the command line names, print the report.

    The class is loaded and run in a process of its own.

    Returns:
        The exit status: 0, 1, or 2 for unusable input.
    """
    options = _parser().parse_args(arguments)
    seconds = 6 * options.time_limit + SPARE
    try:
        report = isolated(lambda: _checked(options), seconds)
    except EndedError as error:
        report = Report(
            options.target,
            usable=False,
            problem=f"{error}. Code that ends its own process, or crashes it, cannot "
            f"be tested. Look for os._exit, os.kill, os.exec… and native code.",
        )
    text = rendered(report, options.format, options.target)
    if options.output:
        Path(options.output).write_text(text + "\n", encoding="utf-8")
        text = report.headline()
    plain = options.format == "text" or options.output
    print(text, file=sys.stderr if plain and not report.usable else sys.stdout)
    return report.exit_status


def _checked(options):
    """Return the report on what the options name."""
    notes = []
    try:
        given = {name: getattr(options, name) for name in DEFAULTS}
        given = {name: value for name, value in given.items() if value is not None}
        given |= dict(_setting(text, "--set") for text in options.set)
        cls = load(options.target, options.time_limit, notes)
        if options.config:
            cls = _configured(cls, options.config)
        given |= _functions(options)
    except UnusableError as error:
        return Report(options.target, usable=False, problem=str(error))
    for name in LAYER:
        value = getattr(options, name)
        if value:
            given[name] = True if value == "on" else value
    if options.rope_base:
        pairing = given.get("rope", True)
        pairing = "halves" if pairing is True else pairing
        given["rope"] = {"pairing": pairing, "base": options.rope_base}
    for name in ("window", "memory", "softcap", "alibi", "sink", "documents"):
        if getattr(options, name):
            given[name] = getattr(options, name)
    report = check(
        cls,
        causal=options.causal,
        layout=options.layout,
        time_limit=options.time_limit,
        select=options.select,
        ignore=options.ignore,
        strict=options.strict,
        **given,
    )
    unfinished(report, notes)
    report.notes += notes
    return report


def _functions(options):
    """Return what --call, --weights and --reference name."""
    given = {}
    for name in ("call", "weights", "reference"):
        text = getattr(options, name)
        if not text:
            continue
        if text == "none" and name == "reference":
            given[name] = False
        elif FILE.fullmatch(text):
            given[name] = load(text, options.time_limit)
        else:
            given[name] = evaluated(text, {"torch": torch}, options.time_limit)
    return given


def _configured(cls, texts):
    """Return a class whose constructor gives its own one object with settings."""
    config = Config(**dict(_setting(text, "--config") for text in texts))
    try:
        return cls(config)
    except Exception as error:
        raise UnusableError(
            f"{getattr(cls, '__name__', cls)}(config) raised "
            f"{type(error).__name__}: {error}. Settings given: "
            f"{', '.join(vars(config))}."
        ) from None


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m attncheck",
        description="Test an attention class by what it does, and name the mistake.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "target",
        help="path/to/file.py:ClassName, file.py:factory(), notebook.ipynb:ClassName "
        "or module:ClassName",
    )
    _add_building(parser.add_argument_group("how to build and call it"))
    _add_layer(parser.add_argument_group("what it does besides attention"))
    _add_report(parser.add_argument_group("what to report"))
    return parser


def _add_building(group):
    for name in ("d_in", "d_out", "context_length", "num_heads"):
        group.add_argument(f"--{name.replace('_', '-')}", type=int, metavar="N")
    group.add_argument("--dropout", type=float, metavar="P")
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another argument of the constructor; may be given several times",
    )
    group.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="for a constructor that takes one object with all settings",
    )
    group.add_argument("--call", metavar="CODE", help="'lambda module, x: …' or f.py:f")
    group.add_argument(
        "--weights", metavar="CODE", help="'lambda module: {…}' or f.py:f"
    )
    group.add_argument(
        "--reference", metavar="CODE", help="what is right: f.py:Class, or none"
    )
    group.add_argument("--layout", choices=("btd", "tbd"), default="btd")
    group.add_argument(
        "--time-limit", type=float, default=10.0, metavar="S", help="seconds per call"
    )


def _add_layer(group):
    group.add_argument(
        "--no-causal",
        dest="causal",
        action="store_false",
        help="every token may see all tokens",
    )
    pairings = ("on", "halves", "neighbors")
    group.add_argument("--rope", nargs="?", const="on", choices=pairings)
    group.add_argument("--rope-base", type=float, metavar="BASE")
    group.add_argument("--window", type=int, metavar="N")
    group.add_argument("--memory", type=int, metavar="N", help="cross-attention")
    group.add_argument("--alibi", action="store_true")
    norms = ("on", "layer", "rms", "l2")
    group.add_argument("--qk-norm", nargs="?", const="on", choices=norms)
    group.add_argument("--prenorm", nargs="?", const="on", choices=norms)
    group.add_argument("--softcap", type=float, metavar="CAP")
    group.add_argument("--sink", action="store_true", help="a learned score per head")
    group.add_argument("--documents", action="store_true", help="packed into one row")


def _add_report(group):
    group.add_argument("--select", default="", metavar="CODES", help="these alone")
    group.add_argument("--ignore", default="", metavar="CODES", help="all but these")
    group.add_argument(
        "--strict",
        action="store_true",
        help="fail on warnings, and where it could not be compared",
    )
    group.add_argument("--format", choices=list(FORMATS), default="text")
    group.add_argument("--output", metavar="FILE", help="write the report to a file")


def _setting(text, option):
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise UnusableError(f"{option} wants NAME=VALUE, but got {text!r}.")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value
