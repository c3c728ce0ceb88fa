"""Text of our own to train on: sentences about journeys from a small grammar."""

import re

import torch

# Number, place and pronoun have to agree over the whole sentence.
ONE = ("your journey", "my road", "her song", "his story", "our voyage")
MANY = ("your journeys", "my roads", "her songs", "his stories", "our voyages")
BEGIN = ("start", "begin")
END = ("end", "close")
COUNTS = ("one", "two", "three", "four", "five")
THINGS = ("step", "word", "smile", "dream", "friend")
PLACES = ("in the city", "by the sea", "on a hill", "at home")


def sentence(generator):
    """Draw one sentence.

    Args:
        generator: a ``torch.Generator``.

    Returns:
        Text such as "your journey starts with one step by the sea and ends at home.".
    """

    def pick(options):
        return options[torch.randint(len(options), (1,), generator=generator).item()]

    plural = pick((False, True))
    s = "" if plural else "s"
    count = pick(COUNTS)
    thing = pick(THINGS) + ("" if count == "one" else "s")
    first, second = pick(PLACES), pick(PLACES)
    subject = pick(MANY if plural else ONE)
    return (
        f"{subject} {pick(BEGIN)}{s} with {count} {thing} {first} "
        f"and {pick(END)}{s} {second}."
    )


def _either(options):
    return "(?:" + "|".join(options) + ")"


def _rule(subjects, s):
    thing = f"(?:one {_either(THINGS)}|{_either(COUNTS[1:])} {_either(THINGS)}s)"
    return (
        f"{_either(subjects)} {_either(BEGIN)}{s} with {thing} {_either(PLACES)} "
        f"and {_either(END)}{s} {_either(PLACES)}\\."
    )


GRAMMAR = re.compile(f"{_rule(ONE, 's')}|{_rule(MANY, '')}")


def is_right(candidate):
    """Tell whether a sentence could have been drawn by :func:`sentence`."""
    return GRAMMAR.fullmatch(candidate) is not None
