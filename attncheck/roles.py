"""Finds queries, keys, values and the output projection by what they do.

The output of one linear map is changed for one token. Where the attention weights
change in that token's row, the map makes queries; in its column, keys. Where they
stay and later outputs change, it makes values; where only that token's output does,
it stands behind attention.
"""

from typing import Any

import torch
from torch import Tensor

from attncheck.errors import Failure
from attncheck.numbers import changed
from attncheck.projections import Pair, Projections
from attncheck.subject import Subject
from attncheck.trace import Product, Seen, Watch

Parts = dict[str, list[Pair]]  # by role
ROLES = ("query", "key", "value")
T, PLACE = 5, 2  # tokens, and the one that is changed


def find_roles(subject: Subject) -> tuple[list[Projections], Seen]:
    """Return (readings of the weights, what was seen in forward)."""
    x = subject.tokens(b=1, t=T)
    if x.shape[1] != T:
        x = subject.tokens(b=1)
    module = subject.copy()
    watch = Watch(module)
    try:
        y = subject(x, module, mode=watch)
    except Failure:
        return [], watch.seen
    seen = watch.seen
    if not seen.products or x.shape[1] < 4:
        return [], seen
    parts: Parts = {"query": [], "key": [], "value": [], "out": []}
    for number, product in enumerate(seen.products):
        try:
            found = _roles_of(subject, x, number, product, y)
        except (Failure, RuntimeError, IndexError):
            return [], seen
        if set(found) > {"none"}:
            return [], seen  # some weights never act, and no reading may leave them out
        found.pop("none", None)
        for role, columns in found.items():
            every = len(columns) == product.weight.shape[0]
            weight = product.weight if every else product.weight[columns]
            pair = (weight, _cut(product.bias, columns))
            parts[role].append(pair)
    return _reading(subject, parts, seen), seen


def _roles_of(
    subject: Subject, x: Tensor, number: int, product: Product, y: Tensor
) -> dict[str, list[int]]:
    """Return {role: columns of this product's output}."""
    width = product.output.shape[-1]
    many = x.expand(width, -1, -1).contiguous()

    tokens_first = subject.layout == "tbd"

    def nudge(result: Tensor) -> Tensor:
        t = many.shape[1]
        flat = result.dim() == 2 and len(result) == width * t
        if not flat and (result.dim() != 3 or result.shape[tokens_first] != width):
            raise IndexError("the sequences are not where they are looked for")
        sizes = (t, width, width) if tokens_first else (width, t, width)
        change = result.new_zeros(sizes if flat else result.shape)
        each = torch.arange(width)
        where = (PLACE, each, each) if tokens_first else (each, PLACE, each)
        change[where] = 0.5 + result.detach().abs().max()
        return change.view(result.shape)

    one, other = subject.copy(), subject.copy()
    plain, moved = Watch(one), Watch(other, (number, nudge))
    still = subject(many, one, mode=plain)
    after = subject(many, other, mode=moved)
    found: dict[str, list[int]] = {}
    for column in range(width):
        kind = _kind(
            column, plain.seen, moved.seen, still, after, width, subject.layer.memory
        )
        found.setdefault(kind, []).append(column)
    return found


def _kind(
    column: int,
    before: Seen,
    after: Seen,
    y: Tensor,
    z: Tensor,
    width: int,
    keys: int | None = None,
) -> str:
    rows = _changed_rows(y[column], z[column])
    for one, two in zip(before.fused, after.fused, strict=False):
        for role, a, b in zip(ROLES, one, two, strict=True):
            if changed(_of(a, column, width), _of(b, column, width)):
                return role
    for (_, still), (_, moved) in zip(before.softmaxes, after.softmaxes, strict=False):
        a, b = _of(still, column, width), _of(moved, column, width)
        if a.shape[-1] == (keys or a.shape[-2]) and changed(a, b):
            rows = _changed_rows(a.flatten(0, -3).transpose(0, 1),
                                 b.flatten(0, -3).transpose(0, 1))  # fmt: skip
            return "query" if rows == [PLACE] else "key"
    if not rows:
        return "none"
    return "out" if rows == [PLACE] else "value"


def _of(tensor: Tensor, column: int, width: int) -> Tensor:
    """Return what belongs to one sequence of the batch, with an axis before."""
    if tensor.shape[0] % width:
        raise IndexError
    each = tensor.shape[0] // width
    return tensor[column * each : (column + 1) * each]


def _changed_rows(a: Tensor, b: Tensor) -> list[int]:
    """Return the indices along the first axis where two tensors differ."""
    return [i for i in range(len(a)) if changed(a[i], b[i])]


def _cut(bias: Tensor | None, columns: list[int]) -> Tensor | None:
    return None if bias is None else bias[columns]


def _reading(subject: Subject, parts: Parts, seen: Seen) -> list[Projections]:
    """Join the parts of each role; return a list with one reading, or none."""
    pairs: dict[str, Any] = {}
    if len(parts["out"]) == 1 and not any(parts[role] for role in ROLES):
        learned = sum(1 for _ in subject.pristine.parameters())
        if learned == 1 + (parts["out"][0][1] is not None):
            itself = torch.eye(subject.sizes["d_in"]), None  # all else is given
            parts = parts | {role: [itself] for role in ROLES}
    for role in ROLES:
        if not parts[role]:
            return []
        pairs[role] = _joined(parts[role])
        if pairs[role] is None:
            return []
    per_head = len(parts["query"]) > 1
    # A number of heads that was asked for is to be kept.
    asked = subject.sizes.get("num_heads")
    seen_heads = _heads_seen(seen, subject.layer.memory)
    h = len(parts["query"]) if per_head else asked or seen_heads
    width = pairs["query"][0].shape[0]
    if not h or width % h:
        return []
    out = [pair for pair in parts["out"]]
    last = out[0] if out and out[0][0].shape[1] % (width // h) == 0 else None
    return [Projections(**pairs, out=last, num_heads=h, per_head=per_head)]


def _joined(pairs: list[Pair]) -> Pair | None:
    weights, biases = zip(*pairs, strict=True)
    if len({w.shape[1] for w in weights}) != 1:
        return None
    bias = None if any(b is None for b in biases) else torch.cat(biases)
    return torch.cat(weights), bias


def _heads_seen(seen: Seen, keys: int | None) -> int | None:
    """Return how many heads the attention weights of one sequence have."""
    for query, *_ in seen.fused:
        return query.shape[-3] if query.dim() == 4 else 1
    for _, weights in seen.softmaxes:
        t, t_k = weights.shape[-2:]
        if t_k == (keys or t):
            return max(weights.numel() // (t * t_k), 1)
    return None
