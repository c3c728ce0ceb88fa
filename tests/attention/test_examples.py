"""Every public docstring has an example, and each runs as it is shown."""

import doctest
import importlib
import inspect

import pytest

import attention
import attncheck
from tests.attention.public import LAYERS, PUBLIC

pytestmark = pytest.mark.package

# Modules whose functions are public. Those of attention.parallel need more processes:
# tests/attention/test_parallel.py runs parallel_worker.py, which is their example.
OPEN = ("convert", "functional", "installation")
METHODS = (attention.KeyValueCache.crop, attention.KeyValueCache.reorder)


def public_objects():
    yield from (pytest.param(PUBLIC[n], id=n) for n in attention.__all__)
    for name in OPEN:
        module = importlib.import_module(f"attention.{name}")
        for public, value in inspect.getmembers(module, inspect.isfunction):
            if value.__module__ == module.__name__ and not public.startswith("_"):
                yield pytest.param(value, id=f"{name}.{public}")

    for method in METHODS:
        yield pytest.param(method, id=method.__qualname__)
    for name in attncheck.__all__:
        if inspect.isfunction(getattr(attncheck, name)):
            yield pytest.param(getattr(attncheck, name), id=f"attncheck.{name}")


def examples_of(value):
    return doctest.DocTestFinder(recurse=False).find(value, value.__name__, globs={})


@pytest.mark.parametrize("value", public_objects())
def test_the_docstring_has_an_example_that_runs(value):
    # An empty namespace: what an example needs, it imports.
    (found,) = examples_of(value)
    assert found.examples, f"{value.__name__} has no example"
    said = []
    # Said, since it would otherwise take the -v of pytest for its own.
    doctest.DocTestRunner(verbose=False).run(found, out=said.append)
    assert said == []


@pytest.mark.parametrize("name", LAYERS)
def test_an_example_calls_the_layer(name):
    examples = doctest.DocTestParser().get_examples(PUBLIC[name].__doc__)
    code = " ".join(example.source for example in examples)
    assert f"attention.{name}(" in code
    assert "(x" in code or "torch.randn" in code


def test_an_example_that_is_wrong_is_seen():
    def wrong():
        pass

    wrong.__doc__ = ">>> 1 + 1\n3"
    (found,) = examples_of(wrong)
    said = []
    doctest.DocTestRunner(verbose=False).run(found, out=said.append)
    assert "Got:\n    2" in "".join(said)
