"""The dropout lab: weights that are dropped, and the mean that stays."""

import torch
import traitlets

from attention.chapter.labs import base, draws

# What torch.manual_seed(123) and Dropout(0.5) keep (1) of a 6 × 6 tensor. PyTorch draws
# one or the other: it takes its own random stream on most processors, and that of the
# MKL library on others.
PRESETS = {
    "a": ("110110", "000101", "111101", "011001", "010101", "011110"),
    "b": ("111111", "010000", "001010", "110001", "100001", "010000"),
}


class DropoutLab(base.Lab):
    """Dropout on attention weights: row sums change, the mean over draws does not.

    Section 3.5.2, on the causal weights of the seed-789 ``SelfAttention_v2``.

    Traits:
        weights: matrix (t_q, t_k) of up to 12 × 12.
        tokens: a name for each row; columns take the same names.
        source: "draw" for a fresh draw, or one of the two published ones, "a" or "b",
            which are for p = 0.5 and 6 × 6 weights.
        p: share of the weights that is dropped, from 0 to 0.9.
        draw: number of the fresh draw, from 1 to 100000.
        draws: how many draws the mean is over, from 1 to 1000.
        training: True drops, False is ``eval()``: nothing happens.

    Raises:
        traitlets.TraitError: a value does not fit; the message says why.
    """

    script = "dropout.js"
    title = "Dropout lab"
    shown = ("source", "p", "draw", "draws", "training")

    weights = base.Matrix(help="(t, t)").tag(sync=True, lab=True)
    tokens = traitlets.List(traitlets.Unicode(), help="names").tag(sync=True, lab=True)
    source = traitlets.Unicode("a", help="a, b or draw").tag(sync=True, lab=True)
    p = traitlets.Float(0.5, help="share that is dropped").tag(sync=True, lab=True)
    draw = traitlets.Int(1, help="number of the draw").tag(sync=True, lab=True)
    draws = traitlets.Int(100, help="draws in the mean").tag(sync=True, lab=True)
    training = traitlets.Bool(True, help="train or eval").tag(sync=True, lab=True)
    presets = traitlets.Dict(help="the two published masks").tag(sync=True)

    @traitlets.default("weights")
    def _default_weights(self):
        return causal_weights()

    @traitlets.default("tokens")
    def _default_tokens(self):
        return base.names_for(self.weights, causal_weights())

    @traitlets.default("source")
    def _default_source(self):
        return "a" if self._takes_presets() else "draw"

    @traitlets.default("presets")
    def _default_presets(self):
        return {key: list(rows) for key, rows in PRESETS.items()}

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

    @traitlets.validate("source")
    def _check_source(self, proposal):
        base.one_of("source", proposal.value, ("a", "b", "draw"))
        if proposal.value != "draw" and not self._takes_presets():
            raise traitlets.TraitError(
                f"source={proposal.value!r} is a published mask for 6 × 6 weights and "
                f"p=0.5, but the weights have {len(self.weights)} rows and p is "
                f"{self.p}. Pass source='draw'."
            )
        return proposal.value

    @traitlets.validate("p")
    def _check_p(self, proposal):
        return base.within("p", proposal.value, 0, 0.9)

    @traitlets.validate("draw")
    def _check_draw(self, proposal):
        return base.within("draw", proposal.value, 1, 100_000)

    @traitlets.validate("draws")
    def _check_draws(self, proposal):
        return base.within("draws", proposal.value, 1, 1000)

    @traitlets.observe("p")
    def _leave_preset(self, change):
        if change.new != 0.5 and self.source != "draw":
            self.source = "draw"

    def _takes_presets(self):
        return len(self.weights) == 6 and self.p == 0.5

    def kept(self, draw=None):
        """Give the mask (t, t), True where a weight stays."""
        if draw is None and self.source != "draw":
            return torch.tensor(
                [[bit == "1" for bit in row] for row in PRESETS[self.source]]
            )
        size = len(self.weights)
        return draws.kept(size, size, self.p, self.draw if draw is None else draw)

    def compute(self):
        """Compute what the lab shows, with PyTorch in float64.

        Returns:
            dropped (t, t), what one draw leaves, and mean (t, t), over ``draws`` draws.
        """
        weights = torch.tensor(self.weights, dtype=torch.float64)
        if not self.training:
            return weights, weights
        scale = 1 / (1 - self.p)
        total = torch.zeros_like(weights)
        for n in range(self.draws):
            total += weights * self.kept(self.draw + n) * scale
        return weights * self.kept() * scale, total / self.draws

    def fallback(self):
        """Give one draw as a picture; weights, draw and mean as tables."""
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
        caption = (
            f"Dropout with p = {self.p:g}: weights that stay are multiplied by "
            f"{1 / (1 - self.p):.4f}. Rows no longer sum to 1; the mean over many "
            f"draws comes back to the weights."
        )
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
    scores = (x @ W_query) @ (x @ W_key).T  # (6, 2) @ (2, 6) -> (6, 6)
    future = torch.ones(6, 6, dtype=torch.bool).triu(diagonal=1)
    scores = scores.masked_fill(future, -torch.inf)
    return base.rows(torch.softmax(scores / 2**0.5, dim=-1).float())
