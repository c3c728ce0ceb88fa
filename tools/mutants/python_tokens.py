"""Changes of one token in Python code that give another program.

The changes are those that people make by mistake in attention code. Docstrings,
comments and the words of messages are no code and are left alone. So is the zero of a
mask that is added to scores: another finite number there shifts all visible scores of
a row alike, and softmax gives the same weights whatever is added to a whole row.
"""

import io
import re
import tokenize
from dataclasses import dataclass

# What stands for what. Each changes what the program computes, or breaks it.
NAMES = {
    "triu": "tril", "tril": "triu", "softmax": "sigmoid", "rand": "randn",
    "W_query": "W_key", "W_key": "W_query", "W_value": "W_key",
    "queries": "keys", "keys": "values", "values": "queries",
    "masked_fill_": "masked_fill", "True": "False", "False": "True",
    "or": "and", "and": "or", "inf": "pi", "ones": "zeros", "zeros": "ones",
    "d_in": "d_out", "d_out": "d_in", "num_tokens": "b",
}  # fmt: skip
OPERATORS = {
    "<": ">=", ">": "<=", "<=": ">", ">=": "<", "==": "!=", "!=": "==",
    "+": "-", "-": "+", "*": "/", "/": "*", "**": "*", "@": "*", "//": "%", "%": "//",
}  # fmt: skip

# All projections of a layer read the same inputs, so each has the same in_features;
# and new_empty takes dtype and device alone, which keys and values share.
SAME_FOR_ALL = re.compile(r"\.(in_features|new_empty\()")
ADDED_MASK = re.compile(r"torch\.where\(\w+, -torch\.inf, 0\.0\)$")


@dataclass
class Change:
    """A new text and where it differs."""

    text: str
    position: int
    start: tuple  # (line from 1, column)
    old: str
    new: str

    def lines(self, before):
        """The changed line before and after."""
        index = self.start[0] - 1
        return before.splitlines()[index], self.text.splitlines()[index]


def draw(rng, source):
    """Draw one change of one token; None if there is nothing to change."""
    places = [
        (token, new) for token in _code_tokens(source) if (new := _other(rng, token))
    ]
    if not places:
        return None
    token, new = rng.choice(places)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    position = starts[token.start[0] - 1] + token.start[1]
    text = source[:position] + new + source[position + len(token.string) :]
    return Change(text, position, token.start, token.string, new)


def _code_tokens(source):
    """Tokens that run: no strings, no comments, no imports, no names of parameters."""
    previous = ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        line = token.line.strip()
        skip = line.startswith(("import ", "from ", "@", '"', "'", "def ", "class "))
        # A keyword argument named after its value: renaming one side only is in
        # NAMES, and the name before "=" belongs to the callee.
        keyword = (
            re.match(r"\s*=(?!=)", token.line[token.end[1] :]) and previous in "(,"
        )
        zero = token.string == "0.0" and ADDED_MASK.search(line)
        if token.type in (tokenize.NAME, tokenize.NUMBER, tokenize.OP):
            same = SAME_FOR_ALL.match(token.line[token.end[1] :])
            if not (skip or keyword or zero or same):
                yield token
            previous = token.string


def _other(rng, token):
    if token.type == tokenize.NUMBER:
        return _other_number(token.string)
    table = NAMES if token.type == tokenize.NAME else OPERATORS
    return table.get(token.string)


def _other_number(number):
    return f"{number}5" if "." in number else str(int(number, 0) + 1)
