"""What readers are shown to type runs: examples in docstrings, snippets in api.md."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest
import torch
from torch import nn

import attention
import attncheck
from tests.attention.public import PUBLIC

pytestmark = pytest.mark.package

# Modules whose functions are public. Those of attention.parallel need more processes:
# tests/attention/test_parallel.py runs parallel_worker.py, which is their example.
OPEN = ("convert", "functional", "installation")
METHODS = (attention.KeyValueCache.crop, attention.KeyValueCache.reorder)


def public_objects():
    yield from PUBLIC.values()
    yield from METHODS
    for name in OPEN:
        module = importlib.import_module(f"attention.{name}")
        for public, value in inspect.getmembers(module, inspect.isfunction):
            if value.__module__ == module.__name__ and not public.startswith("_"):
                yield value
    values = (getattr(attncheck, name) for name in attncheck.__all__)
    yield from filter(inspect.isfunction, values)


@pytest.mark.parametrize(
    "value", dict.fromkeys(public_objects()), ids=lambda value: value.__qualname__
)
def test_the_docstring_has_an_example_that_runs(value):
    # An empty namespace: what an example needs, it imports.
    finder = doctest.DocTestFinder(recurse=False)
    (found,) = finder.find(value, value.__name__, globs={})
    assert found.examples, f"{value.__name__} has no example"
    said = []
    # Said, since it would otherwise take the -v of pytest for its own.
    doctest.DocTestRunner(verbose=False).run(found, out=said.append)
    assert said == []


# Snippets of the page "The package" -------------------------------------------------

PAGE = (Path(__file__).resolve().parents[2] / "book" / "api.md").read_text("utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def linear(prefix, d_out, d_in):
    layer = nn.Linear(d_in, d_out)
    return {f"{prefix}.{name}": t for name, t in layer.state_dict().items()}


def given():
    """The two checkpoints that the page takes for granted, with their real names."""
    rows = linear("c_attn", 2304, 768) | linear("c_proj", 768, 768)
    gpt2 = {  # its matrices are transposed
        f"transformer.h.0.attn.{name}": t.t() for name, t in rows.items()
    }
    place = "encoder.layer.0.attention"
    bert = linear(f"{place}.output.dense", 768, 768) | {"pooler.bias": torch.zeros(3)}
    for name in ("query", "key", "value"):
        bert |= linear(f"{place}.self.{name}", 768, 768)
    bert[f"{place}.output.LayerNorm.weight"] = torch.ones(768)
    return {"checkpoint": gpt2, "bert": bert}


@pytest.mark.parametrize("code", SNIPPETS, ids=range(len(SNIPPETS)))
@pytest.mark.filterwarnings("ignore")
def test_a_snippet_prints_what_its_comments_say(code, capsys):
    exec(compile(code, "book/api.md", "exec"), {"__name__": "snippet", **given()})
    promised = re.findall(r"^print\(.*\)  # (.+)$", code, re.MULTILINE)
    assert promised
    assert capsys.readouterr().out.splitlines() == promised


def test_the_class_that_is_checked_has_the_mistake_that_the_page_names():
    (code,) = (code for code in SNIPPETS if "attention.check(" in code)
    space = {"__name__": "snippet"}
    exec(compile(code, "book/api.md", "exec"), space)
    assert "scale" in " ".join(f.mistake for f in space["report"].findings)
