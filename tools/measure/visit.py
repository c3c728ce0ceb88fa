"""One visit of one page, and what was seen in it."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlparse

# The shell first: the same engine without a window costs a third of the time.
NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
WIDTHS = {1280: 900, 390: 844}  # a laptop and a phone
# What a visit has kept for its tab is gone in the next one; nothing else can clear it.
FORGET = """if (window === top && window.name !== "visited") try {
  sessionStorage.clear();
  window.name = "visited";
} catch { /* a page without an address keeps nothing */ }"""
# How far what stands on the page was shifted while it loaded.
OBSERVE = """(() => {
  let shift = 0;
  const note = (entries) => {
    for (const entry of entries) if (!entry.hadRecentInput) shift += entry.value;
  };
  const watch = new PerformanceObserver((list) => note(list.getEntries()));
  watch.observe({type: "layout-shift", buffered: true});
  // Whoever asks is told of what was drawn just now, too.
  window.shift = () => (note(watch.takeRecords()), shift);
})();
"""
# What was to be drawn has been drawn: what a script began in one frame stands in the
# next one, and what fades in has arrived.
DRAWN = """async () => {
  const frame = () => new Promise((done) =>
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))));
  await frame();
  const fading = document.getAnimations().filter((one) =>
    one.effect.getComputedTiming().endTime < Infinity);
  fading.forEach((one) => one.finish());
  if (fading.length) await frame();
}"""
# Labs take the place of their static figures after the page stands.
LABS_CAME = """() => [...document.querySelectorAll(
  "script[type='application/vnd.coding-attention.lab+json']")].every((script) =>
    !script.parentNode.querySelector(".attn-static"))"""
# Set on a page at any time; everything else is of the context, from its beginning.
MEDIA = ("color_scheme", "reduced_motion", "forced_colors")


def find_browser():
    """Give the path of an installed Chromium or Chrome, or None."""
    named = os.environ.get("CHROMIUM")
    if named:
        return named
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def axe_source():
    """Give the text of axe-core, the release that lies beside this file.

    A newer one: npm pack axe-core@VERSION, and take its axe.min.js and LICENSE.
    """
    return (Path(__file__).parent / "axe" / "axe.min.js").read_text("utf-8")


@contextmanager
def browser():
    """Start the installed browser without reach beyond this machine.

    Raises:
        FileNotFoundError: no Chromium or Chrome is installed.
    """
    from playwright.sync_api import sync_playwright

    path = find_browser()
    if path is None:
        raise FileNotFoundError(
            f"Found no Chromium. Install one of {', '.join(NAMES)}, or set CHROMIUM "
            "to the path of its program."
        )
    options = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        # The shell would round each letter's width to whole pixels, as no window does.
        "--font-render-hinting=none",
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    ]
    with sync_playwright() as playwright:
        instance = playwright.chromium.launch(executable_path=path, args=options)
        instance.pages = Pages(instance)
        try:
            yield instance
        finally:
            instance.close()


def is_third_party(url, own_host):
    """Tell whether an address leads to another host than the page's own."""
    parts = urlparse(url)
    return parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != own_host


class Visit:
    """A page, with its requests, transferred bytes and console errors."""

    def __init__(self, page, url=""):
        """Begin to record; `load` goes to the page."""
        self.page, self.url = page, url
        self.requests, self.errors, self.transferred = [], [], {}
        self._notes = {
            "request": lambda request: self.requests.append(request.url),
            "console": self._note_console,
            "pageerror": lambda error: self.errors.append(f"error: {error}"),
        }
        for event, note in self._notes.items():
            page.on(event, note)

    def end(self):
        """Stop recording."""
        for event, note in self._notes.items():
            self.page.remove_listener(event, note)

    def _note_console(self, message):
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location.get('url', '')})")

    def weigh(self):
        """Begin to count the bytes that come over the line, by address."""
        session = self.page.context.new_cdp_session(self.page)
        session.send("Network.enable")
        urls = {}

        def note(event):
            urls[event["requestId"]] = event["response"]["url"]

        def finish(event):
            url = urls.get(event["requestId"], "")
            if url.startswith("http"):
                self.transferred[url] = event["encodedDataLength"]

        session.on("Network.responseReceived", note)
        session.on("Network.loadingFinished", finish)

    def open(self, url, until="load"):
        """Go to another address, and no further than that."""
        self.url = url
        self.page.goto(url, wait_until=until, timeout=120_000)
        return self.page

    def load(self):
        """Go to the page and wait until it stands: its labs, its faces."""
        self.open(self.url)
        self.page.wait_for_function(LABS_CAME)
        self.page.evaluate("document.fonts.ready.then(() => null)")
        self.drawn()

    def drawn(self):
        """Wait until all that was asked for so far is on the screen."""
        self.page.evaluate(DRAWN)

    def resize(self, width):
        """Make the window as wide as a laptop's or a phone's."""
        self.page.set_viewport_size({"width": width, "height": WIDTHS[width]})
        self.drawn()

    def third_parties(self):
        """Every address asked for on another host."""
        host = urlparse(self.url).netloc
        return sorted({u for u in self.requests if is_third_party(u, host)})


class Pages:
    """Pages of one browser that are lent again and again.

    A context of its own costs a visit more than the page itself. So the visits with the
    same options share one, and a page that comes back is emptied, with all that it has
    stored. What a script left for later visits, an init script, takes the page along.
    """

    def __init__(self, instance):
        """Open nothing yet."""
        self.instance, self.free, self.contexts = instance, {}, {}

    @contextmanager
    def lent(self, viewport, media, options):
        """Give an empty page with these options."""
        key = tuple(sorted(options.items()))
        page = self._take(key, options)
        spoiled = []
        for name in ("add_init_script", "expose_function"):
            setattr(page, name, _noting(spoiled, getattr(page, name)))
        page.set_viewport_size(viewport)
        media = {name: media.get(name, "null") for name in MEDIA}
        page.emulate_media(media="null", **media)
        try:
            yield page
        finally:
            if not page.is_closed():
                self._empty(page)
                if spoiled:
                    page.close()
                else:
                    self.free[key].append(page)

    def _take(self, key, options):
        if key not in self.contexts:
            # A worker would keep files for the next visit.
            self.contexts[key] = self.instance.new_context(
                service_workers="block", **options
            )
            self.free[key] = []
        if self.free[key]:
            return self.free[key].pop()
        page = self.contexts[key].new_page()
        page.add_init_script(OBSERVE)
        page.add_init_script(FORGET)
        return page

    def _empty(self, page):
        del page.add_init_script, page.expose_function
        page.unroute_all(behavior="ignoreErrors")
        origin = urlparse(page.url)
        page.mouse.up()
        page.mouse.move(0, 0)
        page.goto("about:blank")
        page.evaluate("window.name = ''")
        # Only now: what a page remembers, it writes when it is left.
        if origin.scheme.startswith("http"):
            session = page.context.new_cdp_session(page)
            where = f"{origin.scheme}://{origin.netloc}"
            session.send(
                "Storage.clearDataForOrigin", {"origin": where, "storageTypes": "all"}
            )
            session.detach()
        page.context.clear_permissions()


def _noting(calls, function):
    def noted(*args, **options):
        calls.append(args)
        return function(*args, **options)

    return noted


@contextmanager
def visiting(instance, url="", width=1280, scheme="light", fresh=False, **options):
    """Open a page; ``fresh`` in a context of its own, with an empty cache."""
    viewport = options.pop("viewport", {"width": width, "height": WIDTHS.get(width)})
    media = {name: options.pop(name) for name in MEDIA if name in options}
    media.setdefault("color_scheme", scheme)
    if fresh or url.startswith("file:"):
        context = instance.new_context(viewport=viewport, **media, **options)
        try:
            page = context.new_page()
            page.add_init_script(OBSERVE)
            yield Visit(page, url)
        finally:
            context.close()
        return
    with instance.pages.lent(viewport, media, options) as page:
        visit = Visit(page, url)
        try:
            yield visit
        finally:
            visit.end()
