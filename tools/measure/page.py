"""What is measured on one page."""

import contextlib

from playwright.sync_api import TimeoutError

from tools.measure.visit import WIDTHS, axe_source, visiting

IMAGES = """() => {
  const shown = (e) => !e.closest("[aria-hidden='true']");
  const named = (e) => e.getAttribute("aria-label") || e.getAttribute("alt")
    || e.querySelector(":scope > title")
    // A picture inside a link that says where it leads is decoration.
    || (e.getAttribute("alt") === "" && e.closest("a")?.textContent.trim());
  return [...document.querySelectorAll("img, svg, [role=img], canvas")]
    .filter((e) => shown(e) && !e.parentElement.closest("[role=img]") && !named(e))
    .map((e) => e.outerHTML.slice(0, 120));
}"""
OVERFLOW = """() => Math.max(document.documentElement.scrollWidth,
  document.body.scrollWidth) - document.documentElement.clientWidth"""
SCROLL = """async () => {
  for (let y = 0; y < document.documentElement.scrollHeight; y += 800) {
    scrollTo(0, y);
    await new Promise(requestAnimationFrame);
  }
}"""
OPEN_ALL = """() => document.querySelectorAll("details").forEach((e) => {
  e.open = true; })"""
FOLD_ALL = OPEN_ALL.replace("true", "false")
AXE = """async (rules) => {
  const found = await axe.run(document, {
    resultTypes: ["violations"], ...(rules === "contrast"
      ? {runOnly: "color-contrast"}
      : {rules: {"color-contrast": {enabled: rules === "all"}}}),
  });
  return found.violations.flatMap((rule) => rule.nodes.map((node) =>
    `${rule.id}: ${node.target.join(" ")}`.slice(0, 200)));
}"""
# Each is used once: what a reader can press must not call another host either.
CONTROLS = ".theme-switch-button, button.copybtn, .dropdown-toggle"
STILL_MS = 60_000  # until nothing is asked for: a busy machine needs a minute


def weigh(instance, url):
    """Requests, bytes, third parties on load and on use, errors, images, shift."""
    with visiting(instance, url, fresh=True) as visit:
        visit.weigh()
        load_all(visit)
        opened = sum(visit.transferred.values())
        visit.page.evaluate(SCROLL)
        visit.drawn()
        found = {
            "requests": len(visit.requests),
            "bytes": opened,
            "bytes_further_down": sum(visit.transferred.values()) - opened,
            "images_without_text": visit.page.evaluate(IMAGES),
            "layout_shift": round(visit.page.evaluate("window.shift()"), 4),
        }
        _use(visit)
        found["third_parties"] = visit.third_parties()
        found["console_errors"] = visit.errors
        return found


def load_all(visit):
    """Load the page and all that its scripts ask for on their own."""
    visit.load()
    _wait_until_still(visit.page)


def _wait_until_still(page):
    # Now and then Playwright doesn't notice that the last request has ended, so after a
    # minute what has come by then is counted.
    with contextlib.suppress(TimeoutError):
        page.wait_for_load_state("networkidle", timeout=STILL_MS)


def _use(visit):
    visit.page.evaluate(OPEN_ALL)
    visit.page.evaluate(
        """(controls) => document.querySelectorAll(controls).forEach((e, i) => {
          if (i < 20) e.click(); })""",
        CONTROLS,
    )
    _wait_until_still(visit.page)


def _rules(scheme, width):
    """Which rules are looked at, so that each is once."""
    wide = width == max(WIDTHS)
    if scheme == "dark":
        return "contrast" if wide else ""
    return "all" if wide else "others"


def look(instance, url):
    """Accessibility violations and sideways overflow in each theme and width.

    Contrast takes half of the time and hardly depends on the width; nothing else
    depends on the theme. So not every rule is tried in every one.
    """
    axe, overflow = {}, {}
    with visiting(instance, url, bypass_csp=True) as visit:
        visit.load()
        visit.page.evaluate(axe_source())
        for scheme in ("light", "dark"):
            visit.page.emulate_media(color_scheme=scheme)
            for width, height in WIDTHS.items():
                visit.page.set_viewport_size({"width": width, "height": height})
                visit.page.evaluate(FOLD_ALL)
                visit.drawn()
                key = f"{scheme} {width}"
                overflow[key] = visit.page.evaluate(OVERFLOW)
                visit.page.evaluate(OPEN_ALL)  # what is folded must be readable too
                visit.drawn()
                rules = _rules(scheme, width)
                if rules:
                    axe[key] = visit.page.evaluate(AXE, rules)
    return {"axe": axe, "overflow_px": overflow}


def measure(instance, url):
    """Everything about one page."""
    return weigh(instance, url) | look(instance, url)
