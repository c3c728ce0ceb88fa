"""The budget of a page, and what of it is exceeded."""

import json
from pathlib import Path

BUDGET = Path(__file__).resolve().parents[2] / "site_budget.json"


def read_budget(path=BUDGET):
    """Read the limits, by the name of what is measured."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def figures(found):
    """Reduce what was found on a page to one number for each limit."""
    return {
        "bytes": found["bytes"],
        "bytes_further_down": found["bytes_further_down"],
        "third_parties": len(found["third_parties"]),
        "console_errors": len(found["console_errors"]),
        "images_without_text": len(found["images_without_text"]),
        "layout_shift": found["layout_shift"],
        "axe_nodes": sum(len(nodes) for nodes in found["axe"].values()),
        "overflow_px": max(found["overflow_px"].values()),
    }


def exceeded(found, budget):
    """Say for each limit that is exceeded what was found and what is allowed."""
    numbers = figures(found)
    return [
        f"{name} is {numbers[name]}, and the budget allows {limit}"
        for name, limit in budget.items()
        if numbers[name] > limit
    ]
