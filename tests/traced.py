"""Run tests while every module of the product holds its own shape comments.

    python -m tests.traced coding_attention tests/coding_attention/models

Prints what is wrong in a package or in modules, a line each: a comment that a run has
shown to be false, one in which a letter may stand for another, and one that no test of
those named has run.
"""

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder, SourceFileLoader
from itertools import chain

import pytest

from tests.shape_comments import Reader, comments, run

NAMES = tuple(sys.argv[1].split(","))  # packages or modules
READERS = {}


class _Traced(SourceFileLoader):
    def exec_module(self, module):
        source = self.get_data(self.path).decode("utf-8")
        if not comments(source):
            super().exec_module(module)
            if self.name == "attncheck.checking":
                # What a process of its own reads would be lost with it.
                module.isolated = lambda function, seconds: function()
            return
        READERS[module.__name__] = reader = Reader(module.__name__)
        run(source, module.__name__, vars(module), reader)


class _Finder(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if not f"{name}.".startswith(tuple(f"{n}." for n in NAMES)):
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Traced(name, spec.origin)
        return spec


def main():
    sys.meta_path.insert(0, _Finder())
    # Else pytest would load the modules of a plugin for itself, past the finder.
    plain = ["--assert=plain", "-q", "-p", "no:cacheprovider"]
    ended = pytest.main([*plain, *sys.argv[2:]])
    told = ([*r.wrong(1 / 20), *r.twins()] for r in READERS.values())
    print("READ", *READERS)
    print("WRONG", *chain.from_iterable(told), sep="\n")
    return ended


if __name__ == "__main__":
    sys.exit(main())
