"""The bank lab: one word in two sentences, and what its neighbors make of it."""

from html import escape

import torch
import traitlets

from attention.functional import attention_weights
from coding_attention.labs import base

MOST = 2.5  # as far as a word can be moved along an axis
# The plane in pixels, as bank.js draws it: width, height, the origin, units.
WIDTH, HEIGHT, LEFT, BOTTOM, UNIT_X, UNIT_Y = 340, 250, 26, 222, 106, 78


def _vectors(lab, name, value):
    for word, vector in value.items():
        good = isinstance(vector, list | tuple) and len(vector) == 2
        if not (good and all(0 <= x <= MOST for x in vector)):
            raise traitlets.TraitError(
                f"{name}[{word!r}] must be two numbers from 0 to {MOST}, "
                f"{' and '.join(lab.axes)}, but got {vector!r}."
            )
    return {word: [float(x) for x in vector] for word, vector in value.items()}


def _sentences(lab, name, value):
    for sentence in value:
        words = sentence.split()
        unknown = sorted(set(words) - set(lab.vectors))
        if unknown:
            raise traitlets.TraitError(
                f"{sentence!r} has words without a vector: {', '.join(unknown)}. "
                f"Pass vectors with two numbers for each."
            )
        if words.count(lab.word) != 1:
            raise traitlets.TraitError(
                f"{sentence!r} must contain {lab.word!r} exactly once."
            )
    return value


class BankLab(base.Lab):
    """Move a word, and see the meaning of another turn in two sentences.

    Attention at its simplest: scores are dot products with the word in question, a
    softmax makes them weights, and the weighted average is what the word becomes.

    Traits:
        sentences: two texts, each with ``word`` in it once.
        word: the one whose meaning turns.
        axes: what the two numbers of a word mean.
        vectors: dict of word -> two numbers from 0 to 2.5; what a reader moves.

    Raises:
        traitlets.TraitError: a value does not fit; the message says why.
    """

    title = "One word, two meanings"
    shown = ("sentences", "vectors")

    vectors = base.Dict(
        {
            "the": [0.0, 0.0], "river": [2.0, 0.0], "bank": [1.0, 1.0],
            "flooded": [2.0, 0.0], "approved": [0.0, 2.0], "loan": [0.0, 2.0],
        },
        check=_vectors,
    )  # fmt: skip
    word = base.Unicode("bank")
    axes = base.List(traitlets.Unicode(), ["nature", "money"])
    sentences = base.List(
        traitlets.Unicode(),
        ["the river bank flooded", "the bank approved the loan"],
        check=_sentences,
    )

    def compute(self):
        """Compute what the lab shows, with PyTorch in float64.

        Returns:
            For each sentence: weights (t,) and the context vector (2,) of ``word``.
        """
        found = []
        for sentence in self.sentences:
            words = sentence.split()
            x = torch.tensor([self.vectors[w] for w in words], dtype=torch.float64)
            query = x[words.index(self.word)]
            weights = attention_weights(query, x, scale=1.0)
            found.append((weights, weights @ x))
        return found

    def fallback(self):
        """Give the sentences with their weights as bars, and the plane."""
        rows = []
        for i, (sentence, (weights, z)) in enumerate(
            zip(self.sentences, self.compute(), strict=True)
        ):
            bars = "".join(
                f'<span class="bk-word"><span class="bk-track"><span class="bk-bar" '
                f'style="height:{100 * w:.1f}%"></span></span>'
                f"<span>{escape(word)}</span>"
                f'<span class="bk-number">{w:.2f}</span></span>'
                for word, w in zip(sentence.split(), weights.tolist(), strict=True)
            )
            rows.append(
                f'<div class="bk-sentence"><p><b>{i + 1}</b> {escape(self.word)} '
                f'becomes <span class="bk-z">{_point(z)}</span></p>'
                f'<div class="bk-words">{bars}</div></div>'
            )
            # For hosts that show no drawing but a picture.
            told = f"{self.word} in sentence {i + 1} becomes {_point(z)}"
            words = sentence.split()
            base.heat_map(told, [self.word], words, weights.unsqueeze(0), letters=11)
        ends = [_point(z) for _, z in self.compute()]
        first, second = self.axes
        picture = (
            f"A plane with the axes {first} and {second}. Two arrows lead away from "
            f"{self.word}, at {_point(self.vectors[self.word])}: one to {ends[0]}, one "
            f"to {ends[1]}."
        )
        return (
            f'<div class="attn-static al-bank"><p class="al-title">{self.title}</p>'
            f'<p class="al-summary">The bars are attention weights: what '
            f"<i>{escape(self.word)}</i> takes from each word.</p>"
            f'<div class="bk-both">{self._plane(picture)}'
            f'<div class="bk-sentences">{"".join(rows)}</div></div>'
            f'<p class="al-readout">{self._sum()}</p></div>'
        )

    def _sum(self):
        """Spell the first number that the first sentence gives."""
        words, (weights, z) = self.sentences[0].split(), self.compute()[0]
        terms = (
            f"{w:.2f}·{self.vectors[word][0]:g}"
            for word, w in zip(words, weights.tolist(), strict=True)
        )
        total = f"{' + '.join(terms)} = {z[0]:.2f}"
        return escape(f"{self.axes[0]} of {self.word} in sentence 1: {total}")

    def _plane(self, picture):
        parts = [
            f'<svg class="bk-plane" role="img" aria-label="{escape(picture)}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" fill="currentColor">'
            f'<path class="bk-axis" d="M{LEFT} 8V{BOTTOM}H{WIDTH - 4}"/>'
            f'<text x="{WIDTH - 4}" y="{HEIGHT - 8}" text-anchor="end">'
            f"{escape(self.axes[0])} →</text>"
            f'<text x="{LEFT + 6}" y="16">↑ {escape(self.axes[1])}</text>'
        ]
        start = _place(self.vectors[self.word])
        for i, (_, z) in enumerate(self.compute()):
            end = _place(z.tolist())
            line = "M{:.1f} {:.1f}L{:.1f} {:.1f}".format(*start, *end)
            parts.append(
                f'<path class="bk-way" d="{line}"/>'
                f'<circle class="bk-end" cx="{end[0]:.1f}" cy="{end[1]:.1f}" r="9"/>'
                f'<text class="bk-which" x="{end[0]:.1f}" y="{end[1] + 4:.1f}" '
                f'text-anchor="middle">{i + 1}</text>'
            )
        taken = {}
        for word, vector in sorted(self.vectors.items()):
            x, y = _place(vector)
            above = taken[x, y] = taken.get((x, y), -1) + 1
            if not above:
                parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5"/>')
            parts.append(f'<text x="{x + 10:.1f}" y="{y - 6 - 20 * above:.1f}">')
            parts.append(f"{escape(word)}</text>")
        return "".join([*parts, "</svg>"])


def _place(vector):
    return LEFT + UNIT_X * vector[0], BOTTOM - UNIT_Y * vector[1]


def _point(vector):
    return "({:.2f}, {:.2f})".format(*vector)
