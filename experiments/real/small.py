"""The first layers of the trained model, small enough to load into a page.

``python -m experiments.real.small FOLDER`` downloads the package (83 MB, held to its
hash) into FOLDER, rounds layers 0 to 2 and the queries and keys of layer 3 to five
bits, and writes ``theme/sentence/weights.js`` and ``facts.json``; it takes a few
minutes.

Nothing runs this but a person: the file is stored, and a second version would double
the repository.
"""

import argparse
import base64
import gzip
import hashlib
import json
import re
from collections import defaultdict

import numpy as np
import torch

from experiments.real import sentences, small_model
from experiments.real.model import PACKAGE, SHA256, VERSION, MiniLM, fetch
from experiments.real.small_model import BITS, FILE, GROUP, LOWEST, WHOLE, SmallModel

HIGHEST = 2 ** (BITS - 1) - 1
POSITIONS = 64
PIECES = 16_000
# Typed by a phone, and not in ASCII.
TYPED_MARKS = "“”‘’–—…€£"
CALL = "attentionSentence"
WORDS = "embeddings.word_embeddings.weight"


# ---- rounding ----


def choose_scales(groups):
    """Give each row of numbers the scale that rounds it best: (n, GROUP) -> (n, 1)."""
    best = torch.full((len(groups), 1), torch.inf)
    scales = torch.ones(len(groups), 1)
    largest = groups.abs().amax(dim=1, keepdim=True)
    for share in torch.linspace(0.7, 1, 7):
        # As it is stored, in 16 bits.
        tried = (largest * share / HIGHEST).half().float().clamp_min(1e-6)
        error = (round_to(groups, tried) * tried - groups).square().sum(1, keepdim=True)
        scales = torch.where(error < best, tried, scales)
        best = torch.minimum(error, best)
    return scales


def round_to(numbers, scales):
    """Give the steps, from LOWEST to HIGHEST, nearest to the numbers."""
    return (numbers / scales).round().clamp(LOWEST, HIGHEST)


def round_rows(weight):
    """Round each number by itself.

    Args:
        weight: (rows, d).

    Returns:
        The steps (rows, d) and the scales (rows, d / GROUP).
    """
    groups = weight.reshape(-1, GROUP)
    scales = choose_scales(groups)
    steps = round_to(groups, scales)
    return steps.view(weight.shape), scales.view(len(weight), -1)


def round_layer(weight, inputs):
    """Round a linear layer, column by column, by what it reads (GPTQ).

    The error that rounding one column makes in the layer's output is taken back as far
    as the columns behind it can.

    Args:
        weight: (d_out, d_in).
        inputs: what the layer reads (n, d_in).

    Returns:
        The steps (d_out, d_in) and the scales (d_out, d_in / GROUP).
    """
    weight, (_, d_in) = weight.clone(), weight.shape
    curvature = inputs.T @ inputs / len(inputs)  # (d_in, d_in)
    curvature += torch.eye(d_in) * 0.05 * curvature.diagonal().mean()
    spread = torch.linalg.cholesky(torch.linalg.inv(curvature), upper=True)
    steps, scales = torch.zeros_like(weight), []
    for start in range(0, d_in, GROUP):
        end = start + GROUP
        scale = choose_scales(weight[:, start:end])
        scales.append(scale)
        errors = torch.zeros(len(weight), GROUP)
        for i in range(start, end):
            column = weight[:, i : i + 1]
            rounded = round_to(column, scale)
            steps[:, i : i + 1] = rounded
            error = (column - rounded * scale) / spread[i, i]
            weight[:, i:end] -= error * spread[i, i:end]
            errors[:, i - start : i - start + 1] = error
        weight[:, end:] -= errors @ spread[start:end, end:]
    return steps, torch.cat(scales, dim=1)


def read_inputs(model, listed):
    """Give what each linear layer reads of the sentences, by its name."""
    seen, apply = defaultdict(list), model.linear

    def record(name, x):
        seen[name].append(x)
        return apply(name, x)

    model.linear = record
    for sentence in listed:
        model.run(sentence)
    del model.linear
    return {name: torch.cat(rows) for name, rows in seen.items()}


def calibration():
    """List the sentences by which the layers are rounded, none of them in typed.txt."""
    lists = ("same word", "brackets", "pronouns", "fresh pronouns", "adjectives")
    found = [s for name in lists for s, *_ in sentences.read_labeled(name)]
    found += [s for both in sentences.shown_pairs() for s, *_ in both]
    return list(dict.fromkeys(found))


# ---- what is kept ----


def linear_names():
    """List the linear layers that are kept."""
    parts = ["attention.self.query", "attention.self.key"]
    rest = ["attention.self.value", "attention.output.dense"]
    rest += ["intermediate.dense", "output.dense"]
    return [
        f"encoder.layer.{layer}.{part}"
        for layer in range(WHOLE + 1)
        for part in (parts + rest if layer < WHOLE else parts)
    ]


def small_names(weights):
    """List the kept tensors that stay in 16 bits: positions, biases, norms."""
    biases = {f"{name}.bias" for name in linear_names()}

    def is_kept(name):
        if name in biases or (name.startswith("embeddings.") and name != WORDS):
            return weights[name].is_floating_point()
        layer = re.match(r"encoder\.layer\.(\d)\..*LayerNorm", name)
        return layer is not None and int(layer[1]) < WHOLE

    return sorted(name for name in weights if is_kept(name))


def choose_pieces(vocabulary):
    """List the word pieces that are kept: marks and letters, then the most frequent.

    The model's vocabulary is in the order of frequency.
    """
    marks, common = ["[CLS]", "[SEP]"], []
    for piece in sorted(vocabulary, key=vocabulary.get):
        letters = piece.removeprefix("##")
        if len(letters) == 1 and (letters.isascii() or letters in TYPED_MARKS):
            marks.append(piece)
        elif letters.isascii() and letters.isalpha() and len(letters) > 1:
            common.append(piece)
    return (marks + common)[:PIECES]


def pack(steps):
    """Write steps in BITS bits each, the first bit first."""
    unsigned = (steps.flatten() - LOWEST).to(torch.uint8).numpy()
    bits = np.unpackbits(unsigned[:, None], axis=1)[:, 8 - BITS :]
    return np.packbits(bits.flatten()).tobytes()


def to_half(tensor):
    """Write a tensor in 16 bits a number."""
    return tensor.numpy().astype("<f2").tobytes()


def cut(model):
    """Make the data and their table: [name, bits, rows, columns] in their order."""
    read = read_inputs(model, calibration())
    pieces = choose_pieces(model.vocabulary)
    ids = torch.tensor([model.vocabulary[piece] for piece in pieces])
    table, data = [], b""
    for name in small_names(model.weights):
        tensor = model.weights[name]
        tensor = tensor[:POSITIONS] if "position" in name else tensor
        tensor = tensor[:1] if "token_type" in name else tensor
        rows, columns = tensor.view(-1, tensor.shape[-1]).shape
        table.append([name, 16, rows, columns])
        data += to_half(tensor)
    rounded = {WORDS: round_rows(model.weights[WORDS][ids])}
    for name in linear_names():
        print(name, flush=True)
        weight = model.weights[f"{name}.weight"]
        rounded[f"{name}.weight"] = round_layer(weight, read[name])
    for name, (steps, scales) in rounded.items():
        table.append([name, BITS, *steps.shape])
        data += pack(steps) + to_half(scales)
    return table, pieces, data


# ---- the file ----


def checksum(data):
    """Give the 32-bit FNV-1a hash, which the page computes as well (forward.js)."""
    found = 0x811C9DC5
    for byte in data:
        found = (found ^ byte) * 0x01000193 & 0xFFFFFFFF
    return found


def write(table, pieces, data):
    """Write the script that a page loads."""
    given = {
        "tensors": table,
        "pieces": " ".join(pieces),
        "data": base64.b64encode(data).decode(),
    }
    text = json.dumps(given, separators=(",", ":"), ensure_ascii=False)
    FILE.write_text(f"{CALL}({text});\n", encoding="utf-8")


# ---- what is told of it ----


def collect_facts(model, small):
    """Collect what the page says of the file and its heads."""
    content = FILE.read_bytes()
    return {
        "package": {"name": PACKAGE, "version": VERSION, "sha256": SHA256},
        "sha256": hashlib.sha256(content).hexdigest(),
        "checksum": checksum(small.data),
        "bytes": len(content),
        "transferred": len(gzip.compress(content, 6)),
        "pieces": len(small.vocabulary),
        "compared": small_model.compare(model, small),
        "sentences": len(small_model.list_typed()),
        "rates": small_model.measure(small),
    }


def main():
    """Write the weights and what is measured of them."""
    parser = argparse.ArgumentParser(prog="python -m experiments.real.small")
    parser.add_argument("folder", help="where the package lies or goes, 83 MB")
    given = parser.parse_args()
    model = MiniLM(fetch(given.folder))
    write(*cut(model))
    text = json.dumps(collect_facts(model, SmallModel()), indent=2)
    FILE.with_name("facts.json").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
