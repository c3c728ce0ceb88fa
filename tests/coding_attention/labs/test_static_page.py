"""What the Sphinx extension makes of pages with labs: a script, its data, sizes."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from coding_attention.labs import ScaleLab
from coding_attention.stored import LAB
from tests.coding_attention.labs.conftest import build, page_of
from tests.coding_attention.labs.table import ROWS
from tools import labs as tool

ROOT = Path(__file__).resolve().parents[3]


def soup(lab_site, name):
    html = (lab_site / f"{name}.html").read_text(encoding="utf-8")
    return BeautifulSoup(html, "html.parser")


def stored(page):
    """What a page holds for its labs' scripts, in order."""
    return [json.loads(one.string) for one in page.select(f'script[type="{LAB}"]')]


def files_of(page):
    """Name the labs' scripts and sheets that a page loads."""
    links = [s["src"] for s in page.select("script[src]")]
    links += [s["href"] for s in page.select("link[href]")]
    names = [Path(link.partition("?")[0]).name for link in links]
    return [name for name in names if name.startswith("labs")]


def test_the_bundle_is_made_of_the_scripts_as_they_are():
    with tool.BUNDLE.open(encoding="utf-8") as file:
        assert next(file).rstrip() == tool.first_line(), "run: make labs"


def test_only_pages_with_labs_load_them(lab_site):
    for name, count in (("all", len(ROWS)), ("three", 3), ("big", 1), ("plain", 0)):
        page = soup(lab_site, name)
        assert files_of(page) == (["labs.js", "labs.css"] if count else [])
        assert len(stored(page)) == count
        assert len(page.select(".attn-static")) == count


def test_no_widget_manager_and_no_cdn(lab_site):
    for name in ("all", "three", "big"):
        html = (lab_site / f"{name}.html").read_text(encoding="utf-8")
        for word in ("require.min.js", "html-manager", "cdnjs", "jsdelivr"):
            assert word not in html


def test_a_page_holds_traits_and_no_code(lab_site):
    for one in stored(soup(lab_site, "three")):
        assert one == ROWS[one["lab"]].make()._repr_mimebundle_()[0][LAB]


def test_a_token_cannot_end_the_script(lab_site):
    (one,) = stored(soup(lab_site, "big"))
    assert json.loads(one["traits"])["tokens"][0] == "</script>"


def test_building_needs_no_pytorch():
    code = (
        "import sys; from theme import labs; labs.compose_assets(); "
        "sys.exit('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def test_a_page_with_three_labs_adds_at_most_60_kb(lab_site):
    page = soup(lab_site, "three")
    data = json.dumps(stored(page)).encode()
    figures = "".join(str(f) for f in page.select(".attn-static")).encode()
    served = [(lab_site / "_static" / name).read_bytes() for name in files_of(page)]
    parts = [len(gzip.compress(part)) for part in (*served, data, figures)]
    print("gzipped: script, styles, data, static figures:", parts)
    assert sum(parts) <= 60_000


def test_a_page_written_again_keeps_its_labs(tmp_path):
    """Sphinx writes a page whose HTML is missing from what it read last time."""
    site = build(tmp_path, {"one": page_of(ScaleLab())})
    before = stored(soup(site, "one"))
    (site / "one.html").unlink()
    command = [sys.executable, "-m", "sphinx", "-b", "html", tmp_path, site]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "0 added, 0 changed, 0 removed" in result.stdout
    again = soup(site, "one")
    assert stored(again) == before != []
    assert "labs.js" in files_of(again)


@pytest.mark.parametrize("name", ROWS)
def test_every_lab_has_its_script(name, node, tmp_path):
    """anywidget loads one module, and takes what it exports by default."""
    path = tmp_path / "lab.mjs"
    path.write_text(ROWS[name].make()._esm, encoding="utf-8")
    ask = f"import lab from {json.dumps(path.as_uri())}; console.log(typeof lab.render)"
    result = node("--input-type=module", "--eval", ask)
    assert result.stdout == "function\n", result.stderr
