"""The dropout lab: weights that are dropped, and the mean that stays."""

import torch
import traitlets

from attention.functional import attention_weights, causal_mask
from coding_attention.labs import base, draws

MOST = 1000  # draws in a series
BUGS = ("none", "undivided", "left on")


class DropoutLab(base.Lab):
    """Dropout on attention weights: row sums change, the mean over draws does not.

    Section 3.5.2, on the causal weights of the seed-789 ``SelfAttention_v2``.

    Traits:
        weights: matrix (t_q, t_k) of up to 12 × 12.
        tokens: a name for each row; columns take the same names.
        p: share of the weights that is dropped, from 0 to 0.9.
        seed: which series of draws, from 1 to 1000.
        draws: how many draws the mean is over, from 1 to 1000; the last is shown.
        training: True drops, False is ``eval()``: nothing happens.
        bug: "none", "undivided" where what stays is not divided by 1 - p, or
            "left on" where ``eval()`` does not end the dropping.
        query, key: the weight whose mean is drawn thick.

    Raises:
        traitlets.TraitError: a value does not fit; the message says why.
    """

    script = "dropout.js"
    title = "Dropout lab"
    shown = ("p", "seed", "draws", "training", "bug")

    weights = base.Matrix(help="(t, t)").tag(sync=True, lab=True)
    tokens = traitlets.List(traitlets.Unicode(), help="names").tag(sync=True, lab=True)
    p = traitlets.Float(0.5, help="share that is dropped").tag(sync=True, lab=True)
    seed = traitlets.Int(1, help="which series of draws").tag(sync=True, lab=True)
    draws = traitlets.Int(100, help="draws in the mean").tag(sync=True, lab=True)
    training = traitlets.Bool(True, help="train or eval").tag(sync=True, lab=True)
    bug = traitlets.Unicode("none", help="what is wrong").tag(sync=True, lab=True)
    query = traitlets.Int(help="row of the thick line").tag(sync=True, lab=True)
    key = traitlets.Int(0, help="its column").tag(sync=True, lab=True)

    @traitlets.default("weights")
    def _default_weights(self):
        return causal_weights()

    @traitlets.default("tokens")
    def _default_tokens(self):
        return base.names_for(self.weights, causal_weights())

    @traitlets.default("query")
    def _default_query(self):
        return min(1, len(self.weights) - 1)

    @traitlets.validate("weights")
    def _check_weights(self, proposal):
        shape = (len(proposal.value), len(proposal.value[0]))
        if max(shape) > base.MAX_TOKENS or shape[0] != shape[1]:
            raise traitlets.TraitError(
                f"weights must be square, of at most {base.MAX_TOKENS} tokens, but got "
                f"the shape {shape}. Pass the weights of one head."
            )
        return proposal.value

    @traitlets.validate("tokens")
    def _check_tokens(self, proposal):
        return base.token_names(proposal.value, len(self.weights), "weights")

    @traitlets.validate("p")
    def _check_p(self, proposal):
        return base.within("p", proposal.value, 0, 0.9)

    @traitlets.validate("seed", "draws")
    def _check_count(self, proposal):
        return base.within(proposal.trait.name, proposal.value, 1, MOST)

    @traitlets.validate("bug")
    def _check_bug(self, proposal):
        return base.one_of("bug", proposal.value, BUGS)

    @traitlets.validate("query", "key")
    def _check_token(self, proposal):
        return base.token_index(self, proposal.trait.name, proposal.value)

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
        """Give the last draw as a picture; weights, draw and mean as tables."""
        weights = torch.tensor(self.weights, dtype=torch.float64)
        dropped, mean = self.compute()
        names = self.tokens
        columns = [*names, "sum"]
        parts = [
            base.table(
                caption,
                "q \\ k",
                columns,
                names,
                torch.cat((part, part.sum(dim=-1, keepdim=True)), dim=-1).tolist(),
            )
            for caption, part in (
                ("Weights α and row sums", weights),
                ("After dropout", dropped),
                (f"Mean over {self.draws} draws", mean),
            )
        ]
        caption = {
            "none": f"Weights that stay are multiplied by {1 / (1 - self.p):.4f}. Rows "
            "no longer sum to 1; the mean over many draws comes back to the weights.",
            "undivided": "Weights that stay are not divided: the mean over many draws "
            f"goes to {1 - self.p:.4f} times the weights.",
            "left on": "Dropout is left on in eval(): each pass drops other weights.",
        }[self.bug]
        if not self.drops:
            caption = "In eval() nothing is dropped."
        caption = f"Dropout with p = {self.p:g}. {caption}"
        picture = base.heat_map(
            f"Attention weights after dropout with p = {self.p:g}.",
            names,
            names,
            dropped.tolist(),
        )
        return base.static(self.title, caption, picture, *parts)


def causal_weights():
    """Give the causal weights of section 3.5.1 as lists: (6, 6)."""
    # In double precision: the last bit of a float32 product depends on the processor
    # and on where the numbers lie, and notebooks store what this gives.
    x = base.example.inputs().double()
    W_query, W_key, _ = (W.double() for W in base.linear_projections())
    weights = attention_weights(x @ W_query, x @ W_key, causal_mask(len(x)))
    return base.rows(weights.float())
