"""The site without a network: a service worker, and the page it shows when it must.

The worker (scripts/sw.js) is written last, since its version is a digest of everything
that it may keep: another build is another version.
"""

import gzip
import hashlib
import json
import re
from pathlib import Path

SCRIPT = Path(__file__).parent / "scripts" / "sw.js"
LEFT_OUT = re.compile(
    r"\.(map|txt)$|social-card|/cards/|(^|/)webpack-macros|sbt-webpack"
)
PAGE = """<section id="offline">
<h1>No network, and this page is not kept</h1>
<p>Pages that you have read are kept on your device. These are here:</p>
<ul id="kept-pages"></ul>
<p>At the foot of each page you can keep the whole book, the next time that there is a
network.</p>
</section>
"""


def kept_files(site):
    """Give what the whole book consists of: pages, and what they ask for."""
    pages = [p for p in site.rglob("*.html") if p.parts[len(site.parts)] != "_static"]
    parts = [p for p in (site / "_static").rglob("*") if p.is_file()]
    names = {p.relative_to(site).as_posix() for p in [*pages, *parts]}
    return sorted(name for name in names if not LEFT_OUT.search(name))


def core_files(page):
    """Give what the page for missing pages needs: itself, styles and scripts."""
    found = re.findall(r'(?:href|src)="(_static/[^"?]*)', page)
    return ["offline.html", *dict.fromkeys(found)]


def worker(site):
    """Write the service worker of a built site."""
    files, digest, sizes = kept_files(site), hashlib.sha256(), []
    for name in files:
        content = (site / name).read_bytes()
        digest.update(name.encode() + content)
        sizes.append(len(gzip.compress(content)))
    own = SCRIPT.read_text(encoding="utf-8")
    digest.update(own.encode())
    page = (site / "offline.html").read_text(encoding="utf-8")
    build = {
        "version": digest.hexdigest()[:16],
        "bytes": sum(sizes),
        "core": core_files(page),
        "files": files,
    }
    return f"const BUILD = {json.dumps(build)};\n{own}"


def page(app):
    yield "offline", {"title": "Offline", "body": PAGE}, "page.html"


def write(app, error):
    if not error and app.builder.name == "html":
        site = Path(app.outdir)
        (site / "sw.js").write_text(worker(site), encoding="utf-8")
