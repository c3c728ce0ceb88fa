"""The places for answers in the HTML of the page: with an address, and without."""

from theme import practice

CELL = '<div class="cell docutils container" id="check-{}">…</div>'
BODY = (
    '<section class="tex2jax_ignore" id="exercises"><h1>Exercises</h1>'
    f'<section id="a">{CELL.format("3-2")}{CELL.format("causal-class")}</section>'
    '<section id="b"></section></section>'
)


def test_each_check_gets_a_place_before_it():
    html = practice.with_places(BODY)
    assert html.count('class="practice"') == 1
    assert html.index('data-exercise="3.2"') < html.index('id="check-3-2"')
    assert html.index('data-python="causal-class"') > html.index('id="check-3-2"')
    assert html.index("practice-progress") < html.index('<section id="a">')
    assert html.count("practice-progress") == 1


def test_without_an_address_nothing_is_linked():
    assert "<a " not in practice.with_places(BODY)
    assert "open the page in a notebook" in practice.with_places(BODY)


def test_with_an_address_code_opens_in_the_launched_notebook():
    url = "https://mybinder.org/v2/gh/o/n/main?urlpath=lab/tree/x.ipynb&y=1"
    buttons = [{"text": "Binder", "url": url}, {"text": "Colab", "url": "https://c/x"}]
    context = {"header_buttons": [{"label": "launch-buttons", "buttons": buttons}]}
    html = practice.with_places(BODY, list(practice._launch(context)))
    assert f'<a href="{url.replace("&", "&amp;")}">Binder</a>' in html
    assert '<a href="https://c/x">Colab</a>' in html
    assert list(practice._launch({})) == []


def test_the_script_holds_the_labs_arithmetic_the_check_and_no_module():
    script = practice.assets()["practice.js"]
    assert "const softmax = " in script
    assert "const verdict = " in script
    for line in script.splitlines():
        assert not line.startswith(("import ", "export ")), line
