"""The mask lab: which scores are hidden, with what, and when."""

import torch

from coding_attention.labs import base

FILLS = ("-inf", "0", "-1e9")  # Python reads each as a number


class MaskLab(base.ProjectedLab):
    """Masks with every choice that published code makes, and what each one does.

    Section 3.5.1, on the seed-789 weights of ``SelfAttention_v2``. The first values of
    the traits are the right ones: -inf above the diagonal, before softmax.

    Traits:
        inputs, tokens: as in :class:`~coding_attention.labs.AttentionLab`.
        part: "triu" hides on and above the diagonal, "tril" on and below it.
        diagonal: which diagonal, from -t to t, at first 1, which is the one above the
            main one.
        fill: "-inf", "0" or "-1e9", written over what is hidden.
        place: "before" or "after" softmax.
        renormalized: whether each row of weights is then divided by its sum.
        hidden_row: a token whose whole row is hidden, or -1 for none.
        nudged: a token to each of whose numbers ``nudge`` is added, or -1 for none; the
            last one unless given.
        nudge: by how much, from -2 to 2, at first 1.
        W_query, W_key, W_value: matrices (d_in, d_out).

    Raises:
        traitlets.TraitError: a value does not fit; the message says why.
    """

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

    part = base.Enum(("triu", "tril"), "triu")
    diagonal = base.Int(
        1, check=base.within(lambda lab: -len(lab.inputs), lambda lab: len(lab.inputs))
    )
    fill = base.Enum(FILLS, "-inf")
    place = base.Enum(("before", "after"), "before")
    renormalized = base.Bool(False)
    hidden_row = base.Int(-1, check=base.token_or_none)
    nudged = base.Int(first=lambda lab: len(lab.inputs) - 1, check=base.token_or_none)
    nudge = base.Float(1.0, check=base.within(-2, 2))
    seeded = staticmethod(base.linear_projections)

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
        queries, keys, values = self.project(x)
        scores = queries @ keys.T  # (t, d_k) @ (d_k, t) -> (t, t)
        hidden, fill = self.hidden(), float(self.fill)
        if self.place == "before":
            scores = scores.masked_fill(hidden, fill)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        if self.place == "after":
            weights = weights.masked_fill(hidden, fill)
        if self.renormalized:
            weights = weights / weights.sum(dim=-1, keepdim=True)
        return scores, weights, weights @ values

    def fallback(self):
        """Give the masked weights as a picture, and how many scores are hidden."""
        scores, weights, _ = self.compute()
        caption = (
            f"{int(self.hidden().sum())} of {scores.numel()} scores are hidden with "
            f"{self.fill}, {self.place} softmax."
        )
        alternative = f"Attention weights after the mask. {caption}"
        picture = base.heat_map(alternative, self.tokens, self.tokens, weights.tolist())
        return base.static(self.title, caption, picture)
