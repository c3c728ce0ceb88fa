"""Judges how tokens are projected, cut into heads and turned, by what went in."""

from collections.abc import Iterator
from itertools import combinations, product

import torch

from attncheck.following import _parts
from attncheck.recorded import Call, Step, Walk, _close


def _tied(walk: Walk) -> Iterator[Step]:
    """Look for one projection that makes what another one of the module is for."""
    held = {"queries": walk.query, "keys": walk.key, "values": walk.values}
    for (one, made), (other, same) in combinations(held.items(), 2):
        if made.shape != same.shape:
            continue
        ratio = (made * same).sum() / same.square().sum().clamp_min(1e-12)
        if not (ratio > 0 and _close(made, ratio * same)):
            continue
        if walk.idle or _leaves_a_part(walk, same):
            idle = walk.idle[0] if walk.idle else "a part of their projection"
            told = f"are the same numbers, and {idle} is never used."
            yield Step("projection_mixed_up", "projection",
                       f"The {one} and the {other} {told}")  # fmt: skip
            return


def _leaves_a_part(walk: Walk, rows: torch.Tensor) -> bool:
    """Whether these rows are a part of a projection of which another part is idle."""
    b, h, d = len(walk.x), walk.h, rows.shape[-1]
    used = [one.norm(dim=-1) for one in (walk.query, walk.key, walk.values)]
    for made, count in product((*walk.projected, *walk.memory), (2, 3)):
        if made.shape[1] != rows.shape[1] or made.shape[-1] != count * h * d:
            continue
        whole, each = made.chunk(count, dim=-1), made.unflatten(-1, (h, count, d))
        for parts in (whole, [each[..., i, :].flatten(-2) for i in range(count)]):
            sizes = [
                part.unflatten(-1, (h, d))
                .norm(dim=-1)
                .transpose(1, 2)
                .reshape(b * h, -1)
                for part in parts
            ]
            known = [any(_alike(one, size) for one in used) for size in sizes]
            if any(_alike(rows.norm(dim=-1), size) for size in sizes):
                return not all(known)
    return False


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether one tensor is the other, times a number."""
    return one.shape == other.shape and _times(one, other) is not None


def _borrowed(walk: Walk) -> Iterator[Step]:
    """Look for some numbers of the queries among the keys, or the other way round."""
    q, k = walk.query, walk.key
    if q.shape != k.shape or q.shape[1] != walk.t or not q.any():
        return
    ratio = (q * k).sum(dim=(0, 1)) / k.square().sum(dim=(0, 1)).clamp_min(1e-12)
    same = [bool(by > 0) and _close(q[..., j], by * k[..., j])
            for j, by in enumerate(ratio)]  # fmt: skip
    if any(same) and not all(same) and q[..., torch.tensor(same)].std() > 1e-6:
        told = f"{sum(same)} of {walk.d} numbers of each key are its query's."
        yield Step("projection_mixed_up", "positions", told)


def _cut(walk: Walk) -> Iterator[Step]:
    """Look for heads that were cut out across tokens."""
    b, t, d = len(walk.x), walk.t, walk.d
    made = [one for one in walk.before if one.dim() in (3, 4) and one.shape[-1] == d]
    for part in _parts(walk):
        heads = part.shape[-1] // d
        if part.shape[-1] % d or heads < 2 or heads == t:
            continue
        right = part.unflatten(-1, (heads, d)).transpose(1, 2)
        held = [
            one.transpose(1, 2) if one.shape[1] == t else one
            for one in made
            if one.shape in ((b, heads, t, d), (b, t, heads, d))
        ]
        flat = (b * heads, t, d)
        held += [one.view(b, heads, t, d) for one in made if one.shape == flat]
        viewed = right.reshape(b, heads, d, t).mT.flatten(0, 1)
        if d != t and any(_close(one, viewed) for one in (walk.query, walk.key)):
            yield Step("keys_viewed", "scores", "What is multiplied with the queries "
                       "has the keys' numbers in another order.")  # fmt: skip
            return
        if heads == 3 * walk.h:  # queries may hold the scale
            thirds = (part.reshape(b, 3, t, -1, d).transpose(2, 3),
                      part.reshape(b, 3, -1, t, d))  # fmt: skip
            if any(
                all(
                    made.numel() == each[:, i].numel()
                    and _close(each[:, i].flatten(0, 1), made)
                    for i, made in ((1, walk.key), (2, walk.values))
                )
                for each in thirds
            ):
                yield Step("heads_viewed", "split", "Queries, keys and values are "
                           "thirds of the tokens, not of each token.")  # fmt: skip
                return
        for wrong, name in (
            (part.reshape(b, heads, t, d), "heads_viewed"),
            (part.transpose(0, 1).reshape(b, heads, t, d), "heads_viewed"),
            (part.unflatten(-1, (d, heads)).permute(0, 3, 1, 2), "heads_interleaved"),
        ):
            if any(_close(one, wrong) for one in held) and not any(
                _close(one, right) for one in held
            ):
                # A layer that deals numbers out to heads does so with all of them.
                apart = name == "heads_interleaved" and _in_blocks(walk, made)
                yield Step(name, "split", "A projection is split so that a head "
                           "gets numbers of other heads and tokens.",
                           "error" if apart else None)  # fmt: skip
                return
        if d != t and any(_scrambled(one, right) for one in (walk.query, walk.key)):
            yield Step("heads_viewed", "split", "Queries or keys have the numbers of "
                       "their projection, in tokens that mix them.")  # fmt: skip
            return


def _in_blocks(walk: Walk, made: list[torch.Tensor]) -> bool:
    """Whether some projection is cut so that each head gets its neighbors."""
    d = walk.d
    for part in _parts(walk):
        heads = part.shape[-1] // d
        if part.shape[-1] % d or heads < 2 or heads == walk.t:
            continue
        cut = part.unflatten(-1, (heads, d))
        flat = cut.transpose(1, 2)
        if any(_close(one, cut) or _close(one, flat) for one in made):
            return True
    return False


def _scrambled(made: torch.Tensor, heads: torch.Tensor) -> bool:
    """Whether a head's tokens hold the right numbers, times one, of several tokens.

    The heads (b, h, t, d) are cut as meant. A token that is moved as a whole may be.
    """
    if made.numel() != heads.numel():
        return False
    _, h, _, d = heads.shape
    every = heads.transpose(1, 2).flatten(2).unflatten(-1, (d, h)).transpose(2, 3)
    whole, own = (one.flatten().sort().values for one in (heads, made))
    if not own.any() or _times(whole, own) is None:
        return False
    sizes = made.norm(dim=-1).flatten().sort().values
    usual = (one.norm(dim=-1).flatten().sort().values for one in (heads, every))
    return all(_times(one, sizes) is None for one in usual)


def _through_relu(walk: Walk) -> Iterator[Step]:
    """Look for queries, keys or values of which negative numbers are gone."""
    held = {"queries": walk.query, "keys": walk.key, "values": walk.values}
    for name, made in held.items():
        size = walk.h * made.shape[-1]
        if made.min() < 0 or not made.any() or made.shape[1] != walk.t:
            continue
        heads = made.view(len(walk.x), walk.h, *made.shape[1:])
        for part in _parts(walk):
            if part.shape[-1] == size and part.min() < 0 and _close(
                part.relu().unflatten(-1, (walk.h, -1)).transpose(1, 2), heads
            ):  # fmt: skip
                yield Step("projections_through_relu", "projection", f"The {name} are "
                           "a projection with 0 for what is negative.")  # fmt: skip
                return


def _normed_wrongly(walk: Walk, calls: list[Call]) -> Iterator[Step]:
    """Look for a norm before the scores that divides by something else than a size."""
    widths = {walk.d, walk.h * walk.d, walk.x.shape[-1]}
    for name, given, _, made in calls:
        one, by = given if len(given) == 2 else (made, made)
        if not ("mul" in name or "div" in name) or by.shape[-1:] != (1,):
            one, by = by, one
        if by.shape != (*one.shape[:-1], 1) or made.shape != one.shape:
            continue
        if ("mul" not in name and "div" not in name) or one.shape[-1] not in widths:
            continue
        # What softmax divides is positive.
        if one.shape[-1] < 4 or not (one < 0).any() or not made.isfinite().all():
            continue
        size = one.norm(dim=-1) / made.norm(dim=-1).clamp_min(1e-12)
        square, mean = one.square().mean(dim=-1), one.mean(dim=-1).abs()
        for told, wrong in (("mean", mean), ("mean square, without its root", square)):
            even = (size.square() - wrong.square()).std() < 1e-3 * size.square().mean()
            if even and size.std() > 0.05 * size.mean():
                yield Step("qk_norm_formula", "projection", "A norm divides numbers by "
                           f"their {told}.")  # fmt: skip
                return


def _shares(walk: Walk) -> Iterator[Step]:
    """Compare which query heads share a key with which share a value."""
    b, h, d = len(walk.x), walk.h, walk.d
    kinds = []
    for rows in (walk.key, walk.values):
        sizes = rows.norm(dim=-1).view(b, h, -1)  # turning keeps them
        if sizes.shape[-1] != walk.t or sizes.std() < 1e-2 * sizes.mean():
            return
        for part in _parts(walk):
            heads = part.shape[-1] // d
            if part.shape[-1] % d or heads < 2 or h % heads or heads == h:
                continue
            each = part.unflatten(-1, (heads, d)).norm(dim=-1).transpose(1, 2)
            if _close(sizes, each.repeat_interleave(h // heads, dim=1)):
                kinds.append("blocks")
            elif _close(sizes, each.repeat(1, h // heads, 1)):
                kinds.append("tiles")
            elif _one_alone(walk, each) and any(
                _close(sizes, each[:, g : g + 1].expand_as(sizes)) for g in range(heads)
            ):
                yield Step("rows_repeated", "split", f"All {h} query heads share one "
                           f"of {heads} heads.")  # fmt: skip
                return
    if len(kinds) == 2 and kinds[0] != kinds[1]:
        yield Step("groups_apart", "split", f"Query heads share keys in {kinds[0]}, "
                   f"and values in {kinds[1]}.")  # fmt: skip


def _one_alone(walk: Walk, each: torch.Tensor) -> bool:
    """Whether all heads share one of several, and nothing takes the others.

    The sizes of several heads (b, heads, t) are given. Where one makes keys and the
    other values, each is meant.
    """
    b, t = len(walk.x), walk.t
    taken = set()
    for rows in (walk.query, walk.key, walk.values):
        sizes = rows.norm(dim=-1).view(b, walk.h, -1)
        for place in range(each.shape[1]) if sizes.shape[-1] == t else ():
            one = each[:, place : place + 1]
            if any(_close(sizes[:, h : h + 1], one) for h in range(walk.h)):
                taken.add(place)
    return len(taken) == 1


def _turned(walk: Walk) -> Iterator[Step]:
    """Look at what became of queries and keys between the cut and the scores."""
    wide = [one for one in walk.before if one.dim() == 4 and one.shape[-1] == walk.d]
    for axis in (1, 2):
        if any(_normed_across(one, axis) for one in wide):
            whom = "heads" if walk.t == wide[0].shape[3 - axis] else "tokens"
            told = f"Queries or keys have the same size along the {whom}, "
            yield Step("qk_norm_axis", "positions", f"{told}not in each head.")
            return
    for name, made in (("queries", walk.query), ("keys", walk.key)):
        if _normed_across(made, -2):
            yield Step("qk_norm_axis", "positions", f"The {name} have the same size "
                       "along the tokens, not in each head.")  # fmt: skip
            return
        if made.shape[1] != walk.t:
            return
        for one in _cuts(walk, made):
            yield from _turns(name, one, made.view(one.shape))


def _normed_across(made: torch.Tensor, axis: int) -> bool:
    """Whether each number of a head has the same size over all tokens, or heads."""
    if made.shape[axis] < 2 or not made.is_floating_point():
        return False
    along, across = made.norm(dim=axis), made.norm(dim=-1)
    even = [one.std() < 1e-4 * one.mean() for one in (along, across)]
    return even == [True, False]


def _cuts(walk: Walk, made: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield what may have been turned into queries or keys: (b, h, t, d)."""
    b, h, t, d = len(walk.x), walk.h, walk.t, walk.d
    held = [part.unflatten(-1, (-1, d)).transpose(1, 2) for part in _parts(walk)
            if part.shape[-1] % d == 0]  # fmt: skip
    for one in walk.before:  # behind a norm of each head
        if one.dim() == 4 and one.shape[-1] == d and b == len(one) and t in one.shape:
            held.append(one.transpose(1, 2) if one.shape[1] == t else one)
    for one in held:
        if one.shape[2] == t and h % one.shape[1] == 0 and one.isfinite().all():
            wide = one.repeat_interleave(h // one.shape[1], dim=1)
            if not _close(wide.flatten(0, 1), made):
                yield wide


def _turns(name: str, one: torch.Tensor, made: torch.Tensor) -> Iterator[Step]:
    """Compare heads before and after they were turned, both (b, h, t, d)."""
    d = made.shape[-1]
    for turned in range(2, d, 2):
        rest, first = made[..., turned:], one[..., : d - turned]
        own, long = (part[..., :turned].norm(dim=-1) for part in (one, made))
        if not _close(own, long):
            continue  # no rotation, so it is of another part
        if _close(made, one.roll(-turned, dims=-1)):
            return  # nothing is lost
        if _close(rest, first) and not _close(rest, one[..., turned:]):
            told = f"The last {d - turned} numbers of each head of the {name} are its "
            yield Step("rope_rest_lost", "positions", f"{told}first once more.")
            return
    if len(one) * one.shape[2] < d + 4:
        return
    turns = []
    for head in range(one.shape[1]):  # one matrix for all tokens of a head
        left, right = one[:, head].flatten(0, 1), made[:, head].flatten(0, 1)
        turn = torch.linalg.lstsq(left.double(), right.double()).solution
        itself = torch.eye(d, dtype=turn.dtype)
        if not _close(left.double() @ turn, right.double()):
            return
        if not _close(turn @ turn.mT, itself):
            return
        turns.append(turn)
    if any(not _close(turns[0], each) for each in turns):
        told = f"All tokens of a head of the {name} are turned by the same angle, and "
        yield Step("rope_over_heads", "positions", f"{told}each head by another.")


def _times(one: torch.Tensor, other: torch.Tensor) -> float | None:
    """Return the number that makes the second tensor of the first, or None."""
    by = (one * other).sum() / one.square().sum().clamp_min(1e-12)
    return float(by) if _close(other, by * one) else None
