"""The look lab: what a head of a trained model looks at, word by word."""

import base64
from html import escape

import torch
import traitlets

from attention.trainable import SelfAttention_v2
from coding_attention.labs import base
from coding_attention.models import real

STAGES = 8  # from x to z, as look.js draws them
HEAD = "3.1"
# The word that asks, and two sentences that differ in it.
CHOSEN = [
    ("they", "the workers watched the piano until they left",
     "the workers watched the piano until it left"),
    ("they", "the piano passed the workers before they stopped",
     "the piano passed the workers before it stopped"),
    ("they", "the workers found the piano before they fell",
     "the workers found the piano before it fell"),
]  # fmt: skip


def scenes():
    """Give the sentences with what the head computes of them, as the lab takes them."""
    return [_scene(*row) for row in CHOSEN]


def _scene(asks, *sentences):
    looks = [real.looks(sentence, HEAD) for sentence in sentences]
    weights = [(255 * given).round().int().tolist() for _, given in looks]
    words = [words for words, _ in looks]
    return {
        "head": HEAD, "ask": words[0].index(asks), "words": words, "weights": weights,
        "inner": [_inner(HEAD, sentence) for sentence in sentences],
    }  # fmt: skip


@torch.no_grad()
def _inner(head, sentence):
    # What the head computes before its weights: 8 bits a number, scores in 1000ths.
    with torch.random.fork_rng(devices=[]):
        layer = SelfAttention_v2(real.WIDTH, real.HEAD_WIDTH, qkv_bias=True)
    layer = real.load_head(layer, head)
    _, x = real.states(head, sentence)
    queries, keys, values = layer.W_query(x), layer.W_key(x), layer.W_value(x)
    scores = queries @ keys.T  # (t, t)
    return {
        "x": _packed(x[:, : real.HEAD_WIDTH]), "q": _packed(queries),
        "k": _packed(keys), "v": _packed(values),
        "scores": (1000 * scores).round().int().tolist(),
    }  # fmt: skip


def _packed(rows):
    scale = rows.abs().max().item() / 127
    steps = (rows / scale).round().to(torch.int8).numpy().tobytes()
    return {"scale": float(f"{scale:.6g}"), "steps": base64.b64encode(steps).decode()}


def _scenes(lab, name, value):
    for i, scene in enumerate(value):
        first, second = scene["words"]
        differ = sum(a != b for a, b in zip(first, second, strict=False))
        if len(first) != len(second) or differ != 1:
            raise traitlets.TraitError(
                f"{name}[{i}] must have two sentences that differ in one word, but got "
                f"{first} and {second}."
            )
        for words, weights in zip(scene["words"], scene["weights"], strict=True):
            count = len(words)
            if [len(row) for row in weights] != [count] * count:
                raise traitlets.TraitError(
                    f"{name}[{i}] must have weights (t, t) for its {count} words, but "
                    f"got rows of {[len(row) for row in weights]}."
                )
    return value


def _last(lab):
    return len(lab.scenes) - 1


def _last_word(lab):
    return len(lab.scenes[lab.scene]["words"][0]) - 1


class LookLab(base.Lab):
    """Exchange a word, and see where a head of a trained model looks instead.

    The numbers are those of ``coding_attention.models.real``.

    Traits:
        scenes: list of dicts: ``head``, its name; ``words``, two lists that differ in
            one word; ``weights`` (t, t) and ``inner`` (inputs, queries, keys, values,
            scores) for each; ``ask``, the word that asks at first.
        scene: which one is shown.
        exchanged: whether its second sentence is shown.
        asked: index of the word that asks.
        averaged: show what a plain mean would give in place of the head.
        stage: how far the computation is drawn, from 1 (x) to 8 (z).

    Raises:
        traitlets.TraitError: a value does not fit; the message says why.
    """

    title = "What a trained head looks at"
    shown = ("scene", "exchanged", "asked", "averaged", "stage")

    scenes = base.List(first=lambda lab: scenes(), check=_scenes)
    scene = base.Int(0, check=base.within(0, _last))
    exchanged = base.Bool(False)
    asked = base.Int(
        first=lambda lab: lab.scenes[lab.scene]["ask"],
        check=base.within(0, _last_word),
    )
    averaged = base.Bool(False)
    stage = base.Int(STAGES, check=base.within(1, STAGES))

    def compute(self):
        """Give the words shown, and the weights (t,) of the one that asks."""
        scene = self.scenes[self.scene]
        which = int(self.exchanged)
        words = scene["words"][which]
        if self.averaged:
            return words, torch.full((len(words),), 1 / len(words), dtype=torch.float64)
        stored = scene["inner"][which]["scores"][self.asked]  # in thousandths
        scores = torch.tensor(stored, dtype=torch.float64) / 1000
        return words, torch.softmax(scores / real.HEAD_WIDTH**0.5, dim=0)

    def fallback(self):
        """Give the rows of both sentences as squares, and their largest weights."""
        scene = self.scenes[self.scene]
        columns = scene["words"][0]
        names = [words[self.asked] for words in scene["words"]]
        values = [weights[self.asked] for weights in scene["weights"]]
        told = [
            f"{name} looks at {words[row.index(max(row))]} ({max(row) / 255:.2f})"
            for name, words, row in zip(names, scene["words"], values, strict=True)
        ]
        said = "; ".join(told) + "."
        columns = [
            *columns[: self.asked],
            " / ".join(names),
            *columns[self.asked + 1 :],
        ]
        drawn = torch.tensor(values, dtype=torch.float64) / 255  # (1 or 2, t)
        alternative = f"Weights of head {scene['head']}, a column for each word. {said}"
        picture = base.heat_map(alternative, names, columns, drawn, letters=11)
        return (
            f'<div class="attn-static al-look"><p class="al-title">{self.title}</p>'
            f"{picture}<p>{escape(said[0].upper() + said[1:])}</p></div>"
        )
