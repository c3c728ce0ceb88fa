"""The sentences on which heads of a trained model are measured.

Each was written before anyone looked at what a head does with it. ``FRAMES`` make
pairs that differ in one word; ``labeled.txt`` has lists of sentence, query, target;
``typed.txt`` has more, as readers type them, for the small copy of the model.
"""

from itertools import product
from pathlib import Path

PEOPLE = ["workers", "farmers", "students", "soldiers", "teachers", "nurses",
          "children", "sailors"]  # fmt: skip
PERSONS = ["worker", "farmer", "student", "soldier", "teacher", "nurse",
           "child", "sailor"]  # fmt: skip
THINGS = ["piano", "machine", "truck", "statue", "table", "boat", "ladder", "engine"]
# In each, "they" can only be the people and "it" only the thing.
FRAMES = (
    "the {people} moved the {thing} after {word} arrived",
    "the {people} watched the {thing} until {word} left",
    "the {people} found the {thing} before {word} fell",
    "the {thing} passed the {people} before {word} stopped",
    "after the {people} repaired the {thing} , {word} disappeared",
)

# Only what the words mean decides: the adjective fits one of both nouns.
ANIMALS = ["animal", "dog", "horse", "cow", "cat", "wolf", "bear", "fox"]
PLACES = ["street", "road", "river", "bridge", "field", "lake", "valley", "canal"]
TOO = "the {animal} did not cross the {place} because it was too {word}"


def pair(frame, people, thing, pronoun="they"):
    """Give two sentences, each with its query and its target."""
    words = {pronoun: people, "it": thing}
    return [
        (frame.format(people=people, thing=thing, word=word), word, target)
        for word, target in words.items()
    ]


def pairs():
    """Give all 320 pairs: five frames, eight words for people, eight for things."""
    return [pair(*words) for words in product(FRAMES, PEOPLE, THINGS)]


def singular_pairs(pronoun):
    """Give the same pairs with one person: number no longer tells the nouns apart."""
    return [pair(*words, pronoun) for words in product(FRAMES, PERSONS, THINGS)]


def shown_pairs():
    """Give the 20 pairs whose states are stored: the first four words of both lists."""
    words = zip(PEOPLE[:4], THINGS[:4], strict=True)
    return [pair(frame, *two) for two in words for frame in FRAMES]


def too_pairs():
    """Give the 64 pairs in which only the adjective says what "it" is."""
    return [
        [
            (TOO.format(animal=animal, place=place, word=word), "it", target)
            for word, target in (("tired", animal), ("wide", place))
        ]
        for animal, place in product(ANIMALS, PLACES)
    ]


def read_labeled(name, file="labeled.txt"):
    """Give (sentence, query, target) for each line of one list of a file.

    A word with ``#2`` is its second occurrence.
    """
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    lists = dict(part.split("\n", 1) for part in text.split("# ")[1:])
    found = []
    for line in lists[name].strip().splitlines():
        sentence, labels = line.split(" | ")
        found += [(sentence, *label.split(">")) for label in labels.split("; ")]
    return found
