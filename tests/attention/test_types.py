"""What a type checker says: nothing about the package, and the truth to its users."""

import subprocess
import sys
from pathlib import Path

import pytest

import attention

pytest.importorskip("mypy", reason="mypy is not installed: no type was checked")

pytestmark = pytest.mark.site  # mypy reads PyTorch for a minute

ROOT = Path(attention.__file__).parents[1]
# Typed inside: every module of the package itself; of the checker, what a user calls.
# That the rest of it is annotated, ruff sees.
MODULES = [*sorted((ROOT / "attention").glob("*.py")), ROOT / "attncheck/__init__.py"]

RIGHT = """
import torch
import attention
from attention import FusedMultiHeadAttention, KeyValueCache, MultiHeadAttention
from attention import check, convert

layer = MultiHeadAttention(3, 4, 6, dropout=0.0, num_heads=2)
context: torch.Tensor = layer(torch.randn(1, 6, 3))
fused = FusedMultiHeadAttention(3, 4, 6, 0, num_heads=2, num_kv_heads=1)
cache = KeyValueCache()
step: torch.Tensor = fused(torch.randn(1, 1, 3), cache=cache)
state: dict[str, torch.Tensor] = convert.to_ours(layer, convert.OURS)
weights: torch.Tensor = attention.softmax_naive(torch.zeros(3))
heads: int = layer.head_dim
mask: torch.Tensor = layer.mask
fine: bool = check(MultiHeadAttention).ok
"""
WRONG = {
    'layer = attention.MultiHeadAttention(3, "4", 6, 0.0, 2)': 'expected "int"',
    "attention.SelfAttention_v1(3)": 'Missing positional argument "d_out"',
    'attention.SelfAttention_v2(3, 2)("x")': 'expected "Tensor"',
    "text: str = attention.CausalAttention(3, 2, 6, 0.0)(x)": 'has type "str"',
    "attention.FusedMultiHeadAttention(3, 4, 6, 0.0, 2)(x, True)": "KeyValueCache",
    "attention.simple_self_attention([1.0])": 'expected "Tensor"',
    "attention.softmax_wise(x)": 'has no attribute "softmax_wise"',
    "attention.convert.from_ours(x, attention.convert.TORCH)": "Mapping[str, Tensor]",
}


# What PyTorch imports and no signature of ours leads to: two thirds of what mypy would
# read, since installing the tests' tools brings what PyTorch may use.
UNREAD = """
torch._inductor torch._dynamo torch._functorch torch._higher_order_ops torch._decomp
torch._refs torch._export torch._library torch._meta_registrations torch._prims
torch._subclasses torch.ao torch.distributions torch.export torch.fx torch.jit
torch.onnx torch.optim torch.package torch.profiler torch.testing torch.utils numpy
onnx onnxscript sympy matplotlib IPython pytest _pytest
"""


@pytest.fixture(scope="module")
def said(request, tmp_path_factory):
    """What mypy says of all files at once: reading PyTorch is the long part."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "right.py").write_text(RIGHT, encoding="utf-8")
    wrong = ["import torch", "import attention", "import attention.convert"]
    wrong += ["x = torch.randn(1, 6, 3)", *WRONG]
    (folder / "wrong.py").write_text("\n".join(wrong), encoding="utf-8")
    files = [*MODULES, folder / "right.py", folder / "wrong.py"]
    unread = ",".join(f"{name}.*" for name in UNREAD.split())
    skip = f"[mypy]\n[mypy-{unread}]\nfollow_imports = skip\n"
    (folder / "mypy.ini").write_text(skip, encoding="utf-8")
    # Kept between runs where pytest keeps anything: the first takes four times as long.
    keeper = getattr(request.config, "cache", None)
    cache = keeper.mkdir("mypy") if keeper else folder / "cache"
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent",
         "--config-file", str(folder / "mypy.ini"), "--cache-dir", str(cache),
         *map(str, files)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 1, ran.stdout + ran.stderr
    return [line for line in ran.stdout.splitlines() if ": error: " in line]


def test_nothing_is_wrong_with_the_public_modules(said):
    assert [line for line in said if line.startswith(("attention", "attncheck"))] == []


def test_nothing_is_wrong_with_what_a_user_may_write(said):
    assert [line for line in said if "right.py" in line] == []


@pytest.mark.parametrize("code", WRONG)
def test_a_wrong_line_is_reported(code, said):
    number = list(WRONG).index(code) + 5
    about = [line for line in said if f"wrong.py:{number}: " in line]
    assert any(WRONG[code] in line for line in about), said
