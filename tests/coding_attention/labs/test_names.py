"""Names in the attention lab's planes: none covers another or a mark, or is outside.

Tokens may share a place, so names cannot simply stand beside their marks.
"""

import random

import pytest

from tests.coding_attention.labs.harness import follow

pytestmark = pytest.mark.site

# For each plane: names that lie on another name or on a mark, and those outside.
LOOK = """root => [...root.querySelectorAll('svg.al-drawing')]
  .filter(svg => svg.checkVisibility()).flatMap(svg => {
    const shown = e => e.style.display !== 'none' && e.textContent.trim();
    // The box of a text holds air above and below its letters.
    const box = e => {
      const { x, y, width, height } = e.getBBox();
      return [x, y + 2, x + width, y + height - 2];
    };
    const hits = ([a, b, c, d], [p, q, r, s]) =>
      Math.min(c, r) - Math.max(a, p) > 0.5 && Math.min(d, s) - Math.max(b, q) > 0.5;
    const side = svg.viewBox.baseVal.width;
    const names = [...svg.querySelectorAll('text')].filter(shown)
      .map(e => [e.textContent, box(e), e.matches('.al-name')]);
    const dots = [...svg.querySelectorAll('.al-dot')].map(e => {
      const { e: x, f: y } = e.parentNode.transform.baseVal.consolidate().matrix;
      return ['a token', [x - 6, y - 6, x + 6, y + 6]];
    });
    const mean = svg.querySelector('.al-mean');
    const { x, y, width, height } = mean.getBBox();
    if (mean.style.display !== 'none') dots.push(['z', [x, y, x + width, y + height]]);
    const out = ([a, b, c, d]) => Math.min(a, b) < -1 || Math.max(c, d) > side + 1;
    return [
      // What is moved may cover the name of an axis, which has its place.
      ...names.flatMap(([a, one, own], i) => names.slice(i + 1).concat(own ? dots : [])
        .filter(([, other]) => hits(one, other)).map(([b]) => `${a} on ${b}`)),
      // A token that is itself out of the plane has its name there.
      ...names.filter(([, one]) => out(one) && !dots.some(([, mark]) => out(mark)))
        .map(([a]) => `${a} is outside`),
    ];
  })"""
COUNT = """root => [...root.querySelectorAll('svg.al-drawing')]
  .filter(svg => svg.checkVisibility()).flatMap(svg =>
    [...svg.querySelectorAll('.al-name')].filter(e => e.style.display !== 'none')
      .map(e => e.textContent))"""


@pytest.fixture
def bank_page(served):
    """The lab as page 02 shows it: two tokens that have one place."""
    return f"{served}/bank.html"


def opened(one, address):
    page = one.open(address, until="domcontentloaded")
    root = page.locator('.attn-lab[aria-label="Attention lab"]')
    root.wait_for()
    return page, root


def go(page, inputs, more=""):
    rows = ";".join(",".join(f"{x:.2f}" for x in row) for row in inputs)
    follow(page, f"#lab-attention?inputs={rows}{more}")


def test_no_name_covers_another_as_the_page_opens(visit, bank_page):
    _, root = opened(visit(), bank_page)
    assert root.evaluate(COUNT) == ["the", "river", "bank", "flooded", "z"]
    assert root.evaluate(LOOK) == []


@pytest.mark.parametrize("at", [(0, 0), (2.5, 2.5), (-1.2, 2.5), (2.5, -1.2), (1, 0.3)])
def test_names_of_tokens_in_one_place_make_a_column(visit, bank_page, at):
    page, root = opened(visit(), bank_page)
    go(page, [at] * 4)
    assert root.evaluate(LOOK) == []


def test_no_name_is_covered_while_a_token_is_moved(visit, bank_page):
    page, root = opened(visit(), bank_page)
    page.keyboard.press("Tab")
    for name, keys in {
        "the": ["ArrowUp", "Shift+ArrowRight", "Shift+ArrowUp", "ArrowLeft"],
        "bank": ["Shift+ArrowDown", "ArrowRight", "Shift+ArrowRight"],
    }.items():
        root.get_by_role("slider", name=f"Tokens x: {name}").focus()
        for key in keys * 3:
            page.keyboard.press(key)
            page.evaluate("new Promise(requestAnimationFrame)")
            assert root.evaluate(LOOK) == [], f"{name}, {key}"


@pytest.mark.parametrize("width", [1280, 390])
def test_no_name_is_covered_whatever_the_inputs(visit, served, width):
    page, root = opened(
        visit(viewport={"width": width, "height": 900}), f"{served}/AttentionLab.html"
    )
    draw = random.Random(123)
    for turn in range(24):
        spread = draw.choice([0, 0.03, 0.2, 0.9])
        middle = [draw.uniform(-0.2, 0.9) for _ in range(3)]
        inputs = [[x + draw.uniform(-spread, spread) for x in middle] for _ in range(6)]
        trainable = turn % 2
        go(page, inputs, f"&trainable={trainable}&query=step")
        # Tokens and z; or tokens, keys and q, values and z.
        assert len(root.evaluate(COUNT)) == (6 + 7 + 7 if trainable else 6 + 1)
        assert root.evaluate(LOOK) == [], inputs


def test_planted_names_are_seen(visit, bank_page):
    _, root = opened(visit(), bank_page)
    root.evaluate(
        """root => {
          const [the, river, bank] = root.querySelectorAll('.al-name');
          const z = root.querySelector('.al-mean');
          bank.setAttribute('x', river.getAttribute('x'));
          bank.setAttribute('y', river.getAttribute('y'));
          bank.setAttribute('text-anchor', river.getAttribute('text-anchor'));
          the.setAttribute('x', z.getAttribute('x'));
          the.setAttribute('y', Number(z.getAttribute('y')) + 10);
        }"""
    )
    found = root.evaluate(LOOK)
    assert "river on bank" in found
    assert "the on z" in found


def test_each_color_of_a_legend_stands_by_its_words(visit, bank_page):
    for width in (1280, 390):
        _, root = opened(visit(viewport={"width": width, "height": 900}), bank_page)
        apart = root.evaluate(
            """root => [...root.querySelectorAll('.al-legend .al-key')].map(key => {
              const words = document.createRange();
              words.selectNode(key.nextSibling);
              const [a, b] = [key, words].map(e => e.getBoundingClientRect());
              const level = Math.abs((a.top + a.bottom) - (b.top + b.bottom)) / 2;
              const gap = b.left - a.right;
              return [words.toString(), level < 5 && gap >= 0 && gap < 9];
            })"""
        )
        assert apart == [["query", True], ["z", True]]
