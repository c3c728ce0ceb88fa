"""Each step is judged by its own input, whatever acts beside attention."""

import pytest

import attncheck
from attncheck.mistakes import compiled

HEADER = "import math\nimport torch\nfrom torch import nn\n\n\n"
# A gate that no option describes: the output equals no recipe.
GATED = (
    HEADER
    + """\
class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads, self.d_head = num_heads, d_model // num_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.gate = nn.Linear(d_model, d_model)
        self.out = nn.Linear(d_model, d_model)

    def split(self, x):
        return x.view(*x.shape[:2], self.num_heads, -1).transpose(1, 2)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.value(x)
        v = self.split(v)
        scores = q @ k.mT / math.sqrt(self.d_head)
        scores = scores.masked_fill(x.new_ones(t, t).triu(1).bool(), -torch.inf)
        weights = scores.softmax(dim=-1)
        y = (weights @ v).transpose(1, 2).reshape(b, t, d)
        return self.out(y * torch.sigmoid(self.gate(x)))
"""
)
JOINED = "(weights @ v).transpose(1, 2).reshape(b, t, d)"
FULL = GATED.replace("triu(1).bool()", "triu(1).bool() & False")
STEPS = {
    "heads_viewed": ("v = self.split(v)", "v = v.view(b, self.num_heads, t, -1)"),
    "join_viewed": (JOINED, "(weights @ v).reshape(b, t, d)"),
    "join_interleaved": (JOINED, "(weights @ v).permute(0, 2, 3, 1).reshape(b, t, d)"),
    "weights_transposed": ("(weights @ v)", "(weights.mT @ v)"),
    "mask_missing": ("triu(1)", "triu(t)"),
    "mask_off_by_one": ("triu(1)", "triu(2)"),
    "mask_upside_down": ("triu(1)", "tril(-1)"),
    "softmax_over_queries": ("dim=-1", "dim=-2"),
    "softmax_over_heads": ("dim=-1", "dim=1"),
    "mask_after_softmax": (
        "scores = scores.masked_fill(x.new_ones(t, t).triu(1).bool(), -torch.inf)\n"
        "        weights = scores.softmax(dim=-1)",
        "weights = scores.softmax(dim=-1).tril()",
    ),
    "scale_after_softmax": ("softmax(dim=-1)", "softmax(dim=-1) / self.d_head"),
    "projection_mixed_up": ("self.value(x)", "self.key(x)"),
    "scale_multiplied": ("/ math.sqrt(self.d_head)", "* math.sqrt(d)"),
    "mask_fill_zero": ("-torch.inf", "0.0"),
    "keys_viewed": ("q @ k.mT", "q @ k.reshape(b, self.num_heads, -1, t)"),
}


FAR = """\
    def far(self, t, x):
        i = torch.arange(t, device=x.device)
        return i[:, None] - i
"""


def named(source, **options):
    made = attncheck.check(compiled(source, "walked.py"), **options)
    return [finding.mistake for finding in made.findings if finding.severity == "error"]


@pytest.mark.parametrize(("gate", "status"), [("sigmoid", 0), ("tanh", 3)])
def test_a_gate_that_is_not_known_is_not_judged(gate, status):
    source = GATED.replace("torch.sigmoid", f"torch.{gate}")
    report = attncheck.check(compiled(source, "gated.py"))
    assert (report.exit_status, report.findings) == (status, [])


@pytest.mark.parametrize("mistake", STEPS)
def test_a_step_is_named_beside_something_undeclared(mistake):
    right, wrong = STEPS[mistake]
    assert right in GATED
    assert named(GATED.replace(right, wrong)) == [mistake]


def test_a_step_is_named_where_softmax_is_written_out():
    power = "(scores - scores.amax(-1, True)).exp()"
    source = GATED.replace("scores.softmax(dim=-1)", f"{power} / {power}.sum(-1, True)")
    source = source.replace(f"{power} / {power}", "e / e")
    source = source.replace(
        "        weights =", f"        e = {power}\n        weights ="
    )
    assert named(source) == []
    assert named(source.replace(JOINED, STEPS["join_viewed"][1])) == ["join_viewed"]


def test_a_window_that_was_given_and_never_acts_is_told():
    source = GATED.replace("d_model, num_heads)", "d_model, num_heads, window_size=3)")
    report = attncheck.check(compiled(source, "given.py"), window_size=3)
    assert [f.mistake for f in report.findings] == ["window_unused"]
    declared = GATED.replace(
        "triu(1).bool()", "triu(1).bool() | x.new_ones(t, t).tril(-4).bool()"
    )
    assert named(GATED, window=3) == ["window_unused"]
    assert named(declared, window=3) == ["window_size"]
    kept = source.replace(
        "triu(1).bool()", "triu(1).bool() | x.new_ones(t, t).tril(-3).bool()"
    )
    report = attncheck.check(compiled(kept, "kept.py"), window_size=3)
    assert "window_unused" not in [f.mistake for f in report.findings]


def test_heads_that_share_keys_and_values_apart_are_named():
    source = GATED.replace(
        "self.key = nn.Linear(d_model, d_model)",
        "self.key = nn.Linear(d_model, d_model // 2)",
    ).replace(
        "self.value = nn.Linear(d_model, d_model)",
        "self.value = nn.Linear(d_model, d_model // 2)",
    )
    source = source.replace(
        "return x.view(*x.shape[:2], self.num_heads, -1)",
        "return x.view(*x.shape[:2], -1, self.d_head)",
    ).replace(
        "        scores = q",
        "        k, v = k.repeat_interleave(2, dim=1), v.repeat_interleave(2, dim=1)\n"
        "        scores = q",
    )
    assert named(source, num_heads=4) == []
    wrong = source.replace("v.repeat_interleave(2, dim=1)", "v.repeat(1, 2, 1, 1)")
    assert named(wrong, num_heads=4) == ["groups_apart"]


def test_biases_by_distance_that_go_wrong_are_named():
    source = GATED.replace("    def forward", FAR + "\n    def forward").replace(
        "scores = scores.masked_fill(",
        "slopes = 2.0 ** (-8 * torch.arange(1, self.num_heads + 1) / self.num_heads)\n"
        "        bias = slopes.to(x)[:, None, None] * self.far(t, x)\n"
        "        scores = (scores - bias).masked_fill(",
    )
    assert named(source) == []
    assert named(source.replace("scores - bias", "scores + bias")) == ["alibi_sign"]
    steep = source.replace("scores - bias", "scores - bias / math.sqrt(self.d_head)")
    assert named(steep) == ["alibi_slopes"]
    near = source.replace("self.far(t, x)\n", "self.far(t, x).clamp(0)\n")
    near = near.replace("triu(1).bool()", "triu(1).bool() & False")
    assert named(near, causal=False) == ["alibi_one_sided"]
    both = near.replace("clamp(0)\n", "abs()\n")
    assert named(both, causal=False) == []
    even = source.replace("* torch.arange(1, self.num_heads + 1)", "* torch.ones(1)")
    assert named(even.replace("to(x)", "to(x).expand(self.num_heads)")) == [
        "alibi_slopes"
    ]


def test_a_window_to_one_side_is_named():
    band = "self.far(t, x) > 2"
    source = FULL.replace("x.new_ones(t, t).triu(1).bool() & False", band).replace(
        "    def forward", FAR + "\n    def forward"
    )
    assert named(source, causal=False) == ["window_one_sided"]
    both = source.replace(band, "self.far(t, x).abs() > 2")
    assert "window_one_sided" not in named(both, causal=False)


# Vectors for relative positions, as Shaw et al. (2018) add them.
SHAW = (
    GATED.replace("* torch.sigmoid(self.gate(x))", "")
    .replace(
        "self.gate = nn.Linear(d_model, d_model)",
        "self.distances = nn.Parameter(torch.randn(7, self.d_head))",
    )
    .replace(
        "scores.masked_fill(x.new_ones(t, t).triu(1).bool(), -torch.inf)", "scores"
    )
    .replace(
        "scores = q @ k.mT / math.sqrt(self.d_head)",
        "far = self.far(t, x).clamp(-3, 3) + 3\n"
        "        table = self.distances[far]\n"
        "        scores = q @ k.mT + torch.einsum('bhid,ijd->bhij', q, table)\n"
        "        scores = scores / math.sqrt(self.d_head)",
    )
    .replace("    def forward", FAR + "\n    def forward")
)


def test_relative_positions_are_not_judged_and_their_mistakes_named():
    assert named(SHAW, causal=False) == []
    apart = SHAW.replace("q @ k.mT +", "q @ k.mT / math.sqrt(self.d_head) +")
    apart = apart.replace("scores = scores / math.sqrt(self.d_head)", "")
    assert named(apart, causal=False) == ["scores_scaled_apart"]
    assert (
        named(SHAW.replace("clamp(-3", "clamp(0"), causal=False)[0] == "distances_lost"
    )
    skips = SHAW.replace("(-3, 3) + 3", "(-9, 9) + t - 1").replace("(7,", "(31,")
    skips = skips.replace("distances", "codes")
    assert named(skips, causal=False)[0] == "distances_lost"


# What is done with the input and a norm around attention.
BLOCK = (
    GATED.replace("self.gate = nn.Linear(d_model, d_model)",
                  "self.norm = nn.LayerNorm(d_model)")
    .replace("* torch.sigmoid(self.gate(x))", "")
)  # fmt: skip
PRE = BLOCK.replace(
    "b, t, d = x.shape", "b, t, d = x.shape\n        h, x = x, self.norm(x)"
)
PRE = PRE.replace("return self.out(y )", "return h + self.out(y)")
POST = BLOCK.replace("return self.out(y )", "return self.norm(x + self.out(y))")


@pytest.mark.parametrize(
    ("mistake", "source", "right", "wrong"),
    [
        ("residual_moved", PRE, "return h +", "return x +"),
        ("residual_unused", PRE, "return h +", "return"),
        ("residual_moved", POST, "(x + self", "(self.query(x) + self"),
        ("residual_after_norm", POST, "self.norm(x + self.out(y))",
         "x + self.norm(self.out(y))"),
    ],
)  # fmt: skip
def test_residuals_that_go_astray_are_named(mistake, source, right, wrong):
    options = {"prenorm": "layer"} if source is PRE else {"postnorm": "layer"}
    assert right in source
    assert named(source, residual=True, **options) == []
    assert named(source.replace(right, wrong), residual=True, **options) == [mistake]


def test_a_bias_added_for_each_head_is_named():
    source = GATED.replace(" * torch.sigmoid(self.gate(x))", "").replace(
        "        self.gate = nn.Linear(d_model, d_model)\n", ""
    )
    more = "self.out(y) + (self.num_heads - 1) * self.out.bias"
    wrong = source.replace("self.out(y)", more)
    assert named(source) == []
    assert named(wrong) == ["output_bias_repeated"]


def test_a_path_that_is_detached_is_found():
    assert named(GATED.replace("self.gate(x)", "self.gate(x.detach())")) == [
        "gradient_wrong"
    ]


def test_dropout_of_the_sum_with_the_input_is_named():
    source = PRE.replace("num_heads):", "num_heads, dropout=0.0):").replace(
        "        self.norm =",
        "        self.drop = nn.Dropout(dropout)\n        self.norm =",
    )
    right = source.replace("h + self.out(y)", "h + self.drop(self.out(y))")
    wrong = source.replace("h + self.out(y)", "self.drop(h + self.out(y))")
    options = {"prenorm": "layer", "residual": True}
    assert "dropout_elsewhere" not in named(right, **options)
    assert named(wrong, **options) == ["dropout_elsewhere"]


def test_a_half_of_a_projection_that_another_stands_in_for_is_found():
    source = GATED.replace(
        "self.key = nn.Linear(d_model, d", "self.kv = nn.Linear(d_model, 2 * d"
    )
    source = source.replace("self.key(x)", "self.kv(x)[..., :d]")
    source = source.replace("self.value(x)", "self.kv(x)[..., d:]")
    source = source.replace("        self.value = nn.Linear(d_model, d_model)\n", "")
    assert named(source) == []
    assert named(source.replace("d:]", ":d]"))[0] == "projection_mixed_up"


def test_a_value_that_is_never_used_is_found():
    source = GATED.replace("forward(self, x)", "forward(self, query, key, value)")
    source = source.replace("b, t, d = x.shape", "x = query\n        b, t, d = x.shape")
    source = source.replace("* torch.sigmoid(self.gate(x))", "")
    source = source.replace("        self.gate = nn.Linear(d_model, d_model)\n", "")
    source = source.replace("self.key(x)", "self.key(key)")
    right, wrong = (
        source.replace("self.value(x)", f"self.value({one})")
        for one in ("value", "key")
    )
    assert named(right) == []
    assert named(wrong) == ["projection_mixed_up"]


def test_what_is_recorded_survives_a_change_in_place():
    source = GATED.replace("scores = scores.masked_fill(", "scores.masked_fill_(")
    wrong = source.replace(JOINED, "(weights @ v).reshape(b, t, d)")
    assert "masked_fill_" in wrong
    assert named(wrong) == ["join_viewed"]


# Rotary positions of a part of each head.
TURNED = GATED.replace(
    "        scores = q @",
    "        q, k = self.turned(q), self.turned(k)\n        scores = q @",
).replace(
    "    def forward",
    """\
    def turned(self, x, share=2):
        d, t = x.shape[-1] // share, x.shape[2]
        i, steps = (torch.arange(n, device=x.device) for n in (t, d // 2))
        angles = i[:, None] * 1000.0 ** (-2 * steps / d)
        one, two, rest = *x[..., :d].chunk(2, dim=-1), x[..., d:]
        cos, sin = angles.cos().to(x), angles.sin().to(x)
        return torch.cat([one * cos - two * sin, two * cos + one * sin, rest], -1)

    def forward""",
)


def test_what_becomes_of_heads_before_the_scores_is_named():
    assert named(TURNED) == []
    lost = TURNED.replace("x[..., d:]\n", "x[..., :d]\n")
    assert named(lost)[:1] == ["rope_rest_lost"]
    whole = TURNED.replace("share=2", "share=1")
    assert named(whole) == []
    heads = "self.turned({0}.mT.mT.transpose(1, 2)).transpose(1, 2)"
    over = whole.replace("self.turned(q)", heads.format("q"))
    over = over.replace("self.turned(k)", heads.format("k"))
    assert named(over) == ["rope_over_heads"]
    norm = "8 * nn.functional.normalize({0}, dim=-1)"
    normed = GATED.replace(
        "scores = q @",
        f"q, k = {norm.format('q')}, {norm.format('k')}\n        scores = q @",
    )
    assert named(normed) == []
    across = normed.replace("normalize(q, dim=-1)", "normalize(q, dim=-2)")
    assert named(across)[:1] == ["qk_norm_axis"]


SINK = GATED.replace(
    "        self.gate =",
    "        self.sinks = nn.Parameter(torch.randn(num_heads))\n        self.gate =",
).replace(
    "weights = scores.softmax(dim=-1)",
    "sink = self.sinks.view(1, -1, 1, 1).expand(b, -1, t, 1)\n"
    "        weights = torch.cat([scores, sink], dim=-1).softmax(dim=-1)[..., :-1]",
)


def test_a_token_that_gets_the_sinks_weight_is_named_beside_something_undeclared():
    assert named(SINK) == []
    assert named(SINK.replace("[..., :-1]", "[..., 1:]")) == ["sink_given_to_tokens"]
    front = SINK.replace("[scores, sink]", "[sink, scores]")
    assert named(front) == ["sink_given_to_tokens"]
    assert named(front.replace("[..., :-1]", "[..., 1:]")) == []


PADDED = FULL.replace("forward(self, x)", "forward(self, x, padding=None)").replace(
    "        weights =",
    """\
        if padding is not None:
            scores = scores.masked_fill(padding[:, None, None], -1e9)
        weights =""",
)


def test_a_padding_mask_on_rows_is_named():
    assert named(PADDED, causal=False) == []
    rows = PADDED.replace("padding[:, None, None]", "padding[:, None, :, None]")
    assert named(rows, causal=False) == ["padding_rows"]


def test_a_mask_of_a_graph_behind_softmax_is_named():
    source = FULL.replace("forward(self, x)", "forward(self, x, adj=None)")
    before = "        weights = scores.softmax(dim=-1)\n"
    assert before in source
    hide = "        if adj is not None:\n"
    hide += "            {0} = {0}.masked_fill(~adj[:, None], {1})\n"
    right = source.replace(before, hide.format("scores", -1e9) + before)
    wrong = source.replace(before, before + hide.format("weights", 0.0))
    assert named(right, causal=False) == []
    assert named(wrong, causal=False) == ["mask_after_softmax"]


def test_rows_that_a_softmax_of_its_own_divides_by_others_are_named():
    power = "e = (scores - scores.amax(-1, True)).exp()\n        weights = e / e.sum(-1"
    right = GATED.replace("weights = scores.softmax(dim=-1", f"{power}, True")
    wrong = right.replace("sum(-1, True)", "sum(-1)[..., None, :]")
    assert named(right) == []
    assert named(wrong) == ["rows_do_not_sum_to_one"]


def test_a_window_that_may_not_count_the_token_itself_is_asked_for():
    source = GATED.replace("num_heads)", "num_heads, window_size=3)").replace(
        "triu(1).bool()", "triu(1).bool() | x.new_ones(t, t).tril(-4).bool()"
    )
    report = attncheck.check(compiled(source, "wider.py"), window_size=3)
    assert (report.exit_status, report.proposal) == (3, {})
    assert "window=4 (--window 4)" in report.needed
    assert "window=3 (--window 3)" in report.needed
    for words in ("window_size - 1 before it", "the window holds window_size in all"):
        told = source.replace("b, t, d =", f"# {words}\n        b, t, d =")
        report = attncheck.check(compiled(told, "worded.py"), window_size=3)
        assert (report.exit_status, report.proposal) == (3, {"window": 3})
    # Where something else is wrong for certain, the window is told, too.
    other = told.replace("return self.out(", "z = self.out(") + "        x += 1\n"
    report = attncheck.check(compiled(other + "        return z\n", "both.py"),
                             window_size=3)  # fmt: skip
    assert {"changes_input", "window_size"} <= {f.mistake for f in report.findings}
    right = source.replace("tril(-4)", "tril(-3)")
    report = attncheck.check(compiled(right, "given.py"), window_size=3)
    assert (report.exit_status, report.proposal) == (0, {})


def test_one_linear_layer_in_all_places_is_named():
    report = attncheck.check(
        compiled(
            FULL.replace(
                "self.value = nn.Linear(d_model, d_model)",
                "self.value = nn.Linear(d_model, d_model)\n"
                "        self.key = self.value\n"
                "        self.all = nn.ModuleList([self.value] * 4)",
            ),
            "one.py",
        ),
        causal=False,
    )
    assert "projections_tied" in [f.mistake for f in report.findings]
    assert "heads_shared" not in [f.mistake for f in report.findings]


def test_another_projections_bias_is_named():
    source = GATED.replace("* torch.sigmoid(self.gate(x))", "")
    source = source.replace("        self.gate = nn.Linear(d_model, d_model)\n", "")
    wrong = source.replace(
        "self.split(self.query(x))",
        "self.split(x @ self.query.weight.mT + self.key.bias)",
    )
    assert named(wrong)[:1] == ["projection_mixed_up"]


def test_two_norms_of_which_one_is_used_twice_are_named():
    source = GATED.replace(
        "        self.gate =",
        "        self.q_norm = nn.LayerNorm(self.d_head)\n"
        "        self.k_norm = nn.LayerNorm(self.d_head)\n        self.gate =",
    ).replace(
        "scores = q @", "q, k = self.q_norm(q), self.k_norm(k)\n        scores = q @"
    )
    assert named(source) == []
    assert named(source.replace("self.k_norm(k)", "self.q_norm(k)")) == [
        "qk_norm_shared"
    ]
    assert named(source.replace("self.k_norm(k)", "k")) == ["qk_norm_one_side"]


# Norms, a gate and a mask that no option describes, with rotary positions.
ROTARY = (
    HEADER
    + """\
class Attention(nn.Module):
    def __init__(self, dim, num_heads, rope_theta=10000.0):
        super().__init__()
        self.num_heads, self.d_head, self.base = num_heads, dim // num_heads, rope_theta
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))
        self.q_norm, self.k_norm = nn.RMSNorm(self.d_head), nn.RMSNorm(self.d_head)
        self.gate = nn.Parameter(torch.randn(num_heads))

    def turned(self, x, start=0, way=1):
        b, h, t, d = x.shape
        powers = self.base ** (-torch.arange(0, d, 2, device=x.device) / d)
        angles = torch.outer(torch.arange(t, device=x.device) + start, powers) * way
        cos, sin = angles.repeat(1, 2).cos(), angles.repeat(1, 2).sin()
        one, two = x.chunk(2, -1)
        return x * cos + torch.cat([-two, one], -1) * sin

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (
            part(x).view(b, t, self.num_heads, -1).transpose(1, 2)
            for part in (self.q, self.k, self.v)
        )
        q, k = self.turned(self.q_norm(q)), self.turned(self.k_norm(k))
        i = torch.arange(t, device=x.device)
        far = i[:, None] - i
        s = q @ k.mT * self.d_head**-0.5
        s = s.masked_fill((far < 0) | (far == 2), -torch.inf)
        size = (1 + x.abs().mean(-1))[:, None, :, None]
        s = s * self.gate.tanh()[:, None, None].exp() * size
        return self.o((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
"""
)


ROTARY_OPTIONS = {"dim": 32, "num_heads": 4, "rope_theta": 10000.0}


def test_rotary_positions_are_right_beside_what_nobody_knows():
    assert named(ROTARY, **ROTARY_OPTIONS) == []


@pytest.mark.parametrize(
    ("mistake", "right", "wrong"),
    [
        ("rope_pairing", "repeat(1, 2)", "repeat_interleave(2, 1)"),
        ("rope_directions", "[-two", "[two"),
        ("rope_directions", "self.k_norm(k))", "self.k_norm(k), way=-1)"),
        ("rope_offset", "self.q_norm(q))", "self.q_norm(q), start=1)"),
        ("rope_twice", "self.turned(self.", "self.turned(way=2, x=self."),
        ("rope_frequencies", "/ d)\n", "/ d / 2)\n"),
    ],
)
def test_rotary_positions_are_read_off_beside_what_nobody_knows(mistake, right, wrong):
    assert right in ROTARY
    assert named(ROTARY.replace(right, wrong), **ROTARY_OPTIONS) == [mistake]


def test_one_head_of_keys_and_one_of_values_in_a_weight_are_meant():
    source = GATED.replace("self.key = nn.Linear(d_model, d_model)", "pass").replace(
        "self.value = nn.Linear(d_model, d_model)",
        "self.kv = nn.Linear(d_model, 2 * self.d_head)",
    )
    source = source.replace("self.split(self.key(x)), self.value(x)", "*self.kv(x)"
                            "[:, :, None].unflatten(-1, (2, -1)).permute(3, 0, 2, 1, 4)"
                            ).replace("v = self.split(v)", "k = k.repeat_interleave("
                            "4, 1); v = v.repeat_interleave(4, 1)")  # fmt: skip
    source = source.replace("torch.sigmoid", "torch.tanh")
    assert named(source) == []


def test_normed_queries_that_are_scaled_twice_are_named():
    gate = next(line for line in ROTARY.splitlines(True) if "self.gate.tanh" in line)
    twice = "        q = q * self.d_head**-0.5\n        i = torch"
    source = ROTARY.replace(gate, "").replace("        i = torch", twice)
    assert "scale_twice" in named(source, dim=32, num_heads=4)


def test_a_sink_that_is_normalized_away_is_named():
    source = FULL.replace("torch.sigmoid(self.gate(x))", "1").replace(
        "weights = scores.softmax(dim=-1)",
        "both = torch.cat([scores, self.sink.expand(b, -1, t, 1)], -1).softmax(-1)\n"
        "        weights = both[..., :-1] / both[..., :-1].sum(-1, True)",
    )
    gate = "self.gate = nn.Linear(d_model, d_model)"
    source = source.replace(gate, "self.sink = nn.Parameter(torch.rand(4, 1, 1))")
    assert named(source, causal=False)[0] == "sink_unused"


CONFIGURED = ROTARY[: ROTARY.index("        far =")] + (
    """\
        mask = (i[:, None] < i)
        s = (q @ k.mT * self.d_head**-0.5).masked_fill(mask, -torch.inf)
        return self.o((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
"""
)
CONFIGURED = CONFIGURED.replace("rope_theta=10000.0", "rope_theta=1e4, attn_softcap=0")
CONFIGURED = CONFIGURED.replace(
    "        self.gate = nn.Parameter(torch.randn(num_heads))\n", ""
)


@pytest.mark.parametrize(
    ("given", "mistake"),
    [({"rope_theta": 5e5}, "rope_base"), ({"attn_softcap": 20.0}, "softcap_unused")],
)
def test_what_was_given_and_does_not_act_is_asked_for(given, mistake):
    options = {"dim": 32, "num_heads": 4}
    source = CONFIGURED
    if "rope_theta" in given:
        source = source.replace("num_heads, rope_theta\n", "num_heads, 1e4\n")
        assert source != CONFIGURED
    made = compiled(source, "configured.py")
    # By default it is the usual base, and another one is tried.
    assert named(source, **options) == ["rope_base"] * ("rope_theta" in given)
    report = attncheck.check(made, **options, **given)
    assert (report.exit_status, bool(report.proposal)) == (3, True)
    assert named(source, **options, **given, **report.proposal)[0] == mistake
    # Beside what fails anyway, it is told at once.
    stays = source.replace("(i[:, None] < i)", "(i[:, None] < i) | self.none").replace(
        "super().__init__()\n",
        "super().__init__()\n        self.none = torch.zeros(1).bool()\n",
    )
    assert named(stays, **options, **given) == [mistake, "stays_behind"]


def test_numbers_of_the_queries_among_the_keys_are_named():
    split = "q, k = self.turned(self.q_norm(q)), self.turned(self.k_norm(k))"
    wrong = f"{split}\n        k = torch.cat([k[..., :4], q[..., 4:]], -1)"
    source = ROTARY.replace(split, wrong)
    assert named(source, dim=32, num_heads=4)[0] == "projection_mixed_up"


def test_a_bias_with_its_axes_viewed_is_a_stage():
    gate = "self.gate = nn.Linear(d_model, d_model)"
    table = "self.table = nn.Embedding(64, num_heads)"
    added = (
        "i = torch.arange(t, device=x.device)\n"
        "        bias = self.table(i[None] - i[:, None] + 32).view(-1, t, t)\n"
        "        weights = (scores + bias).softmax(dim=-1)"
    )
    source = FULL.replace(gate, table).replace("torch.sigmoid(self.gate(x))", "1")
    source = source.replace("weights = scores.softmax(dim=-1)", added)
    report = attncheck.check(compiled(source, "viewed.py"), causal=False)
    found = [(f.mistake, f.stage) for f in report.findings if f.severity == "error"]
    assert ("bias_misplaced", "positions") in found


def test_dropped_scores_are_named_beside_a_dropout_of_the_output():
    source = GATED.replace("torch.sigmoid(self.gate(x))", "1").replace(
        "self.gate = nn.Linear(d_model, d_model)", "self.drop = nn.Dropout(dropout)"
    )
    source = source.replace("num_heads):", "num_heads, dropout=0.0):").replace(
        "return self.out(y * 1)", "return self.drop(self.out(y))"
    )
    wrong = source.replace("scores.softmax(", "self.drop(scores).softmax(")
    assert named(source) == []
    assert named(wrong) == ["dropout_on_scores"]


def test_a_memory_without_a_norm_is_no_mistake():
    source = (
        HEADER
        + """\
class Reader(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.norm = nn.LayerNorm(dim)
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x, memory):
        b, t, d = x.shape
        q, k, v = (
            made.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for made in (self.q(self.norm(x)), self.k(memory), self.v(memory))
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        return x + self.o(y.transpose(1, 2).reshape(b, t, d))


Attention = Reader
"""
    )
    assert named(source, causal=False, memory=5, prenorm="layer", residual=True) == []
