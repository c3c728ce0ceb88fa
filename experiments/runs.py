"""What all experiments share: a hash of config and code, files, parts side by side.

An experiment is a list of parts. A part trains one model in a process of its own and
returns a result. Its checkpoints lie in ``_build/experiments`` until all parts are
done, so a run that was stopped goes on from the last ones.
"""

import ast
import dataclasses
import hashlib
import json
import os
import pickle
import platform
import resource
import shutil
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import torch
from safetensors.torch import load_file, save
from tqdm import tqdm

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER / "results"
CHECKPOINTS = FOLDER.parent / "_build" / "experiments"
WORKERS = 2

# ---- which code and which config made a result ----


def fingerprint(config, *modules):
    """Give a hash of a config and of the code that used it.

    Comments, docstrings and formatting do not count.

    Args:
        config: a dataclass.
        modules: names of files in ``experiments/``, without ``.py``.

    Returns:
        16 hexadecimal digits.
    """
    parts = [sorted(dataclasses.asdict(config).items())]
    for name in sorted(modules):
        source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
        parts.append([name, _structure(ast.parse(source))])
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _structure(node):
    # Empty fields are left out: which of them exist depends on the release of Python.
    if isinstance(node, list):
        return [_structure(child) for child in node if not _is_text(child)]
    if isinstance(node, ast.AST):
        fields = [(name, _structure(value)) for name, value in ast.iter_fields(node)]
        return [type(node).__name__, [f for f in fields if f[1] not in ([], "None")]]
    return repr(node)


def _is_text(node):
    # A docstring: a statement that is nothing but a string.
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


# ---- files that are whole or not there ----


def write_atomically(path, write):
    """Call ``write(temporary_path)``, then put the file in its place in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def save_results(name, results):
    """Write ``results`` to ``results/NAME.json``, one line for each list of numbers."""
    text = _json(results) + "\n"
    write_atomically(
        RESULTS / f"{name}.json", lambda path: path.write_text(text, encoding="utf-8")
    )


def _json(value, margin=""):
    # json.dumps writes either every number on a line of its own, or all in one line.
    parts = value.values() if isinstance(value, dict) else value
    nested = isinstance(value, (dict, list, tuple)) and any(
        isinstance(part, (dict, list, tuple)) for part in parts
    )
    if not nested:
        return json.dumps(value, ensure_ascii=False)
    wider = margin + " "
    if isinstance(value, dict):
        lines = [f"{json.dumps(key)}: {_json(x, wider)}" for key, x in value.items()]
        opening, closing = "{", "}"
    else:
        lines = [_json(x, wider) for x in value]
        opening, closing = "[", "]"
    body = ",\n".join(wider + line for line in lines)
    return f"{opening}\n{body}\n{margin}{closing}"


def load_results(name):
    """Read ``results/NAME.json``."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def save_weights(name, state):
    """Write a state dict to ``results/NAME.safetensors``."""
    tensors = {key: value.contiguous() for key, value in state.items()}
    # Through bytes: save_file would make a file that nobody else may read.
    data = save(tensors)
    write_atomically(
        RESULTS / f"{name}.safetensors", lambda path: path.write_bytes(data)
    )


def load_weights(name):
    """Read ``results/NAME.safetensors`` as a state dict."""
    return load_file(RESULTS / f"{name}.safetensors")


# ---- running all parts ----


def run_parts(function, config, parts, code):
    """Run ``function(config, *part, checkpoint)`` for each part, two at a time.

    Args:
        function: trains one model and returns a dict; defined in a module.
        config: a dataclass, handed over.
        parts: a tuple of arguments for each part.
        code: the :func:`fingerprint`. Checkpoints of other code are not gone on from.

    Returns:
        The results, in the order of ``parts``, and a description of the run: versions,
        and seconds and peak memory of each part.
    """
    folder = CHECKPOINTS / code
    # Processes of their own, so that the peak memory of each part is its own.
    pool = ProcessPoolExecutor(
        WORKERS, mp_context=get_context("spawn"), max_tasks_per_child=1
    )
    results = {}
    with pool, tqdm(total=len(parts), desc="parts", unit="part") as bar:
        jobs = {
            pool.submit(_run, function, config, part, folder): part for part in parts
        }
        for job in as_completed(jobs):
            results[jobs[job]] = job.result()
            bar.update()
    ordered = [results[part] for part in parts]
    cost = {
        "-".join(map(str, part)): {"seconds": round(s), "peak_mib": round(m)}
        for part, (_, s, m) in zip(parts, ordered, strict=True)
    }
    made_with = {
        "python": platform.python_version(),
        "torch": torch.__version__.partition("+")[0],
        "cost": cost,
    }
    return [pickle.loads(result) for result, _, _ in ordered], made_with


def _run(function, config, part, folder):
    torch.set_num_threads(1)  # the workers share the cores already
    checkpoint = folder / f"{'-'.join(map(str, part))}.pt"
    started = time.perf_counter() - _seconds(checkpoint)
    result = function(config, *part, checkpoint=checkpoint)
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB on Linux
    # Pickled here: tensors would be handed over in memory that ends with this process.
    return pickle.dumps(result), time.perf_counter() - started, kib / 1024


def _seconds(checkpoint):
    # What was spent before the run was stopped counts too.
    if not checkpoint.exists():
        return 0.0
    return torch.load(checkpoint, weights_only=True)["seconds"]


def forget(code):
    """Delete the checkpoints of a run whose results are written."""
    shutil.rmtree(CHECKPOINTS / code, ignore_errors=True)
