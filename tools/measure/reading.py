"""What a reader meets on a page: cut code, hidden columns, stops of the tab key."""

from tools.measure.visit import visiting

# Every box of code or output; what is folded is opened first.
BOXES = """() => {
  document.querySelectorAll("details").forEach((e) => { e.open = true; });
  return [...document.querySelectorAll("article pre")].map((e) => ({
    cut: e.scrollWidth > e.clientWidth + 1,
    kind: e.closest(".cell_output") ? "output" : "code",
    text: e.textContent,
    size: parseFloat(getComputedStyle(e).fontSize),
  }));
}"""
TABLES = """() => [...document.querySelectorAll("article table:not(.attn-lab table)")]
  .filter((t) => t.offsetParent)
  .map((t) => {
    const box = t.parentElement.getBoundingClientRect();
    const ends = [...t.querySelectorAll("th, td")].map(
      (c) => c.getBoundingClientRect().right);
    return {hidden: Math.max(...ends) > box.right + 1};
  })"""
# Words beside or above the cells of a lab, wider than the place that they have.
LABELS = """() => [...document.querySelectorAll(".attn-lab th, .attn-static th")]
  .filter((e) => e.checkVisibility() && e.textContent.trim())
  .filter((e) => getComputedStyle(e).fontSize !== "0px")
  .filter((e) => {
    const words = document.createRange();
    words.selectNodeContents(e);
    const [inner, outer] = [words, e].map((x) => x.getBoundingClientRect());
    return inner.width > outer.width + 1;
  }).map((e) => e.textContent)"""
# Formulas that came to nothing, and the room below those in lines of their own.
FORMULAS = """() => {
  const shown = [...document.querySelectorAll("math")]
    .filter((m) => !m.closest("details")).map((m) => [m, m.getBoundingClientRect()]);
  const below = [...document.querySelectorAll(".math-block")]
    .filter((block) => block.checkVisibility() && block.nextElementSibling)
    .map((block) => block.nextElementSibling.getBoundingClientRect().top
      - block.querySelector("math").getBoundingClientRect().bottom);
  return {
    lost: shown.filter(([, box]) => box.width <= 4 || box.height <= 6)
      .map(([m]) => m.getAttribute("alttext")),
    room: Math.min(Infinity, ...below),
  };
}"""
# Letters in each full line of the paragraphs that are words alone.
LINES = """() => [...document.querySelectorAll("article section > p")]
  .filter((p) => p.checkVisibility() && !p.querySelector("math, code, img"))
  .flatMap((p) => {
    const lines = new Map(), range = document.createRange();
    const walk = document.createTreeWalker(p, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      for (const word of walk.currentNode.data.matchAll(/\\S+\\s?/g)) {
        range.setStart(walk.currentNode, word.index);
        range.setEnd(walk.currentNode, word.index + word[0].trimEnd().length);
        const line = Math.round(range.getBoundingClientRect().bottom / 12);
        lines.set(line, (lines.get(line) ?? 0) + word[0].length);
      }
    }
    return [...lines.values()].slice(0, -1);
  })"""
# What of its column a figure fills with its drawings, and whether its caption stands in
# the margin; its column is that of the text, or goes to the end of the margin.
FIGURES = """() => [...document.querySelectorAll(".attention-figure")].map((e) => {
  const drawn = [...e.querySelectorAll("svg")].map((s) => s.getBoundingClientRect());
  const caption = e.querySelector("figcaption").getBoundingClientRect();
  const right = Math.max(...drawn.map((box) => box.right));
  const wide = e.hasAttribute("data-wide");
  const column = parseFloat(getComputedStyle(e).getPropertyValue(
    wide ? "--whole" : "--text")) * 16;
  return {
    cell: e.closest(".cell").id, wide, margin: caption.left >= right,
    first: e.closest("section").parentElement.matches("article"),
    share: (right - Math.min(...drawn.map((box) => box.left))) / column,
    seen: [...drawn, caption].every((box) => box.right <= innerWidth) &&
      [e, ...e.querySelectorAll("svg")].every((one) => {
        const box = one.getBoundingClientRect();
        for (let up = one.parentElement; up; up = up.parentElement) {
          if (getComputedStyle(up).overflowX !== "visible"
              && up.getBoundingClientRect().right < box.right - 1) return false;
        }
        return true;
      }),
  };
})"""
# Marks that are no content, each with its place on the page, as it is at first.
MARKS = """() => [...document.querySelectorAll(
    "a.headerlink, a.cell-link, button.copybtn")]
  .filter((e) => e.checkVisibility({opacityProperty: true, visibilityProperty: true}))
  .map((e) => e.getBoundingClientRect().top + scrollY)"""
# What the tab key stops at, folded parts left aside, and which of it cannot be seen.
STOPS = """() => {
  document.querySelectorAll("article details").forEach((e) => { e.open = false; });
  const stops = [...document.querySelectorAll(
    "a[href], button, input, summary, select, textarea, [tabindex='0']")]
    .filter((e) => e.tabIndex >= 0 && !e.disabled && e.checkVisibility(
      {visibilityProperty: true}));
  const pale = (e) => e !== null
    && (getComputedStyle(e).opacity === "0" || pale(e.parentElement));
  const unseen = stops.filter((e) => {
    if (pale(e)) e.focus(); // some show themselves to whom they stop
    return pale(e);
  });
  const of = (e) => stops.filter((s) => e.contains(s)).length;
  return {unseen: unseen.length,
    a_cell: Math.max(0, ...[...document.querySelectorAll("div.cell_input")].map(of))};
}"""


def is_tensor(text):
    """Tell whether a box shows a printed tensor and nothing wider beside it."""
    return text.lstrip().startswith(("tensor(", "Parameter containing"))


def read(instance, url):
    """Measure one page on a laptop, and made as narrow as a phone."""
    found = {}
    with visiting(instance, url) as visit:
        visit.load()
        for width in (1280, 390):
            visit.resize(width)
            found[f"tables {width}"] = visit.page.evaluate(TABLES)
            found[f"labels {width}"] = visit.page.evaluate(LABELS)
            found[f"formulas {width}"] = visit.page.evaluate(FORMULAS)
            found[f"marks {width}"] = visit.page.evaluate(MARKS)
            found[f"lines {width}"] = visit.page.evaluate(LINES)
        visit.page.evaluate(BOXES)
        for width in (390, 1280):
            visit.resize(width)
            found[f"boxes {width}"] = visit.page.evaluate(BOXES)
            found[f"figures {width}"] = visit.page.evaluate(FIGURES)
        return found | visit.page.evaluate(STOPS)


def most_marks(tops, screen=900):
    """Give the largest count of marks that one screen shows."""
    return max((sum(0 <= y - x < screen for y in tops) for x in tops), default=0)


def row(found):
    """Reduce what was found on a page to numbers."""
    phone = [b for b in found["boxes 390"] if b["cut"]]
    wide = [b for b in found["boxes 1280"] if b["cut"]]
    return {
        "cut_390": len(phone),
        "tensors_cut_390": sum(is_tensor(b["text"]) for b in phone),
        "code_cut_1280": sum(b["kind"] == "code" for b in wide),
        "output_cut_1280": sum(b["kind"] == "output" for b in wide),
        "tables_hidden_1280": sum(t["hidden"] for t in found["tables 1280"]),
        "tables_hidden_390": sum(t["hidden"] for t in found["tables 390"]),
        "labels_out": len(found["labels 1280"] + found["labels 390"]),
        "stops_unseen": found["unseen"],
        "stops_a_cell": found["a_cell"],
    }
