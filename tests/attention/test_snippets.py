"""What the page "The package" tells a reader to type runs, and prints what it says."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

pytestmark = pytest.mark.package
BOOK = Path(__file__).resolve().parents[2] / "book"
PAGE = (BOOK / "api.md").read_text(encoding="utf-8")


def snippets():
    """Give each snippet with the heading that it is under."""
    heading = None
    for part in re.split(r"^(## .+)$", PAGE, flags=re.MULTILINE):
        if part.startswith("## "):
            heading = part[3:]
        for i, code in enumerate(re.findall(r"```python\n(.*?)```", part, re.DOTALL)):
            yield pytest.param(code, id=f"{heading} {i + 1}")


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


@pytest.mark.parametrize("code", snippets())
@pytest.mark.filterwarnings("ignore")
def test_a_snippet_prints_what_its_comments_say(code, capsys):
    exec(compile(code, "book/api.md", "exec"), {"__name__": "snippet", **given()})
    promised = re.findall(r"^print\(.*\)  # (.+)$", code, re.MULTILINE)
    assert promised
    assert capsys.readouterr().out.splitlines() == promised


def test_the_page_begins_with_what_people_come_for():
    assert re.findall(r"^## (.+)$", PAGE, re.MULTILINE)[:6] == [
        "Install",
        "A layer in a GPT-2 block",
        "Decode with a cache",
        "Load the weights of GPT-2",
        "Check your own class",
        "In your own model",
    ]
    assert len(list(snippets())) == 5


def test_the_class_that_is_checked_has_the_mistake_that_the_page_names():
    (code,) = (p.values[0] for p in snippets() if p.id == "Check your own class 1")
    space = {"__name__": "snippet"}
    exec(compile(code, "book/api.md", "exec"), space)
    assert isinstance(space["Mine"](3, 2), nn.Module)
    assert "scale" in " ".join(f.mistake for f in space["report"].findings)
