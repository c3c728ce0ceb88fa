"""The dropout lab: weights that are dropped, and the mean that stays."""

import torch
import traitlets

from attention.functional import attention_weights, causal_mask
from coding_attention.labs import base, draws

MOST = 1000  # draws in a series


def causal_weights():
    """Give the causal weights of section 3.5.1 as lists: (6, 6)."""
    # In double precision: the last bit of a float32 product depends on the processor
    # and on where the numbers lie, and notebooks store what this gives.
    x = base.example.inputs().double()
    W_query, W_key, _ = (W.double() for W in base.linear_projections())
    weights = attention_weights(x @ W_query, x @ W_key, causal_mask(len(x)))
    return base.rows(weights.float())


def _square(lab, name, value):
    shape = (len(value), len(value[0]))
    if max(shape) > base.MAX_TOKENS or shape[0] != shape[1]:
        raise traitlets.TraitError(
            f"{name} must be square, of at most {base.MAX_TOKENS} tokens, but got "
            f"the shape {shape}. Pass the weights of one head."
        )
    return value


class DropoutLab(base.Lab):
    """Dropout on attention weights: row sums change, the mean over draws does not.

    Section 3.5.2, on the causal weights of the seed-789 ``SelfAttention_v2``.

    Traits:
        weights: matrix (t_q, t_k) of up to 12 × 12.
        tokens: a name for each row; columns take the same names.
        p: share of the weights that is dropped, from 0 to 0.9, at first 0.5.
        seed: which series of draws, from 1 to 1000, at first 1.
        draws: how many draws the mean is over, from 1 to 1000, at first 100; the last
            is shown.
        training: True drops, False is ``eval()``: nothing happens.
        bug: "none", "undivided" where what stays is not divided by 1 - p, or
            "left on" where ``eval()`` does not end the dropping.
        query, key: the weight whose mean is drawn thick.

    Raises:
        traitlets.TraitError: a value does not fit; the message says why.
    """

    title = "Dropout lab"
    shown = ("p", "seed", "draws", "training", "bug")

    weights = base.Matrix(first=lambda lab: causal_weights(), check=_square)
    tokens = base.token_names("weights", causal_weights)
    p = base.Float(0.5, check=base.within(0, 0.9))
    seed = base.Int(1, check=base.within(1, MOST))
    draws = base.Int(100, check=base.within(1, MOST))
    training = base.Bool(True)
    bug = base.Enum(("none", "undivided", "left on"), "none")
    query = base.Int(
        first=lambda lab: min(1, len(lab.weights) - 1), check=base.token_index
    )
    key = base.Int(0, check=base.token_index)

    @property
    def drops(self):
        """Whether anything is dropped."""
        return self.training or self.bug == "left on"

    def kept(self, draw=None):
        """Give the mask (t, t) of one draw, True where a weight stays.

        Args:
            draw: which draw of the series, from 1 on; the last unless given.
        """
        size = len(self.weights)
        seed = MOST * (self.seed - 1) + (self.draws if draw is None else draw)
        return draws.kept(size, size, self.p, seed)

    def compute(self):
        """Compute what the lab shows, with PyTorch in float64.

        Returns:
            dropped (t, t), what the last draw leaves, and mean (t, t), over all
            ``draws`` draws.
        """
        weights = torch.tensor(self.weights, dtype=torch.float64)
        if not self.drops:
            return weights, weights
        scale = 1 if self.bug == "undivided" else 1 / (1 - self.p)
        all_draws = torch.stack([self.kept(n + 1) for n in range(self.draws)])
        dropped = weights * all_draws * scale  # (t, t) * (draws, t, t)
        return dropped[-1], dropped.mean(dim=0)

    def fallback(self):
        """Give the last draw as a picture, with what its kept weights are."""
        dropped, _ = self.compute()
        caption = {
            "none": f"Kept weights are multiplied by {1 / (1 - self.p):.4f}. Rows "
            "no longer sum to 1; the mean over many draws approaches the weights.",
            "undivided": "Kept weights are not divided: the mean over many draws "
            f"approaches {1 - self.p:.4f} times the weights.",
            "left on": "Dropout is left on in eval(): each pass drops different ones.",
        }[self.bug]
        if not self.drops:
            caption = "In eval() nothing is dropped."
        caption = f"Dropout with p = {self.p:g}. {caption}"
        names = self.tokens
        alternative = f"Attention weights after dropout with p = {self.p:g}."
        picture = base.heat_map(alternative, names, names, dropped.tolist())
        return base.static(self.title, caption, picture)
