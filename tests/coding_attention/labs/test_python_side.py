"""The labs as Python objects: traits, errors, static figures, stored state, scripts."""

import json
import re
import subprocess
import sys
from pathlib import Path

import ipywidgets
import pytest
import torch
from bs4 import BeautifulSoup
from traitlets import TraitError

from attention import (
    MultiHeadAttention,
    MultiHeadAttentionWrapper,
    SelfAttention_v1,
    SelfAttention_v2,
    simple_self_attention,
)
from coding_attention import example
from coding_attention.figures import pattern, show
from coding_attention.labs import (
    AttentionLab,
    DropoutLab,
    HeadSplitLab,
    MaskLab,
    MultiHeadLab,
    ScaleLab,
    base,
)
from coding_attention.stored import HTML, LAB, VIEW, store
from tests.coding_attention.labs.table import ROWS
from tools import labs as tool

ROOT = Path(__file__).resolve().parents[3]
PRINTED = {
    entry["id"]: entry["values"]
    for entry in json.loads(
        (ROOT / "book/reference/printed_values.json").read_text(encoding="utf-8")
    )
}


def printed(matrix):
    return [[f"{x:.4f}" for x in row] for row in matrix.tolist()]


# ---- numbers ----


def test_attention_lab_computes_each_class():
    x = example.inputs()
    lab = AttentionLab()
    assert printed(lab.compute()[0]) == PRINTED["scores_all"]
    assert printed(lab.compute()[1]) == PRINTED["weights_all"]
    torch.testing.assert_close(lab.compute()[2].float(), simple_self_attention(x))
    lab.trainable = lab.scaled = True
    torch.manual_seed(123)
    expected = SelfAttention_v1(3, 2)(x)
    torch.testing.assert_close(lab.compute()[2].float(), expected)


def test_mask_lab_starts_with_the_causal_weights():
    scores, weights, context = MaskLab().compute()
    assert [
        [s.replace(".0000", "") for s in row] for row in printed(scores)
    ] == PRINTED["causal_scores_masked"]
    assert printed(weights) == PRINTED["causal_weights"]
    lab = MaskLab(diagonal=6)
    torch.manual_seed(789)
    expected = SelfAttention_v2(3, 2)(example.inputs())
    torch.testing.assert_close(lab.compute()[2].float(), expected)
    assert not torch.equal(lab.compute()[2], context)


def test_multiplying_and_renormalizing_gives_the_same_weights():
    other = MaskLab(place="after", fill="0", renormalized=True)
    torch.testing.assert_close(other.compute()[1], MaskLab().compute()[1])
    assert (
        printed(MaskLab(place="after", fill="0").compute()[1])
        == PRINTED["causal_weights_zeroed"]
    )


def test_a_future_token_moves_no_earlier_output():
    lab = MaskLab(nudged=3)
    moved = (lab.compute(nudged=True)[2] - lab.compute()[2]).abs().amax(dim=-1)
    assert (moved[:3] == 0).all()
    assert (moved[3:] > 1e-3).all()


def test_dropout_mean_comes_back_to_the_weights():
    lab = DropoutLab(draws=1000)
    weights = torch.tensor(lab.weights, dtype=torch.float64)
    assert (lab.compute()[1] - weights).abs().max() < 0.1
    lab.training = False
    assert torch.equal(lab.compute()[0], weights)


def test_dropout_bugs_do_what_they_are_called():
    lab = DropoutLab(draws=1000, bug="undivided", p=0.25)
    weights = torch.tensor(lab.weights, dtype=torch.float64)
    dropped, mean = lab.compute()
    assert set((dropped / weights).nan_to_num().unique().tolist()) == {0.0, 1.0}
    assert (mean - 0.75 * weights).abs().max() < 0.05
    left = DropoutLab(bug="left on", training=False)
    assert not torch.equal(left.compute()[0], weights)
    assert torch.equal(left.compute()[0], DropoutLab().compute()[0])
    # PyTorch's function is left on like this unless it is told.
    assert (torch.nn.functional.dropout(torch.ones(99), 0.5) == 0).any()


def test_head_split_lab_shows_the_reference():
    found = HeadSplitLab().compute()
    texts = json.loads(re.sub(r"(\d+)", r'"\1"', str(found["transpose"].tolist())))
    assert texts == PRINTED["arange_split_heads"]
    assert torch.equal(found["join"], found["x"])
    wrong = HeadSplitLab(straight=True).compute()
    assert wrong["transpose"].shape == found["transpose"].shape
    assert not torch.equal(wrong["transpose"], found["transpose"])
    assert not torch.equal(wrong["join"], wrong["x"])


def test_multi_head_lab_gives_both_classes_the_same_weights():
    found = MultiHeadLab(sharper=False).compute()
    assert printed(found["wrapper"]) == PRINTED["multi_head_wrapper"][0]
    # One divides scores, the other queries: equal up to rounding.
    torch.testing.assert_close(found["wrapper"], found["split"], atol=1e-6, rtol=0)
    torch.manual_seed(123)
    wrapper = MultiHeadAttentionWrapper(3, 4, 6, 0.0, 3)
    expected = wrapper(example.inputs().unsqueeze(0))[0]
    found = MultiHeadLab(num_heads=3, d_head=4, sharper=False).compute()["wrapper"]
    torch.testing.assert_close(found.float(), expected)


def test_multi_head_lab_opens_with_heads_that_look_elsewhere():
    """The share of its weight that one head has on other tokens than the next."""

    def apart(lab):
        one, other = lab.compute()["weights"][:2, lab.token]
        return (one - other).abs().sum().item() / 2

    assert apart(MultiHeadLab()) > 0.25
    assert apart(MultiHeadLab(sharper=False)) < 0.05
    assert not MultiHeadLab(layer=MultiHeadAttention(3, 4, 6, 0.0, 2)).sharper


@pytest.mark.parametrize("h", [1, 2, 4])
def test_multi_head_lab_shows_a_layer_that_it_is_given(h):
    torch.manual_seed(h)
    layer = MultiHeadAttention(5, 8 if h > 1 else 4, 6, 0.0, h)
    x = torch.randn(6, 5)
    lab = MultiHeadLab(layer=layer, inputs=x, token=3)
    output = layer(x.unsqueeze(0))[0, 3].detach()
    torch.testing.assert_close(lab.compute()["output"].float(), output)
    lab.silenced = list(range(h))
    bias = layer.out_proj.bias.detach()
    torch.testing.assert_close(lab.compute()["output"].float(), bias)
    with pytest.raises(TraitError, match=f"from 1 to {h}"):
        lab.num_heads = h + 1


def test_scale_lab_spreads_by_the_root():
    for width in (16, 256):
        assert ScaleLab().compute(width)["spread"] == pytest.approx(width**0.5, rel=0.2)
        assert ScaleLab(divisor="root").compute(width)["spread"] == pytest.approx(
            1, rel=0.2
        )
    assert ScaleLab(divisor="full", d_k=1024).compute()["entropy"] > 2.07
    assert ScaleLab(d_k=1024).compute()["gradient"] < 0.1
    assert ScaleLab(divisor="other", other=9).divide_by(1024) == 3.0


# ---- state ----


@pytest.mark.parametrize("name", ROWS)
def test_what_does_not_fit_is_refused_in_words(name):
    """Each message names the trait, and of several words those that are taken."""
    lab = ROWS[name].make()
    for trait, kind in lab.traits(lab=True).items():
        with pytest.raises(TraitError, match=trait):
            lab.set_trait(trait, object())
        if isinstance(kind, base.Int | base.Float):
            with pytest.raises(TraitError, match=trait):
                lab.set_trait(trait, 10**6)
        if isinstance(kind, base.Enum):
            with pytest.raises(TraitError, match=trait) as raised:
                lab.set_trait(trait, "nonsense")
            assert all(repr(value) in str(raised.value) for value in kind.values)
    with pytest.raises(TypeError, match="no argument 'causl'"):
        ROWS[name].make(causl=True)


REFUSED = {
    "AttentionLab": [
        {"inputs": torch.ones(13, 2)}, {"inputs": torch.ones(2, 17)},
        {"inputs": torch.ones(2, 3, 4)}, {"inputs": [[1.0], [1.0, 2.0]]},
        {"inputs": [[torch.nan]]}, {"tokens": ["a"]},
        {"W_query": torch.ones(2, 3)}, {"W_key": torch.ones(3, 5)},
    ],
    "DropoutLab": [{"weights": torch.ones(2, 3)}],
    "HeadSplitLab": [{"num_heads": 3}, {"d_out": 5}],
    "MultiHeadLab": [{"silenced": [4]}],
    "TinyGptLab": [
        {"tokens": []}, {"tokens": [0] * 41}, {"tokens": [32]}, {"silenced": [4]},
        {"step": 3},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "state"),
    [(name, state) for name, states in REFUSED.items() for state in states],
)
def test_a_matrix_or_list_that_does_not_fit_is_refused(name, state):
    with pytest.raises(TraitError):
        ROWS[name].make(**state)


def test_own_tensors_of_any_size():
    for t, d in ((1, 1), (4, 5), (12, 16)):
        lab = AttentionLab(inputs=torch.randn(t, d), causal=True, trainable=True)
        assert lab.compute()[1].shape == (t, t)
        assert lab.tokens == [f"token {i + 1}" for i in range(t)]
    # Six rows are no reason to be called by the example's words.
    assert AttentionLab(inputs=torch.ones(6, 3)).tokens[0] == "token 1"


def test_state_is_read_set_and_observed():
    lab = AttentionLab()
    seen = []
    lab.observe(lambda change: seen.append((change.name, change.new)), "query")
    lab.query = 3
    assert seen == [("query", 3)]
    with pytest.raises(TraitError, match="made for inputs of the shape"):
        lab.inputs = torch.ones(5, 3)
    assert len(lab.inputs) == 6
    lab.inputs = torch.zeros(6, 3)
    assert lab.inputs[5] == [0.0, 0.0, 0.0]


# ---- what a cell puts out ----


@pytest.mark.parametrize("name", ROWS)
def test_output_is_the_same_in_every_run(name):
    make = ROWS[name].make
    first, second = (make()._repr_mimebundle_()[0] for _ in range(2))
    assert set(first) == {"text/plain", "text/html", VIEW, LAB}
    assert first["text/plain"] == second["text/plain"] == repr(make())
    assert first["text/html"] == second["text/html"]
    assert first["text/plain"].startswith(f"{name}(")
    assert "0x" not in first["text/plain"] + first["text/html"]


@pytest.mark.parametrize("name", ROWS)
def test_static_figure_stands_for_the_lab(name):
    lab = ROWS[name].make()
    soup = BeautifulSoup(lab.fallback(), "html.parser")
    assert soup.select_one(".attn-static .al-title").text == lab.title
    pictures = soup.select("svg")
    assert all(len(picture["aria-label"]) > 20 for picture in pictures)
    assert all(picture["role"] == "img" for picture in pictures)
    assert pictures, "draw it with base.heat_map or base.drawing"
    assert not soup.select("script, [onclick], img")


def test_static_numbers_are_the_labs_numbers():
    told = BeautifulSoup(AttentionLab(query=1).fallback(), "html.parser").text
    context = ", ".join(PRINTED["context_all"][1])
    assert (
        f"weight {max(PRINTED['weights_all'][1])}. Its context is [{context}]" in told
    )


def test_the_static_figure_has_both_ways_to_split():
    """Each entry stands above its token and its feature, head by head."""
    lab = HeadSplitLab(batch=2, num_tokens=3, d_out=4)
    pictures = BeautifulSoup(lab.fallback(), "html.parser").select("svg")
    for picture, straight in zip(pictures, (False, True), strict=True):
        lab.straight = straight
        labels = [text.text.strip() for text in picture.select("text")]
        tags = [f"t{x // 4} f{x % 4}" for x in lab.compute()["transpose"][0].flatten()]
        assert [label for label in labels if re.match(r"t\d f\d", label)] == tags


def test_names_are_escaped():
    lab = AttentionLab(inputs=[[1.0], [2.0]], tokens=["<b>", "$a$"])
    assert "<b>" not in lab.fallback()
    labels = BeautifulSoup(lab.fallback(), "html.parser").select("svg text")
    assert {label.text.strip() for label in labels} == {"<b>", "$a$"}


def test_the_picture_is_the_figure_of_the_weights():
    lab = MaskLab()
    (picture,) = BeautifulSoup(lab.fallback(), "html.parser").select("svg")
    figure = pattern(lab.compute()[1], lab.tokens, lab.tokens)
    (expected,) = show(figure, caption="Weights.", alt="Weights.").svgs
    expected = BeautifulSoup(expected, "html.parser").svg
    assert picture.decode_contents() == expected.decode_contents()


@pytest.mark.parametrize("name", ROWS)
def test_a_lab_is_stored_with_its_traits_and_without_its_widget(name):
    lab = ROWS[name].make()
    data, _ = lab._repr_mimebundle_()
    assert data[VIEW]["model_id"] == lab.model_id
    store([{"data": data}])
    assert VIEW not in data
    found = json.loads(data[LAB]["traits"])
    assert data[LAB]["lab"] == name
    assert set(lab.public()) <= set(found)
    assert all(found[trait] == getattr(lab, trait) for trait in found)
    assert "_esm" not in found


def test_a_slider_is_stored_as_a_word_on_what_it_needs():
    data = ipywidgets.IntSlider()._repr_mimebundle_()
    store([{"data": data}])
    assert VIEW not in data
    assert "kernel" in data[HTML]


def test_the_bundle_is_made_of_the_scripts_as_they_are():
    with tool.BUNDLE.open(encoding="utf-8") as file:
        assert next(file).rstrip() == tool.first_line(), "run: make labs"


@pytest.mark.parametrize("name", ROWS)
def test_every_lab_has_its_script(name, node, tmp_path):
    """anywidget loads one module, and takes what it exports by default."""
    path = tmp_path / "lab.mjs"
    path.write_text(ROWS[name].make()._esm, encoding="utf-8")
    ask = f"import lab from {json.dumps(path.as_uri())}; console.log(typeof lab.render)"
    result = node("--input-type=module", "--eval", ask)
    assert result.stdout == "function\n", result.stderr


def test_building_pages_with_labs_needs_no_pytorch():
    code = (
        "import sys; from theme import labs; labs.compose_assets(); "
        "sys.exit('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_a_draw_keeps_a_weight_divided_by_what_is_kept_on_average(p):
    """As ``nn.Dropout`` does, at rates besides one half, where p is 1 - p."""
    lab = DropoutLab(p=p, draws=20)
    weights = torch.tensor(lab.weights, dtype=torch.float64)
    dropped, _ = lab.compute()
    kept = dropped != 0
    assert kept.any()
    torch.testing.assert_close(dropped[kept] * (1 - p), weights[kept])
