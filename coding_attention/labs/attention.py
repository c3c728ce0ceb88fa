"""The attention lab: scores, weights and context vectors of one head."""

import torch

from attention.functional import attention_weights, causal_mask
from coding_attention.labs import base


class AttentionLab(base.ProjectedLab):
    """Scores → weights → context, with every number's sum in words.

    Sections 3.3 to 3.5. Any input value can be edited, and all that depends on it
    follows. With the traits at their first values this is simple self-attention;
    ``averaged`` puts a plain mean in its place; ``trainable``, ``scaled`` and
    ``causal`` lead to the later classes.

    Traits:
        inputs: matrix (t, d_in), up to 12 × 16; a tensor or nested lists.
        tokens: a name for each row.
        query: index of the token whose row is marked.
        averaged: whether every token gets the same weight.
        trainable: whether W_query, W_key and W_value project the inputs.
        scaled: whether the scores are divided by √d_k.
        causal: whether the scores of later tokens are hidden.
        W_query, W_key, W_value: matrices (d_in, d_out), the seed-123 ones unless given.

    Raises:
        traitlets.TraitError: a value does not fit; the message says why.
    """

    title = "Attention lab"
    shown = ("tokens", "query", "averaged", "trainable", "scaled", "causal")

    query = base.Int(
        first=lambda lab: min(1, len(lab.inputs) - 1), check=base.token_index
    )
    averaged = base.Bool(False)
    trainable = base.Bool(False)
    scaled = base.Bool(False)
    causal = base.Bool(False)

    def compute(self):
        """Compute what the lab shows, with PyTorch in float64.

        Returns:
            scores ω (t, t), undivided, weights (t, t) and context (t, d_out).
        """
        x = self.tensor("inputs")
        queries = keys = values = x
        if self.trainable:
            queries, keys, values = self.project(x)
        scores = queries @ keys.T  # (t, d_k) @ (d_k, t) -> (t, t)
        hidden = causal_mask(len(x)) if self.causal else None
        if self.causal:
            scores = scores.masked_fill(hidden, -torch.inf)
        scale = None if self.scaled else 1.0
        used = torch.zeros_like(queries) if self.averaged else queries
        weights = attention_weights(used, keys, hidden, scale)
        return scores, weights, weights @ values

    def fallback(self):
        """Give the weights as a picture, and the query's context in words."""
        _, weights, context = (part.tolist() for part in self.compute())
        tokens = self.tokens
        row = weights[self.query]
        most = row.index(max(row))
        caption = (
            f"{tokens[self.query]} attends most to {tokens[most]}, with the weight "
            f"{row[most]:.4f}. Its context is "
            f"[{', '.join(f'{z:.4f}' for z in context[self.query])}]."
        )
        alternative = f"Attention weights, a row for each query. {caption}"
        picture = base.heat_map(alternative, tokens, tokens, weights)
        return base.static(self.title, caption, picture)
