"""The look lab: what a head of a trained model looks at, word by word."""

import base64
from html import escape

import torch

from attention.trainable import SelfAttention_v2
from coding_attention.figures.one_head import one_head
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
    words = [real.states(HEAD, sentence)[0] for sentence in sentences]
    return {
        "head": HEAD, "ask": words[0].index(asks), "words": words,
        "inner": [_inner(sentence) for sentence in sentences],
    }  # fmt: skip


@torch.no_grad()
def _inner(sentence):
    # What the head computes before its weights: 8 bits a number, scores in 1000ths.
    with torch.random.fork_rng(devices=[]):
        layer = SelfAttention_v2(real.WIDTH, real.HEAD_WIDTH, qkv_bias=True)
    layer = real.load_head(layer, HEAD)
    _, x = real.states(HEAD, sentence)
    queries, keys, values = layer.W_query(x), layer.W_key(x), layer.W_value(x)
    scores = queries @ keys.T  # (t, t)
    return {
        "x": _pack(x[:, : real.HEAD_WIDTH]), "q": _pack(queries),
        "k": _pack(keys), "v": _pack(values),
        "scores": (1000 * scores).round().int().tolist(),
    }  # fmt: skip


def _pack(rows):
    scale = rows.abs().max().item() / 127
    steps = (rows / scale).round().to(torch.int8).numpy().tobytes()
    return {"scale": float(f"{scale:.6g}"), "steps": base64.b64encode(steps).decode()}


def _unpack(packed, count):
    steps = torch.frombuffer(
        bytearray(base64.b64decode(packed["steps"])), dtype=torch.int8
    )
    return packed["scale"] * steps.view(count, -1).float()


def _last(lab):
    return len(lab.scenes) - 1


def _last_word(lab):
    return len(lab.scenes[lab.scene]["words"][0]) - 1


class LookLab(base.Lab):
    """Exchange a word, and see where a head of a trained model looks instead.

    The numbers are those of ``coding_attention.models.real``.

    Traits:
        scenes: list of dicts: ``head``, its name; ``words``, two lists that differ in
            one word; ``inner`` (inputs, queries, keys, values, scores) for each;
            ``ask``, the word that asks at first.
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

    scenes = base.List(first=lambda lab: scenes())
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
        words = self.scenes[self.scene]["words"][int(self.exchanged)]
        if self.averaged:
            return words, torch.full((len(words),), 1 / len(words), dtype=torch.float64)
        return words, self._weigh(int(self.exchanged))[2]

    def _weigh(self, which):
        """Give the scores (t,) of the word that asks, scaled, and their weights."""
        inner = self.scenes[self.scene]["inner"][which]
        stored = inner["scores"][self.asked]  # in thousandths
        scores = torch.tensor(stored, dtype=torch.float64) / 1000
        scaled = scores / real.HEAD_WIDTH**0.5
        return scores, scaled, torch.softmax(scaled, dim=0)

    def fallback(self):
        """Give the head's stages for the word that asks, and the other sentence's."""
        scene, which = self.scenes[self.scene], int(self.exchanged)
        words, inner = scene["words"][which], scene["inner"][which]
        vectors = {name: _unpack(inner[name], len(words)) for name in "xqkv"}
        numbers = self._weigh(which)
        caption, alternative = self._describe(words, *numbers)
        axes = one_head(words, self.asked, vectors, *numbers)
        picture = base.drawing(axes, alternative, caption)
        return (
            f'<div class="attn-static al-look"><p class="al-title">{self.title}</p>'
            f"{picture}<p>{escape(caption)}</p></div>"
        )

    def _describe(self, words, scores, scaled, weights):
        name, best = words[self.asked], int(weights.argmax())
        caption = (
            f"Head {self.scenes[self.scene]['head']} computes the new vector z of "
            f"“{name}”. Its query and the key of “{words[best]}” give a score of "
            f"{scores[best]:.1f}. Divided by √{real.HEAD_WIDTH}, that's "
            f"{scaled[best]:.2f}, which softmax turns into a weight of "
            f"{weights[best]:.2f}. z is the sum of all values, each times its weight; "
            f"the first 16 numbers of every vector are drawn. {self._tell_other()}"
        )
        rows = "; ".join(
            f"{word} {a:.1f}, {b:.2f}, {c:.2f}"
            for word, a, b, c in zip(words, scores, scaled, weights, strict=True)
        )
        return caption, (
            f"A row for each word: its x, query, key and value as bars; the score, "
            f"the scaled score and the weight that {name} gives it: {rows}; its value "
            f"times that weight. Curves as thick as the weights lead to z, in the row "
            f"of {name}."
        )

    def _tell_other(self):
        other = 1 - int(self.exchanged)
        words, weights = self.scenes[self.scene]["words"][other], self._weigh(other)[2]
        return (
            f"In “{' '.join(words[1:-1])}”, “{words[self.asked]}” looks at "
            f"{words[int(weights.argmax())]} ({weights.max():.2f})."
        )
