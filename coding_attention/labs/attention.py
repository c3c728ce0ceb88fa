"""The attention lab: scores, weights and context vectors of one head."""

import torch
import traitlets

from attention.functional import attention_weights, causal_mask
from coding_attention.labs import base


class AttentionLab(base.SequenceLab):
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

    script = "attention.js"
    title = "Attention lab"
    shown = ("tokens", "query", "averaged", "trainable", "scaled", "causal")

    query = traitlets.Int(1, help="index of the marked token").tag(sync=True, lab=True)
    averaged = traitlets.Bool(False, help="take the plain mean").tag(
        sync=True, lab=True
    )
    trainable = traitlets.Bool(False, help="project the inputs").tag(
        sync=True, lab=True
    )
    scaled = traitlets.Bool(False, help="divide by √d_k").tag(sync=True, lab=True)
    causal = traitlets.Bool(False, help="hide later tokens").tag(sync=True, lab=True)
    W_query = base.Matrix(help="(d_in, d_out)").tag(sync=True, lab=True)
    W_key = base.Matrix(help="(d_in, d_out)").tag(sync=True, lab=True)
    W_value = base.Matrix(help="(d_in, d_out)").tag(sync=True, lab=True)

    @traitlets.default("W_query")
    def _default_query(self):
        return base.rows(base.projections(len(self.inputs[0]))[0])

    @traitlets.default("W_key")
    def _default_key(self):
        return base.rows(base.projections(len(self.inputs[0]))[1])

    @traitlets.default("W_value")
    def _default_value(self):
        return base.rows(base.projections(len(self.inputs[0]))[2])

    @traitlets.default("query")
    def _default_marked(self):
        return min(1, len(self.inputs) - 1)

    @traitlets.validate("query")
    def _check_query(self, proposal):
        return base.token_index(self, "query", proposal.value)

    @traitlets.validate("W_query", "W_key", "W_value")
    def _check_weights(self, proposal):
        return base.projection(self, proposal.trait.name, proposal.value)

    def compute(self):
        """Compute what the lab shows, with PyTorch in float64.

        Returns:
            scores ω (t, t), undivided, weights (t, t) and context (t, d_out).
        """
        x = self.tensor("inputs")
        queries = keys = values = x
        if self.trainable:
            queries, keys, values = (
                x @ self.tensor(name) for name in ("W_query", "W_key", "W_value")
            )
        scores = queries @ keys.T  # (t, d_k) @ (d_k, t) -> (t, t)
        hidden = causal_mask(len(x)) if self.causal else None
        if self.causal:
            scores = scores.masked_fill(hidden, -torch.inf)
        scale = None if self.scaled else 1.0
        used = torch.zeros_like(queries) if self.averaged else queries
        weights = attention_weights(used, keys, hidden, scale)
        return scores, weights, weights @ values

    def fallback(self):
        """Give the weights as a picture; scores, weights and context as tables."""
        scores, weights, context = (part.tolist() for part in self.compute())
        tokens = self.tokens
        row = weights[self.query]
        most = row.index(max(row))
        sentence = (
            f"{tokens[self.query]} attends most to {tokens[most]}, with the weight "
            f"{row[most]:.4f}."
        )
        features = range(1, len(context[0]) + 1)
        return base.static(
            self.title,
            sentence + " Each row of weights belongs to one query and sums to 1.",
            base.heat_map(
                f"Attention weights of {len(tokens)} queries (rows) on as many keys "
                f"(columns). {sentence}",
                tokens,
                tokens,
                weights,
            ),
            base.table("Scores ω", "q \\ k", tokens, tokens, scores),
            base.table("Weights α", "q \\ k", tokens, tokens, weights),
            base.table("Context z = Σ α · v", "token", features, tokens, context),
        )
