"""Follows single tokens through a layer, whatever it computes: no reference is needed.

A token's query, its share of the mix and its output have one place each; where a layer
turns them differently, the output of one token answers the question of another.
"""

import math
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import torch
from torch import nn

from attncheck.build import UnusableError
from attncheck.collector import Collector, SkipTest
from attncheck.following import scores_of
from attncheck.numbers import changed
from attncheck.recorded import CONTRACTIONS, CONVOLUTIONS, Call, Recorded
from attncheck.subject import CallFailed, CallHung, Subject
from attncheck.trace import Arguments

Probe = Callable[[Subject, Collector], None]
FUSED = "scaled_dot_product_attention"
# What lets tokens meet behind the mix, on purpose.
MEET = {*CONVOLUTIONS, "group_norm", "batch_norm", "instance_norm", "cumsum", "fft",
        "interpolate", "adaptive_avg_pool1d", "avg_pool1d", "max_pool1d"}  # fmt: skip
PARTS = {"q": "queries", "k": "keys", "v": "values"}
SAME = 1e-3  # of scores
SHORTER = {"mean", "sum", "amax", "max", "std", "var", "norm", "logsumexp"}
# One part of a parameter's name that says what it makes.
ROLE = re.compile(
    r"(?:^|\.)(?P<role>q|k|v|query|key|value|queries|keys|values)_?"
    r"(?:b|bias|w|weight|proj|projection|lin|linear|fc)?(?=\.|$)"
)

RELATIVE = r"rot(ary|ate|ation)|rope|relative|rel_?pos|rel_bias|distance"
# With these, a pair of tokens may have more to it than its distance.
GRID = r"2d|axial|height|grid|absolute|patch|image|pixel|ntk|yarn|spatial|window"


class Ends(NamedTuple):
    """The first attention among the calls of a forward pass.

    Attributes:
        scored, mixed: the calls that multiply queries and keys, weights and values.
        query_axis, mixed_axis: where the numbers of one token stand, in the first
            factor of the scores and in the mix.
    """

    scored: int
    mixed: int
    query_axis: int = -1
    mixed_axis: int = -1


class _Nudged(Recorded):
    """Adds noise to some rows of what one call gives."""

    def __init__(self, module: nn.Module, at: int, rows: torch.Tensor) -> None:
        super().__init__(module)
        self.at, self.rows = at, rows

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: Arguments = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        before = len(self.calls)
        result = super().__torch_function__(function, types, args, kwargs)
        if before <= self.at < len(self.calls) and isinstance(result, torch.Tensor):
            noise = torch.linspace(1.0, 2.0, result.numel()).view(result.shape)
            result = result + self.rows.to(result) * noise.to(result)
        return result


def _as_far_as_seen(probe: Probe) -> Probe:
    """Return a test that isn't run where it has nothing to say.

    A step is named already, or the layer refuses the calls or takes other steps.
    """

    @wraps(probe)
    def tried(subject: Subject, found: Collector) -> None:
        told = found.causes or {"samples_mixed", "batch_first"} & found.found.keys()
        if told or subject.reference is not None:
            raise SkipTest("what differs is named, or a reference was given")
        try:
            probe(subject, found)
        except (SkipTest, CallHung, UnusableError):
            raise
        except CallFailed as failure:
            raise SkipTest(f"it refuses a call: {failure}") from None
        except Exception as error:  # what is captured may have any form
            raise SkipTest(f"its steps have another form ({error})") from None

    return tried


@_as_far_as_seen
def places(subject: Subject, found: Collector) -> None:
    """See that the place of a token's query is the place of its output."""
    x = subject.tokens(t=7)
    b, t, _ = x.shape
    if t < 3 or t in (subject.sizes["d_in"], subject._d_head()):
        raise SkipTest("it takes too few tokens to tell their places apart")
    calls, y = _calls(subject, x)
    if y.shape[:2] != (b, t):
        raise SkipTest("its output has other tokens")
    ends = _ends(calls)
    if ends is None:
        raise SkipTest("the steps of attention were not seen")
    if _meet(calls[ends.mixed + 1 :], t):
        raise SkipTest("behind attention, tokens meet")
    rows = _rows_of(subject, x, calls, ends)
    if rows[0].shape != calls[ends.mixed][3].amax(dim=ends.mixed_axis).shape:
        raise SkipTest("queries and their results have other axes")
    went = [_goes(subject, x, y, calls, ends, one) for one in rows]
    if any(one is None for one in went):
        raise SkipTest("another attention follows")
    if not any(went) and rows[0].numel() > rows.sum():
        done = "Followed the query of each token, and changed what is mixed for it."
        seen = "What is mixed for the tokens reaches no output: others do."
        found.add("tokens_moved", done, seen, "error")
        return
    for i, out in enumerate(went):
        if out and out != {i}:
            _tell(i, out, rows[i], found)
            return


def _tell(i: int, out: set[int], rows: torch.Tensor, found: Collector) -> None:
    many = len(out) > 1
    seen = f"What is mixed for token {i} goes into output{'s' if many else ''} "
    seen += ", ".join(map(str, sorted(out))) + "."
    name = "join_viewed" if many else "tokens_moved"
    done = "Followed the query of each token, and changed what is mixed for it."
    found.add(name if _straight(rows) else "heads_viewed", done, seen, "error")


def _straight(rows: torch.Tensor) -> bool:
    """Whether a token stands at one place of an axis, in all heads."""
    places = rows.nonzero().T
    return math.prod(len(axis.unique()) for axis in places) == int(rows.sum())


def _calls(
    subject: Subject, x: torch.Tensor, mode: Recorded | None = None
) -> tuple[list[Call], torch.Tensor]:
    module = subject.copy()
    mode = mode or Recorded(module)
    y = subject(x, module, mode=mode)
    return mode.calls, y


def _ends(calls: list[Call]) -> Ends | None:
    """Return where the first attention begins and ends, or None."""
    for at, (name, given, _, out) in enumerate(calls):
        if name == FUSED:
            return Ends(at, at) if len(given) > 2 else None
        if name not in ("softmax", "_softmax") or out.dim() < 3:
            continue
        scored = [i for i in range(at) if _makes(calls[i], out.numel())]
        mixed = [i for i, call in enumerate(calls) if i > at and _takes(call, out)]
        if not scored or not mixed:
            return None
        first, last = scored[-1], mixed[0]
        weights = [factor.numel() == out.numel() for factor in calls[last][1]]
        return Ends(
            first,
            last,
            _axis(calls[first], 0, lost=True),
            _axis(calls[last], weights.index(True), lost=False),
        )
    return None


def _axis(call: Call, factor: int, lost: bool) -> int:
    """Return the axis of a factor that is summed, or of the result that is not its."""
    name, _, (equation, *_), _ = call
    if name != "einsum" or not isinstance(equation[0], str) or "." in equation[0]:
        return -1
    terms, _, out = equation[0].replace(" ", "").partition("->")
    labels = terms.split(",")[factor]
    own = [i for i, label in enumerate(labels) if label not in out]
    new = [i for i, label in enumerate(out) if label not in labels]
    found = own if lost else new
    return found[0] if len(found) == 1 else -1


def _makes(call: Call, numbers: int) -> bool:
    name, given, _, out = call
    return name in CONTRACTIONS and len(given) == 2 and out.numel() == numbers


def _takes(call: Call, weights: torch.Tensor) -> bool:
    name, given, *_ = call
    sizes = [one.numel() for one in given[-2:]]
    return name in CONTRACTIONS and len(given) == 2 and weights.numel() in sizes


def _meet(behind: list[Call], t: int) -> bool:
    """Whether tokens meet behind attention: in a window, a norm, a mean, a product."""
    for name, given, _, out in behind:
        if name in MEET and not (name in CONVOLUTIONS and given[1][0, 0].numel() == 1):
            return True
        if name in SHORTER and given and t in given[0].shape and t not in out.shape:
            return True
        if name == "linear" and given[0].shape[-1] == t:
            return True
    return False


def _rows_of(
    subject: Subject, x: torch.Tensor, calls: list[Call], ends: Ends
) -> torch.Tensor:
    """Return, for each token, which rows of the queries follow it most.

    Where a norm before them takes all tokens together, each follows all a little.
    """
    at, axis = ends.scored, ends.query_axis
    before = calls[at][1][0]
    fresh, gaps = subject.tokens(t=x.shape[1], seed=11), list[torch.Tensor]()
    for i in range(x.shape[1]):
        other = x.clone()
        other[:, i] = fresh[:, i]
        after, _ = _calls(subject, other)
        if len(after) <= at or after[at][1][0].shape != before.shape:
            raise SkipTest("its steps follow the numbers of its input")
        gaps.append((after[at][1][0] - before).abs().amax(dim=axis))
    most, second = torch.stack(gaps).topk(2, dim=0).values
    rows = (torch.stack(gaps) == most) & (most > 0)
    each = rows.flatten(1).sum(dim=1)
    shared = second[most > 0] / most[most > 0]
    if not each.all() or each.unique().numel() > 1 or shared.median() > 0.5:
        raise SkipTest("a query is made of several tokens")
    return rows


def _goes(
    subject: Subject,
    x: torch.Tensor,
    y: torch.Tensor,
    calls: list[Call],
    ends: Ends,
    rows: torch.Tensor,
) -> set[int] | None:
    """Return which outputs follow some rows of the mix; None where scores do, too."""
    rows = rows.unsqueeze(ends.mixed_axis)
    after, z = _calls(subject, x, _Nudged(subject.copy(), ends.mixed, rows))
    later = [
        i for i in range(ends.mixed + 1, min(len(calls), len(after)))
        if calls[i][0] in ("softmax", "_softmax", FUSED)
    ]  # fmt: skip
    if any(changed(calls[i][3], after[i][3]) for i in later):
        return None
    return {i for i in range(x.shape[1]) if changed(y[:, i], z[:, i])}


@_as_far_as_seen
def distances(subject: Subject, found: Collector) -> None:
    """See that scores of equal tokens follow from their distance alone."""
    if not subject.speaks_of(RELATIVE) or subject.speaks_of(GRID):
        raise SkipTest("it doesn't say that it works with distances")
    one = subject.tokens(t=2)[:, :1]
    told = [_by_distance(subject, one, t) for t in (5, 7)]
    short, long = told
    if short is None or long is None:
        raise SkipTest("the scores of all tokens were not seen in one square")
    done = "Passed the same token at all places, and looked at the scores."
    size = max(1.0, *(float(line.abs().max()) for line in long.values()))
    for apart, line in long.items():
        gap = float((line.amax(dim=-1) - line.amin(dim=-1)).max())
        if gap > SAME * size:
            seen = f"Scores of pairs {apart} apart differ by up to {gap:.2g}."
            found.add("distance_not_alone", done, seen, "error")
            return
    both = [(short[d][:, 0], long[d][:, 0]) for d in short if d in long]
    few, many = map(torch.stack, zip(*both, strict=True))
    factor = (few * many).sum() / many.square().sum()  # of the logarithm of the length
    if (few - factor * many).abs().max() > SAME * size:
        seen = "Scores of pairs as far apart are others among 7 tokens than among 5."
        found.add("distance_not_alone", done, seen, "error")


def _by_distance(
    subject: Subject, one: torch.Tensor, t: int
) -> dict[int, torch.Tensor] | None:
    """Return {distance: its scores (b * h, pairs)}, where none is hidden."""
    scores = scores_of(subject, one.expand(-1, t, -1).contiguous())
    if scores is None or scores.shape[1:] != (t, t):
        return None
    shown = {}
    for apart in range(1 - t, t):
        line = scores.diagonal(-apart, dim1=1, dim2=2)
        if (line > -1e3).all():
            shown[apart] = line
    return shown or None


@_as_far_as_seen
def by_name(subject: Subject, found: Collector) -> None:
    """See that parameters named for queries, keys or values act on these."""
    x, module = subject.tokens(), subject.copy()
    before = _made(subject, module, x)
    told = {name: role for name, p in module.named_parameters()
            if (role := _role(name)) and p.requires_grad}  # fmt: skip
    if not before or not told:
        raise SkipTest("no parameters were seen that are named for their parts")
    for name, role in told.items():
        module = subject.copy()
        with torch.no_grad():
            one = module.get_parameter(name)
            one.add_(torch.linspace(0.5, 1.0, one.numel()).view_as(one).to(one))
        after = _made(subject, module, x)
        moved = {
            r for r, one in before.items() if r in after and changed(one, after[r])
        }
        if moved and role not in moved and {role, *moved} != {"q", "k"}:
            seen = f"{name} changes the {PARTS[min(moved)]}, and not the {PARTS[role]}."
            done = "Changed one parameter after the other."
            found.add("projection_mixed_up", done, seen, "error")
            return


def _made(
    subject: Subject, module: nn.Module, x: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Return the queries, keys and values of the first attention, in any shape."""
    watch = Recorded(module)
    subject(x, module, mode=watch)
    ends = _ends(watch.calls)
    if ends is None:
        return {}
    given = watch.calls[ends.scored][1]
    if ends.scored == ends.mixed:  # fused
        return dict(zip("qkv", given, strict=False))
    factors, soft = watch.calls[ends.mixed][1], watch.calls[ends.scored][3].numel()
    values = [one for one in factors if one.numel() != soft]
    return {"q": given[0], "k": given[1], "v": values[0]} if len(values) == 1 else {}


def _role(name: str) -> str:
    roles = {match["role"][0] for match in ROLE.finditer(name.lower())}
    return roles.pop() if len(roles) == 1 else ""
