"""Four marked assignments, one a session: exercises of the book and their points."""

from dataclasses import dataclass

from coding_attention.exercises import EXERCISES


@dataclass(frozen=True)
class Assignment:
    """What is handed out and marked together.

    Attributes:
        title: of the notebook.
        points: {exercise: points}, in the order of the notebook.

    Raises:
        ValueError: there is no such exercise.
    """

    title: str
    points: dict

    def __post_init__(self):
        if unknown := [name for name in self.points if name not in EXERCISES]:
            raise ValueError(
                f"the assignment {self.title!r} has no exercise {unknown[0]!r}. "
                f"Write its name as check_exercise takes it: {', '.join(EXERCISES)}."
            )

    @property
    def total(self):
        """The points of all exercises."""
        return sum(self.points.values())


ASSIGNMENTS = {
    "weights": Assignment(
        "Scores, weights and scaling",
        {
            "shapes": 1,
            "scale": 1,
            "count-weights": 1,
            "scores-for-weights": 2,
            "safe-softmax": 2,
            "weights-too": 1,
            "einsum": 2,
        },
    ),
    "causal": Assignment(
        "No looking ahead",
        {
            "causal-mask": 1,
            "padding": 2,
            "dropout": 2,
            "mean-of-the-past": 2,
            "causal-class": 3,
        },
    ),
    "heads": Assignment(
        "Several heads",
        {
            "3.2": 1,
            "split-heads": 2,
            "3.3": 2,
            "wrapper-is-split": 2,
            "repair": 3,
        },
    ),
    "inside": Assignment(
        "Tiles, caches and what heads do",
        {
            "online-softmax": 2,
            "cache-step": 2,
            "merge-halves": 1,
            "hook-weights": 1,
            "induction-score": 2,
            "silence-head": 2,
        },
    ),
}
