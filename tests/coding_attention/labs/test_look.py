"""The look lab: a word exchanged or asked, a head chosen, against what is stored."""

import base64

import pytest
import torch
from bs4 import BeautifulSoup
from traitlets import TraitError

from coding_attention.labs import LookLab, look
from coding_attention.labs.look import CHOSEN
from coding_attention.models import real
from tests.coding_attention.labs.harness import PHONE

WORDS = """root => [...root.querySelectorAll('.lk-word:not([hidden])')].map(e => [
  e.querySelector('.lk-text').textContent,
  e.getAttribute('aria-label').split(' ').at(-1),
  parseFloat(e.style.getPropertyValue('--tone')), e.classList.contains('lk-asks')])"""
# Of each word: its number, its exchange, and whether it is pressed and reached.
MORE = """root => [...root.querySelectorAll('.lk-word:not([hidden])')].map(e => [
  e.children[1].textContent, e.children[2].textContent,
  e.classList.contains('lk-differs'), e.ariaPressed, e.tabIndex])"""
LINES = """root => [...root.querySelectorAll('.lk-line')].map(
  e => parseFloat(e.style.getPropertyValue('--weight')))"""

# Where the words stand, and where each line begins, ends and is highest, in pixels.
PLACES = """root => [
  [...root.querySelectorAll('.lk-word:not([hidden])')].map(e => {
    const b = e.getBoundingClientRect();
    return {left: b.left, right: b.right, top: b.top, bottom: b.bottom};
  }),
  [...root.querySelectorAll('.lk-line')].map(e => {
    const [length, screen] = [e.getTotalLength(), e.getScreenCTM()];
    const points = Array.from({length: 33}, (_, i) =>
      e.getPointAtLength(length * i / 32).matrixTransform(screen));
    const ys = points.map(p => p.y);
    const [from, to] = [points[0], points.at(-1)].map(p => ({x: p.x, y: p.y}));
    return {from, to, top: Math.min(...ys), bottom: Math.max(...ys)};
  })]"""


def middle(word):
    return (word["left"] + word["right"]) / 2


def check_lines(root, asked, others):
    """Require each line to go from the word that asks to the one that it looks at."""
    words, lines = root.evaluate(PLACES)
    assert len(lines) == len(others)
    for line, other in zip(lines, others, strict=True):
        a, b = words[asked], words[other]
        assert line["from"]["x"] == pytest.approx(middle(a), abs=1)
        assert line["to"]["x"] == pytest.approx(middle(b), abs=1)
        below = b["top"] - a["top"]
        if abs(below) < 5:  # in one row, over the words between
            assert line["from"]["y"] == pytest.approx(a["top"], abs=1)
            assert line["to"]["y"] == pytest.approx(b["top"], abs=1)
            assert 10 < a["top"] - line["top"] <= 84
        else:  # between the rows, through no word
            upper, lower = (a, b) if below > 0 else (b, a)
            assert line["top"] == pytest.approx(upper["bottom"], abs=1)
            assert line["bottom"] == pytest.approx(lower["top"], abs=1)


def check(root, lab):
    """Require words, weights, shades and lines on screen to be what is stored."""
    words, weights = lab.compute()
    shown = root.evaluate(WORDS)
    assert [text for text, *_ in shown] == words
    assert [told for _, told, *_ in shown] == [f"{w:.2f}" for w in weights.tolist()]
    tones = torch.tensor([tone for *_, tone, _ in shown], dtype=torch.float64)
    torch.testing.assert_close(tones, 100 * weights, atol=0.051, rtol=0)
    assert [asks for *_, asks in shown].index(True) == lab.asked
    both = lab.scenes[lab.scene]["words"]
    other = both[0 if lab.exchanged else -1] if len(both) > 1 else [""] * len(words)
    assert root.evaluate(MORE) == [
        [f" {w:.2f}" if w >= 0.05 else "", swap, swap not in ("", word),
         str(j == lab.asked).lower(), 0 if j == lab.asked else -1]
        for j, (w, word, swap) in enumerate(
            zip(weights.tolist(), words, other, strict=True))
    ]  # fmt: skip
    others = {i: w for i, w in enumerate(weights.tolist())
              if i != lab.asked and w >= 0.02}  # fmt: skip
    assert root.evaluate(LINES) == pytest.approx([*others.values()], abs=6e-4)
    check_lines(root, lab.asked, others)
    said = root.locator(".al-summary").text_content()
    if lab.averaged:
        assert f"every word {1 / len(words):.2f}" in said
    else:
        most = int(weights.argmax())
        assert (
            said
            == f"“{words[lab.asked]}” looks at “{words[most]}” ({weights[most]:.2f})."
        )


# ---- Python ----


def test_weights_are_those_that_are_stored():
    lab = LookLab()
    for i, scene in enumerate(lab.scenes):
        for sentence, exchanged in zip(scene["words"], (False, True), strict=False):
            text = " ".join(sentence[1:-1])
            lab = LookLab(scene=i, exchanged=exchanged)
            words, weights = real.looks(text, scene["head"])
            assert lab.compute()[0] == words
            torch.testing.assert_close(
                lab.compute()[1].float(), weights[lab.asked], atol=1e-6, rtol=0
            )


def test_an_exchange_changes_one_word_and_the_asking_one():
    for rows in CHOSEN.values():
        for _, *sentences in rows:
            if len(sentences) == 2:
                pairs = zip(*(s.split() for s in sentences), strict=True)
                assert sum(a != b for a, b in pairs) == 1
    for scene in LookLab().scenes:
        if len(scene["words"]) == 2:
            first, second = (words[scene["ask"]] for words in scene["words"])
            assert first != second


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"scene": 12}, "from 0 to 11"),
        ({"scenes": [{"head": "3.1", "ask": 0, "words": [["a"], ["a"]],
                      "weights": [[[255]]] * 2}]}, "differ in one word"),
        ({"asked": 10}, "from 0 to 9"),
        ({"scenes": [{"head": "3.1", "ask": 0, "words": [["a", "b"]],
                      "weights": [[[255]]]}]}, r"weights \(t, t\) for its 2 words"),
    ],
)  # fmt: skip
def test_bad_values_get_a_message(state, words):
    with pytest.raises(TraitError, match=words):
        LookLab(**state)


def test_static_figure_says_where_both_words_look():
    soup = BeautifulSoup(LookLab().fallback(), "html.parser")
    for word, target in (("they", "workers"), ("it", "piano")):
        sentence = f"the workers watched the piano until {word} left"
        words, weights = real.looks(sentence, "3.1")
        row = weights[words.index(word)]
        assert words[int(row.argmax())] == target
        told = f"{word} looks at {target} ({row.max():.2f})"
        assert told.lower() in soup.get_text().lower()
        assert told in soup.svg["aria-label"]


def test_static_figure_draws_the_weights_of_both_words(monkeypatch):
    drawn = []
    monkeypatch.setattr(
        look.base, "heat_map", lambda *given, **how: drawn.extend(given[3]) or ""
    )
    LookLab().fallback()
    for word, row in zip(("they", "it"), drawn, strict=True):
        sentence = f"the workers watched the piano until {word} left"
        words, weights = real.looks(sentence, "3.1")
        wanted = weights[words.index(word)].double()
        # A weight is stored in steps of 1/255, with the largest near 1.
        torch.testing.assert_close(row, wanted, atol=0.51 / 255, rtol=0)


# ---- on screen ----


@pytest.mark.site
@pytest.mark.parametrize("phone", [False, True])
def test_one_word_exchanged_and_the_head_looks_elsewhere(lab_on_page, phone):
    root, lab, one = lab_on_page("LookLab", **(PHONE if phone else {}))
    check(root, lab)
    assert not root.locator(".al-done").count()
    button = root.get_by_role("button", name="Swap “they” for “it”")
    where = button.bounding_box()
    button.click()
    check(root, LookLab(exchanged=True))
    assert root.locator(".al-done").count() == 1
    after = root.get_by_role("button", name="Swap “it” for “they”").bounding_box()
    assert after == where, "the button is where it was"
    assert one.errors == []


@pytest.mark.site
def test_keys_ask_another_word_and_controls_choose(lab_on_page):
    root, lab, one = lab_on_page("LookLab")
    root.locator(".lk-asks").focus()
    one.page.keyboard.press("ArrowLeft")
    one.page.keyboard.press("ArrowLeft")
    check(root, LookLab(asked=lab.asked - 2))
    last = len(lab.compute()[0]) - 1
    for key, end in (("ArrowRight", last), ("ArrowLeft", 0)):
        for _ in range(last + 1):  # and no further
            one.page.keyboard.press(key)
        check(root, LookLab(asked=end))
    root.locator(".lk-word").nth(lab.asked - 2).click()
    root.get_by_label("Plain mean").check()
    check(root, LookLab(asked=lab.asked - 2, averaged=True))
    root.get_by_label("Plain mean").uncheck()
    heads = list(CHOSEN)
    root.get_by_role("combobox", name="Head").select_option(index=2)
    scene = sum(len(CHOSEN[head]) for head in heads[:2])
    check(root, LookLab(scene=scene))
    assert root.get_by_role("button", name="No word to swap").is_disabled()
    for step in (1, 2, 0):
        root.get_by_role("button", name="Another sentence").click()
        check(root, LookLab(scene=scene + step))
    assert one.third_parties() == []
    assert one.errors == []


def test_numbers_packed_into_bytes_are_the_same_to_a_half_step():
    rows = torch.randn(5, 8, generator=torch.Generator().manual_seed(1)) * 3
    packed = look._packed(rows)
    steps = torch.tensor(list(base64.b64decode(packed["steps"]))).to(torch.int8)
    found = packed["scale"] * steps.float().view(5, 8)
    half = packed["scale"] / 2
    torch.testing.assert_close(found, rows, atol=1.001 * half, rtol=0)
    assert half < rows.abs().max() / 250
