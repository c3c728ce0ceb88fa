"""The comparison with attention that is computed from the module's own weights."""

from attncheck import parity
from attncheck.collector import NotCompared, SkipTest
from attncheck.layer import Layer, Rope
from attncheck.mistakes import MISTAKES
from attncheck.numbers import changed
from attncheck.roles import find_roles
from attncheck.trace import norms_of

UNKNOWN = (
    "the weights were not found, neither by their names nor by what they do, so "
    "scaling, heads and projections were not checked. Give weights=function (module) "
    'that returns a dictionary with "query", "key", "value" and, if there is one, '
    '"out"'
)


def compare(subject, found):
    """Compare with attention computed from the module's own weights."""
    if subject.reference is not None:
        _compare_with_reference(subject, found)
        return
    if subject.skip_reference:
        raise SkipTest("reference=False")
    # Widths are all different here where the class allows it: fewer mistakes look
    # alike.
    owner, subject = subject, subject.uneven or subject
    comparison = Comparison(owner, subject)
    found.blame = comparison.blame
    if comparison.equal():
        return
    if not comparison.readings:
        raise NotCompared(UNKNOWN)
    if comparison.known_layer():
        return
    match = comparison.match()
    done = (
        "The module's weights moved into attention that is computed step by step, "
        "and both given the same tokens."
    )
    if match is None:
        why = comparison.excuses()
        if why:
            raise NotCompared(why)
        found.add("differs", done, f"They differ by {_share(comparison.gap)}.")
        return
    found.causes = match.names
    found.example = parity.example(match, comparison.x, subject.causal, subject.layer)
    seen = f"Not equal to right attention ({_share(comparison.gap)} off), but "
    seen += f"equal to attention {match.words} (to {match.gap:.0e})."
    if match.others:
        same = "; ".join(MISTAKES[name].title.lower() for name in match.others)
        seen += f" With these sizes, the same numbers come from: {same}."
    for cause in match.names:
        found.add(cause, done, seen)


class Comparison:
    """The output of a module, the readings of its weights, and what was seen.

    Args:
        owner: the subject that the report is about.
        subject: the one that is compared, with distinct widths if there is one.
    """

    def __init__(self, owner, subject):
        self.owner, self.subject = owner, subject
        self.by_name = subject.candidates()
        self.by_role, self.seen = [], None
        d_head = self.by_name[0].d_head if self.by_name else 0
        # Where t equals d_head, dividing by the root of either gives the same.
        given = subject.tokens(t=5 if d_head == 7 else 7)
        self.y = subject(given)
        self.x = given.cpu()
        self.layer = self._with_norms(subject.layer)
        self.gap = float("inf")

    @property
    def readings(self):
        """The readings of the weights, those by name first."""
        return [*self.by_name, *self.by_role]

    def equal(self):
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

    def _swapped(self):
        """Whether the names say that one projection is used in another's place."""
        if not self.by_name:
            return False
        match = self._named(self.by_name[:1])
        roles = {
            "projection_mixed_up",
            "scores_transposed",
            "bias_unused",
            "output_projection_unused",
        }
        return match is not None and bool(set(match.names) & roles)

    def known_layer(self):
        """Whether it is right attention with something that was not declared."""
        if not self.subject.layer.plain:
            return False
        layer = parity.recognized(
            self.x, self.y, self.readings, self.subject.causal, self._layers()
        )
        if layer is None:
            return False
        self.owner.layer = layer
        self.owner.note(
            f"Equal to attention with {layer.words()}. That was found, not declared."
        )
        return True

    def match(self):
        """Return the mistakes that give the same output, or None."""
        return self._named(self.readings)

    def _named(self, readings):
        given = (self.x, self.y, readings, self.subject.causal)
        for layer in [self.layer, *self._ropes()]:
            match = parity.name_mistake(*given, layer)
            if match is not None:
                return match
        return None

    def _ropes(self):
        """Rotary positions to try where a table acts and nothing was declared."""
        if self.seen is None or not self.subject.layer.plain:
            return []
        tables = {"a table of positions", "a table"} & set(self.seen.extras)
        return [self._with_norms(Layer(rope=Rope()))] if tables else []

    def excuses(self):
        """Say what acts besides attention, so that a difference proves nothing."""
        subject, seen = self.subject, self.seen
        told = list(seen.extras)
        left = _unused(subject.pristine, self.readings)
        if left:
            told.append(f"what holds weights in no projection that was found ({left})")
        if not told and self._order_matters():
            told.append("the order of tokens")
        if not told:
            return ""
        declared = "" if subject.layer.plain else f" beside {subject.layer.words()}"
        return (
            f"{', '.join(told)} acts in forward{declared}, so a difference from plain "
            f"attention proves nothing. Describe it (rope=, window=, alibi=, qk_norm=, "
            f"softcap=, prenorm=, sink=, documents=), or give reference="
        )

    def _order_matters(self):
        x = self.subject.tokens()
        if x.shape[1] < 4:
            return False
        other = x.clone()
        other[:, [0, 2]] = x[:, [2, 0]]
        return changed(self.subject(x)[:, -1], self.subject(other)[:, -1], 1e-4)

    def blame(self, name):
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

    def _gap(self, readings):
        causal = self.subject.causal
        return parity.right_distance(self.x, self.y, readings, causal, self.layer)

    def _layers(self):
        """Return what might act in the layer, likely ones first."""
        norms = self._norm_layers()
        ropes = [Rope("halves"), Rope("neighbors")]
        ropes += [Rope(p.pairing, base) for base in (5e5, 1e6, 1e5) for p in ropes]
        layers = [*norms, *(Layer(rope=rope) for rope in ropes)]
        for norm in norms:
            layers += [
                Layer(rope=rope, qk_norm=norm.qk_norm, prenorm=norm.prenorm,
                      norms=norm.norms)
                for rope in ropes
            ]  # fmt: skip
        layers.append(Layer(alibi=True))
        if _sinks(self.subject.pristine) is not None:
            layers.append(self._with_norms(Layer(sink=True)))
        layers += [Layer(softcap=float(cap)) for cap in (50, 30, 20, 15)]
        return layers

    def _norm_layers(self):
        width = self.readings[0].d_in if self.readings else None
        layers = []
        for kind in ("layer", "rms"):
            layers.append(self._with_norms(Layer(qk_norm=kind)))
            layers.append(self._with_norms(Layer(prenorm=kind)))
        layers.append(Layer(qk_norm="l2"))
        return layers if width else []

    def _with_norms(self, layer):
        """Add to a layer the numbers of the norms that the module holds."""
        if not (layer.qk_norm or layer.prenorm or layer.sink):
            return layer
        norms = {"sink": (_sinks(self.subject.pristine), None)} if layer.sink else {}
        d_in = self.subject.sizes["d_in"]
        for name, _, width, weight, bias in norms_of(self.subject.pristine):
            last = name.split(".")[-1].lower()
            if layer.prenorm and width == d_in and "x" not in norms:
                norms["x"] = (weight, bias)
            elif last.startswith("k") and "k" not in norms:
                norms["k"] = (weight, bias)
            elif "q" not in norms:
                norms["q"] = (weight, bias)
            else:
                norms.setdefault("k", (weight, bias))
        if "q" in norms:
            norms.setdefault("k", norms["q"])
        return Layer(**{**vars(layer), "norms": tuple(norms.items())})


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


def _unused(module, readings):
    """Say how many numbers of the module's matrices are in no projection, or ""."""
    held = sum(p.numel() for p in module.parameters() if p.dim() >= 2)
    found = 0
    for projections in readings[:1]:
        pairs = (projections.query, projections.key, projections.value, projections.out)
        found = sum(pair[0].numel() for pair in pairs if pair is not None)
    return f"{held - found:,} of {held:,}" if held > found else ""


def _sinks(module):
    """Return the numbers of the parameter that is called a sink, or None."""
    for name, parameter in module.named_parameters():
        if "sink" in name.split(".")[-1].lower():
            return parameter.detach().flatten().cpu()
    return None


def _share(gap):
    return "NaN or another shape" if gap == float("inf") else f"{gap:.0%}"


def _compare_with_reference(subject, found):
    x = subject.tokens()
    gap = parity.distance(subject(x), subject.reference(subject.pristine, x))
    if gap >= parity.TOLERANCE * 5:
        done = "The module and the reference, with the same weights and tokens."
        found.add("differs_from_reference", done, f"They differ by {_share(gap)}.")
