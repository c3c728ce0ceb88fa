"""core.js against PyTorch: random cases go to Node, which compares every number."""

import json
import math
import os
import random
import re
from pathlib import Path

import torch

from coding_attention.labs import MultiHeadLab, base, draws
from coding_attention.labs.head_split import HeadSplitLab

HERE = Path(__file__).parent
F64 = torch.float64


def plain(x):
    """Tensors, numbers and what holds them as JSON; its three missing words as text."""
    if isinstance(x, torch.Tensor):
        return plain(x.tolist())
    if isinstance(x, dict):
        return {key: plain(value) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(value) for value in x]
    if isinstance(x, float) and not math.isfinite(x):
        return "nan" if math.isnan(x) else ("inf" if x > 0 else "-inf")
    return x


def case(call, expected, *args):
    return {"call": call, "args": plain(args), "expected": plain(expected)}


def numbers(g, *shape):
    """Normal numbers of a random size: from tiny to extreme."""
    size = 10.0 ** torch.randint(-3, 3, (1,), generator=g).item()
    return torch.randn(*shape, generator=g, dtype=F64) * size


def pick(g, low, high):
    return torch.randint(low, high + 1, (1,), generator=g).item()


def mask(g, t):
    """A causal mask, any mask, one with a row of nothing but hidden scores, or none."""
    kind = pick(g, 0, 3)
    if kind == 0:
        return None
    hidden = torch.ones(t, t, dtype=torch.bool).triu(diagonal=1)
    if kind > 1:
        hidden = torch.rand(t, t, generator=g) < 0.4
    if kind > 2:
        hidden[pick(g, 0, t - 1)] = True
    return hidden


def attention_case(g):
    t, d_in, d_k = pick(g, 1, 12), pick(g, 1, 16), pick(g, 1, 8)
    x, hidden = numbers(g, t, d_in), mask(g, t)
    weights = (
        torch.randn(3, d_in, d_k, generator=g, dtype=F64) if pick(g, 0, 2) else None
    )
    q, k, v = (x, x, x) if weights is None else (x @ W for W in weights)
    divisor = k.shape[-1] ** 0.5 if pick(g, 0, 1) else 1.0
    scores = q @ k.T / divisor
    if hidden is not None:
        scores = scores.masked_fill(hidden, -torch.inf)
    alpha = torch.softmax(scores, dim=-1)
    names = ("query", "key", "value")
    given = {
        "inputs": x,
        "projections": None
        if weights is None
        else dict(zip(names, weights, strict=True)),
        "divisor": divisor,
        "hidden": hidden,
    }
    expected = {"queries": q, "keys": k, "values": v, "raw": q @ k.T}
    expected |= {"scores": scores, "weights": alpha, "context": alpha @ v}
    return case("attention", expected, given)


def masked_case(g):
    t, d_in, d_k = pick(g, 1, 12), pick(g, 1, 8), pick(g, 1, 4)
    x = torch.randn(t, d_in, generator=g, dtype=F64)
    weights = torch.randn(3, d_in, d_k, generator=g, dtype=F64)
    part, diagonal = ("triu", "tril")[pick(g, 0, 1)], pick(g, -t, t)
    hidden = getattr(torch.ones(t, t, dtype=torch.bool), part)(diagonal=diagonal)
    fill = (-torch.inf, 0.0, -1e9)[pick(g, 0, 2)]
    place, renormalized = ("before", "after")[pick(g, 0, 1)], bool(pick(g, 0, 1))
    q, k, v = (x @ W for W in weights)
    scores = q @ k.T
    if place == "before":
        scores = scores.masked_fill(hidden, fill)
    alpha = torch.softmax(scores / d_k**0.5, dim=-1)
    if place == "after":
        alpha = alpha.masked_fill(hidden, fill)
    if renormalized:
        alpha = alpha / alpha.sum(dim=-1, keepdim=True)
    expected = {"scores": scores, "weights": alpha, "sums": alpha.sum(dim=-1)}
    expected["context"] = alpha @ v
    given = {
        "inputs": x,
        "projections": dict(zip(("query", "key", "value"), weights, strict=True)),
        "hidden": hidden,
        "fill": fill,
        "place": place,
        "renormalized": renormalized,
    }
    return [
        case("maskedAttention", expected, given),
        case("triangle", hidden, t, part, diagonal),
    ]


def softmax_case(g):
    row = numbers(g, pick(g, 1, 20)) * 10.0 ** pick(g, 0, 3)
    if pick(g, 0, 1):
        row[torch.rand(len(row), generator=g) < 0.3] = -torch.inf
    if pick(g, 0, 9) == 0:
        row[:] = -torch.inf
    return case("softmax", torch.softmax(row, dim=-1), row)


def dropout_case(g):
    t, p = pick(g, 1, 12), pick(g, 0, 18) / 20
    weights = torch.softmax(torch.randn(t, t, generator=g, dtype=F64), dim=-1)
    seed, count = pick(g, 1, 100_000), pick(g, 1, 9)
    kept = torch.stack([draws.kept(t, t, p, seed + n) for n in range(count)])
    dropped = weights * kept / (1 - p)
    # The layer itself, on ones: what stays is 1 / (1 - p), and no other number.
    layer = torch.nn.functional.dropout(torch.ones(99, dtype=F64), p).unique()
    assert set(layer.tolist()) <= {0.0, torch.tensor(1 / (1 - p), dtype=F64).item()}
    counts = kept.cumsum(dim=0)
    return [
        case("drawKept", kept[0], t, t, p, seed),
        case("countKept", counts, t, t, p, seed, count),
        case("dropout", dropped[0], weights, kept[0], p),
        case("meanDropout", dropped.mean(dim=0), weights, counts[-1], count, p),
    ]


def heads_case(g):
    h, d, t, d_in = pick(g, 1, 4), pick(g, 1, 4), pick(g, 1, 12), pick(g, 1, 16)
    off = [head for head in range(h) if pick(g, 0, 2) == 0]
    lab = MultiHeadLab(
        inputs=numbers(g, t, d_in), num_heads=h, d_head=d,
        token=pick(g, 0, t - 1), silenced=off, sharper=False,
    )  # fmt: skip
    found, one = lab.compute(), pick(g, 0, h - 1)
    out_proj = lab.modules()[1].out_proj
    heads = lab.heads[str(d)][:h]
    wide = {name: [row for head in heads for row in head[name]] for name in heads[0]}
    lab.close()
    return [
        case("wrapper", found["wrapper"], lab.inputs, heads),
        case("splitAttention", found["split"], lab.inputs, wide, h),
        case("causalHead", {"weights": found["weights"][one]}, lab.inputs, heads[one]),
        case("stackHeads", wide, heads),
        case(
            "headSums",
            {name: found[name] for name in ("added", "output")},
            found["split"][lab.token],
            out_proj.weight,
            out_proj.bias,
            h,
            off,
        ),
    ]


def split_case(g):
    d = (2, 4, 6, 8, 12)[pick(g, 0, 4)]
    h = [h for h in range(1, d + 1) if d % h == 0]
    lab = HeadSplitLab(
        batch=pick(g, 1, 2),
        num_tokens=pick(g, 1, 6),
        d_out=d,
        num_heads=random.choice(h),
        straight=bool(pick(g, 0, 1)),
    )
    found = lab.compute()
    lab.close()
    names = {"start": "x", "viewed": "view", "split": "transpose", "scores": "scores"}
    names |= {"back": "transpose back", "joined": "join"}
    expected = {}
    for ours, theirs in names.items():
        x = found[theirs]
        # PyTorch's stride along an axis of size 1 carries no meaning.
        expected[ours] = {"shape": list(x.shape)}
        if 1 not in x.shape:
            expected[ours]["strides"] = list(x.stride())
        if x.is_contiguous() and ours not in ("split", "back"):
            expected[ours]["data"] = x.flatten()
    sizes = (lab.batch, lab.num_tokens, lab.d_out, lab.num_heads)
    return case("splitSteps", expected, *sizes, lab.straight)


def measure_case(g):
    row = numbers(g, pick(g, 2, 40))
    weights = torch.softmax(row, dim=-1)
    derivative = torch.diag(weights) - torch.outer(weights, weights)
    seed, count = pick(g, 0, 2**31 - 1), pick(g, 1, 60)
    return [
        case("std", row.std(), row),
        case("entropy", torch.special.entr(weights).sum(), weights),
        case("gradientSize", derivative.norm(), weights),
        case("normals", draws.normals(seed, count + count % 2), seed, count),
        case("drawScores", draws.scores(seed, 2, 3, 5),
             {"seed": seed, "queries": 2, "keys": 3, "width": 5}),
    ]  # fmt: skip


def format_case(g):
    x = numbers(g, 1).item() * 10.0 ** pick(g, -3, 2)
    half = pick(g, -200, 200) / 32  # often right between two numbers of four decimals
    return [case("format", f"{x:.4f}", x), case("format", f"{half:.4f}", half)]


def all_cases():
    g = torch.Generator().manual_seed(2024)
    random.seed(2024)
    cases = [attention_case(g) for _ in range(900)]
    cases += [one for _ in range(300) for one in masked_case(g)]
    cases += [softmax_case(g) for _ in range(300)]
    cases += [one for _ in range(100) for one in dropout_case(g)]
    cases += [one for _ in range(40) for one in heads_case(g)]
    cases += [split_case(g) for _ in range(60)]
    cases += [one for _ in range(60) for one in measure_case(g)]
    # A hidden score is no part of the sum.
    words = "exp(1) / (exp(1) + exp(-0.5)) = 0.8176"
    cases.append(case("spellSoftmax", words, [1.0, -math.inf, -0.5], 0))
    return cases + [one for _ in range(50) for one in format_case(g)]


def test_core_equals_pytorch(node, tmp_path):
    cases = all_cases()
    assert len(cases) >= 2000
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(cases), encoding="utf-8")
    result = node(
        "--test",
        "--test-reporter=spec",
        HERE / "core.test.js",
        env={**os.environ, "CASES": str(path)},
    )
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]
    # Node exits with 0 when it finds no test, too.
    assert re.search(rf"cases {len(cases)}, largest relative difference", result.stdout)
    print(re.search(r"cases \d+, .*", result.stdout)[0])


def test_python_draws_are_uniform_and_normal():
    u, z = draws.uniform(7, 20_000), draws.normals(7, 20_000)
    assert abs(u.mean() - 0.5) < 0.01
    assert abs(u.var() - 1 / 12) < 0.002
    assert abs(z.mean()) < 0.02
    assert abs(z.std() - 1) < 0.02


def test_an_odd_count_of_normals_is_the_start_of_an_even_one():
    assert torch.equal(draws.normals(3, 5), draws.normals(3, 6)[:5])


def test_seeded_weights_leave_the_readers_numbers_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    base.projections()
    base.linear_projections()
    MultiHeadLab().compute()
    assert torch.equal(torch.rand(3), expected)
