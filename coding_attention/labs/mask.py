"""The mask lab: which scores are hidden, with what, and when."""

import torch
import traitlets

from coding_attention.labs import base

FILLS = {"-inf": -torch.inf, "0": 0.0, "-1e9": -1e9}


class MaskLab(base.SequenceLab):
    """Masks with every choice that published code makes, and what each one does.

    Section 3.5.1, on the seed-789 weights of ``SelfAttention_v2``. The first values of
    the traits are the right ones: -inf above the diagonal, before softmax.

    Traits:
        inputs, tokens: as in :class:`~coding_attention.labs.AttentionLab`.
        part: "triu" hides on and above the diagonal, "tril" on and below it.
        diagonal: which diagonal, from -t to t; 1 is the first above the main one.
        fill: "-inf", "0" or "-1e9", written over what is hidden.
        place: "before" or "after" softmax.
        renormalized: whether each row of weights is then divided by its sum.
        hidden_row: a token whose whole row is hidden, or -1 for none.
        nudged: a token to each of whose numbers ``nudge`` is added, or -1 for none; the
            last one unless given.
        nudge: by how much, from -2 to 2.
        W_query, W_key, W_value: matrices (d_in, d_out).

    Raises:
        traitlets.TraitError: a value does not fit; the message says why.
    """

    script = "mask.js"
    title = "Mask lab"
    shown = (
        "part",
        "diagonal",
        "fill",
        "place",
        "renormalized",
        "hidden_row",
        "nudged",
    )

    part = traitlets.Unicode("triu", help="triu or tril").tag(sync=True, lab=True)
    diagonal = traitlets.Int(1, help="which diagonal").tag(sync=True, lab=True)
    fill = traitlets.Unicode("-inf", help="-inf, 0 or -1e9").tag(sync=True, lab=True)
    place = traitlets.Unicode("before", help="before, after").tag(sync=True, lab=True)
    renormalized = traitlets.Bool(False, help="rows by sum").tag(sync=True, lab=True)
    hidden_row = traitlets.Int(-1, help="a hidden row").tag(sync=True, lab=True)
    nudged = traitlets.Int(help="a token to change").tag(sync=True, lab=True)
    nudge = traitlets.Float(1.0, help="by how much").tag(sync=True, lab=True)
    W_query = base.Matrix(help="(d_in, d_out)").tag(sync=True, lab=True)
    W_key = base.Matrix(help="(d_in, d_out)").tag(sync=True, lab=True)
    W_value = base.Matrix(help="(d_in, d_out)").tag(sync=True, lab=True)

    @traitlets.default("W_query")
    def _default_query(self):
        return base.rows(base.linear_projections(len(self.inputs[0]))[0])

    @traitlets.default("W_key")
    def _default_key(self):
        return base.rows(base.linear_projections(len(self.inputs[0]))[1])

    @traitlets.default("W_value")
    def _default_value(self):
        return base.rows(base.linear_projections(len(self.inputs[0]))[2])

    @traitlets.default("nudged")
    def _default_nudged(self):
        return len(self.inputs) - 1

    @traitlets.validate("part")
    def _check_part(self, proposal):
        return base.one_of("part", proposal.value, ("triu", "tril"))

    @traitlets.validate("diagonal")
    def _check_diagonal(self, proposal):
        t = len(self.inputs)
        return base.within("diagonal", proposal.value, -t, t)

    @traitlets.validate("fill")
    def _check_fill(self, proposal):
        return base.one_of("fill", proposal.value, tuple(FILLS))

    @traitlets.validate("place")
    def _check_place(self, proposal):
        return base.one_of("place", proposal.value, ("before", "after"))

    @traitlets.validate("hidden_row", "nudged")
    def _check_token(self, proposal):
        return base.token_index(self, proposal.trait.name, proposal.value, least=-1)

    @traitlets.validate("nudge")
    def _check_nudge(self, proposal):
        return base.within("nudge", proposal.value, -2, 2)

    @traitlets.validate("W_query", "W_key", "W_value")
    def _check_weights(self, proposal):
        return base.projection(self, proposal.trait.name, proposal.value)

    def hidden(self):
        """Give the mask (t, t), True where a score is hidden."""
        ones = torch.ones(len(self.inputs), len(self.inputs), dtype=torch.bool)
        mask = getattr(ones, self.part)(diagonal=self.diagonal)
        if self.hidden_row >= 0:
            mask[self.hidden_row] = True
        return mask

    def compute(self, nudged=False):
        """Compute what the lab shows, with PyTorch in float64.

        Args:
            nudged: whether the change to the token ``nudged`` is made first.

        Returns:
            scores (t, t), weights (t, t) and context (t, d_out), after the mask.
        """
        x = self.tensor("inputs")
        if nudged and self.nudged >= 0:
            x[self.nudged] += self.nudge
        queries, keys, values = (
            x @ self.tensor(name) for name in ("W_query", "W_key", "W_value")
        )
        scores = queries @ keys.T  # (t, d_k) @ (d_k, t) -> (t, t)
        hidden, fill = self.hidden(), FILLS[self.fill]
        if self.place == "before":
            scores = scores.masked_fill(hidden, fill)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        if self.place == "after":
            weights = weights.masked_fill(hidden, fill)
        if self.renormalized:
            weights = weights / weights.sum(dim=-1, keepdim=True)
        return scores, weights, weights @ values

    def fallback(self):
        """Give the masked weights as a picture; scores and weights as tables."""
        scores, weights, _ = self.compute()
        tokens = self.tokens
        caption = (
            f"{int(self.hidden().sum())} of {scores.numel()} scores are hidden with "
            f"{self.fill}, {self.place} softmax."
        )
        sums = weights.sum(dim=-1, keepdim=True)
        return base.static(
            self.title,
            caption,
            base.heat_map(
                f"Attention weights after the mask. {caption}",
                tokens,
                tokens,
                weights.tolist(),
            ),
            base.table("Scores ω", "q \\ k", tokens, tokens, scores.tolist()),
            base.table(
                "Weights α and the sum of each row",
                "q \\ k",
                [*tokens, "sum"],
                tokens,
                torch.cat((weights, sums), dim=-1).tolist(),
            ),
        )
