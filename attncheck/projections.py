"""Finds the query, key, value and output weights inside somebody's module."""

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor, nn

from attncheck.guesses import size_held
from attncheck.modules import duplicate

# A weight, outputs by inputs, and its bias, if it has one.
Pair = tuple[Tensor, Tensor | None]
# Names in use, without underscores and in lower case.
_WORDS = {
    "query": "q query queries wq wquery qproj queryproj toq lq qry",
    "key": "k key keys wk wkey kproj keyproj tok lk",
    "value": "v value values wv wvalue vproj valueproj tov lv",
    "out": "outproj oproj cproj proj wo o toout out output outputproj fcout wout "
    "weightout dense projection outlinear linearout fc wproj ow",
    "qkv": "cattn qkv inproj qkvproj toqkv wqkv querykeyvalue inprojweight qkvweight",
    "kv": "kv kvproj tokv wkv",
    # Keys and values from one short vector, and the parts with rotary positions.
    "down": "wdkv dkv kvdown downkv kvdownproj wkvdown tolatent latent",
    "up_key": "wuk uk kup upk kupproj wkup upkey",
    "up_value": "wuv uv vup upv vupproj wvup upvalue",
    "rope_query": "wqr qr qrope ropeq ropequery wqrope qropeproj",
    "rope_key": "wkr kr krope ropek ropekey wkrope kropeproj",
    "heads": "heads attnheads attentionheads attns",
}
LATENT = {"query", "down", "up_key", "up_value", "rope_query", "rope_key"}
NAMES = {role: set(names.split()) for role, names in _WORDS.items()}
# Other names combine a role's name with one of these before or behind it.
_BEFORE = (
    "to|w|weights?|fc|lin|linear|proj|layer|attn|att|self|all|get|compute|m|mat|embed"
)
_BEHIND = (
    "w|proj|projection|projector|lin|linear|layer|fc|weights?|mat|matrix|transform|net|"
    "map|mapping|heads?|vecs?|vectors?|embed|embedding|dense|gen|generator|b"
)
MADE = {
    role: re.compile(f"({_BEFORE})*({name})(({_BEHIND})s?)*")
    for role, name in (
        ("query", "q|qs|query|queries"),
        ("key", "k|ks|key|keys"),
        ("value", "v|vs|val|vals|value|values"),
        ("out", "o|out|output"),
    )
}


@dataclass(frozen=True)
class Projections:
    """The weights of one attention layer, each as (weight (out, in), bias or None).

    Attributes:
        query, key, value: the projections; with grouped heads, keys and values
            are narrower.
        out: the output projection or None.
        num_heads: how many heads the queries are split into.
        per_head: whether the class keeps a list of separate heads.
        rope_share: the part of a head that carries rotary positions, if the weights
            say so: that part of queries and keys comes first.
        latent: the width of the vector that keys and values are made from, if any.
        swapped: (name, projection) of keys and values with the maps up from their
            latent swapped.
    """

    query: Pair
    key: Pair
    value: Pair
    out: Pair | None = None
    num_heads: int = 1
    per_head: bool = False
    rope_share: Fraction | None = None
    latent: int | None = None
    swapped: tuple[tuple[str, Pair], ...] = ()

    def double(self) -> "Projections":
        """Return the same weights in float64, on the CPU."""

        def move(pair: Pair) -> tuple[Any, ...]:
            return tuple(None if w is None else w.cpu().double() for w in pair)

        moved: dict[str, Any] = {}
        for role in ("query", "key", "value", "out"):
            pair = getattr(self, role)
            moved[role] = pair and move(pair)
        moved["swapped"] = tuple((name, move(pair)) for name, pair in self.swapped)
        return replace(self, **moved)

    @property
    def d_in(self) -> int:
        """Width of a token on the way in."""
        return self.query[0].shape[1]

    @property
    def d_head(self) -> int:
        """Width of one head."""
        return self.query[0].shape[0] // self.num_heads


def from_adapter(given: Any) -> Projections:
    """Make :class:`Projections` from the dictionary that a reader's function returns.

    Raises:
        ValueError: an entry is missing or no tensor.
    """
    missing = {"query", "key", "value"} - set(given)
    if missing:
        raise ValueError(
            f"weights(module) must return a dictionary with query, key and value, "
            f"but got {sorted(given)}. Add {', '.join(sorted(missing))}."
        )
    pairs: dict[str, Any] = {}
    for role in ("query", "key", "value", "out"):
        entry = given.get(role)
        if isinstance(entry, Tensor) and entry.dim() == 2:
            entry = entry, None  # given as (out, in), so it must not be transposed
        pairs[role] = None if entry is None else _pair(entry)
        if entry is not None and pairs[role] is None:
            raise ValueError(
                f"weights(module)['{role}'] must be a weight (out, in), a pair of "
                f"weight and bias, or an nn.Linear, but got {type(entry).__name__}."
            )
    return Projections(**pairs, num_heads=given.get("num_heads", 1))


def find(
    module: nn.Module, num_heads: int | None = None, d_in: int | None = None
) -> list[Projections]:
    """Return the ways in which the module's weights can be read, likely ones first.

    A square weight may stand either way round, and a combined one may hold its parts
    in two orders, so there can be several. The list is empty when the names are
    unknown.
    """
    for part in module.modules():
        members = _members(part, d_in)
        heads = members.get("heads") or _listed_heads(part, num_heads)
        if isinstance(heads, nn.ModuleList | list | tuple) and len(heads):
            found = _from_heads(heads, members.get("out", _left(part)), d_in)
        else:
            h = num_heads or size_held(part, "num_heads")
            h = h or size_held(module, "num_heads") or 1
            found = _from_layer(members, h, d_in)
            rest = None if "out" in members else _left(part, members.values())
            if found and rest is not None:
                more = _from_layer(members | {"out": rest}, h, d_in)
                found = [*more, *found]
        if found:
            return found
    return []


def _listed_heads(part: nn.Module, num_heads: int | None) -> nn.ModuleList | None:
    """Return a list of modules that is called like heads, or has as many of them."""
    for name, child in part.named_children():
        if not isinstance(child, nn.ModuleList) or len(child) < 2:
            continue
        alike = len({type(one) for one in child}) == 1 and not isinstance(
            child[0], nn.Linear
        )
        if alike and (len(child) == num_heads or re.search("head|att", name.lower())):
            return child
    return None


def _left(part: nn.Module, but: Iterable[Any] = ()) -> nn.Linear | None:
    """Return the one linear layer of a module that isn't among some others."""
    taken = {id(one) for one in but}
    left = [one for one in part.children()
            if isinstance(one, nn.Linear) and id(one) not in taken]  # fmt: skip
    return left[0] if len(left) == 1 else None


def _members(part: nn.Module, d_in: int | None) -> dict[str, Any]:
    """Return the part's weights and layers by their role.

    Names in use come first, then those that are made of them, then what stands alone.
    """
    everything: dict[str, Any] = dict(part.named_children())
    everything |= dict(part.named_parameters(recurse=False))
    # Lists and plain tensors are not registered, and may hold weights all the same.
    for name, value in vars(part).items():
        if isinstance(value, list | Tensor):
            everything.setdefault(name, value)
    plain = {name.replace("_", "").lower(): one for name, one in everything.items()}
    members: dict[str, Any] = {}
    for role, names in NAMES.items():
        found = [one for name, one in plain.items() if name in names]
        members |= {role: found[0]} if found else {}
    if isinstance(members.get("qkv"), Tensor):
        members["qkv"] = (members["qkv"], everything.get("in_proj_bias"))
    for role, pattern in MADE.items():
        found = [one for name, one in plain.items() if pattern.fullmatch(name)]
        if role not in members and len(found) == 1:
            members[role] = found[0]
    if not members.keys() - {"out"}:
        sole = _left(part, members.values())
        if sole is not None and sole.weight.shape[1] == d_in:
            members |= {} if len(sole.weight) % 3 else {"qkv": sole}
    return members


def _from_heads(heads: Iterable[Any], out: Any, d_in: int | None) -> list[Projections]:
    """Join separate heads into one wide projection: the same function."""
    each = [find(head, 1, d_in) for head in heads if isinstance(head, nn.Module)]
    if not each or not all(each):
        return []
    wide: dict[str, Any] = {
        role: (
            torch.cat([getattr(one[0], role)[0] for one in each]),
            _join_biases([getattr(one[0], role)[1] for one in each]),
        )
        for role in ("query", "key", "value")
    }
    out = None if out is None else _pair(out)
    return [Projections(**wide, out=out, num_heads=len(each), per_head=True)]


def _join_biases(biases: list[Any]) -> Tensor | None:
    return None if any(bias is None for bias in biases) else torch.cat(biases)


def _from_layer(
    members: dict[str, Any], num_heads: int, d_in: int | None
) -> list[Projections]:
    out = _pair(members["out"]) if "out" in members else None
    if {"query", "key", "value"} <= set(members):
        roles: dict[str, Any] = {
            r: _pair(members[r], d_in) for r in ("query", "key", "value")
        }
        if None in roles.values():
            return []
        slices = getattr(members["query"], "weight", members["query"])
        if isinstance(slices, Tensor) and slices.dim() == 3:  # one for each head
            stands = slices.shape[0] == d_in != slices.shape[1]
            num_heads = slices.shape[1 if stands else 0]
        if num_heads > 1 and all(
            w.shape[1] * num_heads == d_in == w.shape[0] * num_heads
            for w, _ in roles.values()
        ):  # one small weight for all heads
            roles = {
                role: _for_each_head(weight, bias, num_heads)
                for role, (weight, bias) in roles.items()
            }
        plain = Projections(**roles, out=out, num_heads=num_heads)
        if plain.query[0].shape[0] % num_heads:
            return []
        return [plain, *_turned(plain, members)]
    if set(members) >= LATENT:
        return _from_latent(members, out, num_heads)
    if "qkv" in members:
        return _from_combined(_pair(members["qkv"], d_in), out, num_heads)
    if {"query", "kv"} <= set(members):
        query, both = _pair(members["query"], d_in), _pair(members["kv"], d_in)
        if query is None or both is None:
            return []
        key, value = _cut(both, 2)
        return [Projections(query, key, value, out, num_heads)]
    return []


def _for_each_head(weight: Tensor, bias: Tensor | None, h: int) -> Pair:
    """Return the wide projection in which each head is projected alike."""
    return torch.block_diag(*[weight] * h), None if bias is None else bias.repeat(h)


def _from_latent(
    members: dict[str, Any], out: Pair | None, h: int
) -> list[Projections]:
    """Multiply the two halves of low-rank projections, and join the rotary parts."""
    given: dict[str, Any] = {role: _pair(entry) for role, entry in members.items()}
    if None in given.values():
        return []
    query, down = given["query"], given["down"]
    turned, r = given["rope_key"], len(down[0])
    try:
        key, value = (_chained(given[r], down) for r in ("up_key", "up_value"))
        d_rope = turned[0].shape[0]
        query = _beside(given["rope_query"], query, h)
        turned = _repeated(turned, h)
        nothing: Any = tuple(w if w is None else torch.zeros_like(w) for w in turned)
        swapped = (
            ("k by v", _beside(turned, value, h)),
            ("v by k", _beside(nothing, key, h)),
        )
        key, value = _beside(turned, key, h), _beside(nothing, value, h)
        if out is not None:
            wide = out[0].T.unflatten(0, (h, -1))
            none = wide.new_zeros(h, d_rope, wide.shape[-1])
            out = torch.cat([none, wide], dim=1).flatten(0, 1).T, out[1]
        share = Fraction(d_rope, key[0].shape[0] // h)
    except RuntimeError:
        return []  # the sizes don't fit, so the names mean another layer
    kinds: dict[str, Any] = {"rope_share": share, "latent": r, "swapped": swapped}
    return [Projections(query, key, value, out, h, **kinds)]


def _chained(second: Pair, first: Pair) -> Pair:
    """Return one linear map for two in a row."""
    weight, bias = second[0] @ first[0], second[1]
    if first[1] is not None:
        more = second[0] @ first[1]
        bias = more if bias is None else bias + more
    return weight, bias


def _repeated(pair: Pair, h: int) -> tuple[Any, ...]:
    """Return what all heads share once for each."""
    return tuple(None if w is None else torch.cat([w] * h) for w in pair)


def _beside(one: Pair, other: Pair, h: int) -> Pair:
    """Join two projections head by head."""
    pairs = [(pair[0].unflatten(0, (h, -1)), pair[1]) for pair in (one, other)]
    weight = torch.cat([w for w, _ in pairs], dim=1).flatten(0, 1)
    if one[1] is None and other[1] is None:
        return weight, None
    biases = [
        w.new_zeros(w.shape[:2]) if b is None else b.unflatten(0, (h, -1))
        for w, b in pairs
    ]
    return weight, torch.cat(biases, dim=1).flatten()


def _turned(plain: Projections, members: dict[str, Any]) -> list[Projections]:
    """Square plain weights may be used as x @ W or as x @ W.T: offer the other way."""
    square = plain.query[0].shape[0] == plain.query[0].shape[1]
    if not square or not isinstance(members["query"], Tensor):
        return []
    pairs = {role: getattr(plain, role) for role in ("query", "key", "value")}
    turned: dict[str, Any] = {r: (w.T, bias) for r, (w, bias) in pairs.items()}
    return [replace(plain, **turned)]


def _from_combined(
    pair: Pair | None, out: Pair | None, num_heads: int
) -> list[Projections]:
    if pair is None:
        return []
    weight, bias = pair
    width = weight.shape[1]
    rows = weight.shape[0]
    # Grouped heads in one weight: h query heads and two times fewer others.
    d_out = rows // 3 if out is None else out[0].shape[1]
    if d_out % num_heads or (rows - d_out) % 2 or rows <= d_out:
        return []
    sizes = [d_out, (rows - d_out) // 2, (rows - d_out) // 2]
    parts = zip(weight.split(sizes), _split_bias(bias, sizes), strict=True)
    query, key, value = parts
    found = [Projections(query, key, value, out, num_heads)]
    if sizes[0] == sizes[1]:  # head by head: each with its query, key and value
        d_head = d_out // num_heads
        mixed = weight.view(num_heads, 3, d_head, width)
        biases: Any = [None] * 3 if bias is None else bias.view(num_heads, 3, d_head)
        query, key, value = (
            (
                mixed[:, i].reshape(d_out, width),
                None if bias is None else biases[:, i].reshape(d_out),
            )
            for i in range(3)
        )
        found.append(Projections(query, key, value, out, num_heads))
    return found


def _cut(pair: Pair, count: int) -> Iterator[Pair]:
    sizes = [pair[0].shape[0] // count] * count
    return zip(pair[0].split(sizes), _split_bias(pair[1], sizes), strict=True)


def _split_bias(bias: Tensor | None, sizes: list[int]) -> Sequence[Tensor | None]:
    return [None] * len(sizes) if bias is None else bias.split(sizes)


def _pair(entry: Any, d_in: int | None = None) -> Pair | None:
    """Turn a layer, a tensor or a pair into (weight (out, in), bias or None)."""
    if isinstance(entry, nn.Sequential):
        linear = [layer for layer in entry if isinstance(layer, nn.Linear)]
        return _pair(linear[0]) if len(linear) == 1 else None
    if isinstance(entry, nn.ModuleList):
        return _from_list(entry, d_in)
    if isinstance(entry, nn.Module) and type(entry) is not nn.Linear:
        acting = _acting(entry, d_in)
        if acting is not None:
            return acting
    if isinstance(entry, nn.Linear):
        return entry.weight.detach(), _detached(entry.bias)
    if isinstance(entry, tuple) and len(entry) == 2:
        weight: Any = entry[0].detach()
        if weight.dim() == 3:  # one slice, and one bias, for each head
            made: Any = _plain(weight, d_in)
            if made[0].shape[0] != entry[1].numel():  # the output's, by head
                made = weight.flatten(0, 1).T, None
            return made[0], entry[1].detach().flatten()
        turned = d_in is not None and weight.shape[0] == d_in != weight.shape[1]
        return (weight.T if turned else weight), _detached(entry[1])
    if isinstance(entry, nn.Module) and hasattr(entry, "weight"):
        # The Conv1D of GPT-2's published code: a linear layer stored transposed.
        weight, bias = entry.weight, getattr(entry, "bias", None)
        if weight.dim() == 3 and isinstance(bias, Tensor):
            return _pair((weight, bias), d_in)
        return (weight.detach().T, _detached(bias)) if weight.dim() == 2 else None
    if isinstance(entry, Tensor):
        return _plain(entry.detach(), d_in)
    return None


def _from_list(layers: nn.ModuleList, d_in: int | None) -> Pair | None:
    """Join linear layers, one for each head, that take the tokens or their parts."""
    each = [_pair(one) for one in layers if isinstance(one, nn.Linear)]
    pairs: list[Any] = [one for one in each if one is not None]
    if not pairs or len(pairs) < len(layers):
        return None
    weights = [weight for weight, _ in pairs]
    parts = len(pairs) > 1 and sum(w.shape[1] for w in weights) == d_in
    wide = torch.block_diag(*weights) if parts else torch.cat(weights)
    return wide, _join_biases([bias for _, bias in pairs])


def _acting(layer: nn.Module, d_in: int | None) -> Pair | None:
    """Return the linear map that a module of any kind computes token by token.

    As one with a low-rank part beside its weight does, or one written by hand.
    """
    held = [p for p in layer.parameters() if p.dim() == 2]
    widths = [d_in, *(size for p in held for size in p.shape)]
    for width in dict.fromkeys(w for w in widths if w and held):
        tokens = torch.eye(width).to(held[0])
        tokens = torch.cat([tokens, tokens[:1] * 0, tokens.cumsum(dim=1) * 0.3])[None]
        with contextlib.suppress(Exception), torch.no_grad():
            made = duplicate(layer).eval()(tokens)[0]
            weight = (made[:width] - made[width]).T
            right = tokens[0] @ weight.T + made[width]
            if torch.allclose(made, right, 1e-3, 1e-5 * float(right.abs().max())):
                return weight, made[width] if made[width].any() else None
    return None


def _plain(weight: Tensor, d_in: int | None) -> Pair | None:
    if weight.dim() == 3:  # one slice for each head
        if weight.shape[0] == d_in and weight.shape[1] != d_in:
            return weight.flatten(1).T, None  # (d_in, h, d_head) -> (d_out, d_in)
        # (h, d_in, d_head) -> (d_out, d_in)
        return weight.transpose(1, 2).flatten(0, 1), None
    if weight.dim() != 2:
        return None
    # x @ W wants d_in rows; a weight with d_out rows is used as x @ W.T.
    stands = d_in is None or weight.shape[0] == d_in
    return (weight.T if stands else weight), None


def _detached(bias: Tensor | None) -> Tensor | None:
    return None if bias is None else bias.detach()
