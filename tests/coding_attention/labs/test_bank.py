"""The bank lab on a built page: moved by mouse, touch and keys, against PyTorch."""

import re

import pytest
import torch
from bs4 import BeautifulSoup
from traitlets import TraitError

from coding_attention.labs import BankLab, base
from tests.coding_attention.labs.harness import PHONE, drag

SHOWN = """root => [...root.querySelectorAll('.bk-sentence')].map(row => ({
  weights: [...row.querySelectorAll('.bk-number')].map(e => e.textContent),
  heights: [...row.querySelectorAll('.bk-bar')].map(e => parseFloat(e.style.height)),
  z: row.querySelector('.bk-z').textContent}))"""


def place(x, y):
    """Where a vector stands in the drawing."""
    return 26 + 106 * x, 222 - 78 * y


def check(root, lab):
    """Require the weights, the bars and both sums on screen to be PyTorch's."""
    for row, (weights, z) in zip(root.evaluate(SHOWN), lab.compute(), strict=True):
        assert row["weights"] == [f"{w:.2f}" for w in weights.tolist()]
        heights = torch.tensor(row["heights"], dtype=torch.float64)
        torch.testing.assert_close(heights, 100 * weights, atol=0.051, rtol=0)
        assert row["z"] == "({:.2f}, {:.2f})".format(*z)
    # The way of the word in each sentence, from its place to its sum.
    start = place(*lab.vectors[lab.word])
    ways = root.locator(".bk-way").evaluate_all(
        "all => all.map(e => e.getAttribute('d'))"
    )
    for way, (_, z) in zip(ways, lab.compute(), strict=True):
        numbers = [float(x) for x in re.findall(r"-?[\d.]+", way)]
        assert numbers == pytest.approx([*start, *place(*z.tolist())], abs=1e-6)
    turns = [z[0] - z[1] for _, z in lab.compute()]
    nature, money = lab.axes
    words = [
        "neither way" if abs(gap) < 0.1 else f"towards {nature if gap > 0 else money}"
        for gap in turns
    ]
    assert (
        root.locator(".al-summary")
        .text_content()
        .startswith(
            f"In sentence 1, {lab.word} turns {words[0]}; "
            f"in sentence 2, {lab.word} turns {words[1]}."
        )
    )


def handle(root, word):
    return root.get_by_role("button", name=re.compile(f"^{word}: "))


def vector_of(root, word):
    """What a word's handle says of its place, and that it stands there."""
    label = handle(root, word).get_attribute("aria-label")
    return [float(x) for x in re.findall(r"\d\.\d\b", label)]


def check_keys(root, page):
    """Require arrow keys to lead along a sentence, and each stop to tell its sum."""
    axes = BankLab().axes
    for i, row in enumerate(root.locator(".bk-sentence").all()):
        assert row.locator("b").text_content() == str(i + 1)
        assert root.locator(".bk-which").nth(i).text_content() == str(i + 1)
        words = row.locator(".bk-word > span:nth-child(2)").all_text_contents()
        wanted = [f"{axes[0]}: ", *(f"bank · {word}: " for word in words)]
        stops = row.locator("button")
        stops.first.focus()
        way = [*range(len(wanted)), *reversed(range(len(wanted)))]
        for n, at in enumerate(way):
            told = root.locator(".al-readout").text_content()
            assert told.startswith(wanted[at])
            there = "all => all.map(e => [e.tabIndex, e === document.activeElement])"
            assert stops.evaluate_all(there) == [
                [0, True] if stop == at else [-1, False] for stop in range(len(wanted))
            ]
            keys = ("Right", "Down") if n < len(wanted) else ("Left", "Up")
            page.keyboard.press(f"Arrow{keys[n % 2]}")
        for at, stop in enumerate(stops.all()):
            stop.hover()
            assert root.locator(".al-readout").text_content().startswith(wanted[at])


# ---- Python ----


def test_same_word_two_meanings():
    (first, by_river), (second, by_loan) = BankLab().compute()
    for weights in (first, second):
        torch.testing.assert_close(weights.sum().item(), 1.0)
    assert by_river[0] > 1.5 > 0.4 > by_river[1]
    assert by_loan[1] > 1.5 > 0.4 > by_loan[0]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"sentences": ["the bank sank"]}, "words without a vector: sank"),
        ({"sentences": ["the river", "the bank"]}, "exactly once"),
        ({"vectors": {"bank": [1.0]}}, "two numbers from 0 to 2.5"),
        ({"vectors": {"bank": [1.0, 3.0]}}, "two numbers from 0 to 2.5"),
    ],
)
def test_bad_values_get_a_message(state, words):
    with pytest.raises(TraitError, match=words):
        BankLab(**state)


def test_static_figure_has_the_numbers():
    lab = BankLab(vectors=BankLab().vectors | {"river": [0.5, 1.5]})
    soup = BeautifulSoup(lab.fallback(), "html.parser")
    (weights, z), (_, other) = lab.compute()
    shown = [e.text for e in soup.select(".bk-number")]
    assert shown[:4] == [f"{w:.2f}" for w in weights.tolist()]
    points = ["({:.2f}, {:.2f})".format(*vector) for vector in (z, other)]
    assert [e.text for e in soup.select(".bk-z")] == points
    assert all(point in soup.svg["aria-label"] for point in points)
    assert soup.select_one(".al-readout").text.endswith(f"= {z[0]:.2f}")
    # One dot where words stand, also where two share a place.
    dots = [(float(e["cx"]), float(e["cy"])) for e in soup.select('circle[r="5"]')]
    assert sorted(dots) == sorted({place(*v) for v in lab.vectors.values()})


def test_the_picture_has_room_for_eleven_letters_of_a_word():
    long, lab = "riverbankside", BankLab()
    lab = BankLab(
        vectors=lab.vectors | {long: [1.0, 1.0]},
        sentences=[f"the {long} bank flooded", lab.sentences[1]],
    )
    base._heat_maps.clear()
    lab.fallback()
    first = base._heat_maps[0].svgs[0]
    labels = [
        e.text.strip() for e in BeautifulSoup(first, "html.parser").select("text")
    ]
    assert long[:11] in labels
    assert not any(label.startswith(long[:12]) for label in labels)


# ---- on screen ----


@pytest.mark.site
def test_arrow_keys_move_a_word(lab_on_page):
    root, lab, one = lab_on_page("BankLab")
    check(root, lab)
    handle(root, "flooded").focus()
    for _ in range(7):
        one.page.keyboard.press("ArrowLeft")
    one.page.keyboard.press("Shift+ArrowUp")
    lab = BankLab(vectors=BankLab().vectors | {"flooded": [1.3, 0.5]})
    assert vector_of(root, "flooded") == [1.3, 0.5]
    check(root, lab)
    one.page.keyboard.press("Shift+ArrowDown")
    one.page.keyboard.press("Shift+ArrowDown")  # not below the axis
    assert vector_of(root, "flooded") == [1.3, 0.0]
    root.get_by_role("button", name="Reset").click()
    check(root, BankLab())
    # With one word on each side, what is said of the first sentence changes.
    handle(root, "river").focus()
    for key in ["Shift+ArrowLeft", "Shift+ArrowUp"] * 4:
        one.page.keyboard.press(key)
    check(root, BankLab(vectors=BankLab().vectors | {"river": [0, 2]}))
    assert "bank turns neither way" in root.locator(".al-summary").text_content()
    check_keys(root, one.page)
    root.get_by_role("button", name="Reset").click()
    handle(root, "bank").focus()
    for _ in range(2):  # barely to one side, in the second sentence
        one.page.keyboard.press("Shift+ArrowDown")
    check(root, BankLab(vectors=BankLab().vectors | {"bank": [1, 0]}))
    assert one.third_parties() == []
    assert one.errors == []


@pytest.mark.site
@pytest.mark.parametrize("touch", [False, True])
def test_dragging_moves_a_word(lab_on_page, touch):
    root, _, one = lab_on_page("BankLab", **(PHONE if touch else {}))
    drag(one.page, handle(root, "loan").locator("circle.bk-dot"), 60, 40, touch)
    # The words "approved" and "loan" lie upon each other: the upper one was taken.
    vectors = {name: vector_of(root, name) for name in BankLab().vectors}
    moved = {name for name in vectors if vectors[name] != BankLab().vectors[name]}
    assert moved == {"loan"}
    nature, money = vectors["loan"]
    assert nature > 0.3
    assert money < 1.8
    # The label rounds to tenths, and a drag moves by twentieths: one of these it is.
    near = [-0.05, 0, 0.05]
    states = [
        BankLab(vectors=BankLab().vectors | {"loan": [nature + a, money + b]})
        for a in near
        for b in near
    ]
    found = root.evaluate(SHOWN)[1]["z"]
    assert found in ["({:.2f}, {:.2f})".format(*lab.compute()[1][1]) for lab in states]
    assert one.errors == []


@pytest.mark.site
def test_numbers_spell_their_sums(lab_on_page):
    root, _, one = lab_on_page("BankLab")
    readout = root.locator(".al-readout")
    weights, z = BankLab().compute()[0]
    root.locator("button.bk-word").nth(1).hover()
    assert f"= {weights[1]:.4f}" in readout.text_content()
    assert "bank · river: 1·2 + 1·0 = 2.0000" in readout.text_content()
    one.page.mouse.move(0, 0)
    root.locator(".bk-z").first.focus()
    assert f"= {z[0]:.4f}; money" in readout.text_content()
    one.page.keyboard.press("ArrowRight")
    one.page.keyboard.press("ArrowRight")
    assert "bank · river" in readout.text_content()
    # Tab finds one place in each sentence, that where the arrows went.
    stops = root.locator(".bk-sentence").first.evaluate(
        "one => [...one.querySelectorAll('button')].map(e => e.tabIndex)"
    )
    assert sorted(stops) == [-1] * (len(stops) - 1) + [0]
    assert stops.index(0) == 2


# Numbers of a drawing: the ways of the word, and the ends that they lead to.
PLANE = """root => [...root.querySelectorAll('.bk-way')].map(e =>
  e.getAttribute('d').match(/[\\d.]+/g).map(Number))"""


@pytest.mark.site
@pytest.mark.parametrize("width", [390, 1280])
def test_the_static_figure_is_the_labs_own_drawing(lab_on_page, visit, served, width):
    size = {"viewport": {"width": width, "height": 844}}
    root, _, _ = lab_on_page("BankLab", **size)
    still = visit(**size, java_script_enabled=False)
    figure = still.open(f"{served}/BankLab.html").locator(".attn-static")
    apart = figure.bounding_box()["height"] - root.bounding_box()["height"]
    assert abs(apart) < 12, "the page would jump"
    drawn, live = figure.evaluate(PLANE), root.evaluate(PLANE)
    assert len(drawn) == len(live) == 2
    for one, other in zip(drawn, live, strict=True):
        assert one == pytest.approx(other, abs=0.051)
    words = "root => [...root.querySelectorAll('svg text')].map(e => e.textContent)"
    assert sorted(figure.evaluate(words)) == sorted(root.evaluate(words))
