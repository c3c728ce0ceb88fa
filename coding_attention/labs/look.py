"""The look lab: what a head of a trained model looks at, word by word."""

import base64
from html import escape

import torch
import traitlets

from attention.trainable import SelfAttention_v2
from coding_attention.labs import base
from coding_attention.models import real

# By head: the word that asks, and sentences; two with one word exchanged, or one.
CHOSEN = {
    "3.1": [
        ("they#1", "the workers watched the piano until they left",
         "the workers watched the piano until it left"),
        ("they#1", "the workers moved the piano after they arrived",
         "the workers moved the piano after it arrived"),
        ("they#1", "after the workers repaired the piano , they disappeared",
         "after the workers repaired the piano , it disappeared"),
    ],
    "2.9": [
        ("dog#2", "the dog chased the cat and then the dog slept",
         "the dog chased the cat and then the cat slept"),
        ("king#2", "the king hated the prince and then the king died",
         "the king hated the prince and then the prince died"),
        ("ship#2", "the ship followed the boat and then the ship sank",
         "the ship followed the boat and then the boat sank"),
    ],
    "1.6": [
        (")#1", "the ( dog that ) the cats saw barked"),
        (")#1", "the ( sisters of the king were ) angry"),
        ("]#1", "the story about [ the dragons is long ]"),
    ],
    "0.2": [
        ("river#1", "he sat on the bank of the river"),
        ("loan#1", "the bank approved the loan"),
        ("car#1", "my brother bought a car and he loves it"),
    ],
}  # fmt: skip


def scenes():
    """Give the sentences with what a head looks at in them, as the lab takes them."""
    return [_scene(head, *row) for head, rows in CHOSEN.items() for row in rows]


def _scene(head, asks, *sentences):
    looks = [real.looks(sentence, head) for sentence in sentences]
    weights = [(255 * given).round().int().tolist() for _, given in looks]
    words = [words for words, _ in looks]
    scene = {
        "head": head, "ask": real.find(words[0], asks),
        "words": words, "weights": weights,
    }  # fmt: skip
    if head in real.facts()["states"] and set(sentences) <= set(real.sentences(head)):
        scene["inner"] = [_inner(head, sentence) for sentence in sentences]
    return scene


@torch.no_grad()
def _inner(head, sentence):
    # What the head computes before its weights: 8 bits a number, scores in 100ths.
    with torch.random.fork_rng(devices=[]):
        layer = SelfAttention_v2(real.WIDTH, real.HEAD_WIDTH, qkv_bias=True)
    layer = real.load_head(layer, head)
    _, x = real.states(head, sentence)
    queries, keys, values = layer.W_query(x), layer.W_key(x), layer.W_value(x)
    scores = queries @ keys.T / real.HEAD_WIDTH**0.5  # (t, t)
    return {
        "q": _packed(queries), "k": _packed(keys), "v": _packed(values),
        "scores": (100 * scores).round().int().tolist(),
    }  # fmt: skip


def _packed(rows):
    scale = rows.abs().max().item() / 127
    steps = (rows / scale).round().to(torch.int8).numpy().tobytes()
    return {"scale": float(f"{scale:.6g}"), "steps": base64.b64encode(steps).decode()}


def _scenes(lab, name, value):
    for i, scene in enumerate(value):
        if len(scene["words"]) > 1 and scene["words"][0] == scene["words"][1]:
            raise traitlets.TraitError(
                f"{name}[{i}] must have two sentences that differ in one word, or one "
                f"sentence, but got {scene['words'][0]} twice."
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

    The weights are those of ``coding_attention.models.real``, whole numbers of which
    255 are one.

    Traits:
        scenes: list of dicts: ``head``, its name; ``words``, one or two lists, which
            differ in one word; ``weights`` (t, t) for each; ``ask``, the word that
            asks at first; where they are stored, ``inner``: queries, keys, values and
            scores of each.
        scene: which one is shown.
        exchanged: whether its second sentence is shown.
        asked: index of the word that asks.
        averaged: show what a plain mean would give in place of the head.

    Raises:
        traitlets.TraitError: a value does not fit; the message says why.
    """

    title = "What a trained head looks at"
    shown = ("scene", "exchanged", "asked", "averaged")

    scenes = base.List(first=lambda lab: scenes(), check=_scenes)
    scene = base.Int(0, check=base.within(0, _last))
    exchanged = base.Bool(False)
    asked = base.Int(
        first=lambda lab: lab.scenes[lab.scene]["ask"],
        check=base.within(0, _last_word),
    )
    averaged = base.Bool(False)

    def compute(self):
        """Give the words shown, and the weights (t,) of the one that asks."""
        scene = self.scenes[self.scene]
        which = min(int(self.exchanged), len(scene["words"]) - 1)
        words = scene["words"][which]
        if self.averaged:
            return words, torch.full((len(words),), 1 / len(words), dtype=torch.float64)
        row = torch.tensor(scene["weights"][which][self.asked], dtype=torch.float64)
        return words, row / 255

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
