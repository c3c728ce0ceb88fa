"""The labs work on the built page, with no kernel and no CDN.

MyST-NB would load require.js and a widget manager from two other hosts. Instead, a page
gets scripts and style sheets of the site's own, made from the files in
coding_attention/labs: what all labs share, and the labs that it shows. The state that
the notebook stores stays in the page, without the copies of the labs' code. Without
JavaScript, each lab's static figure is shown.

Neither PyTorch nor the package is imported.
"""

import importlib.util
import json
from pathlib import Path

from docutils import nodes
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.util import logging

ROOT = Path(__file__).parents[1]
STATE = "ipywidgets_state"  # the key under which MyST-NB keeps a page's state
STATE_TYPE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"
# Code and styles come from the site's files; the rest describes ipywidgets' own parts.
LEFT_OUT = ("_esm", "_css", "layout", "tooltip", "tabbable")

# For a slider of ipywidgets, which asks Python for everything that it changes.
NO_KERNEL = (
    '<p class="needs-kernel">This control needs a kernel, and a site has none: open '
    "the page in Jupyter to use it. Shown here is the result for its first value.</p>"
)

logger = logging.getLogger(__name__)


def _compose():
    # By its path: importing the package would import PyTorch.
    path = ROOT / "coding_attention" / "labs" / "compose.py"
    spec = importlib.util.spec_from_file_location("labs_compose", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assets():
    """Give the files that the site serves, as a mapping of name to text."""
    compose = _compose()
    loader = Path(__file__).with_name("labs_loader.js").read_text(encoding="utf-8")
    styles = {path.name: path.read_text("utf-8") for path in compose.sheets()}
    return compose.classic(loader) | styles


def lab_states(stored):
    """Reduce a notebook's widget state to the labs in it.

    Args:
        stored: the notebook's ``application/vnd.jupyter.widget-state+json``.

    Returns:
        The same with, for each lab, its class name and its traits, and the ids of
        widgets that are neither labs nor ipywidgets' own.
    """
    known = _compose().scripts()
    labs, foreign = {}, []
    for model_id, model in stored["state"].items():
        name = model["state"].get("_anywidget_id", "").rpartition(".")[2]
        if name in known:
            traits = {
                key: value
                for key, value in model["state"].items()
                if not key.startswith("_") and key not in LEFT_OUT
            }
            labs[model_id] = {"lab": name, "state": traits}
        elif not model.get("model_module", "").startswith("@jupyter-widgets/"):
            foreign.append(model_id)
    return {**stored, "state": labs}, foreign


def use_own_loader(app, config):
    config.nb_ipywidgets_js = {}


def write_assets(app):
    if app.builder.format != "html":
        return
    folder = Path(app.outdir) / "_static"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in assets().items():
        (folder / name).write_text(text, encoding="utf-8")


def take_states(app, env):
    # From the scripts that MyST-NB would set in the page's head, with the labs' code.
    for page, data in NbMetadataCollector.get_doc_data(env).items():
        if STATE not in data.get("js_files", {}):
            continue
        _, options = data["js_files"].pop(STATE)
        stored, foreign = lab_states(json.loads(options["body"]))
        data["labs"] = stored
        if foreign:
            logger.warning(
                "%s holds %d widget(s) that are no labs; the page shows nothing there.",
                page,
                len(foreign),
            )


def add_to_page(app, pagename, templatename, context, doctree):
    data = getattr(app.env, "nb_metadata", {}).get(pagename, {})
    if not data.get("labs", {}).get("state"):
        return
    # A "</script>" within the state must not end the element that holds it.
    state = json.dumps(data["labs"], sort_keys=True).replace("</", "<\\/")
    context["body"] += f'<script type="{STATE_TYPE}">{state}</script>'
    compose, shown = _compose(), {m["lab"] for m in data["labs"]["state"].values()}
    for name in compose.files_for(shown):
        app.add_js_file(name, loading_method="defer")
    for path in compose.sheets(shown):
        app.add_css_file(path.name)


def keep_static_figures(page):
    """Set a lab's static figure beside its view; else only one of both is kept.

    A view without a figure says what it needs.
    """
    for bundle in page.document.findall(nodes.container):
        if bundle.get("nb_element") != "mime_bundle":
            continue
        parts = {part.get("mime_type"): part for part in bundle.children}
        if VIEW in parts and "text/html" in parts:
            parts[VIEW].extend(parts["text/html"].children)
        elif VIEW in parts:
            parts[VIEW].children = [nodes.raw("", NO_KERNEL, format="html")]
