"""How hard each exercise is, and the section of the book after which it can be done."""

from typing import NamedTuple

from attncheck import report

PAGES = report.PAGES | {
    "01_why_attention": "Why attention",
    "04_questions": "Questions about causal attention",
    "08_past_one_device": "Past one device",
    "09_watch_heads_learn": "Watch heads learn",
}


class Place(NamedTuple):
    """Where an exercise belongs.

    Attributes:
        level: "easy", "medium" or "hard".
        page: the page to read.
        section: the heading there, in plain text. The link to the exercise stands at
            the end of this section.
        at: the page and the section that have the link, where it is another one.
    """

    level: str
    page: str
    section: str
    at: tuple = ()

    @property
    def link(self):
        """The page and the section that link to the exercise."""
        return self.at or (self.page, self.section)


LOOKING_BACK = "01_why_attention"
BACK = LOOKING_BACK, "Looking back (3.2)"
SIMPLE, TRAINABLE = "02_simple_self_attention", "03_trainable_self_attention"
CAUSAL, HEADS = "04_causal_attention", "05_multi_head_attention"
TIME, DEVICES = "07_where_the_time_goes", "08_past_one_device"
WATCHING = "09_watch_heads_learn"

PLACES = {
    "bottleneck": Place("easy", *BACK),
    "look-back": Place("easy", *BACK),
    "shapes": Place("easy", SIMPLE, "All queries at once (3.3.2)"),
    "which-dim": Place("easy", SIMPLE, "Which dim?"),
    "safe-softmax": Place("medium", SIMPLE, "Weights: scores that sum to one"),
    "weights-too": Place("easy", SIMPLE, "All queries at once (3.3.2)"),
    "3.1": Place("medium", TRAINABLE, "Two classes, one function (exercise 3.1)"),
    "scale": Place("easy", TRAINABLE, "Step by step for one query (3.4.1)"),
    "count-weights": Place("easy", TRAINABLE, "The class, with linear layers"),
    "einsum": Place("medium", TRAINABLE, "Step by step for one query (3.4.1)"),
    "causal-mask": Place("easy", CAUSAL, "Two ways to hide (3.5.1)"),
    "padding": Place("medium", TIME, "Windows, padding and sinks are masks"),
    "fill": Place("medium", "04_questions", "Why not a very negative number?"),
    "dropout": Place("easy", CAUSAL, "Dropout on the weights (3.5.2)"),
    "mixed-scales": Place("medium", CAUSAL, "Two ways to hide (3.5.1)"),
    "causal-class": Place("hard", CAUSAL, "The class (3.5.3)"),
    "3.2": Place("easy", HEADS, "Heads side by side (3.6.1)"),
    "split-heads": Place("medium", HEADS, "The split: view, then transpose"),
    "wrapper-is-split": Place("hard", HEADS, "Both classes are the same function"),
    "3.3": Place("medium", HEADS, "Exercise 3.3: the layers of GPT-2"),
    "cross-attention": Place("medium", *BACK, (HEADS, "The class")),
    "cache-step": Place("hard", TIME, "One more token"),
    "repair": Place("hard", HEADS, "The class"),
    "mean-of-the-past": Place(
        "easy", "06_averaging", "Three ways to the mean, with their numbers"
    ),
    "scores-for-weights": Place("medium", SIMPLE, "Weights: scores that sum to one"),
    "cache-bytes": Place("medium", TIME, "Fewer key heads, fewer bytes"),
    "running-softmax": Place("medium", TIME, "What the kernel does"),
    "shares": Place("easy", DEVICES, "Columns read the heads"),
    "merge": Place("medium", DEVICES, "Cut the keys"),
    "ring": Place("easy", DEVICES, "Around a ring"),
    "guessing": Place("easy", WATCHING, "A task whose solution is known"),
    "induction": Place("easy", WATCHING, "Why two heads, in two blocks?"),
    "window": Place("hard", TIME, "Windows, padding and sinks are masks"),
    "rope": Place("hard", TIME, "What else changed"),
    "grouped-cache": Place("hard", TIME, "Fewer key heads, fewer bytes"),
}
