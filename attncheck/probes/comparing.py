"""The comparison with attention that is computed from the module's own weights."""

import contextlib
import copy
import inspect
import math
import re
import sys
from dataclasses import replace
from itertools import product
from types import FrameType
from typing import Any

import torch
from torch import nn

from attncheck import parity
from attncheck.build import UnusableError, first_line
from attncheck.collector import Collector, NotCompared
from attncheck.following import followed, hidden
from attncheck.inferred import Read, inferred
from attncheck.layer import NORMS, OPTIONS, PAIRINGS, SINKS, Layer, Rope, described
from attncheck.mistakes import EXPLAINS, MISTAKES
from attncheck.numbers import changed
from attncheck.probes.basics import UNITS
from attncheck.probes.meaning import depends, hides_tokens, is_units, passed_on
from attncheck.projections import Projections, find
from attncheck.recorded import Step
from attncheck.roles import find_roles
from attncheck.scored import T5, bias_told, sinks_told
from attncheck.stages import first_difference
from attncheck.subject import ITSELF, LOW, CallFailed, Failure, Subject, Unrounded
from attncheck.trace import Line, Seen, Watch, is_table, norms_of
from attncheck.turning import turning
from attncheck.variants import runs
from attncheck.walk import sums_first, walked

UNKNOWN = (
    "the weights weren't found, neither by their names nor by what they do, so "
    "scaling, heads and projections weren't checked. Name them: weights= takes a "
    'function (module) that returns a dictionary with "query", "key", "value" and, '
    'if there is one, "out"'
)


def compare(subject: Subject, found: Collector) -> None:
    """Compare with attention computed from the module's own weights.

    Raises:
        NotCompared: no reference fits, or the weights were not found.
    """
    before = {*found.found}
    both = [one for one in (subject, subject.uneven) if one is not None]
    kept = subject.unrounded
    found.rounded = kept or _rounds(subject)
    for one in both:
        one.unrounded = found.rounded
    try:
        _compare(subject, found)
        if found.undeclared and (new := found.found.keys() - before):
            _ask(subject, found, new)
    finally:
        for one in both:
            one.unrounded = kept


def _rounds(subject: Subject) -> bool:
    """Whether forward computes in a lower precision, and runs without that."""
    mode = Unrounded(subject.dtype)
    try:
        subject(subject.tokens(), mode=mode)
    except Failure:
        return False
    return mode.acted


def _ask(subject: Subject, found: Collector, new: set[str]) -> None:
    """Ask whether a departure is meant that an option declares.

    It is a question if the class speaks of it, and nothing else is left to say once
    it is declared.

    Raises:
        NotCompared: it is.
    """
    for name, (option, words) in MEANT.items():
        if name not in new:
            continue
        told = bool(re.search(words, f"{_doc(subject)}\n{subject.source}".lower()))
        said = told or subject.speaks_of(words)
        said |= "scale" in option and bool(_scales(subject) or _unscaled(subject))
        if not said or not agreeing(subject, option, wholly=True):
            continue
        for one in new:
            del found.found[one]
        found.compared, found.causes, found.example = False, (), None
        title = MISTAKES[name].title.lower()
        raise NotCompared(
            f"{title}, and nothing else differs; if that's intended, declare it",
            **option,
        )


def _unscaled(subject: Subject) -> bool:
    """Whether a setting asks for products by name, and another one for scaled ones."""
    words = [v for v in subject.given.values() if isinstance(v, str)]
    plain = any("dot" in word and "scale" not in word for word in words)
    return plain and bool(re.search(r"""['"]scaled?_?dot""", subject.source))


def _scales(subject: Subject) -> list[float]:
    """Return the numbers that the constructor was given for scores, by their names."""
    given = subject.given.items()
    return [float(v) for n, v in given if SCALE.search(n) and _number(v)]


def _compare(subject: Subject, found: Collector) -> None:
    if subject.reference is not None:
        _compare_with_reference(subject, found)
        found.compared = True
        return
    if subject.skip_reference:
        found.needed = "leave out reference=False (--reference none)"
        raise NotCompared("reference=False leaves the comparison out")
    # Widths are all different here where the class allows it: fewer mistakes look
    # alike.
    owner, subject = subject, subject.uneven or subject
    if any(re.search(r"rot\w*_?(dim|ndims)$", name) for name in owner.given):
        subject = owner  # a number of entries is another share of other heads
    comparison = Comparison(owner, subject)
    found.blame = comparison.blame
    comparison.explained = bool(found.found.keys() & EXPLAINS)
    if comparison.equal() or comparison.known_layer():
        comparison.tell_given(found)
        comparison.tell_wide_window(found)
        found.compared = True
        comparison.tell_slopes(found)
        comparison.tell_bias(found)
        comparison.tell_unused_positions(found)
        _own_arguments(owner, found)
        return
    found.beside = ", ".join(comparison.beside())
    if not comparison.readings:
        if comparison.tell_steps(found) or comparison.inferred(found):
            return
        if comparison.tell_late(found):
            return
        raise NotCompared(UNKNOWN, **agreeing(owner, _adapter(owner)))
    comparison.tell_undeclared(found, opened=True)
    if passed_on(owner).any():
        raise NotCompared(
            "some tokens come out as they went in, as where a class token alone "
            "attends, and there's no option for that"
        )
    match = comparison.match()
    own = owner.causal and not owner.layer.memory
    if match is None and own and hides_tokens(owner) and not comparison.sees_all():
        raise NotCompared(
            "some tokens are hidden from all that follow, and there's no option "
            "for that"
        )
    if match is None and (told := comparison.by_design()):
        if told == ALONE:
            raise NotCompared(f"{told}; if that's intended, declare it", exclusive=True)
        raise NotCompared(f"{told}, and there's no option for that")
    if match is None and not comparison.tell_steps(found):
        if comparison.inferred(found):
            return
    elif match is None:
        return
    done = (
        "Computed attention step by step with the module's weights, and compared "
        "the outputs for the same tokens."
    )
    if match is None and (comparison.unread() or not comparison.sure()):
        raise NotCompared(UNKNOWN, **agreeing(owner, _adapter(owner)))
    if match is None:
        found.stage = comparison.first_step or comparison.stage()
        comparison.tell_undeclared(found, opened=False)
        comparison.tell_evident(found, done)
        comparison.tell_excuses(found)
        found.compared = True
        seen = f"They differ by {_share(comparison.gap)}."
        if not subject.layer.plain:
            seen += f" It was compared with attention with {subject.layer.words()}."
        if comparison.unequal_sums():
            done = "Set the value weights so that each value is 1, in each token."
            text = "Some tokens get another mean of these values than others."
            found.add("rows_do_not_sum_to_one", done, text)
            return
        held = [n for n, b in owner.pristine.named_buffers() if b.dtype in LOW]
        if held:
            found.add("low_precision", done, f"{', '.join(held)} holds few digits.")
            return
        found.stage = stage = comparison.first_step or comparison.stage()
        seen += f" The first stage that differs: {stage}." if stage else ""
        if comparison.normed_behind():
            found.add("qk_norm_late", done, f"{seen} With the norm there, they agree.")
            return
        late = comparison.late.late if comparison.late else ""
        seen += f" {comparison.late.seen}" if late and comparison.late else ""
        found.add(late or "differs", done, seen)
        return
    if match.names in OTHERS and comparison.tell_steps(found):
        return
    found.compared = True
    found.causes = match.names
    found.example = parity.example(
        match, comparison.x, subject.causal, comparison.layer
    )
    seen = f"Differs from correct attention ({_share(comparison.gap)} off), but "
    seen += f"equals attention {match.words} (to {match.gap:.0e})."
    if match.others:
        same = "; ".join(MISTAKES[name].title.lower() for name in match.others)
        seen += f" With these sizes, the same numbers come from: {same}."
    # An output projection as narrow as a head takes no others beside it: so is meant.
    out, severity = match.projections.out, None
    narrow = out is not None and out[0].shape[1] == match.projections.d_head
    if match.recipe.merge == "mean" and narrow and match.names == ("heads_added",):
        severity = "warning"
        seen += " The output projection takes the width of one head, so that's meant."
    for cause in match.names:
        meant = cause == "input_added" and found.undeclared
        found.add(cause, done, seen, "warning" if meant else severity)


def agreeing(
    subject: Subject, proposal: dict[str, Any], wholly: bool = False
) -> dict[str, Any]:
    """Return options of the check if the comparison with them has a clear outcome.

    That is: the output equals attention so described, or attention with mistakes that
    have names. If it equals attention that does even more, that is added.

    Args:
        subject: what is compared.
        proposal: options, as :func:`attncheck.check` takes them.
        wholly: only if nothing is wrong with them.
    """
    weights = proposal.get("weights")
    if not proposal or (weights and subject.how.weights):
        return {}  # or what names the weights would be named again, and again
    given = {n: v for n, v in proposal.items() if n != "weights"}
    if isinstance(given.get("bias"), str):
        given["bias"] = eval(given["bias"])
    both = [copy.copy(one) for one in (subject, subject.uneven) if one is not None]
    for one in both:
        if given:
            one.layer = described(**declaration(subject.layer) | given)
        if weights:
            one.how = replace(one.how, weights=eval(weights))
    trial = both[0]
    # Its widths are others, and the function may name a number of heads.
    trial.uneven = both[1] if len(both) > 1 and not weights else None
    found = Collector()
    try:
        compare(trial, found)
    except NotCompared as more:
        return proposal | more.proposal if more.proposal else {}
    except (Failure, UnusableError):
        return {}
    return {} if "differs" in found.found or (wholly and found.found) else proposal


def _own_arguments(subject: Subject, found: Collector) -> None:
    """Replace what forward takes as key, then as value, and see whether it acts."""
    x = subject.tokens()
    y = subject(x)
    signature = inspect.signature(subject.pristine.forward)
    names = {name.lower().rstrip("s"): name for name in signature.parameters}
    if not {"query", "q"} & set(names):
        return
    idle: list[str] = []
    for short, long in (("k", "key"), ("v", "value")):
        name = names.get(long) or names.get(short)
        replaced: list[str] = []

        def put(
            module: nn.Module,
            args: tuple[Any, ...],
            kwargs: dict[str, Any],
            name: Any = name,
            replaced: list[str] = replaced,
        ) -> tuple[tuple[Any, ...], dict[str, Any]]:
            bound = signature.bind(*args, **kwargs)
            old = bound.arguments.get(name)
            if isinstance(old, torch.Tensor) and old.is_floating_point():
                replaced.append(name)
                bound.arguments[name] = old.roll(1, dims=0) * 0.5 + 1.0
            return bound.args, bound.kwargs

        module = subject.copy()
        module.register_forward_pre_hook(put, with_kwargs=True)
        try:
            z = subject(x, module)
        except Failure:
            return
        idle += replaced if not changed(y, z) else []
    # A layer that ignores both attends to its queries alone.
    mistake = "projection_mixed_up" if len(idle) < 2 else "cross_ignores_memory"
    if idle:
        told = " and another as ".join(idle)
        found.add(
            mistake, f"Passed another tensor as {told}.", "The output didn't change."
        )


class Comparison:
    """The output of a module, the readings of its weights, and what was seen.

    Args:
        owner: the subject that the report is about.
        subject: the one that is compared, with distinct widths if there is one.
    """

    def __init__(self, owner: Subject, subject: Subject) -> None:
        self.owner, self.subject = owner, subject
        self.by_name = subject.candidates() or self._without_weights()
        self.by_role: list[Projections] = []
        self.seen: Seen | None = None
        d_head = self.by_name[0].d_head if self.by_name else 0
        # Where t equals d_head, dividing by the root of either gives the same.
        given, self.y = _output(subject, 5 if d_head == 7 else 7)
        self.x = given.cpu()
        self.layer = self._with_numbers(subject.layer)
        self.gap = float("inf")
        self._stage: str | None = None
        self.first_step = ""
        self.late: Step | None = None
        self.explained = False

    def _without_weights(self) -> list[Projections]:
        """Return readings of a layer that learns nothing: the tokens themselves."""
        if any(True for _ in self.subject.pristine.parameters()):
            return []
        width, h = self.subject.sizes["d_in"], self.subject.sizes["num_heads"]
        itself = torch.eye(width), None
        # The call alone may know how many heads there are.
        heads = [h] if h else [n for n in range(1, width + 1) if width % n == 0]
        return [Projections(itself, itself, itself, num_heads=n) for n in heads]

    @property
    def readings(self) -> list[Projections]:
        """The readings of the weights, those by name first."""
        return [*self.by_name, *self.by_role]

    def equal(self) -> bool:
        """Whether the output is that of right attention, by some reading."""
        self.gap = self._gap(self.by_name)
        if self.gap < parity.TOLERANCE:
            return True
        given = self.subject.how.weights is not None
        self.by_role, self.seen = find_roles(self.subject)
        self.by_role = [] if given else [p.cpu() for p in self.by_role]
        gap = self._gap(self.by_role)
        self.gap = min(gap, self.gap) if self.by_name else gap
        return gap < parity.TOLERANCE and not self._swapped()

    def _swapped(self) -> bool:
        """Whether the names say that one projection is used in another's place."""
        if not self.by_name:
            return False
        named, acting = self.by_name[0], self.by_role[0]
        pairs = [(getattr(named, r), getattr(acting, r)) for r in ("query", "key")]
        own = all(_same(a[0], b[0]) for a, b in pairs)
        if own and not all(_same(a[1], b[1]) for a, b in pairs):
            return True  # its own matrix, and the bias of another
        match = self._named(self.by_name[:1], single=True)
        return match is not None and bool(set(match.names) & ROLES)

    def _swapped_in(self, layer: Layer) -> bool:
        """Whether the names say so, in a layer that was recognized."""
        named, causal = self.by_name[:1], self.subject.causal
        if not named or parity.right_distance(
            self.x, self.y, self.by_name, causal, layer
        ) < parity.TOLERANCE:  # fmt: skip
            return False
        match = parity.name_mistake(self.x, self.y, named, causal, layer, several=False)
        return match is not None and bool(set(match.names) & ROLES)

    def normed_behind(self) -> bool:
        """Whether queries and keys are normed behind the rotation, not before it."""
        layer = self.layer
        if not (layer.rope and layer.qk_norm) or layer.norm_late:
            return False
        layer, causal = replace(layer, norm_late=True), self.subject.causal
        made = parity.right_distance(self.x, self.y, self.readings, causal, layer)
        return made < parity.TOLERANCE

    def unread(self) -> bool:
        """Whether no reading of the weights gives an output of this size at all."""
        return self.gap == float("inf") and bool(self.y.isfinite().all())

    def sure(self) -> bool:
        """Whether names or acts tell the weights, or what was projected with them."""
        named = any(one.sure for one in self.readings if self._gap([one]) < math.inf)
        return named or self.stage() not in ("", "projection", "output")

    def known_layer(self) -> bool:
        """Whether it is right attention with something that was not declared."""
        if not self.subject.layer.plain:
            return False
        layer = parity.recognized(
            self.x, self.y, self.readings, self.subject.causal, self._layers()
        )
        if layer is None:
            return False
        if self._swapped_in(layer):
            self.layer = layer
            return False
        self.owner.layer = layer
        self.owner.note(
            f"Equal to attention with {layer.words()}. This was found, not declared."
        )
        return True

    def inferred(self, found: Collector) -> bool:
        """Whether each step follows from its input in a layer nobody described."""
        declared = self._declared()
        read = inferred(self.subject, self.x.to(self.subject.device))
        rope = read.options.get("rope") if read else None
        if rope and rope.share * self.subject._d_head() <= 2:
            # One pair of numbers shows neither pairing nor powers.
            read = inferred(self.owner, self.owner.tokens())
        declared -= {"rope"} if read and self._turns_a_slice(read) else set()
        if read is None or any(not self._meant(n, read.options) for n in declared):
            return False
        done = "Checked each step of attention by what went into it."
        for step in read.steps:
            _tell(found, step, done)
        found.causes = tuple(step.mistake for step in read.steps)
        if not declared:
            options = {n: v for n, v in read.options.items() if n in ACTS}
            self.owner.layer = replace(self.owner.layer, **options)
            if not read.steps:
                self.tell_given(found)
        if read.asks:
            self.tell_undeclared(found, opened=False)
            self._ask_window(read, found, done)
        told = f": {', '.join(read.words)}" if read.words else ""
        found.read = [] if read.steps else read.words
        which = "Each other step" if read.steps else "Each step"
        self.owner.note(f"{which} follows from what went into it{told}.")
        found.compared = True
        return True

    def _ask_window(self, read: Read, found: Collector, done: str) -> None:
        found.beside = ", ".join(read.words)
        meant, acts = read.asks["window"], read.options["window"]
        seen = f"Each token sees {acts} tokens instead of {meant}."
        found.likely = {"window_size": (done, seen)}
        found.needed = self._words_on_window(replace(self.layer, window=acts))
        raise NotCompared(
            f"each step follows from its input, with a window of {acts} tokens, "
            f"where {meant} were asked for. Declare {acts} if the token itself "
            f"isn't counted in that, or {meant}",
            **({} if found.needed else read.asks),
        )

    def tell_wide_window(self, found: Collector) -> None:
        """Look at a window that hides nothing of a few tokens with more of them.

        Raises:
            NotCompared: it is wider or narrower by one than the constructor was told.
        """
        layer = self.subject.layer
        meant = layer.window or self.owner.given_window
        if not meant or layer.memory or not self.owner.causal:
            return
        subject, more, built = self.subject, 0, ""
        if meant > WIDE and (narrow := self._narrowed()):
            more, meant, subject = meant - NARROW, NARROW, narrow
            built = f"Built it with a window of {NARROW}. "
        elif not self.x.shape[1] - 2 < meant <= WIDE:
            return
        x = subject.tokens(t=meant + 3)
        if x.shape[1] <= meant:
            return
        done = f"{built}Passed {x.shape[1]} tokens, and looked at each step."
        if layer.window:
            for step in walked(subject, x):
                if step.mistake == "window_size":
                    _tell(found, step, done)
            return
        read = inferred(subject, x, mistakes=False) if x.shape[1] > meant else None
        mask = hidden(subject, x) if subject is not self.subject else None
        if mask is not None and not mask.tril().any():
            sure = self.owner.hides_by_window
            text = "Each token still sees all before it."
            if not sure:
                text += " That may be meant, as where only some layers have a window."
            found.add("window_unused", done, text, None if sure else "warning")
        if read and read.asks:
            # As with the window that it was given.
            asks = {"window": read.asks["window"] + more}
            options = read.options | {"window": read.options["window"] + more}
            self._ask_window(replace(read, asks=asks, options=options), found, done)

    def _narrowed(self) -> Subject | None:
        """Return the subject with a window that can be tried, or None."""
        owner, layer = self.owner, self.subject.layer
        name, size = owner.named_window
        narrow = runs(owner.variant(own={name: NARROW}))
        if narrow is not None and layer.window:
            narrow.layer = replace(layer, window=layer.window - size + NARROW)
        return narrow

    def tell_slopes(self, found: Collector) -> None:
        """Tell of slopes by distance that are wrong for other numbers of heads."""
        if not self.owner.layer.alibi or self.owner.how.weights:
            return
        widths = {n: 48 for n in ("d_in", "d_out") if self.owner.sizes[n]}
        other = runs(self.owner.variant(num_heads=6, **widths))
        steps = walked(other, other.tokens()) if other else []
        for step in steps:
            if step.mistake == "alibi_slopes":
                _tell(found, step, "Built it with 6 heads, and looked at each step.")

    def _declared(self) -> set[str]:
        layer = replace(self.subject.layer, memory=None, window=None)
        return set(declaration(layer))

    def _turns_a_slice(self, read: Read) -> bool:
        """Whether the declared share of each head is turned, wherever it stands."""
        rope = self.subject.layer.rope
        if rope is None:
            return False
        turned = replace(rope, share=1.0).words()
        told = rf"rotary positions \({re.escape(turned)}, \d+ numbers of each head"
        return any(re.match(told, words) for words in read.words)

    def _meant(self, name: str, read: dict[str, Any]) -> bool:
        """Whether what was read off is what was declared."""
        layer = self.subject.layer
        if name in ("prenorm", "postnorm", "residual"):
            return name in read
        known = read.get(name)
        if name == "rope" and known and layer.rope:
            opened = {n[5:]: getattr(known, n[5:]) for n in layer.open if "rope." in n}
            return bool(replace(layer.rope, **opened) == known)
        same = name in layer.open or known == getattr(layer, name)
        return known is not None and same

    def beside(self) -> list[str]:
        """Return what acts that nobody described, and weights outside of any layer."""
        loose = [
            name
            for part in self.subject.pristine.modules()
            if not isinstance(part, nn.Linear | nn.MultiheadAttention)
            for name, p in part.named_parameters(recurse=False)
            if p.dim() >= 2 and "conv" not in type(part).__name__.lower()
        ]
        told = list(self.seen.extras) if self.seen else []
        return told + ([f"the parameter {loose[0]}"] if loose else [])

    def tell_given(self, found: Collector) -> None:
        """Stop where a base or a cap was given, and another one acts.

        Where the class fails another test anyway, that mistake is told, too.

        Raises:
            NotCompared: it does.
        """
        acts = self.owner.layer
        meant, told = self._given(acts)
        if told and self.subject.layer.plain:
            name = "rope_base" if acts.rope != meant.rope else "softcap_unused"
            done = "Compared what acts with what the constructor was given."
            found.likely = {name: (done, f"Given: {', '.join(told)}.")}
            raise NotCompared(
                f"the constructor was given {', '.join(told)}; if what was given "
                f"counts, declare it",
                **self._declaration(meant),
            )

    def _given(self, layer: Layer) -> tuple[Layer, list[str]]:
        """Return a layer with the base and the cap that were given, and the others."""
        how, told = self.owner.how, []
        if how.call is not None or how.way is not None:
            return layer, []  # angles may be passed
        given = {n: float(v) for n, v in self.owner.given.items() if _number(v)}
        bases = {n: v for n, v in given.items() if ROPE_BASE.search(n) and v >= BASE}
        if layer.rope and len(bases) == 1 and layer.rope.base not in bases.values():
            ((name, base),) = bases.items()
            told.append(f"{name}={base:g}, and the base {layer.rope.base:g} acts")
            layer = replace(layer, rope=replace(layer.rope, base=base))
        own = inspect.signature(type(self.owner.pristine)).parameters
        caps = {
            n: v
            for n, v in given.items()  # a config may speak of the whole model's logits
            if SOFTCAP.search(n) and v >= 1 and (n in own or not n.startswith("logit"))
        }
        if not layer.softcap and len(caps) == 1 and not self._caps():
            ((name, cap),) = caps.items()
            told.append(f"{name}={cap:g}, and nothing caps the scores")
            layer = replace(layer, softcap=cap)
        return layer, told

    def _caps(self) -> bool:
        """Whether as many numbers as there are scores go through tanh, if they do."""
        walk = followed(self.subject, self.x.to(self.subject.device))
        return walk is not None and walk.capped

    def tell_bias(self, found: Collector) -> None:
        """Tell of a mistake in a bias that was declared by the class's own function."""
        subject, layer = self.subject, self.subject.layer
        if layer.bias is None:
            return
        subject.layer = replace(layer, bias=None)  # read it as if nobody had said it
        read = inferred(subject, self.x.to(subject.device), mistakes=False)
        subject.layer = layer
        steps = read.steps if read else []
        for step in steps:
            _tell(found, step, "Checked what is added to the scores.")
        found.causes = tuple(step.mistake for step in steps)

    def tell_unused_positions(self, found: Collector) -> None:
        """Tell of a table of rotary positions that changes nothing."""
        layer, module = self.owner.layer, self.owner.pristine
        if layer.rope or layer.alibi or layer.bias is not None or not self.readings:
            return
        names = [type(module).__name__, *(name for name, _ in module.named_buffers())]
        if layer.plain and any(re.search("alibi|slope", n.lower()) for n in names):
            done = "Compared the output with attention without a bias by distance."
            seen = "They're equal, although the class has one by its names."
            found.add("alibi_unused", done, seen)
            return
        watch = Watch(module := self.subject.copy())
        turned = _calls(module, TURNS)
        self.subject(self.x.to(self.subject.device), module, mode=watch)
        table = "a table of positions" in watch.seen.extras
        if table or turned:
            done = "Compared the output with attention without positions."
            by = "uses a table of positions" if table else f"calls {turned[0]}"
            seen = f"They're equal, although forward {by}."
            if not self.tell_steps(found):
                found.add("rope_unused", done, seen)

    def match(self) -> parity.Match | None:
        """Return the mistakes that give the same output, or None."""
        if parity.distance(self.y, self.x) < 1e-3:
            return None  # it returns its input: that equals attention to itself alone
        return self._named(self.readings)

    def _named(
        self, readings: list[Projections], single: bool = False
    ) -> parity.Match | None:
        given = (self.x, self.y, readings, self.subject.causal)
        layers = [self.layer, *self._ropes()]
        # What was left open of rotary positions may be another than the usual.
        shares = [
            one for one in self._opened()
            if one.rope and (one.rope.base, one.rope.way) == (BASES[0], 1)
        ]  # fmt: skip
        for layer in [*layers, *shares]:
            match = parity.name_mistake(*given, layer, several=False)
            if match is not None:
                return match
        # Rounding, or what was found before, explains a difference by itself.
        if single or self.explained or self.gap < ROUNDED or self._each_step_right():
            return None
        # Where a table acts, nothing equals attention without positions.
        return parity.name_mistake(*given, layers[-1], several=True)

    def _each_step_right(self) -> bool:
        """Whether each step follows from its input, in the layer that was described.

        Then there are no two mistakes to look for.
        """
        x = self.x.to(self.subject.device)
        read = inferred(self.subject, x, mistakes=False)
        if read is None or read.steps or read.asks:
            return False
        return all(self._meant(n, read.options) for n in self._declared())

    def unequal_sums(self) -> bool:
        """Whether equal values come out unequal, as by weights that don't sum to 1."""
        layer, subject, module = self.layer, self.subject, self.subject.copy()
        beside = layer.prenorm or layer.residual or layer.sink or layer.bias
        if beside or not self.by_name or subject.how.weights:
            return False
        sizes = subject.sizes["num_heads"], subject.sizes["d_in"]
        weight, bias = find(module, *sizes)[0].value
        with torch.no_grad():  # what was read is a view of a parameter, most often
            weight.zero_()[..., 0] = 1.0
            if bias is not None:
                bias.zero_()
        if find(module, *sizes)[0].value[0][..., 1:].any():
            return False
        x = self.x.to(subject.device, copy=True)
        x[..., 0] = 1.0  # so each value is 1, in each head
        y, others = subject(x, module), x.flip(0)
        if not changed(y, subject(x), 1e-4):
            return False  # the values aren't made by this projection
        others[:, -1] = x[:, -1]  # a gate is a token's own, whatever the others are
        gated = not changed(y[:, -1], subject(others, module)[:, -1], 1e-4)
        unequal = changed(y, y[:1, :1].expand_as(y), 1e-4)
        return bool(y.isfinite().all()) and unequal and not gated

    def _ropes(self) -> list[Layer]:
        """Rotary positions to try where a table acts and nothing was declared."""
        if self.seen is None or not self.subject.layer.plain:
            return []
        tables = {"a table of positions", "a table"} & set(self.seen.extras)
        return [self._with_numbers(Layer(rope=Rope()))] if tables else []

    def tell_steps(self, found: Collector) -> bool:
        """Tell of steps that are wrong by themselves; return whether one has a name."""
        steps = []
        with contextlib.suppress(Exception):  # what is captured may have any form
            steps = walked(self.subject, self.x.to(self.subject.device))
            if not any(step.mistake for step in steps):
                steps += self._turning() + self._declared_numbers()
        named = [step for step in steps if step.mistake][:1]  # the rest follows
        if steps and not named:
            self.first_step, self.late = steps[0].stage, steps[0]
        if not named:
            return False
        done = "Checked each step of attention by what went into it."
        for step in named:
            _tell(found, step, done)
        found.compared, found.causes = True, tuple(step.mistake for step in named)
        return True

    def tell_late(self, found: Collector) -> bool:
        """Tell of a step that differs, where nothing was given that could mean it."""
        if self.late is None or not self.late.late or _scales(self.owner):
            return False
        if self.subject is not self.owner:  # a number may be right for one size
            own = walked(self.owner, self.owner.tokens())
            if not any(step.late for step in own):
                return False
        named = replace(self.late, mistake=self.late.late)
        _tell(found, named, "Checked each step of attention by what went into it.")
        found.compared, found.causes = True, (named.mistake,)
        return True

    def _turning(self) -> list[Step]:
        """Return what is wrong with rotary positions, by what they do to each token."""
        subject, given = self.subject, self.owner.given
        many = subject.tokens(b=4 * subject._d_head(), t=self.x.shape[1], seed=6)
        walk = followed(subject, many)
        bases = [v for n, v in given.items() if ROPE_BASE.search(n) and _number(v)]
        return list(turning(walk, [float(b) for b in bases])) if walk else []

    def _declared_numbers(self) -> list[Step]:
        """Return what is wrong with sinks or a bias that were declared."""
        walk = followed(self.subject, self.x.to(self.subject.device))
        if walk and self.layer.sink == "learned":
            return sinks_told(walk, self.layer.norm_of("sink")[0])
        if walk is None or self.layer.bias is None:
            return []
        held = self.subject.pristine.named_parameters()
        tables = [p.detach() for name, p in held if re.search(BIASES, name.lower())]
        return bias_told(walk, self.layer.bias(walk.t), tables)

    def sees_all(self) -> bool:
        """Whether the scores of the past are hidden nowhere, whatever follows."""
        mask = None
        with contextlib.suppress(Exception):  # what is captured may have any form
            mask = hidden(self.subject, self.x.to(self.subject.device))
        return mask is not None and not mask.tril().any()

    def by_design(self) -> str:
        """Return what a class may want to hide, or to average, or ""."""
        if self.owner.says(AVERAGED) and self._mixes_alike():
            return "the weights are averaged over the heads"
        if not replace(self.subject.layer, memory=None).plain:
            return ""
        mask, stage = None, self.stage()
        with contextlib.suppress(Exception):  # what is captured may have any form
            mask = hidden(self.subject, self.x.to(self.subject.device))
        if mask is None:
            # The scores of all tokens aren't in one square.
            return self._in_groups() or self._without_scores()
        if stage not in ("scores", "mask") or not mask.any():
            return ""
        i, j = (torch.arange(size) for size in mask.shape)
        apart = i[:, None] - j
        if not self.subject.causal and torch.equal(mask, apart == 0):
            return ALONE  # whatever else acts on the scores
        if stage != "mask":
            return ""
        gone = {int(d): mask[apart == d] for d in apart.unique()}
        alike = all(one.all() or not one.any() for one in gone.values())
        ahead = not self.subject.causal or bool(mask[apart < 0].all())
        # One that hides all from some distance on is a window, and can be declared.
        holes = any(gone[d].any() and not gone[d + 1].any() for d in range(len(i) - 1))
        if not (alike and ahead and (holes or self.subject.layer.memory)):
            return ""
        speaks = self.owner.speaks_of(SPARSE)
        return "tokens at some distances are hidden" if speaks else ""

    def _mixes_alike(self) -> bool:
        """Whether all heads mix values with the same weights, as far as is known."""
        walk = None
        with contextlib.suppress(Exception):  # what is captured may have any form
            walk = followed(self.subject, self.x.to(self.subject.device))
        if walk is None or walk.h == 1:
            return True
        heads = walk.mixing.unflatten(0, (-1, walk.h))
        return not changed(heads, heads[:, :1].expand_as(heads), 1e-4)

    def _in_groups(self) -> str:
        """Return that tokens see others of their group alone, where a name says so."""
        if self.subject.layer.memory:
            return ""  # no query sees another
        try:
            seen = depends(self.subject, t=8)
        except Failure:  # it takes fewer tokens
            return ""
        apart = ~(seen | seen.T)
        named = apart.any() and self.owner.speaks_of(f"{SPARSE}|{UNITS}")
        return "tokens of other groups are hidden" if named and is_units(~apart) else ""

    def _without_scores(self) -> str:
        """Return that no token has scores of others, as in linear attention, or ""."""
        x = self.x.to(self.subject.device)
        linear = sums_first(self.subject, x)
        return "keys and values are summed before queries meet them" if linear else ""

    def stage(self) -> str:
        """Return the first stage that differs, by what is captured, or ""."""
        if self._stage is not None:
            return self._stage
        stages, told = [], ""
        for reading in self.readings[:FEW]:
            with contextlib.suppress(Exception):  # what is captured may have any form
                x = self.x.to(self.subject.device)
                stage, words = first_difference(
                    self.subject, x, reading, self.layer, self.subject.causal
                )
                stages.append(stage)
                told = told or words
        # A reading that is off differs from the start.
        late = [one for one in stages if one not in ("", "projection", "split")]
        self._stage = next(iter([*late, *stages]), "")
        if told and self._stage == "scores" and self.late is None:
            self.late = Step("", "scores", told, late="scale_other")
        return self._stage

    def tell_undeclared(self, found: Collector, opened: bool) -> None:
        """Stop where the output equals attention that does more than was described.

        Nothing says whether that is meant: so the options are proposed that do.

        Args:
            found: gets what is to be declared, if there are two ways to see it.
            opened: try what the description left open, such as the base of rotary
                positions, where else what it does not speak of.

        Raises:
            NotCompared: it does.
        """
        layers = self._opened() if opened else [*self._beside(), *self._evident()]
        layer = parity.recognized(
            self.x, self.y, self.readings, self.subject.causal, layers
        )
        if layer is not None:
            found.needed = self._words_on_window(layer)
            declared = {} if found.needed else self._declaration(layer)
            if self._off_by_one(layer) and self.owner.says(ITSELF):
                done = "Compared what acts with what the class says of its window."
                meant = self.owner.given_window
                seen = f"Each token sees {layer.window} tokens instead of {meant}."
                found.likely = {"window_size": (done, seen)}
            self.owner.layer = layer  # so that no other test wonders at it
            raise NotCompared(
                f"the output equals attention with {layer.words()}, which wasn't "
                f"declared; if that's intended, declare it",
                **declared,
            )

    def _declaration(self, layer: Layer) -> dict[str, Any]:
        """Return the options that describe a layer, with the window that was given."""
        known, (layer, _) = declaration(self.subject.layer), self._given(layer)
        declared = {
            n: v
            for n, v in declaration(layer).items()
            if n != "bias" and known.get(n) != v
        }
        if self._off_by_one(layer):
            declared["window"] = self.owner.given_window
        return declared

    def _off_by_one(self, layer: Layer) -> bool:
        """Whether its window is one token wider or narrower than was given."""
        meant = self.owner.given_window
        return bool(meant and layer.window in (meant - 1, meant + 1))

    def _words_on_window(self, layer: Layer) -> str:
        """Return what to declare where a window may not count the token itself."""
        name = type(self.owner.pristine).__name__.lower()
        meant, acts = self.owner.given_window, layer.window
        if meant is None or acts is None or not self._off_by_one(layer):
            return ""
        # Many count only the tokens before; fewer than asked for is no such habit.
        if (acts < meant and "window" not in name) or self.owner.says(ITSELF):
            return ""
        others = [name for name in self._declaration(layer) if name != "window"]
        told = f" beside {', '.join(others)}" if others else ""
        return (
            f"declare window={acts} (--window {acts}){told} if the window of {meant} "
            f"doesn't count the token itself, or window={meant} (--window {meant}) if "
            f"it does"
        )

    def tell_evident(self, found: Collector, done: str) -> None:
        """Stop where a mistake in what the constructor was given explains the output.

        Where the class fails another test anyway, that mistake is told, too.

        Raises:
            NotCompared: one does; what was given is proposed, and names it.
        """
        if not self.subject.layer.plain:
            return
        for layer in self._evident()[-1 : -1 - TRIED : -1]:  # all that is evident first
            match = parity.name_mistake(
                self.x, self.y, self.readings, self.subject.causal, layer, False
            )
            if match is not None:
                seen = f"Equal to attention with {layer.words()}, {match.words} "
                seen += f"(to {match.gap:.0e})."
                found.likely = {name: (done, seen) for name in match.names}
                raise NotCompared(
                    f"it looks like attention with {layer.words()}, which wasn't "
                    f"declared; if that's intended, declare it",
                    **self._declaration(layer),
                )

    def _evident(self) -> list[Layer]:
        """Return layers with what parameters, arguments and calls speak of.

        The last has all of it.
        """
        layer, given, seen = self.layer, self.owner.given, self.seen
        extras = set(seen.extras) if seen else set()
        choices: list[list[dict[str, Any]]] = []
        if not layer.rope and {"a table of positions", "a table"} & extras:
            bases = [v for n, v in given.items() if ROPE_BASE.search(n) and _number(v)]
            ropes = [Rope(p, float(b), s) for b in bases or BASES[:1]
                     for s in (1.0, 0.5) for p in PAIRINGS]  # fmt: skip
            choices.append([{}, *({"rope": rope} for rope in ropes[::-1])])
        if not layer.qk_norm and not layer.prenorm and "a norm" in extras:
            # Without numbers of its own, a norm may be meant for all heads at once.
            sizes = [] if any(norms_of(self.subject.pristine)) else [*NORMS]
            norms: list[dict[str, Any]] = [{"qk_norm": n} for n in NORMS]
            norms += [{"qk_norm": n, "norm_over": "all"} for n in sizes]
            norms += [{"prenorm": n} for n in NORMS[:2]]
            norms += [{"prenorm": n, "residual": True} for n in NORMS[:2]]
            norms += [{"postnorm": n, "residual": True} for n in NORMS[:2]]
            choices.append([{}, *norms])
        if not layer.softcap:
            caps = [v for n, v in given.items() if "cap" in n and _number(v)]
            choices += [[{}, {"softcap": float(cap)}] for cap in caps[:1]]
        if not layer.sink and _sinks(self.subject.pristine) is not None:
            choices.append([{}, {"sink": "learned"}])
        if layer.scale is None:
            scales = [v**-0.5 for n, v in given.items() if "scalar" in n and _number(v)]
            scales += [by for v in _scales(self.owner) for by in (1 / v, v) if v != 1]
            choices += [[{}, *({"scale": by} for by in scales[:2])]] if scales else []
        if not layer.window and (meant := self.owner.given_window):
            windows = [{"window": w} for w in (meant + 1, meant - 1, meant) if w > 0]
            choices.append([{}, *windows])
        if not layer.alibi and self.owner.speaks_of("alibi|slope"):
            choices.append([{}, {"alibi": True}])
        made = []
        for chosen in product(*choices):
            more = {name: value for one in chosen for name, value in one.items()}
            if more:
                made.append(replace(layer, **more))
        # Of many, those with most of what is evident.
        return [self._with_numbers(one) for one in made[-MANY:]]

    def _opened(self) -> list[Layer]:
        """Return layers that fill what the description of this one leaves open."""
        layer = self.layer
        ropes, norms = [layer.rope], [layer]
        if layer.rope:
            choices: list[tuple[Any, ...]] = [
                PAIRINGS if "rope.pairing" in layer.open else (layer.rope.pairing,),
                BASES if "rope.base" in layer.open else (layer.rope.base,),
                SHARES if "rope.share" in layer.open else (layer.rope.share,),
                (1, -1) if "rope.way" in layer.open else (layer.rope.way,),
            ]
            ropes = [Rope(*chosen) for chosen in product(*choices)]
            # The fewer pairs turn, the more another base looks like other powers.
            both = "rope.base" in layer.open and "rope.share" in layer.open
            ropes = [
                one for one in ropes
                if one and not (both and one.share == 0.75 and one.base != BASES[0])
            ]  # fmt: skip
        if layer.qk_norm:
            kinds = NORMS if "qk_norm" in layer.open else (layer.qk_norm,)
            overs: tuple[str, ...] = (layer.norm_over,)
            if "norm_over" in layer.open and self._norms_are_wide():
                overs = ("heads", "all")
            norms = [
                replace(layer, qk_norm=kind, norm_over=over)
                for kind, over in product(kinds, overs)
            ]
        layers = [replace(norm, rope=rope) for norm in norms for rope in ropes]
        return [self._with_numbers(one) for one in layers if one != layer]

    def _norms_are_wide(self) -> bool:
        """Whether the module holds norms as wide as all heads together."""
        wide = self.readings[0].query[0].shape[0] if self.readings else 0
        alone = [n for n in norms_of(self.subject.pristine) if n[2] == wide]
        return len(alone) >= 2

    def _beside(self) -> list[Layer]:
        """Return layers that do one thing more than the one described."""
        layers = [self.layer]
        layers += [one for one in self._opened() if one.rope == self.layer.rope]
        return [one for layer in layers for one in self._more(layer)]

    def _more(self, layer: Layer) -> list[Layer]:
        more: list[dict[str, Any]] = []
        if not layer.window:
            more += [{"window": window} for window in range(2, 7)]
            more += [{"window": w, "first": f} for w in (2, 3, 4) for f in (1, 2, 4)]
        if not layer.rope:
            ropes = [Rope(p, b) for p in PAIRINGS for b in BASES]
            ropes += [Rope(p, way=-1) for p in PAIRINGS]
            more += [{"rope": rope} for rope in ropes]
        if not layer.qk_norm:
            overs = ("heads", "all") if self._norms_are_wide() else ("heads",)
            norms: list[dict[str, Any]] = [
                {"qk_norm": n, "norm_over": o} for n in NORMS for o in overs
            ]
            more += norms
            more += [n | m for n in norms for m in more if "rope" in m]
        if not layer.prenorm:
            norms = [{"prenorm": n} for n in ("layer", "rms")]
            more += norms + [n | m for n in norms for m in more if "rope" in m]
        if not layer.alibi:
            more.append({"alibi": True})
        if not layer.sink:
            held = _sinks(self.subject.pristine) is not None
            more += [{"sink": sink} for sink in SINKS if held or sink == "zero"]
        if not layer.softcap:
            more += [{"softcap": cap} for cap in CAPS]
        return [self._with_numbers(replace(layer, **each)) for each in more]

    def tell_excuses(self, found: Collector) -> None:
        """Stop where something acts that nobody described, so a difference says little.

        What was described excuses nothing: then every difference counts.

        Raises:
            NotCompared: something does.
        """
        subject, seen = self.subject, self.seen
        if not replace(subject.layer, memory=None).plain:
            return
        told = list(seen.extras) if seen else []
        self._tell_window(found)
        if self.owner.given_window and not subject.layer.memory:
            told.append(f"a window of {self.owner.given_window} for some heads")
        left = _unused(subject.pristine, self.readings)
        if left:
            told.append(f"weights outside the projections that were found ({left})")
        if not told and self.stage() in BEFORE_MASK and self._order_matters():
            told.append("the order of tokens")
        if told and self.owner.speaks_of(BIAS):
            found.needed = NEEDS_BIAS
        if told:
            found.beside = ", ".join(told)
            raise NotCompared(
                f"{', '.join(told)} acts in forward, so a difference from plain "
                f"attention proves nothing. Declare it (rope=, window=, alibi=, "
                f"qk_norm=, softcap=, prenorm=, sink=, scale=, bias=, documents=), or "
                f"pass reference=",
                **agreeing(self.owner, self._proposal(told)) or self._added(),
            )

    def _tell_window(self, found: Collector) -> None:
        """Stop where a window was given and the mask is another by one token.

        Raises:
            NotCompared: it is.
        """
        meant, trial = self.owner.given_window, copy.copy(self.subject)
        if not meant or trial.layer.memory:
            return
        trial.layer = replace(trial.layer, window=meant)
        steps = []
        with contextlib.suppress(Exception):  # what is captured may have any form
            steps = list(walked(trial, self.x.to(trial.device)))
        for step in steps:
            if step.mistake != "window_size":
                continue
            size = int(step.seen.split()[3])
            found.needed = self._words_on_window(replace(self.layer, window=size))
            raise NotCompared(
                f"each token sees {size} tokens, and the constructor was given "
                f"{meant}; if those count the token itself, declare it",
                **({} if found.needed else {"window": meant}),
            )

    def _added(self) -> dict[str, Any]:
        """Return the option by which a table for all pairs is added to the scores."""
        tables = [
            name
            for name, one in self.owner.pristine.named_buffers()
            if one.dim() > 1 and one.shape[-1] >= self.x.shape[1] and is_table(one)
            if all(part.isidentifier() for part in name.split("."))
        ]
        codes = [f"lambda module, t: module.{name}[..., :t, :t]" for name in tables]
        options = (agreeing(self.owner, {"bias": code}) for code in codes)
        return next(filter(None, options), {})

    def _proposal(self, told: list[str]) -> dict[str, Any]:
        """Return the options that most likely describe what was seen to act.

        Only where one thing alone acts: no option describes a part.
        """
        tables = {"a table of positions", "a table"}
        if self.subject.layer.memory:
            return {}  # it may be joined with the queries, or normed by itself
        if len(set(told) - tables) + bool(tables & set(told)) != 1:
            return {}
        if "a norm" in told:
            names = [name for name, *_ in norms_of(self.subject.pristine)]
            first = [name.split(".")[-1].lower()[:1] for name in names]
            if {"q", "k"} & set(first):
                return {"qk_norm": True}
            assert self.seen is not None, "it was seen to act"
            products = self.seen.products
            if products and self.seen.places["a norm"] < products[0].place:
                return {"prenorm": True}
            return {}
        if {"a table of positions", "a table"} & set(told):
            # Queries and keys go into the scores as they were projected.
            return {"alibi": True} if self.stage() == "scores" else {"rope": True}
        return {}

    def _order_matters(self) -> bool:
        x = self.subject.tokens()
        if x.shape[1] < 4:
            return False
        other = x.clone()
        other[:, [0, 2]] = x[:, [2, 0]]
        return changed(self.subject(x)[:, -1], self.subject(other)[:, -1], 1e-4)

    def blame(self, name: str) -> Line | None:
        """Return the line of the reader's code that a mistake is likely in."""
        seen = self.seen
        if seen is None:
            return None
        for start, functions in _BLAME:
            if name.startswith(start):
                for function in functions:
                    if function in seen.lines:
                        return seen.lines[function]
        return None

    def _gap(self, readings: list[Projections]) -> float:
        causal = self.subject.causal
        return parity.right_distance(self.x, self.y, readings, causal, self.layer)

    def _layers(self) -> list[Layer]:
        """Return what might act in the layer, likely ones first."""
        norms = self._norm_layers()
        ropes = [Rope("halves"), Rope("neighbors")]
        ropes += [Rope(p.pairing, base) for base in (5e5, 1e6, 1e5) for p in ropes]
        layers = [*norms, *(Layer(rope=rope) for rope in ropes)]
        if not any(True for _ in self.subject.pristine.parameters()):
            layers.append(Layer(scale="1"))  # the simplest attention there is
        for norm in norms:
            layers += [
                Layer(rope=rope, qk_norm=norm.qk_norm, prenorm=norm.prenorm,
                      norms=norm.norms)
                for rope in ropes
            ]  # fmt: skip
        layers.append(Layer(alibi=True))
        after = [Layer(residual=True, postnorm=kind) for kind in ("layer", "rms")]
        after += [Layer(residual=True, prenorm=kind) for kind in ("layer", "rms")]
        layers += [self._with_numbers(one) for one in after]
        if _sinks(self.subject.pristine) is not None:
            layers.append(self._with_numbers(Layer(sink="learned")))
        layers += [Layer(softcap=float(cap)) for cap in (50, 30, 20, 15)]
        given = [v for n, v in self.owner.given.items() if "cap" in n and _number(v)]
        caps = [float(cap) for cap in given[:1]]
        return layers + [replace(one, softcap=cap) for cap in caps for one in norms]

    def _norm_layers(self) -> list[Layer]:
        width = self.readings[0].d_in if self.readings else None
        layers = []
        for kind in ("layer", "rms"):
            layers.append(self._with_numbers(Layer(qk_norm=kind)))
            layers.append(self._with_numbers(Layer(prenorm=kind)))
        layers.append(Layer(qk_norm="l2"))
        return layers if width else []

    def _with_numbers(self, layer: Layer) -> Layer:
        """Add to a layer the numbers of the norms, sinks and biases that are held.

        Raises:
            NotCompared: a learned sink was declared, and no parameter is called so.
        """
        module = self.subject.pristine
        if isinstance(layer.bias, _Bound):
            pass
        elif callable(layer.bias) or isinstance(layer.bias, torch.Tensor):
            layer = replace(layer, bias=_Bound(layer.bias, module))
        norms: dict[str, tuple[Any, ...]] = {}
        if layer.sink == "zero":
            norms["sink"] = (torch.zeros(1), None)
        elif layer.sink:
            norms["sink"] = (_sinks(module), None)
        if norms.get("sink", (0,))[0] is None:
            if self.subject.layer.sink:
                raise NotCompared(
                    "no parameter has 'sink' in its name, so the learned sinks "
                    "weren't found. Rename it, or pass reference="
                )
            norms = {"sink": (torch.zeros(1), None)}
        if layer.qk_norm or layer.prenorm or layer.postnorm:
            norms |= self._norms(module, layer)
        return replace(layer, norms=tuple(norms.items()))

    def _norms(self, module: nn.Module, layer: Layer) -> dict[str, tuple[Any, ...]]:
        norms = {}
        d_in = self.subject.sizes["d_in"]
        for name, kind, width, *numbers in norms_of(module):
            last = name.split(".")[-1].lower()
            wanted = layer.prenorm or layer.postnorm
            ours = kind == wanted and not last.startswith(("q", "k"))
            if wanted and width == d_in and "x" not in norms and ours:
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


def _output(subject: Subject, t: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return tokens and output, of another length where it doesn't take t tokens."""
    for other in (t, 8, 6):
        with contextlib.suppress(CallFailed):
            x = subject.tokens(t=other)
            return x, subject(x)
    x = subject.tokens(t=t)
    return x, subject(x)


def _tell(found: Collector, step: Step, done: str) -> None:
    """Add a step that is wrong; where it has no name, its stage says where."""
    stage = step.stage if step.mistake in ("differs", "axis_summed_alone") else ""
    seen = f"{step.seen} Stage: {step.stage}."
    found.add(step.mistake, done, seen, step.severity, stage=stage)


def _same(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.shape == other.shape and torch.allclose(one, other)


class _Bound:
    """A function (t) that gives the bias of the scores in float64."""

    def __init__(self, bias: Any, module: nn.Module) -> None:
        self.bias, self.module = bias, module

    def __call__(self, t: int) -> torch.Tensor:
        if isinstance(self.bias, torch.Tensor):
            return self.bias.detach().cpu().double()[..., :t, :t]
        try:
            with torch.no_grad():
                return self.bias(self.module, t).detach().cpu().double()
        except Exception as error:
            why = f"bias(module, {t}) raised {type(error).__name__}"
            raise UnusableError(f"{why}: {first_line(error)}.") from None


def declaration(layer: Layer) -> dict[str, Any]:
    """Return the options of the check that describe a layer."""
    options = {}
    for name in OPTIONS:
        value = getattr(layer, name)
        if value is None or value is False:  # a bias may be a tensor
            continue
        if name == "norm_over" and value == "heads":
            continue
        if isinstance(value, _Bound):
            continue  # it was given, in the reader's own words
        if name == "rope":
            usual = Rope(value.pairing)
            value = {"pairing": value.pairing} | {
                field: "other" if field == "way" else getattr(value, field)
                for field in ("base", "share", "way")
                if getattr(value, field) != getattr(usual, field)
            }
            value = value if len(value) > 1 else value["pairing"]
        options[name] = value
    return options


def _adapter(subject: Subject) -> dict[str, str]:
    """Return options that would name the linear layers, as far as their names do."""
    linear = [
        name
        for name, part in subject.pristine.named_modules()
        if isinstance(part, nn.Linear) and name.isidentifier()
    ]
    entries = []
    for role in ("query", "key", "value", "out"):
        plain = {name: name.replace("_", "").lower() for name in linear}
        fits = [
            n for n, text in plain.items() if text.startswith(role[:1]) or role in text
        ]
        if not fits and role != "out":
            return {}
        entries += [f"{role}=m.{fits[0]}"] if fits else []
    heads = subject.sizes.get("num_heads") or 1
    return {"weights": f"lambda m: dict({', '.join(entries)}, num_heads={heads})"}


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


# Mistakes whose numbers others give, too, and that are told if no step is wrong.
OTHERS = (("rope_unused",), ("heads_attend_heads",))
# Mistakes by which a projection does not do what its name says.
ROLES = {
    "projection_mixed_up",
    "scores_transposed",
    "bias_unused",
    "output_projection_unused",
}
# What other tests look at in a layer that was read off.
ACTS = ("rope", "qk_norm", "alibi", "bias", "sink", "softcap", "window", "residual")
BIASES = "bias_?tab|rel|pos|dist|table|emb"
BIAS = r"rel\w*_(bias|pos|emb)|bias_table|attention_bias|pos\w*_bias|bias_index"
NEEDS_BIAS = (
    "say what is added to the scores, as a function of the module and the number of "
    "tokens, in bias=lambda module, t: … or --bias 'lambda module, t: …'. It returns "
    "(heads, t, t). Where more than that acts, only a right class helps, as reference="
)
# Departures that an option declares, and the words by which a class speaks of them.
MEANT: dict[str, tuple[dict[str, Any], str]] = {
    "scale_missing": (
        {"scale": "none"},
        rf"{T5}|gpt_?neo(?!x)|sagan|non_?local|query_?conv|\bno scal(e|ing)\b",
    ),
    "scale_twice": ({"scale": "1/d"}, r"\bmup\b|µp\b|mu_?transfer"),
    "mask_hides_itself": ({"exclusive": True}, "strict|exclusive|shift|start_mask"),
}
ALONE = "no token sees itself"
# As in the temporal fusion transformer, so that one picture of weights tells all.
AVERAGED = re.compile(r"(?i)averag\w* (over|across) (the |all )?heads")
SCALE = re.compile(r"(attn|attention|softmax|score|logit|qk|^)_?(scal(e|ing)|mult\w*)$")
# By these names tokens don't see all others.
SPARSE = "spars|dilat|strid|local|band|axial|neighbor|chunk|block_mask"
TRIED, MANY, FEW = 12, 120, 3  # layers that are tried with mistakes, and without
SOFTCAP = re.compile(
    r"^(?!final|lm_|out).*((attn|attention|score|logit)\w*cap|soft_?cap)"
)
ROPE_BASE = re.compile(
    r"theta|rope\w*_base|rotary\w*_base|rope_freq|max_(period|wavelength)$"
)
TURNS = re.compile("rope|rotary|rotate")  # in the name of a function that forward calls

# Stages at which positions may act that nobody declared.
BEFORE_MASK = ("", "projection", "split", "positions", "scores")
ROUNDED = 5e-3  # of the largest output, as lower precision leaves it
BASES = (10000.0, 500000.0, 1000000.0, 100000.0)
BASE = 100.0  # the least that is one
WIDE = 64  # the widest window for which as many tokens are tried
NARROW = 4  # one in its place
SHARES = (1.0, 0.5, 0.25, 0.75)
CAPS = (50.0, 30.0, 20.0, 15.0)

# The start of a mistake's name, and the calls whose line is to be shown.
_FUSED = "scaled_dot_product_attention"
_BLAME = [
    ("mask_", ("masked_fill", "masked_fill_", "where", "softmax", _FUSED)),
    ("softmax_", ("softmax", "_softmax", "exp")),
    ("scale_", ("softmax", "_softmax", _FUSED)),
    ("heads_", ("view", "reshape", "transpose")),
    ("join_", ("reshape", "view", "flatten")),
    ("groups_", ("repeat", "repeat_interleave", "expand")),
    ("rows_repeated", ("expand", "repeat", "repeat_interleave")),
    ("scores_", ("softmax", "matmul", "__matmul__")),
    ("weights_transposed", ("matmul", "__matmul__")),
    ("rope_", ("cat", "stack", "cos", "view_as_complex")),
    ("future_", ("masked_fill", "masked_fill_", "softmax", _FUSED)),
    ("overflows", ("exp", "softmax")),
    ("dropout_", ("dropout", _FUSED)),
]


def _doc(subject: Subject) -> str:
    """Return what the file of a class says about itself."""
    file = inspect.getmodule(type(subject.pristine))
    return (file and file.__doc__) or ""


def _calls(module: nn.Module, pattern: re.Pattern[str]) -> list[str]:
    """Return a list for the names of functions and parts that forward calls."""
    names: list[str] = []
    for part in list(module.modules())[1:]:
        if pattern.search((kind := type(part).__name__).lower()):
            part.register_forward_pre_hook(lambda *_, kind=kind: names.append(kind))

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and pattern.search(frame.f_code.co_name.lower()):
            names.append(frame.f_code.co_name)

    module.register_forward_pre_hook(lambda *_: sys.setprofile(look))
    module.register_forward_hook(lambda *_: sys.setprofile(None), always_call=True)
    return names


def _unused(module: nn.Module, readings: list[Projections]) -> str:
    """Say how many numbers of the module's matrices are in no projection, or ""."""
    held = sum(
        p.numel()
        for name, p in module.named_parameters()
        if p.dim() >= 2 and not re.search(r"(^|\.)b_[qkvo]$", name.lower())
    )
    # Vectors that are no biases nor gains, such as a key that every token sees.
    norms = {name for name, *_ in norms_of(module)}
    held += sum(
        p.numel()
        for owner, part in module.named_modules()
        for name, p in part.named_parameters(recurse=False)
        if p.dim() < 2
        and owner not in norms
        and not isinstance(part, (nn.Linear, *_NORMS))
        and not re.search(r"bias|(^|_)b\d?(_|$)|^b[qkvo]$", name.lower())
    )
    found = 0
    for projections in readings[:1]:
        pairs = (projections.query, projections.key, projections.value, projections.out)
        found = sum(pair[0].numel() for pair in pairs if pair is not None)
    return f"{held - found:,} of {held:,}" if held > found else ""


_NORMS = (nn.LayerNorm, nn.GroupNorm, nn.BatchNorm1d, nn.BatchNorm2d)


def _sinks(module: nn.Module) -> torch.Tensor | None:
    """Return the numbers of the parameter that is called a sink, or None."""
    for name, parameter in module.named_parameters():
        if "sink" in name.split(".")[-1].lower():
            return parameter.detach().flatten().cpu()
    return None


def _share(gap: float) -> str:
    return "NaN or another shape" if gap == float("inf") else f"{gap:.0%}"


def _compare_with_reference(subject: Subject, found: Collector) -> None:
    assert subject.reference is not None, "compare has seen it"
    x = subject.tokens()
    gap = parity.distance(subject(x), subject.reference(subject.pristine, x))
    if gap >= parity.TOLERANCE * 5:
        done = (
            "Compared the module with the reference, for the same weights and tokens."
        )
        found.add("differs_from_reference", done, f"They differ by {_share(gap)}.")
