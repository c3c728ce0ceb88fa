"""One visit of one page: a fresh browser context, and what was seen in it."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlparse

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTHS = {1280: 900, 390: 844}  # a laptop and a phone
# A phone on a slow line, as in the usual mobile tests.
SLOW = {
    "offline": False,
    "latency": 150,
    "downloadThroughput": 1_600_000 / 8,
    "uploadThroughput": 750_000 / 8,
}
OBSERVE = """
window.seen = {lcp: null, cls: 0};
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.seen.lcp = entry.startTime;
}).observe({type: "largest-contentful-paint", buffered: true});
new PerformanceObserver((list) => {
  for (const entry of list.getEntries())
    if (!entry.hadRecentInput) window.seen.cls += entry.value;
}).observe({type: "layout-shift", buffered: true});
"""


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
    """Start the installed browser without reach beyond this machine."""
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
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    ]
    with sync_playwright() as playwright:
        instance = playwright.chromium.launch(executable_path=path, args=options)
        try:
            yield instance
        finally:
            instance.close()


def is_third_party(url, own_host):
    """Tell whether an address leads to another host than the page's own."""
    parts = urlparse(url)
    return parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != own_host


class Visit:
    """A loaded page, with its requests, transferred bytes and console errors."""

    def __init__(self, context, url):
        """Prepare recording; `load` goes to the page."""
        self.url, self.host = url, urlparse(url).netloc
        self.requests, self.errors, self.transferred = [], [], {}
        self._urls = {}
        self.page = context.new_page()
        self.page.add_init_script(OBSERVE)
        context.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", self._note_console)
        self.page.on("pageerror", lambda error: self.errors.append(f"error: {error}"))
        self.session = context.new_cdp_session(self.page)
        self.session.send("Network.enable")
        self.session.on("Network.responseReceived", self._note_response)
        self.session.on("Network.loadingFinished", self._note_finish)

    def _note_console(self, message):
        if message.type == "error":
            self.errors.append(message.text)

    def _note_response(self, event):
        self._urls[event["requestId"]] = event["response"]["url"]

    def _note_finish(self, event):
        url = self._urls.get(event["requestId"], "")
        if url.startswith("http"):
            self.transferred[url] = event["encodedDataLength"]

    def slow_down(self):
        """Throttle the line and the processor."""
        self.session.send("Network.emulateNetworkConditions", SLOW)
        self.session.send("Emulation.setCPUThrottlingRate", {"rate": 4})

    def load(self, settle=300):
        """Go to the page and wait until nothing more is asked for."""
        self.page.goto(self.url, wait_until="load", timeout=120_000)
        self.page.wait_for_load_state("networkidle", timeout=60_000)
        self.page.wait_for_timeout(settle)

    def third_parties(self):
        """Every address asked for on another host."""
        return sorted({u for u in self.requests if is_third_party(u, self.host)})


@contextmanager
def visiting(instance, url, width=1280, scheme="light", **context_options):
    """Open a page in a context of its own."""
    context = instance.new_context(
        viewport={"width": width, "height": WIDTHS[width]},
        color_scheme=scheme,
        **context_options,
    )
    try:
        yield Visit(context, url)
    finally:
        context.close()
