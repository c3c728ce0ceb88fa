"""Small numbers as words, for sentences that a computation fills in."""

WORDS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
    "ten", "eleven", "twelve",
)  # fmt: skip


def spell_number(number):
    """Return a whole number as a word, if it is a small one."""
    return WORDS[number] if number < len(WORDS) else str(number)
