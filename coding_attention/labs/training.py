"""The training lab: what each head looks at, from the first step to the last."""

import torch
import traitlets

from coding_attention.labs import base


def _curve(lab, name, value):
    pairs = [list(pair) for pair in value]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise traitlets.TraitError(
            f"{name} must hold (step, loss) pairs, such as list(zip(steps, losses)), "
            f"but got {value[:3]!r}."
        )
    return pairs


def _patterns(lab, name, value):
    t = len(lab.tokens)
    wanted = (len(lab.steps), len(lab.heads), t, t)
    try:
        given = tuple(torch.tensor(value).shape)
    except (TypeError, ValueError) as error:
        raise traitlets.TraitError(
            f"{name} must hold numbers in the shape {wanted}: {error}"
        ) from error
    if given != wanted:
        raise traitlets.TraitError(
            f"{name} must have one weight for each step, head, query and key, "
            f"so the shape {wanted}, but got {given}. Pass tokens, steps and "
            "heads with as many names."
        )
    return value


def _losses(lab, name, value):
    if len(value) != len(lab.steps):
        raise traitlets.TraitError(
            f"{name} must hold one number for each of the {len(lab.steps)} "
            f"steps, but got {len(value)}."
        )
    return value


def _scores(lab, name, value):
    wanted = (len(lab.steps), len(lab.heads))
    for measure, values in value.items():
        given = tuple(torch.tensor(values).shape)
        if given != wanted:
            raise traitlets.TraitError(
                f"{name}[{measure!r}] must have the shape {wanted}, one number for "
                f"each step and head, but got {given}."
            )
    return value


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
        measures: the names of ``scores`` in their order, which a notebook, storing a
            dict by the alphabet, would lose. The first has the color of the first
            line of :func:`~coding_attention.figures.curves`, the second of the second.
        at: index of the step that is shown.
        head: index of the head that is shown.

    All but ``curve``, ``scores``, ``measures``, ``at`` and ``head`` are required.

    Raises:
        TypeError: one that is required is missing or empty.
        traitlets.TraitError: a value does not fit; the message says why.
    """

    title = "Training lab"
    shown = ("steps", "heads", "at", "head")

    tokens = base.List(traitlets.Unicode())
    steps = base.List(traitlets.Int())
    losses = base.List(traitlets.Float(), check=_losses)
    curve = base.List(
        first=lambda lab: [
            list(pair) for pair in zip(lab.steps, lab.losses, strict=True)
        ],
        check=_curve,
    )
    heads = base.List(traitlets.Unicode())
    scores = base.Dict(check=_scores)
    measures = base.List(traitlets.Unicode(), first=lambda lab: list(lab.scores))
    patterns = base.List(check=_patterns)
    at = base.Int(0, check=base.within(0, lambda lab: max(len(lab.steps) - 1, 0)))
    head = base.Int(0, check=base.within(0, lambda lab: max(len(lab.heads) - 1, 0)))

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
