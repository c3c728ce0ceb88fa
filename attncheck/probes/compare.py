"""The comparison with attention that is computed from the module's own weights."""

import copy
import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from attncheck import parity
from attncheck.collector import Collector, NotCompared
from attncheck.errors import CallFailed, Failure, UnusableError, first_line
from attncheck.layer import NORMS, PAIRINGS, Layer, Rope
from attncheck.mistakes import EXPLAINS, MISTAKES
from attncheck.numbers import changed
from attncheck.projections import Projections
from attncheck.roles import find_roles
from attncheck.subject import Subject
from attncheck.trace import Line, Seen, norms_of

UNKNOWN = (
    "the weights weren't found, neither by their names nor by what they do. Name them: "
    'weights= takes a function (module) that returns a dictionary with "query", "key", '
    '"value" and, if there is one, "out"'
)
DONE = "Computed attention with the module's weights, and compared the outputs."
# Differences that may be meant if the class uses these words.
MEANT = {
    "scale_missing": (
        "none",
        r"\bt5|gpt_?neo(?!x)|sagan|non_?local|\bno scal(e|ing)\b",
    ),
    "scale_twice": ("1/d", r"\bmup\b|µp\b|mu_?transfer"),
}
# Mistakes that use a projection for something else than its name says.
ROLES = {"projection_mixed_up", "scores_transposed"}
ROPE_BASE = re.compile(r"theta|rope\w*_base|rotary\w*_base|rope_freq|wavelength$")
TABLES = {"a table of positions", "a table"}
BASES = (10000.0, 500000.0, 1000000.0)
SHARES = (1.0, 0.5, 0.25, 0.75)
POSTNORMS = [{"residual": True, "postnorm": n} for n in NORMS[:2]]
ROUNDED = 5e-3  # of the largest output, as lower precision leaves it


def compare(subject: Subject, found: Collector) -> None:
    """Compare with attention computed from the module's own weights.

    Raises:
        NotCompared: no reference fits, or the weights were not found.
    """
    if callable(subject.reference):
        _compare_with_reference(subject, subject.reference, found)
        return
    if subject.reference is False:
        found.report.needed = "leave out reference=False (--reference none)"
        raise NotCompared("reference=False leaves the comparison out")
    Comparison(subject).decide(found)


def _compare_with_reference(
    subject: Subject, reference: Callable[[nn.Module, Tensor], Any], found: Collector
) -> None:
    x = subject.tokens()
    y, right = subject(x), reference(subject.pristine, x)
    gap = parity.distance(y, right)
    found.report.compared = True
    if gap >= parity.TOLERANCE * 5:
        done = "Compared with the reference, for the same weights and tokens."
        found.add("differs_from_reference", done, f"They differ by {_share(gap)}.")
    else:
        found.report.agreed = f"your reference; output equal to {max(gap, 1e-9):.0e}"


class Comparison:
    """The output of a module, the readings of its weights, and what was seen.

    Args:
        owner: the subject that the report is about. One with distinct widths is
            compared, if there is one: then fewer mistakes look alike.
    """

    def __init__(self, owner: Subject) -> None:
        self.owner, self.subject = owner, owner.uneven or owner
        self.by_name = self.subject.candidates() or self._without_weights()
        self.by_role: list[Projections] = []
        self.seen: Seen | None = None
        d_head = self.by_name[0].d_head if self.by_name else 0
        # Where t equals d_head, dividing by the root of either gives the same.
        given, self.y = _output(self.subject, 5 if d_head == 7 else 7)
        self.x = given.cpu()
        self.layer = self._with_numbers(self.subject.layer)
        self.gap = float("inf")

    def _without_weights(self) -> list[Projections]:
        """Return readings of a layer that learns nothing: the tokens themselves."""
        if not self._learns_nothing():
            return []
        width, h = self.subject.sizes["d_in"], self.subject.sizes["num_heads"]
        itself = torch.eye(width), None
        heads = [h] if h else [n for n in range(1, width + 1) if width % n == 0]
        return [Projections(itself, itself, itself, num_heads=n) for n in heads]

    def _learns_nothing(self) -> bool:
        return not any(True for _ in self.subject.pristine.parameters())

    @property
    def readings(self) -> list[Projections]:
        """The readings of the weights, those by name first."""
        return [*self.by_name, *self.by_role]

    def decide(self, found: Collector) -> None:
        """Say whether the output is right, which mistake it has, or why neither.

        Raises:
            NotCompared: nothing that was tried gives this output.
        """
        found.blame = self.blame
        if self.is_right():
            self._agree(found)
            return
        if not self.readings:
            raise NotCompared(UNKNOWN)
        match = self._match(found)
        if match is None:
            self._leave_open(found)
            return
        self._ask_if_meant(match)
        found.report.compared = True
        found.causes = match.names
        found.example = parity.example(match, self.x, self.subject.causal, match.layer)
        seen = f"Differs from correct attention ({_share(self.gap)} off), but equals "
        seen += f"attention {match.words} (to {match.gap:.0e})."
        if match.others:
            same = "; ".join(MISTAKES[name].title.lower() for name in match.others)
            seen += f" With these sizes, the same numbers come from: {same}."
        for cause in match.names:
            found.add(cause, DONE, seen)

    def is_right(self) -> bool:
        """Whether it is right attention, as declared or with what might act in it.

        Raises:
            NotCompared: its window is another than the constructor was given.
        """
        return self._equal() or self._recognized()

    def _agree(self, found: Collector) -> None:
        found.report.compared = True
        causal = "causal" if self.subject.causal else "not causal"
        built = self.owner.candidates() if self.owner is not self.subject else []
        reading = built[0] if built else self.agreeing
        h, d = reading.num_heads, reading.d_head
        named = any(self.agreeing is one for one in self.by_name)
        how = "names" if named else "what they do"
        more = "" if self.layer.plain else f", with {self.layer.words()}"
        heads = f"{h} {'head' if h == 1 else 'heads'} of {d}"
        found.report.agreed = (
            f"attention, {causal}, {heads}{more}, weights by {how}; output equal to "
            f"{max(self.gap, 1e-9):.0e}"
        )
        self._tell_shared(found)
        _tell_own_arguments(self.owner, found)

    def _leave_open(self, found: Collector) -> None:
        """Tell that no mistake with a name gives this output.

        Raises:
            NotCompared: the layer was not describe_layer, so that may be meant.
        """
        seen = f"They differ by {_share(self.gap)}."
        if not replace(self.subject.layer, memory=None).plain or (
            self.subject.how.weights is not None
        ):
            seen += (
                f" It was compared with attention with {self.subject.layer.words()}."
            )
            found.report.compared = True
            found.add("differs", DONE, seen)
            return
        told = ", ".join(self.seen.extras) if self.seen else ""
        told = f"{told} acts in forward" if told else "no known mistake explains it"
        raise NotCompared(
            f"the output isn't that of plain attention ({_share(self.gap)} off), and "
            f"{told}; if the layer does more, declare it (rope=, window=, qk_norm=, "
            f"prenorm=, residual=, scale=, bias=)"
        )

    def _equal(self) -> bool:
        """Whether the output is that of right attention, by some reading."""
        if self._right(self.by_name):
            return True
        roles, self.seen = find_roles(self.subject)
        given = self.subject.how.weights is not None
        self.by_role = [] if given else [p.double() for p in roles]
        return self._right(self.by_role) and not self._swapped()

    def _right(self, readings: list[Projections]) -> bool:
        for reading in readings:
            gap = parity.right_distance(
                self.x, self.y, [reading], self.subject.causal, self.layer
            )
            if gap < self.gap:
                self.gap, self.agreeing = gap, reading
        return self.gap < parity.TOLERANCE

    def _swapped(self) -> bool:
        """Whether the names say that one projection is used in another's place."""
        if not self.by_name:
            return False
        match = parity.name_mistake(
            self.x, self.y, self.by_name[:1], self.subject.causal, self.layer, False
        )
        return match is not None and bool(set(match.names) & ROLES)

    def _recognized(self) -> bool:
        """Whether it is right attention with something that was not declared.

        Raises:
            NotCompared: its window is another than the constructor was given.
        """
        layers = self._layers() if self.subject.layer.plain else self._opened()
        found = parity.recognize_layer(
            self.x, self.y, self.readings, self.subject.causal, layers
        )
        if found is None:
            return False
        acts, meant = found[0].window, self.owner.named_window[1]
        if acts and meant and acts != meant and not self.subject.layer.window:
            raise NotCompared(
                f"each token sees {acts} tokens, itself included, and the constructor "
                f"was given {meant}; if that's meant, say so: --set "
                f"{self.owner.named_window[0]}={meant} --window {acts}"
            )
        kept, (self.layer, self.agreeing, self.gap) = self.layer, found
        if self._swapped():
            self.layer = kept
            return False
        self.owner.layer = self.layer
        self.owner.note(
            f"Equal to attention with {self.layer.words()}. That was found, not "
            f"declared."
        )
        return True

    def _layers(self) -> list[Layer]:
        """Return what might act in the layer, likely ones first."""
        extras = self.seen.extras if self.seen else []
        given, base = self.owner.given, self.layer
        ropes: list[Rope | None] = [None]
        if TABLES & {*extras}:
            known = [float(v) for n, v in given.items()
                     if ROPE_BASE.search(n) and _number(v)]  # fmt: skip
            bases = [b for b in dict.fromkeys([*known, *BASES]) if b > 1]
            ropes += [Rope(p, b, s) for s in SHARES for b in bases for p in PAIRINGS]
        norms = self._norm_changes()
        changes: list[dict[str, Any]] = [{}, *norms]
        changes += [change | {"residual": True} for change in changes]
        changes += POSTNORMS if norms else []
        if _sinks(self.subject.pristine) is not None:
            changes.append({"sink": True})
        if meant := self.owner.named_window[1]:
            changes += [{"window": w} for w in (meant, meant + 1, meant - 1) if w > 0]
        if self._learns_nothing():  # the simplest attention there is
            changes.append({"scale": 1.0})
        if self.owner.speaks_of("alibi|slope") and self.readings:
            changes.append({"bias": _Slopes(self.readings[0].num_heads)})
        made = [
            replace(base, **change, rope=rope)
            for rope, change in product(ropes, changes)
            if change or rope
        ]
        return [self._with_numbers(one) for one in made]

    def _norm_changes(self) -> list[dict[str, Any]]:
        """Return norms of the input, or of queries and keys, that might act."""
        acts = self.seen is not None and "a norm" in self.seen.extras
        if not acts and not norms_of(self.subject.pristine):
            return []
        return [{"qk_norm": n} for n in NORMS] + [{"prenorm": n} for n in NORMS[:2]]

    def _opened(self) -> list[Layer]:
        """Return layers that fill what the description of this one leaves open."""
        layer, ropes = self.layer, [self.layer.rope]
        if rope := layer.rope:
            ropes = [
                Rope(pairing, base, share)
                for pairing in self._left("pairing", PAIRINGS, rope.pairing)
                for base in self._left("base", BASES, rope.base)
                for share in self._left("share", SHARES, rope.share)
            ]
        norms = NORMS if "qk_norm" in layer.open else (layer.qk_norm,)
        both = [replace(layer, rope=r, qk_norm=n) for r in ropes for n in norms]
        return [self._with_numbers(one) for one in both if one != layer]

    def _left(self, name: str, every: tuple[Any, ...], known: Any) -> tuple[Any, ...]:
        """Return what rotary positions may be, where the description says nothing."""
        return every if f"rope.{name}" in self.layer.open else (known,)

    def _match(self, found: Collector) -> parity.Match | None:
        """Return the mistakes that give the same output, or None."""
        if parity.distance(self.y, self.x) < 1e-3:
            return None  # it returns its input
        layers = [self.layer]
        if self.subject.layer.plain:
            table = self.seen is not None and TABLES & {*self.seen.extras}
            norms = self._norm_changes()
            more: list[dict[str, Any]] = [{"rope": Rope(p)} for p in PAIRINGS if table]
            more += [{"residual": True}, *norms, *(POSTNORMS if norms else [])]
            layers += [self._with_numbers(replace(self.layer, **one)) for one in more]
        else:
            layers += [one for one in self._opened() if one.rope]
        given = self.x, self.y, self.readings, self.subject.causal
        for layer in layers:
            match = parity.name_mistake(*given, layer, several=False)
            if match is not None:
                return match
        if found.found.keys() & EXPLAINS or self.gap < ROUNDED:
            return None  # what was found, or rounding, already explains the difference
        return parity.name_mistake(*given, self.layer, several=True)

    def _ask_if_meant(self, match: parity.Match) -> None:
        """Ask about a departure that the class speaks of, where nothing else differs.

        Raises:
            NotCompared: it does.
        """
        for name, (scale, words) in MEANT.items():
            if match.names != (name,) or self.subject.layer.scale is not None:
                continue
            module = inspect.getmodule(type(self.owner.pristine))
            kind = type(self.owner.pristine)
            own = [module and module.__doc__, kind.__doc__, self.owner.source]
            text = "\n".join(str(one) for one in own if one).lower()
            if re.search(words, text) or self.owner.speaks_of(words):
                raise NotCompared(
                    f"{MISTAKES[name].title.lower()}, and nothing else differs; if "
                    f'that\'s meant, declare it: scale="{scale}" (--scale {scale})'
                )

    def _tell_shared(self, found: Collector) -> None:
        """Tell of a matrix by which each head projects its own slice of the token."""
        linear = [p for p in self.subject.pristine.modules() if type(p) is nn.Linear]
        reading, width = self.agreeing, self.subject.sizes["d_in"]
        narrow = [
            p for p in linear if p.in_features == p.out_features == reading.d_head
        ]
        if len(narrow) < 3 or reading.num_heads < 2 or reading.d_head >= width:
            return
        wide = reading.query[0]
        blocks = torch.block_diag(*[wide[: reading.d_head, : reading.d_head]]
                                  * reading.num_heads)  # fmt: skip
        if blocks.shape == wide.shape and torch.allclose(blocks, wide, atol=1e-5):
            shape = f"({reading.d_head}, {reading.d_head})"
            seen = f"Queries of {reading.num_heads} heads come from one matrix {shape}."
            found.add("projection_shared", DONE, seen)

    def blame(self, name: str) -> Line | None:
        """Return the line of the reader's code that a mistake is likely in."""
        if self.seen is None:
            self.seen = find_roles(self.subject)[1]
        for start, functions in _BLAME:
            if name.startswith(start):
                for function in functions:
                    if function in self.seen.lines:
                        return self.seen.lines[function]
        return None

    def _with_numbers(self, layer: Layer) -> Layer:
        """Add to a layer the numbers of the norms, sinks and biases that are held.

        Raises:
            NotCompared: a sink was declared, and no parameter is called so.
        """
        module = self.subject.pristine
        if layer.bias is not None and not isinstance(layer.bias, _Bound):
            layer = replace(layer, bias=_Bound(layer.bias, module))
        numbers: dict[str, tuple[Any, ...]] = {}
        if layer.sink:
            sinks = _sinks(module)
            if sinks is None:
                raise NotCompared(
                    "no parameter has 'sink' in its name, so the learned sinks "
                    "weren't found. Rename it, or pass reference="
                )
            numbers["sink"] = sinks, None
        if layer.qk_norm or layer.prenorm or layer.postnorm:
            numbers |= self._norms(module, layer)
        return replace(layer, norms=tuple(numbers.items()))

    def _norms(self, module: nn.Module, layer: Layer) -> dict[str, tuple[Any, ...]]:
        norms: dict[str, tuple[Any, ...]] = {}
        for name, kind, width, *numbers in norms_of(module):
            last = name.split(".")[-1].lower()
            ours = kind == (layer.prenorm or layer.postnorm) and not last.startswith(
                ("q", "k")
            )
            if ours and width == self.subject.sizes["d_in"] and "x" not in norms:
                norms["x"] = tuple(numbers)
            elif last.startswith("k") and "k" not in norms:
                norms["k"] = tuple(numbers)
            elif "q" not in norms:
                norms["q"] = tuple(numbers)
            else:
                norms.setdefault("k", tuple(numbers))
        if "q" in norms:
            norms.setdefault("k", norms["q"])
        return norms


def _output(subject: Subject, t: int) -> tuple[Tensor, Tensor]:
    """Return tokens and output, of another length where it doesn't take t tokens."""
    for other in (t, 8, 6):
        try:
            x = subject.tokens(t=other)
            return x, subject(x)
        except CallFailed:
            pass
    x = subject.tokens(t=t)
    return x, subject(x)


def _tell_own_arguments(subject: Subject, found: Collector) -> None:
    """Give other keys, then other values, and see whether they act."""
    way = subject.way
    if subject.how.call is not None or way is None or len(way.tokens) < 3:
        return
    x, idle, twin = subject.tokens(), [], copy.copy(subject)
    other = x.roll(1, dims=0) * 0.5 + 1.0
    given = other if subject.layout == "btd" else other.transpose(0, 1)
    for name in way.tokens[1:]:
        twin.how = replace(subject.how, way=way.with_values({name: given}))
        try:
            idle += [] if changed(subject(x), twin(x)) else [name]
        except Failure:
            return
    if idle:
        # A layer that ignores both attends to its queries alone.
        mistake = "projection_mixed_up" if len(idle) < 2 else "cross_ignores_memory"
        told = " and another as ".join(idle)
        text = "The output didn't change."
        found.add(mistake, f"Passed another tensor as {told}.", text)


class _Bound:
    """A function (t) that gives the bias of the scores in float64."""

    def __init__(self, bias: Any, module: nn.Module) -> None:
        self.bias, self.module = bias, module

    def __call__(self, t: int) -> Tensor:
        if isinstance(self.bias, Tensor):
            return self.bias.detach().cpu().double()[..., :t, :t]
        try:
            with torch.no_grad():
                made: Tensor = self.bias(self.module, t)
                return made.detach().cpu().double()
        except Exception as error:
            why = f"bias(module, {t}) raised {type(error).__name__}"
            raise UnusableError(f"{why}: {first_line(error)}.") from None


class _Slopes(_Bound):
    """A bias by distance, as ALiBi has it, for a number of heads."""

    def __init__(self, h: int) -> None:
        self.slopes = 2.0 ** (-8 * torch.arange(1, h + 1, dtype=torch.float64) / h)

    def __call__(self, t: int) -> Tensor:
        i = torch.arange(t)
        return -self.slopes[:, None, None] * (i[:, None] - i).abs()


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _sinks(module: nn.Module) -> Tensor | None:
    """Return the numbers of the parameter that is called a sink, or None."""
    for name, parameter in module.named_parameters():
        if "sink" in name.split(".")[-1].lower():
            return parameter.detach().flatten().cpu()
    return None


def _share(gap: float) -> str:
    return "NaN or another shape" if gap == float("inf") else f"{gap:.0%}"


# How a mistake's name starts, and the calls whose line the report quotes.
_FUSED = "scaled_dot_product_attention"
_DIVIDED = ("__truediv__", "div", "div_", "mul", "mul_", "__mul__", "__rmul__")
_BLAME = [
    ("mask_", ("masked_fill", "masked_fill_", "where", "softmax", _FUSED)),
    ("softmax_", ("softmax", "_softmax", "exp")),
    ("scale_missing", ("softmax", "_softmax", _FUSED)),
    ("scale_", (*_DIVIDED, "softmax", "_softmax", _FUSED)),
    ("heads_", ("view", "reshape", "transpose")),
    ("join_", ("reshape", "view", "flatten")),
    ("groups_", ("repeat", "repeat_interleave", "expand")),
    ("scores_", ("softmax", "matmul", "__matmul__")),
    ("weights_transposed", ("matmul", "__matmul__")),
    ("rope_", ("cat", "stack", "cos", "view_as_complex")),
    ("future_", ("masked_fill", "masked_fill_", "softmax", _FUSED)),
    ("overflows", ("exp", "softmax")),
    ("random_in_eval", ("dropout", _FUSED)),
    ("dropout_", ("dropout", _FUSED)),
    ("projection_shared", ("linear",)),
]
