"""The step-by-step attention, and that no two mistakes look alike."""

from dataclasses import replace
from itertools import combinations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import attention
from attncheck.changes import CHANGES, base_recipe
from attncheck.layer import Layer, Rope
from attncheck.parity import (
    Match,
    distance,
    example,
    name_mistake,
    recognize_layer,
    right_distance,
)
from attncheck.projections import Projections, find
from attncheck.reference import PLAIN, RIGHT, Computation


def attend(x, p, recipe=RIGHT, layer=PLAIN):
    return Computation(x, p, layer).output(recipe)


# Different numbers everywhere, so that no two sizes can stand for each other.
B, T, D_IN, H, D_HEAD = 3, 7, 12, 4, 6
GROUPED = ("groups_tiled", "groups_apart")
D_OUT = H * D_HEAD


@pytest.fixture
def x():
    return torch.randn(B, T, D_IN, generator=torch.Generator().manual_seed(1)).double()


def projections(bias=True, d_out=D_OUT, groups=1):
    generator = torch.Generator().manual_seed(2)

    def pair(rows, columns):
        weight = torch.randn(rows, columns, generator=generator) / columns**0.5
        return weight, torch.randn(rows, generator=generator) if bias else None

    narrow = D_OUT // groups
    return Projections(
        pair(D_OUT, D_IN),
        pair(narrow, D_IN),
        pair(narrow, D_IN),
        pair(d_out, D_OUT),
        num_heads=H,
    )


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("causal", [True, False])
def test_right_attention_equals_scaled_dot_product_attention(x, causal, groups):
    p = projections(groups=groups)

    def heads(pair):
        y = F.linear(x, pair[0].double(), pair[1].double())
        return y.view(B, T, -1, D_HEAD).transpose(1, 2)

    q, k, v = heads(p.query), heads(p.key), heads(p.value)
    k, v = (part.repeat_interleave(groups, dim=1) for part in (k, v))
    context = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    context = context.transpose(1, 2).flatten(2)
    expected = F.linear(context, p.out[0].double(), p.out[1].double())
    recipe = RIGHT if causal else replace(RIGHT, mask="none")
    torch.testing.assert_close(attend(x, p, recipe), expected)


def outputs(x, p):
    made = {}
    for name, change, words in CHANGES:
        if name in GROUPED and p.key[0].shape == p.query[0].shape:
            continue  # nothing is shared
        try:
            y = attend(x, p, replace(RIGHT, **change))
        except RuntimeError:
            continue
        made[name, words, str(change)] = y
    return made


def test_no_two_mistakes_give_the_same_output(x):
    # Different widths in and out leave no room for x as values or as residual.
    made = outputs(x, projections()) | outputs(x, projections(groups=2))
    assert len(made) > 30
    ours = outputs(x, projections())
    for (one, first), (other, second) in combinations(ours.items(), 2):
        if one[0] != other[0]:
            assert distance(first, second) > 1e-3, (one, other)


def test_every_mistake_changes_the_output(x):
    # One computation for all, as the checker does: what it keeps must not hide one.
    plain, grouped = (
        Computation(x, projections()),
        Computation(x, projections(groups=2)),
    )
    for name, change, _ in CHANGES:
        given = grouped if name in GROUPED else plain
        right = given.output(RIGHT)
        try:
            wrong = given.output(replace(RIGHT, **change))
        except RuntimeError:
            continue
        assert distance(wrong, right) > 1e-3, (name, change)


def test_right_output_is_at_no_distance_and_has_no_name(x):
    p = projections()
    y = attend(x, p)
    assert right_distance(x, y, [p], causal=True) == 0
    noise = y + torch.randn(y.shape, generator=torch.Generator().manual_seed(3))
    assert name_mistake(x, noise, [p], causal=True) is None


def test_the_best_reading_of_the_weights_counts(x):
    p = projections()
    other = replace(p, query=p.key, key=p.query)
    assert right_distance(x, attend(x, p), [other, p], causal=True) == 0
    assert right_distance(x, attend(x, p), [], causal=True) == float("inf")


def test_of_several_layers_the_first_that_fits_is_recognized(x):
    p, rotated = projections(), Layer(rope=Rope())
    y = Computation(x, p.double(), rotated).output(base_recipe(True, rotated))
    layers = [Layer(), Layer(rope=Rope("neighbors")), rotated, Layer(rope=Rope())]
    layer, reading, gap = recognize_layer(x, y, [p], True, layers)
    assert layer is rotated
    assert reading is p
    assert gap < 1e-6
    assert recognize_layer(x, y, [p], True, layers[:2]) is None


def test_mistakes_that_give_the_same_numbers_are_told_beside_the_first(x):
    p = projections()
    parts = ("query", "key", "value")
    wide = {name: (getattr(p, name)[0].repeat(1, 2), None) for name in parts}
    p, x = replace(p, **wide), x.repeat(1, 1, 2)  # where √d_in is √d_out
    match = name_mistake(x, attend(x, p, replace(RIGHT, scale="1/√d_in")), [p], True)
    assert match.recipe.scale == "1/√d_out"
    assert match.names == ("scale_by_d_out",)
    assert match.others == ["scale_by_d_in"]
    both = attend(x, p, replace(RIGHT, scale="1", mask="none"))
    assert name_mistake(x, both, [p], causal=True, several=False) is None
    for several in (True, None):
        match = name_mistake(x, both, [p], causal=True, several=several)
        assert match.names == ("mask_missing", "scale_missing")


def test_an_example_shows_the_weights_of_four_tokens_in_the_first_head(x):
    p = projections().double()

    def shown(**change):
        recipe = replace(RIGHT, **change)
        return example(Match((), "", 0.0, [], recipe, p), x, causal=True)

    q, k = (F.linear(x[0, :4], *pair)[:, :D_HEAD] for pair in (p.query, p.key))
    expected, actual = shown(scale="1", mask="none")
    hidden = torch.ones(4, 4, dtype=torch.bool).triu(1)
    scores = (q @ k.mT / D_HEAD**0.5).masked_fill(hidden, -torch.inf)
    torch.testing.assert_close(expected, scores.softmax(-1))
    torch.testing.assert_close(actual, (q @ k.mT).softmax(-1))
    assert shown(softmax=0, fill=-1e9)[1].eq(1).all()  # of this sequence alone
    assert shown(join="view") is None  # its weights are right


def test_distance_needs_the_same_non_finite_places():
    one = torch.tensor([1.0, float("nan")])
    assert distance(one, one) == 0
    assert distance(one, torch.tensor([1.0, 2.0])) == float("inf")
    assert distance(one[1:], one[1:]) == float("inf")
    assert distance(one, one[:1]) == float("inf")


def test_weights_are_found_under_other_names():
    reference = attention.MultiHeadAttention(16, 16, 8, 0.0, 4)
    renamed = nn.Module()
    renamed.n_head = 4
    renamed.q_proj, renamed.k_proj = reference.W_query, reference.W_key
    renamed.v_proj, renamed.o_proj = reference.W_value, reference.out_proj
    (found,) = find(renamed)
    assert found.num_heads == 4
    assert torch.equal(found.key[0], reference.W_key.weight)
    assert torch.equal(found.out[1], reference.out_proj.bias)
    assert find(nn.Linear(3, 3)) == []


def test_an_adapter_gives_weights_under_unknown_names():
    class Secret(attention.SelfAttention_v2):
        def __init__(self, d_in, d_out):
            super().__init__(d_in, d_out)
            self.a, self.b, self.c = self.W_query, self.W_key, self.W_value
            del self.W_query, self.W_key, self.W_value

        def forward(self, x):
            weights = torch.softmax(self.a(x) @ self.b(x).mT, dim=-1)  # not scaled
            return weights @ self.c(x)

    def layers(module):
        return {"query": module.a, "key": module.b, "value": module.c}

    def tensors(module):  # (out, in), as the function's description asks for
        return {role: layer.weight for role, layer in layers(module).items()}

    for weights in (None, layers, tensors):
        for d_out in (16, 12):
            sizes = {"d_in": 16, "d_out": d_out, "causal": False}
            report = attention.check(Secret, weights=weights, **sizes)
            assert [f.mistake for f in report.findings] == ["scale_missing"]
