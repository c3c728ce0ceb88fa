"""Keeps what a class does to its process from reaching the caller."""

import contextlib
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NoReturn

import torch

# Functions that end or replace the process without any message.
ENDINGS = ("_exit", "abort", "execv", "execve", "execvp", "execvpe")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hide prints and warnings; give Python's own random state back."""
    state = random.getstate()
    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        warnings.catch_warnings(),
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            random.setstate(state)


@contextlib.contextmanager
def keep_process() -> Iterator[None]:
    """Let nothing end the process: what tries to raises SystemExit."""
    kept = {name: getattr(os, name) for name in ENDINGS if hasattr(os, name)}

    def refusal(name: str) -> Callable[..., NoReturn]:
        def refused(*arguments: object) -> NoReturn:
            given = ", ".join(map(repr, arguments))
            raise SystemExit(f"os.{name}({given})")

        return refused

    for name in kept:
        setattr(os, name, refusal(name))
    try:
        yield
    finally:
        for name, function in kept.items():
            setattr(os, name, function)


def settings() -> dict[str, Any]:
    """Return what a class might change for everybody, by name."""
    return {
        "the default dtype": torch.get_default_dtype(),
        "the default device": getattr(torch, "get_default_device", lambda: None)(),
        "the working directory": os.getcwd(),
        "the environment": dict(os.environ),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "the number of threads": torch.get_num_threads(),
        "the precision of float32": torch.get_float32_matmul_precision(),
        "the path of imports": list(sys.path),
    }


# Where a class may put another function in the place of PyTorch's.
PATCHED: tuple[ModuleType | type, ...] = (
    torch, torch.Tensor, torch.nn, torch.nn.functional, torch.nn.Module,
    torch.nn.Linear, torch.nn.Dropout, torch.nn.Softmax, torch.nn.Parameter,
    torch.autograd, torch.random, random, os.path,
)  # fmt: skip


@contextlib.contextmanager
def keep_settings() -> Iterator[Callable[[], list[str]]]:
    """Give settings of the process back; yield a function that names those changed."""
    before = settings()
    functions = [(owner, dict(vars(owner))) for owner in PATCHED]

    def patched() -> list[tuple[ModuleType | type, str, object]]:
        return [
            (owner, name, value)
            for owner, held in functions
            for name, value in held.items()
            if callable(value) and _replaced(vars(owner).get(name), value)
        ]

    def changed() -> list[str]:
        after = settings()
        told = [name for name in before if before[name] != after[name]]
        return told + [f"{owner.__name__}.{name}" for owner, name, _ in patched()]

    try:
        yield changed
    finally:
        for owner, name, value in patched():
            setattr(owner, name, value)
        _restore(before, changed())


def _replaced(now: object, before: object) -> bool:
    if now is before:
        return False
    # When PyTorch first needs its compiler, it wraps manual_seed itself.
    code = getattr(now, "__code__", None)
    theirs = code and code.co_filename.startswith(os.path.dirname(torch.__file__))
    return not (theirs and getattr(now, "__wrapped__", None) is before)


def _restore(before: dict[str, Any], names: list[str]) -> None:
    restore: dict[str, Callable[[Any], object]] = {
        "the default dtype": torch.set_default_dtype,
        "the default device": torch.set_default_device,
        "the working directory": os.chdir,
        "the environment": _set_environment,
        "deterministic algorithms": torch.use_deterministic_algorithms,
        "the number of threads": torch.set_num_threads,
        "the precision of float32": torch.set_float32_matmul_precision,
        "the path of imports": _set_path,
    }
    for name in names:
        restore[name](before[name])


def _set_environment(kept: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(kept)


def _set_path(kept: list[str]) -> None:
    sys.path[:] = kept
