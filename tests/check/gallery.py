"""The tables that the book's page shows, loaded from where they stand."""

import importlib.util
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "book" / "_gallery"


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


planted_bugs = load("planted_bugs")
correct_variants = load("correct_variants")
