"""The results and weights that pages show, as the experiments stored them."""

import json
from pathlib import Path

from safetensors.torch import load_file

RESULTS = Path(__file__).resolve().parent / "results"


def load_results(name):
    """Read ``results/NAME.json``."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def load_weights(name):
    """Read ``results/NAME.safetensors`` as a state dict."""
    return load_file(RESULTS / f"{name}.safetensors")
