"""Words for the tokens of the small grammar, so that people can read its sentences.

The target's words are German; its grammar is none. Only the reordering is like it.
"""

SPECIAL = ("(start)", "(end)")
NOUNS = (
    "child", "dogs", "teacher", "birds", "king", "friends",
    "woman", "cats", "sailor", "horses", "poet", "girls",
)  # fmt: skip
VERBS = ("look", "sing", "sleep", "wait", "walk", "read", "dance", "dream")
PREPOSITIONS = ("on", "under", "behind", "near", "with", "without")
ADJECTIVES = ("old", "small", "red", "quiet", "warm", "distant", "green", "wide")
SOURCE = (*SPECIAL, *NOUNS, *VERBS, *PREPOSITIONS, *ADJECTIVES)

TARGET = (
    *SPECIAL,
    "Kind", "Hunde", "Lehrer", "Vögel", "König", "Freunde",
    "Frau", "Katzen", "Seemann", "Pferde", "Dichter", "Mädchen",
    "schaut", "singt", "schläft", "wartet", "geht", "liest", "tanzt", "träumt",
    "auf", "unter", "hinter", "nahe", "mit", "ohne",
    "alt", "klein", "rot", "still", "warm", "fern", "grün", "weit",
    "schauen", "singen", "schlafen", "warten", "gehen", "lesen", "tanzen", "träumen",
)  # fmt: skip


def spell(tokens, words):
    """Give tokens (t,) as a list of words.

    Args:
        tokens: integers (t,).
        words: ``SOURCE`` or ``TARGET``.
    """
    return [words[i] for i in tokens.tolist()]
