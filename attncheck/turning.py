"""Reads rotary positions off queries and keys, whatever else a layer does.

Between two captured tensors, each token's numbers go through one matrix that all
sequences and heads share. What that matrix is says which numbers are rotated, by which
angles and in which direction, with no need to know norms, scales, masks or biases.
"""

from collections.abc import Iterator
from itertools import product

import torch

from attncheck.following import _parts
from attncheck.projected import _cuts
from attncheck.recorded import Step, Walk, _close

TOLERANCE = 1e-3
WIDEST = 64  # numbers of a head; a matrix of 256 takes a second to solve for
SPARE = 4  # rows more than numbers, so that a fit proves something


def turning(walk: Walk, bases: list[float]) -> Iterator[Step]:
    """Yield the mistakes in what turns queries and keys.

    Args:
        walk: a forward pass with many sequences.
        bases: what the constructor was given as the base of the angles.
    """
    if walk.key.shape[1] != walk.t or walk.d > WIDEST:
        return
    sides = {n: _turns(walk, m) for n, m in (("queries", walk.query),
                                             ("keys", walk.key))}  # fmt: skip
    for name, turns in sides.items():
        if turns is not None and (wrong := _laid_out_wrongly(turns)):
            told = f"What becomes of the {name} of each token is {wrong[1]}."
            yield Step(wrong[0], "positions", told)
            return
    for name, made in (("queries", walk.query), ("keys", walk.key)):
        if sides[name] is None and _starts_apart(walk, made):
            told = f"The first token's {name} are turned by another angle in each head."
            yield Step("rope_over_heads", "positions", told)
            return
    q, k = sides.values()
    if q is None or k is None or not (_moves(q) or _moves(k)):
        return
    if _moves(q) != _moves(k):
        name = "queries" if _moves(q) else "keys"
        v = _turns(walk, walk.values) if walk.values.shape == walk.key.shape else None
        mistake = "rope_on_one_side"
        if v is not None and _moves(v):
            name, mistake = f"{name} and values", "rope_on_values"
        yield Step(mistake, "positions", f"Only {name} are rotated by the position.")
    elif _same(q, k):
        yield from _angles_of(q, bases, walk.h)
    elif _same(q, k.mT):
        told = "Queries and keys are rotated in opposite directions."
        yield Step("rope_directions", "positions", told)
    elif _same(q[:-1], k[1:]) or _same(q[1:], k[:-1]):
        told = "Queries are rotated as keys are, one position further."
        yield Step("rope_offset", "positions", told)


def _turns(walk: Walk, made: torch.Tensor) -> torch.Tensor | None:
    """Return the matrix of each token, (t, d, d), times one number; None: there's none.

    It is the same for all tokens where a projection goes into the scores as it is. Of
    several tensors that may have been turned, the one that was rotated counts.
    """
    found = []
    for one in _cuts(walk, made):
        turns = _matrices(one, made.view(one.shape))
        if turns is not None and _moves(turns):
            if _rotates(turns):
                return turns
            found.append(turns)
    wrong = [turns for turns in found if _laid_out_wrongly(turns)]
    if found:
        return [*wrong, *found][0]
    b, h, t, d = len(walk.x), walk.h, walk.t, walk.d
    heads = made.view(b, h, t, d)
    for part in _parts(walk):
        groups = part.shape[-1] // d
        if part.shape[-1] % d == 0 and h % groups == 0:
            each = part.unflatten(-1, (groups, d)).transpose(1, 2)
            wide = each.repeat_interleave(h // groups, dim=1)
            by = (heads * wide).sum() / wide.square().sum().clamp_min(1e-12)
            if _close(heads, by * wide):
                return torch.eye(d, dtype=torch.float64).repeat(t, 1, 1)
    return None


def _starts_apart(walk: Walk, made: torch.Tensor) -> bool:
    """Whether each head is rotated, and not from the same position on."""
    for one in _cuts(walk, made):
        heads = [_matrices(one[:, [h]], made.view(one.shape)[:, [h]])
                 for h in range(walk.h)]  # fmt: skip
        turns = [each for each in heads if each is not None and _rotates(each)]
        if len(turns) == walk.h and any(_moves(each) for each in turns):
            return any(not _same(turns[0][0], each[0]) for each in turns)
    return False


def _matrices(one: torch.Tensor, made: torch.Tensor) -> torch.Tensor | None:
    b, d = len(one), one.shape[-1]
    left, right = (m.double().permute(2, 0, 1, 3).flatten(1, 2) for m in (one, made))
    # Heads that are wider than the tokens hold no more than these, but for rounding.
    if b < d + SPARE or torch.linalg.matrix_rank(left[0], rtol=1e-5) < d:
        return None
    turns = torch.linalg.lstsq(left, right).solution
    if not _close(left @ turns, right):
        return None
    size = turns[0].square().sum(dim=0).mean().sqrt()
    return turns.mT / size.clamp_min(1e-12)


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool((one - other).abs().max() < TOLERANCE)


def _moves(turns: torch.Tensor) -> bool:
    """Whether tokens differ in what they are turned by."""
    return not _same(turns, turns[:1].expand_as(turns))


def _rotates(turns: torch.Tensor) -> bool:
    """Whether no matrix changes a length."""
    itself = torch.eye(turns.shape[-1], dtype=turns.dtype)
    return _same(turns @ turns.mT, itself.expand_as(turns))


def _widths(d: int) -> list[int]:
    return [w for w in (d, d // 2, d // 4, 3 * d // 4) if w >= 2 and w % 2 == 0]


def _partners(width: int, pairing: str) -> torch.Tensor:
    """Return for each number which one it is rotated with."""
    i = torch.arange(width)
    return (i + width // 2) % width if pairing == "halves" else i ^ 1


def _held(
    turns: torch.Tensor, width: int, pairing: str
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return what multiplies each number and its partner, (t, width), if that is all.

    Of the partner, it is what the second of a pair takes: the first has the minus.
    """
    t, d = turns.shape[:2]
    i, partner = torch.arange(width), _partners(width, pairing)
    cos, sin = turns[:, i, i], turns[:, i, partner]
    whole = torch.eye(d, dtype=turns.dtype).repeat(t, 1, 1)
    whole[:, i, i], whole[:, i, partner] = cos, sin
    return (cos, sin) if _same(whole, turns) else None


def _laid_out_wrongly(turns: torch.Tensor) -> tuple[str, str] | None:
    """Return (mistake, words) where what turns a token's numbers is no rotation."""
    if not _moves(turns):
        return None
    if _rotates(turns):
        return None
    otherwise = None
    for width in _widths(turns.shape[-1]):
        for pairing, other in (("halves", "neighbors"), ("neighbors", "halves")):
            if (held := _held(turns, width, pairing)) is None:
                continue
            cos, sin = held
            one = torch.ones_like(cos)
            if not _same(cos.square() + sin.square(), one):
                continue
            partner, strange = _partners(width, pairing), _partners(width, other)
            if _same(cos, cos[:, partner]) and _same(sin, sin[:, partner]):
                return "rope_directions", f"no rotation: {pairing} lack a minus"
            if _same(cos, cos[:, strange]) and _same(sin.abs(), sin[:, strange].abs()):
                told = f"no rotation: {pairing} are turned by the angles of {other}"
                return "rope_pairing", told
            told = f"no rotation: {pairing} are mixed otherwise"
            otherwise = otherwise or ("rope_no_rotation", told)
    if otherwise:
        return otherwise
    for pairing in ("halves", "neighbors"):
        if (held := _held(turns, turns.shape[-1], pairing)) is None:
            continue
        cos, sin = held  # of each row, what stands at its own place and the partner's
        partner = _partners(turns.shape[-1], pairing)
        across = cos * sin[:, partner] + sin * cos[:, partner]
        if across.abs().max() > 10 * TOLERANCE:  # some scale pairs, as a whole
            told = f"no rotation: numbers of {pairing} don't stay at angles"
            return "rope_no_rotation", told
    if _waves(turns):
        told = "no rotation: each number is multiplied by a wave of its own"
        return "rope_no_rotation", told
    return None


def _waves(turns: torch.Tensor) -> bool:
    """Whether each number is multiplied alone, by sines of the position."""
    own = turns.diagonal(dim1=1, dim2=2)  # (t, d)
    if len(own) < 5 or not _same(torch.diag_embed(own), turns):
        return False
    # The neighbors of a sine's value sum to twice the cosine of its step, times it.
    both, middle = own[2:] + own[:-2], own[1:-1]
    steps = (both * middle).sum(dim=0) / middle.square().sum(dim=0).clamp_min(1e-12)
    return _same(both, steps * middle) and bool((steps.abs() < 2 - TOLERANCE).any())


def _angles_of(turns: torch.Tensor, bases: list[float], h: int) -> Iterator[Step]:
    """Compare the angles with those of the base that was given."""
    for width in _widths(turns.shape[-1]):
        for pairing in ("halves", "neighbors"):
            if (held := _held(turns, width, pairing)) is None:
                continue
            cos, sin = (one[1] - 0.0 for one in held)
            first = torch.arange(width) < _partners(width, pairing)
            angles = torch.atan2(-sin[first], cos[first]).abs()
            start = torch.atan2(-held[1][0][first], held[0][0][first]).abs()
            if start.max() < TOLERANCE:
                yield from _named(angles, width, turns.shape[-1], bases, h)
            return


def _named(
    angles: torch.Tensor, width: int, d: int, bases: list[float], h: int
) -> Iterator[Step]:
    """Name angles, from one token to the next, that are others than meant."""
    if len(angles) < 2 or angles.max() < TOLERANCE:
        return  # as of tokens in one column of an image
    turned = int((angles > 1e-12).nonzero().max()) + 1
    # The rest of a head may stay as it is, or be rotated by next to nothing.
    partly, wholly = (angles[:turned], 2 * turned), (angles, width)
    usual = bases or [1e4, 5e5, 1e6]
    for some, wide in (partly, wholly):
        meant = [base ** (-_steps(wide) / wide) for base in usual]
        if any(_same(some, one) for one in meant):
            return
    for some, wide in (wholly, partly):
        if step := _slip(some, wide, d, bases, h):
            yield step
            return


def _steps(width: int) -> torch.Tensor:
    return torch.arange(0, width, 2, dtype=torch.float64)


def _slip(
    angles: torch.Tensor, width: int, d: int, bases: list[float], h: int
) -> Step | None:
    """Return what makes such angles of a width and the bases, or None."""
    steps, usual = _steps(width), bases or [1e4, 5e5, 1e6]
    seen = ", ".join(f"{angle:.3g}" for angle in angles)
    told = f"From token to token, numbers are rotated by {seen}"
    if any(_same(angles, 2 * base ** (-steps / width)) for base in usual):
        return Step("rope_twice", "positions", f"{told}: twice the angles.")
    for base in bases:
        for power in (0.5, 2.0, width / d, width / d / h):
            if power != 1 and _same(angles, base ** (-power * steps / width)):
                told += f": the powers of {base:g} are {power:g} times those that are "
                return Step("rope_frequencies", "positions", f"{told}meant.")
    for base, half in product(usual, (steps, steps / 2)):
        slips = (
            base ** (steps / width),
            half / base,
            width * base**-half,
            half / width / base,
            base * half / width,
            -half / width * base,
        )
        if any(_same(angles, _seen(one)) for one in slips):
            return Step(
                "rope_frequencies", "positions", f"{told}, which are no powers."
            )
    return None


def _seen(angles: torch.Tensor) -> torch.Tensor:
    """Return the angles, as they are seen after whole turns."""
    return torch.atan2(angles.sin(), angles.cos()).abs()
