"""The two tasks of the first experiment: sequences to reverse, sentences to reorder.

Both return the true alignment too: for each target token, the source position that it
comes from.
"""

import torch

START, END = 0, 1  # special tokens of both vocabularies

# ---- reversal ----

LETTERS = 16


def reversal(count, length, generator):
    """Draw sequences of random letters, and the same ones backwards.

    Args:
        count: sequences, b.
        length: letters in each, t.
        generator: a ``torch.Generator``.

    Returns:
        source (b, t), target (b, t) and alignment (b, t), integers.
    """
    source = torch.randint(2, 2 + LETTERS, (count, length), generator=generator)
    alignment = torch.arange(length - 1, -1, -1).expand(count, length)
    return source, source.flip(1), alignment


# ---- a grammar with reordering ----
#
# source:  noun verb  (preposition adjective noun)(preposition adjective noun)…
# target:  noun  …(adjective noun postposition)(adjective noun postposition)  verb
#
# As in German, the verb moves to the end and takes the number of its noun. The phrases
# come in the opposite order, as "place, time" becomes "time, place", and in each one
# the preposition moves behind its noun.

NOUNS, VERBS, PREPOSITIONS, ADJECTIVES = 12, 8, 6, 8
NOUN = 2
VERB = NOUN + NOUNS
PREPOSITION = VERB + VERBS
ADJECTIVE = PREPOSITION + PREPOSITIONS
PLURAL_VERB = ADJECTIVE + ADJECTIVES  # only in the target
SOURCE_WORDS = PLURAL_VERB
TARGET_WORDS = PLURAL_VERB + VERBS


def grammar(count, length, generator):
    """Draw sentences of the small grammar with their translations.

    Args:
        count: sentences, b.
        length: words in each, t: two and a multiple of three.
        generator: a ``torch.Generator``.

    Returns:
        source (b, t), target (b, t) and alignment (b, t), integers. Nouns with an odd
        number are plural, and the target's verb shows it.

    Raises:
        ValueError: no sentence has this length.
    """
    phrases, rest = divmod(length - 2, 3)
    if rest or phrases < 1:
        raise ValueError(
            f"a sentence has two words and three for each phrase, but got length="
            f"{length}. Pass 5, 8, 11 or so on."
        )

    def words(first, kinds):
        return torch.randint(first, first + kinds, (count, 1), generator=generator)

    parts = [words(NOUN, NOUNS), words(VERB, VERBS)]
    for _ in range(phrases):
        parts.append(words(PREPOSITION, PREPOSITIONS))
        parts.append(words(ADJECTIVE, ADJECTIVES))
        parts.append(words(NOUN, NOUNS))
    source = torch.cat(parts, dim=1)  # (b, t)

    starts = range(length - 3, 1, -3)  # the last phrase comes first
    order = [0, *(i + j for i in starts for j in (1, 2, 0)), 1]
    alignment = torch.tensor(order).expand(count, length)
    target = source.gather(1, alignment)
    plural = source[:, 0] % 2  # (b,)
    target[:, -1] += plural * (PLURAL_VERB - VERB)
    return source, target, alignment


TASKS = {
    "reversal": (reversal, 2 + LETTERS, 2 + LETTERS),
    "grammar": (grammar, SOURCE_WORDS, TARGET_WORDS),
}
