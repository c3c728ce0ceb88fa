"""The training lab: what each head looks at, from the first step to the last."""

import torch
import traitlets

from coding_attention.labs import base


class TrainingLab(base.Lab):
    """Attention patterns of a small model at several steps of its training.

    Nothing is computed here but read: the patterns come from a training run.

    Traits:
        tokens: a name for each token, t of them.
        steps: the training steps that are kept, n of them.
        losses: the loss at each of them.
        curve: the whole loss curve as (step, loss) pairs, unless it is only these.
        patterns: weights (n, heads, t, t), from 0 to 1; the heads of all blocks in
            a row.
        heads: a name for each head.
        scores: dict of name -> (n, heads), measures of the heads at each step.
        at: index of the step that is shown.
        head: index of the head that is shown.

    All but ``curve``, ``scores``, ``at`` and ``head`` are required.

    Raises:
        TypeError: one that is required is missing or empty.
        traitlets.TraitError: a value does not fit; the message says why.
    """

    script = "training.js"
    title = "Training lab"
    shown = ("steps", "heads", "at", "head")

    tokens = traitlets.List(traitlets.Unicode(), help="a name for each token").tag(
        sync=True, lab=True
    )
    steps = traitlets.List(traitlets.Int(), help="training steps").tag(
        sync=True, lab=True
    )
    losses = traitlets.List(traitlets.Float(), help="loss at each step").tag(
        sync=True, lab=True
    )
    curve = traitlets.List(help="(step, loss) pairs").tag(sync=True, lab=True)
    heads = traitlets.List(traitlets.Unicode(), help="a name for each head").tag(
        sync=True, lab=True
    )
    scores = traitlets.Dict(help="measures of the heads").tag(sync=True, lab=True)
    patterns = traitlets.List(help="(steps, heads, t, t)").tag(sync=True, lab=True)
    at = traitlets.Int(0, help="index of the step").tag(sync=True, lab=True)
    head = traitlets.Int(0, help="index of the head").tag(sync=True, lab=True)

    def __init__(self, **values):
        needed = ("tokens", "steps", "losses", "heads", "patterns")
        missing = [name for name in needed if not values.get(name)]
        if missing:
            raise TypeError(
                f"TrainingLab shows a training run, so it needs {', '.join(needed)}, "
                f"but got no {', '.join(missing)}. Record the weights of each head at "
                "some steps of a training run and pass them as patterns."
            )
        super().__init__(**values)

    @traitlets.default("curve")
    def _default_curve(self):
        return [list(pair) for pair in zip(self.steps, self.losses, strict=True)]

    @traitlets.validate("curve")
    def _check_curve(self, proposal):
        pairs = [list(pair) for pair in proposal.value]
        if not pairs or any(len(pair) != 2 for pair in pairs):
            raise traitlets.TraitError(
                "curve must hold (step, loss) pairs, such as list(zip(steps, losses)), "
                f"but got {proposal.value[:3]!r}."
            )
        return pairs

    @traitlets.validate("patterns")
    def _check_patterns(self, proposal):
        t = len(self.tokens)
        wanted = (len(self.steps), len(self.heads), t, t)
        try:
            given = tuple(torch.tensor(proposal.value).shape)
        except (TypeError, ValueError) as error:
            raise traitlets.TraitError(
                f"patterns must hold numbers in the shape {wanted}: {error}"
            ) from error
        if given != wanted:
            raise traitlets.TraitError(
                "patterns must have one weight for each step, head, query and key, "
                f"so the shape {wanted}, but got {given}. Pass tokens, steps and "
                "heads with as many names."
            )
        return proposal.value

    @traitlets.validate("losses")
    def _check_losses(self, proposal):
        if len(proposal.value) != len(self.steps):
            raise traitlets.TraitError(
                f"losses must hold one number for each of the {len(self.steps)} "
                f"steps, but got {len(proposal.value)}."
            )
        return proposal.value

    @traitlets.validate("scores")
    def _check_scores(self, proposal):
        wanted = (len(self.steps), len(self.heads))
        for name, values in proposal.value.items():
            given = tuple(torch.tensor(values).shape)
            if given != wanted:
                raise traitlets.TraitError(
                    f"scores[{name!r}] must have the shape {wanted}, one number for "
                    f"each step and head, but got {given}."
                )
        return proposal.value

    @traitlets.validate("at")
    def _check_at(self, proposal):
        return base.within("at", proposal.value, 0, max(len(self.steps) - 1, 0))

    @traitlets.validate("head")
    def _check_head(self, proposal):
        return base.within("head", proposal.value, 0, max(len(self.heads) - 1, 0))

    def pattern(self):
        """Give the weights that are shown, (t, t)."""
        return self.patterns[self.at][self.head]

    def fallback(self):
        """Give the shown pattern as a picture; losses and scores as tables."""
        caption = (
            f"Step {self.steps[self.at]} of training, loss "
            f"{self.losses[self.at]:.4f}: what {self.heads[self.head]} looks at."
        )
        tables = [
            base.table(name, "step", self.heads, self.steps, values)
            for name, values in self.scores.items()
        ]
        losses = [[loss] for loss in self.losses]
        return base.static(
            self.title,
            caption,
            base.heat_map(caption, self.tokens, self.tokens, self.pattern()),
            base.table("Loss over training", "step", ["loss"], self.steps, losses),
            *tables,
        )
