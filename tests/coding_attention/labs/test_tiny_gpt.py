"""The lab of a trained model: its arithmetic against PyTorch, and the lab on a page."""

import json
import os
from pathlib import Path

import pytest
import torch
from bs4 import BeautifulSoup
from playwright.sync_api import expect
from traitlets import TraitError

from coding_attention.labs.tiny_gpt import TinyGptLab
from coding_attention.models import induction
from coding_attention.models.tiny_gpt import GPTConfig, TinyGPT
from tests.coding_attention.labs.table import WORDS, trained
from tests.coding_attention.labs.table import tiny_gpt as lab

HERE = Path(__file__).parent


# ---- the arithmetic ----


def scores(one):
    """What ``compute`` turns into probabilities: without softmax, nothing is hidden."""
    from contextlib import ExitStack

    from coding_attention.models import heads

    model = one.model()
    with ExitStack() as stack, torch.no_grad():
        for head in one.silenced:
            place = divmod(head, one.sizes["num_heads"])
            stack.enter_context(heads.without_head(model, *place))
        return model(torch.tensor([one.tokens]))[0]


def cases():
    """Random sequences and silenced heads, for the trained model and random ones."""
    draws = torch.Generator().manual_seed(5)
    torch.manual_seed(5)
    made = [
        trained(),
        *(TinyGPT(GPTConfig(9, 12, 8, h, b)) for h, b in ((1, 3), (4, 1))),
    ]
    for model in made[1:]:  # large numbers reach the ends of GELU
        for parameter in model.parameters():
            parameter.data *= 3
    for model in made:
        config = model.config
        runs = []
        for n in range(6):
            count = int(
                torch.randint(1, config.context_length + 1, (1,), generator=draws)
            )
            tokens = torch.randint(
                config.vocab_size, (count,), generator=draws
            ).tolist()
            last = config.num_heads * config.num_blocks
            silenced = torch.randperm(last, generator=draws)[: n % 3].sort()[0].tolist()
            one = TinyGptLab(
                model, [str(i) for i in range(config.vocab_size)],
                tokens=tokens, silenced=silenced,
            )  # fmt: skip
            patterns = one.compute()[0].tolist()
            runs.append({
                "tokens": tokens, "silenced": silenced, "patterns": patterns,
                "scores": scores(one).tolist(),
            })  # fmt: skip
        state = {name: getattr(one, name) for name in ("weights", "shapes", "sizes")}
        yield {**state, "runs": runs}


def test_the_page_computes_what_pytorch_computes(node, tmp_path):
    """To 1e-9, in double precision on both sides, from the same rounded weights."""
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"models": list(cases())}), encoding="utf-8")
    result = node(
        "--test", HERE / "tiny_gpt.test.js", env={**os.environ, "CASES": str(path)}
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_rounding_the_weights_changes_next_to_nothing():
    tokens, periods = induction.draw(
        induction.Config(), 64, torch.Generator().manual_seed(7)
    )
    whole = induction.repeated_loss(trained(), tokens, periods)
    rounded = induction.repeated_loss(lab().model(), tokens, periods)
    assert abs(whole - rounded) < 1e-3  # of a loss of 0.02
    assert len(lab().weights) <= 50_000  # bytes in the page


# ---- Python ----


def test_it_continues_the_sentence_and_forgets_without_the_first_head():
    at = lab().tokens[-1] + 1
    assert lab().compute()[1][-1].argmax() == at
    assert lab().compute()[1][-1, at] > 0.9
    assert lab(silenced=[0]).compute()[1][-1, at] < 0.5


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"tokens": []}, "from 1 to 40, but got 0"),
        ({"tokens": [0] * 41}, "from 1 to 40, but got 41"),
        ({"tokens": [32]}, "from 0 to 31"),
        ({"silenced": [4]}, "from 0 to 3"),
        ({"at": 9}, "from -1 to 8"),
    ],
)
def test_bad_values_get_a_message(state, words):
    with pytest.raises(TraitError, match=words):
        lab(**state)


def test_static_figure_draws_every_head():
    soup = BeautifulSoup(lab().fallback(), "html.parser")
    labels = [picture["aria-label"] for picture in soup.select("svg")]
    assert labels == [f"Attention weights of {name}." for name in lab().head_names()]
    likely = lab().compute()[1][-1].sort(descending=True).values[:6].tolist()
    assert [cell.text for cell in soup.select("table td")] == [
        f"{p:.4f}" for p in likely
    ]


# ---- on screen ----


def shown(root):
    return root.locator(".tg-next").evaluate_all(
        "all => all.map(e => [e.children[0].textContent, e.children[2].textContent])"
    )


# Of each bar: what a click does, how long it is, and where all heads would end it.
BARS = """all => all.map(e => {
  const [bar, mark] = e.children[1].children;
  return [e.title, parseFloat(bar.style.width),
    mark.checkVisibility() ? parseFloat(mark.style.left) : null];
})"""


def check(root, one):
    """Require the bars to be PyTorch's probabilities, largest first."""
    chances = one.compute()[1][one.at]
    found = shown(root)
    for word, number in found:
        assert number == f"{chances[WORDS.index(word)]:.2f}", (word, one)
    best = int(chances.argmax())
    assert found[0][0] == WORDS[best]
    assert len(found) == 6
    whole = lab(tokens=one.tokens, at=one.at).compute()[1][one.at]
    bars = root.locator(".tg-next").evaluate_all(BARS)
    for (word, _), (told, bar, mark) in zip(found, bars, strict=True):
        token = WORDS.index(word)
        assert told == f"Add {word}"
        assert bar == pytest.approx(100 * chances[token].item(), abs=0.051)
        wanted = pytest.approx(100 * whole[token].item(), abs=0.051)
        assert mark == (wanted if one.silenced else None)
    assert root.locator(".tg-legend").is_visible() == bool(one.silenced)
    assert (
        root.locator(".al-summary")
        .text_content()
        .startswith(
            f"After “{WORDS[one.tokens[one.at]]}” the model expects “{WORDS[best]}”, "
            f"with probability {chances[best]:.2f}."
        )
    )
    solved = "al-done" in root.locator(".al-task").get_attribute("class")
    assert solved == (best != int(whole.argmax())), "it's solved by another word alone"
    # Every head: its name says whether it is on, its cells are its own weights.
    patterns = one.compute()[0].flatten(0, 1)
    for n, weights in enumerate(patterns):
        head = root.locator(".tg-head").nth(n)
        state = "off" if n in one.silenced else "on"
        name = f"block {n // 2 + 1}, head {n % 2 + 1}: {state}"
        assert head.locator("button").text_content() == name
        tones = head.locator("g rect").evaluate_all(
            "all => all.map(e => parseFloat(e.style.getPropertyValue('--tone')))"
        )
        wanted = [
            100 * x for i, row in enumerate(weights) for x in row[: i + 1].tolist()
        ]
        assert tones == pytest.approx(wanted, abs=0.051)


@pytest.mark.site
@pytest.mark.parametrize("width", [390, 1280])
def test_a_head_goes_off_and_the_words_change(lab_on_page, width):
    size = {"width": width, "height": 900}
    root, first, one = lab_on_page("TinyGptLab", viewport=size)
    page = one.page
    check(root, first)
    switch = root.get_by_role("button", name="block 1, head 1")
    switch.focus()
    page.keyboard.press("Enter")
    expect(switch).to_have_attribute("aria-pressed", "false")
    check(root, lab(silenced=[0]))
    assert (
        "With all heads, it would give with" in root.locator(".al-summary").inner_text()
    )
    switch.click()
    check(root, lab())
    kept = next(n for n in range(4) if lab(silenced=[n]).compute()[1][first.at].argmax()
                == first.compute()[1][first.at].argmax())  # fmt: skip
    root.locator(".tg-head button").nth(kept).click()
    check(root, lab(silenced=[kept]))
    root.locator(".tg-head button").nth(kept).click()

    root.get_by_label("Text").fill("banana ban your")
    letters = [WORDS.index(letter) for letter in "bananaban"]
    check(root, lab(tokens=[*letters, 0]))
    root.get_by_role("button", name="Take back").click()
    check(root, lab(tokens=letters))
    root.get_by_role("button", name="Let it write").click()
    best = int(lab(tokens=letters).compute()[1][-1].argmax())
    check(root, lab(tokens=[*letters, best]))
    root.get_by_role("button", name="Reset").click()
    check(root, lab())

    # A head's weights by keyboard, from the largest of the row that looks.
    root.locator(".al-pattern").nth(3).focus()
    page.keyboard.press("ArrowLeft")
    weight = lab().compute()[0][1, 1, -1, 2]
    words = f"starts (9) looks at starts (3) with weight {weight:.4f}"
    expect(root.locator(".al-readout")).to_contain_text(words)

    slider = root.locator("input[type=range]")
    slider.focus()
    page.keyboard.press("Home")
    check(root, lab(at=0))
    assert one.third_parties() == []
    assert one.errors == []
