"""What the command line does with one class: load, configure, check in a process."""

import ast
import re
from argparse import Namespace
from pathlib import Path
from typing import Any

import torch

from attncheck.errors import UnusableError
from attncheck.guesses import DEFAULTS
from attncheck.isolated import EndedError, isolated
from attncheck.loading import (
    attention_classes,
    evaluate,
    load,
    parts,
    withdraw_unfinished,
)
from attncheck.report import Report
from attncheck.run import run_check

FILE = re.compile(r"[^\s(]+\.(py|ipynb):[A-Za-z_][\w.]*(\(.*\))?")
CODES = ("call", "weights", "reference", "bias")
NUMBERS = ("window", "memory", "documents", "residual", "scale", "sink")


def classes_of(target: str) -> list[str]:
    """Return the targets that a file or folder stands for: each class of attention.

    A file is read, not run. One without such a class stands for itself, so that its
    report says what is missing; in a folder it is left out.
    """
    place, name = parts(target)
    path = Path(place)
    if name or not path.exists() or path.suffix not in ("", ".py", ".ipynb"):
        return [target]
    if path.is_dir():
        files = sorted([*path.rglob("*.py"), *path.rglob("*.ipynb")])
        files = [f for f in files if not any(p.startswith(".") for p in f.parts[1:])]
        found = [f"{f}:{name}" for f in files for name in attention_classes(f)]
        return found or [target]
    found = attention_classes(path)
    return [f"{place}:{name}" for name in found] or [target]


def report_on(options: Namespace, spare: float) -> Report:
    """Return the report on one class, made in a process of its own."""
    seconds = 6 * options.time_limit + spare
    try:
        return isolated(lambda: _check(options), seconds)
    except EndedError as error:
        return Report(options.target, usable=False, problem=str(error))


def _check(options: Namespace) -> Report:
    notes: list[str] = []
    try:
        own = dict(_parse_setting(text, "--set") for text in options.set)
        config = dict(_parse_setting(text, "--config") for text in options.config)
        given = {name: getattr(options, name, None) for name in DEFAULTS}
        given = {name: value for name, value in given.items() if value is not None}
        cls = load(options.target, options.time_limit, notes)
        given |= _read_functions(options)
        given |= _read_layer(options)
    except (UnusableError, ValueError) as error:
        return Report(options.target, usable=False, problem=str(error))
    causal = False if own.get("causal", True) is False else options.causal
    report = run_check(
        cls, own=own, own_config=config, causal=causal, layout=options.layout,
        time_limit=options.time_limit, **given,
    )  # fmt: skip
    withdraw_unfinished(report, notes)
    report.notes += notes
    return report


def _read_layer(options: Namespace) -> dict[str, Any]:
    """Return the options that say what the layer does.

    Raises:
        ValueError: the base of rotary positions is no number.
    """
    given: dict[str, Any] = {}
    for name in ("qk_norm", "prenorm"):
        value = getattr(options, name)
        if value:
            given[name] = True if value == "on" else value
    if options.rope:
        pairing, _, base = options.rope.partition(",")
        rope: dict[str, Any] = {} if pairing == "on" else {"pairing": pairing}
        try:
            rope |= {"base": float(base)} if base else {}
        except ValueError:
            raise ValueError(f"--rope {options.rope}: {base} is no base.") from None
        given["rope"] = rope or True
    for name in NUMBERS:
        if getattr(options, name):
            given[name] = getattr(options, name)
    return given


def _read_functions(options: Namespace) -> dict[str, Any]:
    """Return what --call, --weights, --reference and --bias name."""
    given: dict[str, Any] = {}
    for name in CODES:
        text = getattr(options, name)
        if not text:
            continue
        if text == "none" and name == "reference":
            given[name] = False
        elif FILE.fullmatch(text):
            given[name] = load(text, options.time_limit)
        else:
            given[name] = evaluate(text, {"torch": torch}, options.time_limit)
    return given


def _parse_setting(text: str, option: str) -> tuple[str, Any]:
    """Return (name, value) of NAME=VALUE.

    Raises:
        ValueError: it is something else.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"{option} takes NAME=VALUE, but got {text!r}.")
    first, _, kind = value.partition(".")
    dtype = getattr(torch, kind, None) if first == "torch" else None
    if isinstance(dtype, torch.dtype):
        return name, dtype
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value
