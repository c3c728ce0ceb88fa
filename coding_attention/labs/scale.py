"""The scale lab: why the scores are divided by √d_k."""

import functools

import torch

from coding_attention.labs import base, draws

QUERIES = 16  # random queries, over which the measures are taken
KEYS = 8  # keys of each query
WIDEST = 1024
WIDTHS = (1, 4, 16, 64, 256, 1024)

_drawn = functools.cache(lambda seed: draws.scores(seed, QUERIES, KEYS, WIDEST))


class ScaleLab(base.Lab):
    """How wide keys spread the scores, and what a divisor does to softmax.

    Section 3.4.1; Vaswani et al. (2017), footnote 4. Queries and keys are standard
    normal numbers, so that a score's standard deviation is √d_k.

    Traits:
        d_k: width of a key, from 1 to 1024, at first 64.
        divisor: "none", "root" for √d_k, "full" for d_k, "other" for √d of ``other``.
        other: another width d, from 1 to 1024, at first 3, as the inputs have.
        seed: which random numbers, from 1 to 1000, at first 1.

    Raises:
        traitlets.TraitError: a value does not fit; the message says why.
    """

    title = "Scale lab"
    shown = ("d_k", "divisor", "other", "seed")

    d_k = base.Int(64, check=base.within(1, WIDEST))
    divisor = base.Enum(("none", "root", "full", "other"), "none")
    other = base.Int(3, check=base.within(1, WIDEST))
    seed = base.Int(1, check=base.within(1, 1000))

    def divide_by(self, d_k):
        """Give the number that divides the scores of keys of width ``d_k``."""
        choices = {"none": 1.0, "root": d_k**0.5, "full": d_k, "other": self.other**0.5}
        return float(choices[self.divisor])

    def compute(self, d_k=None):
        """Measure what the lab shows for one width, with PyTorch in float64.

        Args:
            d_k: the width; the lab's own unless given.

        Returns:
            A dict: spread (standard deviation of all scores), scores and weights of
            the first query (8,), and the means over all queries of the largest weight,
            the entropy in nats, and the gradient: the slope of softmax, which is the
            Frobenius norm of its derivative.
        """
        d_k = self.d_k if d_k is None else d_k
        scores = _drawn(self.seed)[..., d_k - 1] / self.divide_by(
            d_k
        )  # (queries, keys)
        weights = torch.softmax(scores, dim=-1)
        outer = weights.unsqueeze(-1) * weights.unsqueeze(-2)  # (queries, keys, keys)
        derivative = torch.diag_embed(weights) - outer
        return {
            "spread": scores.std().item(),
            "scores": scores[0],
            "weights": weights[0],
            "largest": weights.amax(dim=-1).mean().item(),
            "entropy": torch.special.entr(weights).sum(dim=-1).mean().item(),
            "gradient": derivative.flatten(1).norm(dim=-1).mean().item(),
        }

    def fallback(self):
        """Give the weights by width as a picture, and the spread in words."""
        found = [self.compute(width) for width in WIDTHS]
        spreads = ", ".join(
            f"{part['spread']:.2f} for d_k = {width}"
            for width, part in zip(WIDTHS, found, strict=True)
        )
        caption = (
            "Scores of random queries and keys, by the width d_k of a key. The spread "
            "of undivided scores grows as √d_k, and softmax gives one key nearly all. "
            f"Divided as chosen, it is {spreads}."
        )
        picture = base.heat_map(
            "Weights of one query on 8 keys (columns), d_k from 1 to 1024 (rows).",
            [str(width) for width in WIDTHS],
            [str(i + 1) for i in range(KEYS)],
            [part["weights"].tolist() for part in found],
        )
        return base.static(self.title, caption, picture)
