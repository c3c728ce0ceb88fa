"""Make what the book carries of a trained model, or check it.

``python -m experiments.real FOLDER`` downloads the package (83 MB, held to its hash)
into FOLDER and writes ``coding_attention/models/results/real*``; with ``--check`` it
computes all of it again and compares.
"""

import argparse
import json
import sys
from functools import partial

import torch

from coding_attention.models import real, stored
from experiments import runs
from experiments.real import measure, sentences
from experiments.real.model import PACKAGE, SHA256, VERSION, MiniLM, fetch

MASKED = "3.1 masked"  # what head 3.1 would read if all layers below it had a mask
SEVERAL = "my brother bought a car and he loves it"
TOLERANCE = {"heads": 0, "layer": 0, "states": 4e-3}


def _of_layer():
    return [
        SEVERAL,
        "the dog chased the cat and then the cat slept",
        "the story ( about a dragon ) is long",
        'the word " love " is short',
        "the king told the queen that she was ill",
        "a young thin boy carried the big bag",
    ]


def too_sentences():
    """Give the two sentences that differ only behind "it": too tired, too wide."""
    return [sentence for sentence, *_ in sentences.too_pairs()[0]]


def read_by():
    """Give the sentences whose states are stored, by head or layer."""
    people = [s for both in sentences.shown_pairs() for s, *_ in both]
    return {
        "0.2": ["your journey starts with one step", *people[:2]],
        "3.1": [*people, SEVERAL, *too_sentences()],
        "1": _of_layer(),
    }


def collect_facts(model):
    """Measure everything that a page tells."""
    lists = {name: sentences.read_labeled(name) for name in (
        "same word", "brackets", "two pairs of brackets", "pronouns", "fresh pronouns",
        "adjectives",
    )}  # fmt: skip
    every = list(dict.fromkeys(s for examples in lists.values() for s, *_ in examples))
    tokens = {s: model.tokenize(s) for listed in read_by().values() for s in listed}
    count = partial(measure.count_right, model, layer=3, head=1)
    return {
        "model": "sentence-transformers/all-MiniLM-L6-v2",
        "package": {"name": PACKAGE, "version": VERSION, "sha256": SHA256},
        "licenses": {
            "sentence-transformers/all-MiniLM-L6-v2": "Apache-2.0",
            "nreimers/MiniLM-L6-H384-uncased": "MIT",
            "microsoft/MiniLM-L12-H384-uncased": "MIT, Copyright (c) Microsoft",
        },
        "changed": "single heads and one layer cut out, float16",
        "measured": {
            "people or thing": count(sentences.pairs()),
            "he or it": count(sentences.singular_pairs("he")),
            "she or it": count(sentences.singular_pairs("she")),
            "too tired, too wide": count(sentences.too_pairs()),
            "pronouns": count([[example] for example in lists["pronouns"]]),
            "word before": measure.word_before(model, every),
        },
        "idle": measure.idle(model, every),
        "sentences": len(every),
        "without": measure.controls(model),
        "layer": {
            "places": measure.heads_of(model, real.LAYER, every),
            "relations": measure.relations(model, real.LAYER),
            "cut": measure.cuts(model, real.LAYER, every[:80:2]),
        },
        "pairs": sentences.shown_pairs(),
        "states": read_by() | {MASKED: too_sentences()},
        "tokens": tokens,
    }


def answer(model, name, x):
    """Give what the model's head or layer makes of states x: (t, d) -> (t, d_out)."""
    layer, _, head = name.partition(".")
    part = f"encoder.layer.{layer}.attention"
    _, z = model.heads(f"{part}.self", x)  # (h, t, d_head)
    if head:
        return z[int(head)]
    joined = z.transpose(0, 1).reshape(len(x), -1)
    return model.linear(f"{part}.output.dense", joined)


def tensors(model):
    """Give the stored tensors by file and name."""
    states = {}
    for name, listed in read_by().items():
        for i, sentence in enumerate(listed):
            x = model.run(sentence)[2][int(name[0])]
            states[f"{name}.{i}"] = x.half()
            states[f"{name}.{i}.out"] = answer(model, name, x).half()
    for i, sentence in enumerate(too_sentences()):
        x = model.run(sentence, masked=True)[2][3]
        states[f"{MASKED}.{i}"] = x.half()
    heads = {
        f"{layer}.{head}.{part}": tensor.half()
        for layer, head in ((0, 2), (3, 1))
        for part, tensor in model.head(layer, head).items()
    }
    return {
        "heads": heads,
        "layer": {key: x.half() for key, x in model.layer(real.LAYER).items()},
        "states": states,
    }


def list_differences(made, told):
    """List where what was made differs from what is stored.

    Numbers of measurements may differ by rounding, counts and weights not at all.
    """
    found = []
    for name, parts in made.items():
        kept = stored.load_weights(f"real_{name}")
        if kept.keys() != parts.keys():
            found.append(f"real_{name}: other names")
            continue
        for key, tensor in parts.items():
            off = (tensor.double() - kept[key].double()).abs().max().item()
            if off > TOLERANCE[name]:
                found.append(f"real_{name}: {key} differs by {off}")
    told = json.loads(json.dumps(told))
    return found + list(_unlike(told, stored.load_results("real"), "real.json"))


def _unlike(made, kept, where):
    if isinstance(made, dict) and isinstance(kept, dict) and made.keys() == kept.keys():
        for key in made:
            yield from _unlike(made[key], kept[key], f"{where}: {key}")
    elif isinstance(made, list) and isinstance(kept, list) and len(made) == len(kept):
        for i, both in enumerate(zip(made, kept, strict=True)):
            yield from _unlike(*both, f"{where}: {i}")
    elif isinstance(made, float) and isinstance(kept, float):
        if abs(made - kept) > 0.0011:
            yield f"{where}: {made}, stored {kept}"
    elif made != kept:
        yield f"{where}: {made!r}, stored {kept!r}"


def main():
    """Write what the book carries, or compare it."""
    parser = argparse.ArgumentParser(prog="python -m experiments.real")
    parser.add_argument("folder", help="where the package lies or goes, 83 MB")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    given = parser.parse_args()
    # Its matrices are small: on a busy machine, threads would wait for each other.
    torch.set_num_threads(1)
    model = MiniLM(fetch(given.folder))
    made, told = tensors(model), collect_facts(model)
    if given.check:
        wrong = list_differences(made, told)
        print("\n".join(wrong) or "All that is stored was computed again: the same.")
        sys.exit(bool(wrong))
    for name, parts in made.items():
        runs.save_weights(f"real_{name}", parts)
    runs.save_results("real", told)


if __name__ == "__main__":
    main()
