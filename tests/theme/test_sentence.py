"""A reader's own sentence: the arithmetic, the form, and what goes over the line."""

import json
import re

import pytest

from theme import own_sentence
from tools.measure.visit import axe_source, visiting

FORWARD = own_sentence.FOLDER / "forward.js"
HEADS = ("0.2", "1.3", "1.6", "2.9", "3.1", "3.11")
SENTENCES = [
    "The workers watched the piano until they left.",
    "My sister (a “night owl” from Boston) can't find O'Neil's Café.",
    "Antidisestablishmentarianism scares tokenizers, doesn't it?",
    "go",
]
TOGETHER = """
import { readFileSync } from "node:fs";
import { checksum, look, readModel, splitPieces, splitWords } from FORWARD;
const [file, sentences, heads] = process.argv.slice(2);
globalThis.attentionSentence = (given) => {
  const model = readModel(given);
  const looks = JSON.parse(sentences).map((sentence) => {
    const words = splitWords(sentence);
    const pieces = words.map((word) => splitPieces(word, model.ids));
    const weights = look(model, [["[CLS]"], ...pieces, ["[SEP]"]]);
    return { words, pieces, weights: JSON.parse(heads).map(weights) };
  });
  console.log(JSON.stringify({ sum: checksum(model.bytes), looks }));
};
(0, eval)(readFileSync(file, "utf8"));
"""


@pytest.fixture(scope="module")
def small():
    from experiments.real.small_model import SmallModel

    return SmallModel()


def test_javascript_equals_pytorch_with_the_same_weights(node, small, tmp_path):
    import torch

    script = tmp_path / "together.mjs"
    script.write_text(TOGETHER.replace("FORWARD", json.dumps(FORWARD.as_uri())))
    weights = own_sentence.FOLDER / "weights.js"
    run = node(script, weights, json.dumps(SENTENCES), json.dumps(HEADS))
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["sum"] == own_sentence.read_facts()["checksum"]
    for sentence, seen in zip(SENTENCES, found["looks"], strict=True):
        assert [seen["words"], seen["pieces"]] == [*small.split(sentence)]
        _, expected = small.look(sentence)
        for head, rows in zip(HEADS, seen["weights"], strict=True):
            layer, number = map(int, head.split("."))
            torch.testing.assert_close(
                torch.tensor(rows), expected[layer, number], rtol=0, atol=1e-5
            )


# ---- the form on its page ----

PAGE = "book/03_trainable_self_attention.html"

SETTLED = """() => !/^(Loading|Reading|$)/.test(
  document.querySelector(".own-sentence [role=status]").textContent)"""


class Form:
    """The form as a reader sees it."""

    def __init__(self, page):
        self.page = page
        self.part = page.locator(".own-sentence")
        self.input = self.part.get_by_label("Your sentence")
        self.status = self.part.get_by_role("status")
        self.drawings = self.part.locator("figure")
        self.part.scroll_into_view_if_needed()  # it loads where a reader comes near

    def read(self, sentence):
        self.input.fill(sentence)
        self.input.press("Enter")
        self.page.wait_for_function(SETTLED)
        return self.status.inner_text()

    def questions(self):
        labels = self.part.locator("fieldset label").all_inner_texts()
        return [re.match(r"\S+ ([\d.]+)", label)[1] for label in labels]

    def choose(self, head):
        self.part.get_by_role("radio", name=re.compile(rf"\b{head}\b")).check()

    def guess(self, word):
        self.part.get_by_role("button", name=word, exact=True).first.click()

    def weights(self):
        return [
            list(map(float, drawing.locator("b").all_inner_texts()))
            for drawing in self.drawings.all()
        ]


@pytest.fixture
def visit(browser, address):
    with visiting(browser, f"{address}/{PAGE}", width=390) as one:
        one.load()
        one.form = Form(one.page)
        yield one


@pytest.fixture(scope="module")
def opened(browser, address):
    """A form that has its model already, for what doesn't depend on loading."""
    with visiting(browser, f"{address}/{PAGE}", width=390) as one:
        one.load()
        one.form = Form(one.page)
        one.form.read(SENTENCES[0])
        yield one
        assert one.errors == []
        assert one.third_parties() == []


def test_what_is_asked_for_does_not_depend_on_the_sentence(browser, address):
    asked = []
    for sentence in (SENTENCES[0], "Nobody told the teacher a beagle (hers) ran."):
        with visiting(browser, f"{address}/{PAGE}") as one:
            one.load()
            before = list(one.requests)
            form = Form(one.page)
            form.read(sentence)
            form.guess("[CLS] parked here when nothing fits")
            form.read(sentence.replace("the", "one"))
            asked.append({*one.requests})
            loads = [u for u in one.requests if own_sentence.name_weights() in u]
            assert len(loads) == 1
            assert not any("sentence-" in url for url in before)
    assert asked[0] == asked[1]


def test_the_reader_guesses_before_anything_shows(opened, small):
    form = opened.form
    said = form.read("My sister called my brother because she was worried.")
    assert form.drawings.count() == 0
    assert "Where will it look?" in said
    form.choose("3.1")
    assert form.drawings.count() == 0
    assert "“she”" in form.status.inner_text()
    form.guess("brother")
    words, weights = small.look("My sister called my brother because she was worried.")
    expected = [weights[1, 3, words.index("she")], weights[3, 1, words.index("she")]]
    for shown, row in zip(form.weights(), expected, strict=True):
        assert shown == pytest.approx(row.tolist(), abs=0.0051)
        assert f"{row.max():.2f}" in form.status.inner_text()
        assert f"“{words[row.argmax()]}”" in form.status.inner_text()


def test_the_word_that_asks_can_be_chosen(opened, small):
    form, sentence = opened.form, "The river was cold, and nobody swam in the river."
    form.read(sentence)
    opened.form.part.get_by_label("From the word").select_option("cold")
    assert form.drawings.count() == 0
    opened.form.part.get_by_role("button", name="Show me").click()
    words, weights = small.look(sentence)
    row = weights[0, 2, words.index("cold")].tolist()
    assert form.weights() == [pytest.approx(row, abs=0.0051)]


@pytest.mark.parametrize(
    ("sentence", "heads"),
    [
        ("We sang all day.", ["0.2", "1.3"]),
        ("We sang all (or most) day.", ["0.2", "1.6", "1.3"]),
        ('We "sang" all day.', ["0.2", "1.6", "1.3"]),
        ("We) sang ( all day.", ["0.2", "1.3"]),  # nothing is closed
        ("We sang and they sang.", ["0.2", "1.3", "2.9"]),
        ("Ha! Yes! No!", ["0.2", "1.3"]),  # a mark is no word
    ],
)
def test_a_head_is_offered_where_it_has_something_to_find(opened, sentence, heads):
    opened.form.read(sentence)
    assert opened.form.questions() == heads


def test_each_head_has_its_counts(opened):
    opened.form.read("We sang (loudly) and they sang.")
    labels = opened.form.part.locator("fieldset label").all_inner_texts()
    rates = own_sentence.read_facts()["rates"]
    for label, heads in zip(
        labels, (["0.2"], ["1.6"], ["1.3", "3.1"], ["2.9"]), strict=True
    ):
        counts = set(map(int, re.findall(r"\b\d+\b(?!\.\d)(?<!\d\.\d)", label)))
        for head in heads:
            assert set(rates[head]) <= counts


@pytest.mark.parametrize(
    "sentence",
    ["", " … ", "one two " * 9, "Мы пели.", "We sang 😀", "wörd " + "x" * 300],
)
def test_what_cannot_be_read_gets_a_message_and_stays(opened, sentence):
    form = opened.form
    assert "Where will it look?" in form.read("We sang.")
    form.read(sentence)
    assert "Where" not in form.status.inner_text()
    assert form.questions() == []
    assert form.input.input_value() == sentence


def damage(text):
    """Another number in the middle of the data, which is still base64."""
    middle = len(text) // 2
    letter = "A" if text[middle] != "A" else "B"
    return text[:middle] + letter + text[middle + 1 :]


@pytest.mark.parametrize("how", ["missing", "wrong", "cut off"])
def test_a_failed_load_gets_a_message_and_can_be_tried_again(visit, site, how):
    text = (site / "_static" / own_sentence.name_weights()).read_text()

    def answer(route):
        if how == "missing":
            route.fulfill(status=404)
        else:
            route.fulfill(body=damage(text) if how == "wrong" else text[:-9000])

    visit.page.route("**/sentence-*.js", answer)
    said = visit.form.read(SENTENCES[0])
    assert "wasn't loaded" in said
    assert visit.form.input.input_value() == SENTENCES[0]
    visit.page.unroute("**/sentence-*.js")
    assert "Where will it look?" in visit.form.read(SENTENCES[0])


def test_a_load_can_be_cancelled(visit):
    held = []
    visit.page.route("**/sentence-*.js", lambda route: held.append(route))
    visit.form.input.press("Enter")
    visit.form.part.get_by_role("progressbar").wait_for()
    visit.form.part.get_by_role("button", name="Cancel").click()
    visit.form.part.get_by_role("progressbar").wait_for(state="detached")
    assert "wasn't loaded" in visit.form.status.inner_text()
    assert visit.form.input.input_value()
    held[0].abort()
    visit.page.unroute("**/sentence-*.js")
    assert "Where will it look?" in visit.form.read(SENTENCES[0])


def test_it_works_from_a_folder(browser, site):
    with visiting(browser, (site / PAGE).as_uri()) as one:
        one.load()
        assert "Where will it look?" in Form(one.page).read(SENTENCES[0])
        assert one.errors == []


def test_it_works_by_keyboard(opened):
    form, keyboard = opened.form, opened.page.keyboard
    form.read("We sang and they sang.")
    form.input.focus()
    for key in ("Tab", "Tab", "ArrowDown"):  # the button, the heads, the next head
        keyboard.press(key)
    assert "head 1.3" in form.status.inner_text()
    for key in ("Tab", "Tab", "Enter"):  # the word that asks, the first guess
        keyboard.press(key)
    assert form.drawings.count() == 2
    keyboard.press("Enter")  # the focus is on "Ask again"
    assert form.drawings.count() == 0
    assert opened.page.evaluate("document.activeElement.textContent").startswith(
        "[CLS]"
    )


def test_the_longest_sentence_fits_a_phone(opened):
    form = opened.form
    form.read("The photographers " * 6 + "(and them) left quickly.")
    for head in ("0.2", "3.1"):
        form.choose(head)
        wide = opened.page.evaluate("document.documentElement.scrollWidth")
        opened.form.part.get_by_role("button", name="Show me").click()
        assert (
            max(wide, opened.page.evaluate("document.documentElement.scrollWidth"))
            <= 390
        )


@pytest.mark.parametrize("answered", [False, True])
def test_accessibility(opened, answered):
    opened.form.read("We sang (loudly) and they sang.")
    opened.form.choose("1.3")
    if answered:
        opened.form.guess("sang")
    opened.page.evaluate(axe_source())
    found = opened.page.evaluate("axe.run('.own-sentence').then((r) => r.violations)")
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


def test_page_three_has_the_form_and_no_other_page_asks_for_it(site, soup):
    (place,) = soup("book/03_trainable_self_attention").select(".own-sentence")
    address = json.loads(place["data-facts"])["address"]
    assert (site / "book" / address).resolve().is_file()
    asking = [
        page.name for page in site.rglob("*.html") if "/sentence.js" in page.read_text()
    ]
    assert asking == ["03_trainable_self_attention.html"]
