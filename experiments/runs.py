"""What all experiments share: a hash of config and code, files, parts side by side.

An experiment is a list of parts. A part trains one model in a process of its own and
returns a result. Its checkpoints lie in ``_build/experiments`` until all parts are
done, so a run that was stopped goes on from the last ones.
"""

import ast
import dataclasses
import hashlib
import json
import pickle
import platform
import shutil
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import torch
from safetensors.torch import save
from tqdm import tqdm

from coding_attention.models.stored import RESULTS
from coding_attention.models.training import write_atomically

CODE = RESULTS.parent
CHECKPOINTS = Path(__file__).resolve().parent.parent / "_build" / "experiments"
WORKERS = 2

# ---- which code and which config made a result ----


def fingerprint(config, *modules):
    """Give a hash of a config and of the code that used it.

    Comments, docstrings, formatting and imports do not count: a module that is only
    moved computes what it did.

    Args:
        config: a dataclass.
        modules: names of files in ``coding_attention/models/``, without ``.py``.

    Returns:
        16 hexadecimal digits.
    """
    parts = [sorted(dataclasses.asdict(config).items())]
    for name in sorted(modules):
        source = (CODE / f"{name}.py").read_text(encoding="utf-8")
        parts.append([name, _structure(ast.parse(source))])
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _structure(node):
    # Empty fields are left out: which of them exist depends on the release of Python.
    if isinstance(node, list):
        return [_structure(child) for child in node if not _computes_nothing(child)]
    if isinstance(node, ast.AST):
        fields = [(name, _structure(value)) for name, value in ast.iter_fields(node)]
        return [type(node).__name__, [f for f in fields if f[1] not in ([], "None")]]
    return repr(node)


def _computes_nothing(node):
    # An import, or a docstring: a statement that is nothing but a string.
    value = node.value if isinstance(node, ast.Expr) else None
    text = isinstance(value, ast.Constant) and isinstance(value.value, str)
    return text or isinstance(node, (ast.Import, ast.ImportFrom))


# ---- files that are whole or not there ----


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


def save_weights(name, state):
    """Write a state dict to ``results/NAME.safetensors``."""
    tensors = {key: value.contiguous() for key, value in state.items()}
    # Through bytes: save_file would make a file that nobody else may read.
    data = save(tensors)
    write_atomically(
        RESULTS / f"{name}.safetensors", lambda path: path.write_bytes(data)
    )


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
        and the seconds of each part: of the processor, and by the clock for what was
        done before the run was stopped.
    """
    folder = CHECKPOINTS / code
    pool = ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn"))
    results = {}
    with pool, tqdm(total=len(parts), desc="parts", unit="part") as bar:
        jobs = {
            pool.submit(_run, function, config, part, folder): part for part in parts
        }
        for job in as_completed(jobs):
            results[jobs[job]] = job.result()
            bar.update()
    ordered = [results[part] for part in parts]
    made_with = {
        "python": platform.python_version(),
        "torch": torch.__version__.partition("+")[0],
        "seconds": {
            "-".join(map(str, part)): round(seconds)
            for part, (_, seconds) in zip(parts, ordered, strict=True)
        },
    }
    return [pickle.loads(result) for result, _ in ordered], made_with


def _run(function, config, part, folder):
    torch.set_num_threads(1)  # the workers share the cores already
    checkpoint = folder / f"{'-'.join(map(str, part))}.pt"
    started = time.process_time() - _seconds(checkpoint)
    result = function(config, *part, checkpoint=checkpoint)
    # Pickled here: tensors would be handed over in memory that ends with this process.
    return pickle.dumps(result), time.process_time() - started


def _seconds(checkpoint):
    # What was spent before the run was stopped counts too, if only by the clock.
    if not checkpoint.exists():
        return 0.0
    return torch.load(checkpoint, weights_only=True)["seconds"]


def forget(code):
    """Delete the checkpoints of a run whose results are written."""
    shutil.rmtree(CHECKPOINTS / code, ignore_errors=True)
