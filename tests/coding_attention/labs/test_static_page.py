"""What the Sphinx extension makes of pages with labs: files, scripts, sizes."""

import gzip
import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from coding_attention.labs import ScaleLab, compose
from tests.coding_attention.labs.conftest import build, page_of
from tests.coding_attention.labs.table import ROWS

ROOT = Path(__file__).resolve().parents[3]
STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
def extension():
    return runpy.run_path(str(ROOT / "theme" / "labs.py"))


def soup(lab_site, name):
    html = (lab_site / f"{name}.html").read_text(encoding="utf-8")
    return BeautifulSoup(html, "html.parser")


def scripts_of(page):
    """Name the labs' scripts that a page loads, in order."""
    names = [Path(s["src"].partition("?")[0]).name for s in page.select("script[src]")]
    return [name for name in names if name.startswith("labs")]


def test_site_serves_the_packages_files(lab_site):
    loader = (ROOT / "theme/labs_loader.js").read_text(encoding="utf-8")
    files = compose.classic(loader)
    for name, text in files.items():
        assert (lab_site / "_static" / name).read_text(encoding="utf-8") == text
    for path in (ROOT / "coding_attention/labs").glob("*.css"):
        served = (lab_site / "_static" / path.name).read_text(encoding="utf-8")
        assert served == path.read_text(encoding="utf-8")


def test_only_pages_with_labs_load_them(lab_site):
    for name, count in (("all", len(ROWS)), ("three", 3), ("big", 1), ("plain", 0)):
        page = soup(lab_site, name)
        sheets = [s for s in page.select("link[href]") if "labs.css" in s["href"]]
        assert bool(scripts_of(page)) == len(sheets) == (1 if count else 0)
        assert len(page.select(f'script[type="{VIEW}"]')) == count
        assert len(page.select(".attn-static")) == count


def test_a_page_loads_its_own_labs_and_no_others(lab_site):
    for name in ("all", "three", "big"):
        page = soup(lab_site, name)
        stored = json.loads(page.select_one(f'script[type="{STATE}"]').string)["state"]
        shown = {compose.scripts()[model["lab"]] for model in stored.values()}
        loaded = scripts_of(page)
        assert loaded[0] == "labs.js"
        assert {f"labs-{script}" for script in shown} == set(loaded) - {
            "labs.js",
            "labs-draw.js",
        }


def test_no_widget_manager_and_no_cdn(lab_site):
    for name in ("all", "three", "big"):
        html = (lab_site / f"{name}.html").read_text(encoding="utf-8")
        for word in (
            "require.min.js",
            "embed-amd",
            "html-manager",
            "cdnjs",
            "jsdelivr",
        ):
            assert word not in html


def test_state_holds_traits_and_no_code(lab_site):
    page = soup(lab_site, "three")
    stored = json.loads(page.select_one(f'script[type="{STATE}"]').string)
    views = [
        json.loads(view.string)["model_id"]
        for view in page.select(f'script[type="{VIEW}"]')
    ]
    assert sorted(stored["state"]) == sorted(views)
    for model in stored["state"].values():
        assert set(model) == {"lab", "state"}
        assert not {"_esm", "_css", "layout"} & set(model["state"])
    names = {model["lab"] for model in stored["state"].values()}
    assert names == {"DropoutLab", "HeadSplitLab", "MultiHeadLab"}


def test_a_token_cannot_end_the_script(lab_site):
    html = (lab_site / "big.html").read_text(encoding="utf-8")
    state = html.split(f'<script type="{STATE}">')[1].split("</script>")[0]
    tokens = [model["state"]["tokens"] for model in json.loads(state)["state"].values()]
    assert tokens[0][0] == "</script>"


def test_other_widgets_are_named_in_a_warning(extension):
    stored = {"state": {"x": {"model_module": "somebody-elses", "state": {}}}}
    assert extension["lab_states"](stored) == ({"state": {}}, ["x"])
    layout = {"state": {"y": {"model_module": "@jupyter-widgets/base", "state": {}}}}
    assert extension["lab_states"](layout)[1] == []


def test_building_needs_no_pytorch():
    code = (
        "import runpy, sys; m = runpy.run_path('theme/labs.py'); m['assets'](); "
        "sys.exit('torch' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode
        == 0
    )


def test_a_page_with_three_labs_adds_at_most_60_kb(lab_site):
    page = soup(lab_site, "three")
    state = page.select_one(f'script[type="{STATE}"]').string.encode()
    figures = "".join(str(f) for f in page.select(".attn-static")).encode()
    files = [*scripts_of(page), *(path.name for path in compose.sheets())]
    served = [(lab_site / "_static" / name).read_bytes() for name in files]
    parts = [len(gzip.compress(part)) for part in (*served, state, figures)]
    print("gzipped: scripts and styles, state, static figures:", parts)
    # d3 is 10 kB of it.
    assert sum(parts) <= 60_000


def test_a_page_written_again_keeps_its_labs(tmp_path):
    """Sphinx writes a page whose HTML is missing from what it read last time."""
    site = build(tmp_path, {"one": page_of(ScaleLab())})
    before = soup(site, "one").select_one(f'script[type="{STATE}"]').string
    (site / "one.html").unlink()
    command = [sys.executable, "-m", "sphinx", "-b", "html", tmp_path, site]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "0 added, 0 changed, 0 removed" in result.stdout
    again = soup(site, "one")
    assert again.select_one(f'script[type="{STATE}"]').string == before
    assert "labs.js" in scripts_of(again)
