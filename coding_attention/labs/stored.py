"""What a notebook stores of its labs, made the same in every run."""

import json

STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"


def steady_ids(notebook):
    """Replace the random ids of a notebook's widgets by model-1, model-2 and so on.

    Numbered in the order in which the cells made them, so that a notebook that was
    executed twice is the same file.

    Args:
        notebook: an executed notebook, a dict as nbformat gives it; changed in place.
    """
    stored = notebook["metadata"].get("widgets", {}).get(STATE)
    if not stored:
        return
    names = {old: f"model-{n}" for n, old in enumerate(stored["state"], start=1)}
    text = json.dumps(stored)
    for old, new in names.items():
        text = text.replace(old, new)
    notebook["metadata"]["widgets"][STATE] = json.loads(text)
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            view = output.get("data", {}).get(VIEW)
            if view:
                view["model_id"] = names[view["model_id"]]
