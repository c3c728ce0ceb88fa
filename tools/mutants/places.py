"""Where a file can be broken: each place is a kind, a span and what to put there.

A place must be wrong once it is changed. What cannot be is left out here, with the
reason beside it; single places that turned out equivalent stand in `equivalent.json`.
"""

import ast
import io
import re
import tokenize
from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """A span of a file, and another text for it."""

    kind: str
    path: str
    start: int
    end: int
    new: str


def both_ways(pairs):
    """Each word for the other: "first/last" gives two entries."""
    both = [pair.split("/", 1) for pair in pairs.split()]
    return {a: b for a, b in both} | {b: a for a, b in reversed(both)}


# Words that state a fact, each with one that makes it false.
WORDS = both_ways(
    "first/last left/right rows/columns row/column above/below upper/lower more/less "
    "most/least larger/smaller largest/smallest longer/shorter longest/shortest "
    "thicker/thinner thickest/thinnest thick/thin dark/pale darker/paler "
    "darkest/palest "
    "higher/lower highest/lowest rises/falls rise/fall zeros/ones wider/narrower "
    "equal/different horizontal/vertical queries/keys query/key before/after"
) | both_ways("two/three four/five six/seven eight/nine ten/eleven second/third")
PYTHON = both_ways(
    "triu/tril softmax/sigmoid W_query/W_value True/False or/and ones/zeros min/max "
    "d_in/d_out </>= >/<= ==/!= +/- *// any/all"
) | {"queries": "keys", "keys": "values", "**": "*", "@": "*", "//": "%", "not": ""}
SCRIPT = both_ways("</>= >/<= ===/!== +/- *// &&/|| true/false min/max floor/ceil")
LETTERS = both_ways("d_k/d_in d_out/d_head t/d_in q/k Q/K ω/α rows/columns h/b")
# Words that state a fact only beside these: a right answer is no side, what is left is
# no side, the old ones are no numbers, bytes a second and "no longer" count nothing.
SIDE = (r"(to|from|on|at)( the)? $|(upper|lower|column) $", r" (of|columns?|half)\b")
STATES = {
    "left": SIDE,
    "right": SIDE,
    "second": (r"(?<!\ba) $", r"$^"),
    "longer": (r"(?<!\bno) $", r"$^"),
    "ones": (r"\b(of|on|over|zeros and|with) $", r" (and zeros|become|mark)\b"),
}
# Where the other word says the same, or neither states a fact: queries are as wide as
# keys, "one after another" is no order, and a word in quotation marks is spoken of.
AS_TRUE = re.compile(
    r"(?:(?:width|coordinates?) of (?:an?|the)|numbers in a|wide is a|\bwide)"
    r" ⟦(?:key|quer)\w*⟧(?! or)|⟦key⟧ width|⟦keys⟧ of width"
    r"|one(?: \w+)? ⟦after⟧ (?:an|the )other|[\"“]⟦\w+⟧[\"”]"
    r"|arrow ⟦keys⟧|⟦fall⟧ back|(?:is|'s) ⟦left⟧ of|⟦right⟧ one"
)
# A question states nothing; only "Why …?" says that something is so.
QUESTION = re.compile(r"[#>*\s-]*(?!Why\b)\w(?:(?!\n\n)[^.?!:\[])*\?")
BEFORE_A_SENTENCE = re.compile(r"[.?!:]\"?[*\s]|\n\n")
# All projections of a layer read the same inputs; new_empty takes dtype and device.
SAME = re.compile(r"\.(in_features|new_empty\()")
# A right class is right with biases, too.
RIGHT_TOO = "coding_attention/gallery/correct_variants.py"
# Softmax is the same whatever finite number is added to all visible scores.
ADDED_MASK = re.compile(r"torch\.where\(\w+, -torch\.inf, 0\.0\)$")
SCRIPT_TOKEN = re.compile(
    r"(?P<skip>//[^\n]*|/\*.*?\*/|`(?:\\.|[^`\\])*`|'(?:\\.|[^'\\\n])*'"
    r"|\"(?:\\.|[^\"\\\n])*\"|^import[^\n]*|^export \{[^\n]*|(?<=[=(,:])\s*/[^/*\n]+/)"
    r"|(?P<word>[A-Za-z_$][\w$]*|\d+e-\d+)|(?P<number>(?<![\w.])\d+(?:\.\d+)?)"
    r"|(?P<sign>===|!==|=>|\+\+|--|<=|>=|&&|\|\||[-+*/<>](?!=))",
    re.M | re.S,
)
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.M | re.S)
FORMULA = re.compile(r"\$\$.+?\$\$|(?<!\$)\$[^$\n]+\$(?!\$)", re.S)
TABLE = re.compile(r"^\|(?!-).*\|$", re.M)
COMMENT = re.compile(r"<!--.*?-->", re.S)
# Made from stored results, as exercises are from their tasks.
WRITTEN = re.compile(r"<!-- written by .*?<!-- end -->", re.S)
# Of an exercise's file: what tests read, and no reader.
TESTED = re.compile(r"^## (?:Facts|Also tried)$.*?(?=^## |\Z)", re.M | re.S)
PROVEN = re.compile(r"\d(?=[\d.,]*[%.,;:)]?\s?<!-- (?:=|in) )")


def places(path, text):
    """Every place of a file."""
    if path.endswith(".js"):
        yield from _script(path, text)
    elif path.endswith(".py"):
        rooms = path.split("/")[:-1]
        depth = 2 if rooms[0] == "coding_attention" else 1
        yield from _python(path, text, "Python of " + "/".join(rooms[:depth]))
    elif path.endswith(".md"):
        yield from _page(path, text)


def _number(digits):
    # Half a hundredth more, or one pixel, would be the same drawing, the same limit.
    if "." in digits:
        return str(2 * float(digits) or 1.0)
    number = int(digits, 0)
    return str(2 * number if number >= 10 else number + 1)


def _python(path, text, kind, shift=0):
    starts, previous = [0], ""
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        start = starts[token.start[0] - 1] + token.start[1]
        end = starts[token.end[0] - 1] + token.end[1]
        if token.type == tokenize.COMMENT:
            yield from _shape(path, token.string, start + shift)
        elif kind and (new := _other_token(token, previous)) is not None:
            named = token.line[: token.start[1]].endswith("bias=")
            if not (named and path == RIGHT_TOO):
                yield Place(kind, path, start + shift, end + shift, new)
        if token.type == tokenize.STRING and _tells(path, token.line):
            yield from _words("hint or message", path, token.string, start + shift)
        if token.type in (tokenize.NAME, tokenize.NUMBER, tokenize.OP):
            previous = token.string


def _other_token(token, previous):
    line, after = token.line.strip(), token.line[token.end[1] :]
    if line.startswith(("import ", "from ", "@", "def ", "class ", '"', "'")):
        return None
    if token.line[: token.start[1]].endswith("strict="):  # of lists that are as long
        return None
    keyword = re.match(r"\s*=(?!=)", after) and previous in "(,"
    if (
        keyword
        or SAME.match(after)
        or (token.string == "0.0" and ADDED_MASK.search(line))
    ):
        return None
    if token.type == tokenize.NUMBER and "seed" not in line:  # any seed will do
        return _number(token.string) if re.fullmatch(r"[\d.]+", token.string) else None
    if token.type in (tokenize.NAME, tokenize.OP) and not (
        token.string in "+-*" and previous in ("", "(", ",", "=", "[", "*", "**", "->")
    ):
        return PYTHON.get(token.string)
    return None


def _tells(path, line):
    # Sentences that readers see: hints, messages of checks, what a mistake means.
    rooms = ("coding_attention/exercises", "coding_attention/gallery",
             "coding_attention/figures", "attncheck/mistakes")  # fmt: skip
    return path.startswith(rooms) and '"""' not in line


def _states(match):
    text, near, end = match.string, match.start(), match.end()
    said = f"{text[max(0, near - 20) : near]}⟦{match[0]}⟧{text[end : end + 12]}"
    if AS_TRUE.search(said):
        return False
    starts = [m.end() for m in BEFORE_A_SENTENCE.finditer(text, 0, near)]
    if QUESTION.match(text, max(starts, default=0)):
        return False
    if match[0] not in STATES:
        return True
    before, after = STATES[match[0]]
    return bool(
        re.search(before, text[max(0, near - 20) : near])
        or re.match(after, text[match.end() :])
    )


def _words(kind, path, text, shift):
    for match in re.finditer(r"(?<![\w`.'(\[])[A-Za-z]+(?![\w`(\]='])(?!\.\w)", text):
        new = WORDS.get(match[0])
        if new is not None and _states(match):
            yield Place(kind, path, match.start() + shift, match.end() + shift, new)


def _shape(path, comment, shift):
    for shape in re.finditer(r"(?<!\w)\([^()]*,[^()]*\)", comment):
        for letter in re.finditer(r"\b(?:t|d_in|d_out|d_head|d_k|h|b)\b", shape[0]):
            new = {"t": "d_in", "h": "t", "b": "t"}.get(letter[0], "t")
            start = shift + shape.start() + letter.start()
            yield Place("shape comment", path, start, start + len(letter[0]), new)


def _script(path, text):
    kind = "JavaScript of the labs" if "labs/" in path else "JavaScript of the site"
    for match in SCRIPT_TOKEN.finditer(text):
        old = match[0]
        new = _number(old) if match["number"] else SCRIPT.get(old)
        if new is not None and not match["skip"]:
            yield Place(kind, path, match.start(), match.end(), new)


def _page(path, text):
    prose = text
    for cell in [*CELL.finditer(text), *re.finditer(r"(?s)^```.*?^```$", text, re.M)]:
        prose = prose[: cell.start()] + " " * len(cell[0]) + prose[cell.end() :]
    for cell in CELL.finditer(text):
        code = re.sub(
            r"^[:%!].*$", lambda m: "#" + " " * (len(m[0]) - 1), cell[1], flags=re.M
        )
        try:
            yield from _cell(path, code, cell.start(1))
        except (SyntaxError, tokenize.TokenError):
            continue
    for match in PROVEN.finditer(prose):
        new = str((int(match[0]) + 3) % 10)
        yield Place("digit in prose", path, match.start(), match.end(), new)
    told = WRITTEN.sub(lambda m: " " * len(m[0]), prose)
    told = COMMENT.sub(lambda m: " " * len(m[0]), told)
    if "/tasks/" in path:
        told = TESTED.sub(lambda m: " " * len(m[0]), told)
    for pattern, kind in ((FORMULA, "formula"), (TABLE, "table")):
        for match in pattern.finditer(told):
            yield from _letters(kind, path, match)
            told = told[: match.start()] + " " * len(match[0]) + told[match.end() :]
    told = re.sub(r"\]\([^)]*\)|`[^`]*`|<[^>]*>", lambda m: " " * len(m[0]), told)
    body = told.index("\n---\n", 3) if told.startswith("---") else 0
    yield from _words("number word or place in prose", path, told[body:], body)


def _letters(kind, path, match):
    for letter in re.finditer(
        r"(?<![A-Za-z\\'])(?:d_(?:in|out|k|head)|[a-zA-Zωα])(?![A-Za-z_])", match[0]
    ):
        if (new := LETTERS.get(letter[0])) is not None:
            start = match.start() + letter.start()
            yield Place(kind, path, start, start + len(letter[0]), new)
    for power in re.finditer(r"\*\*2|\b[23] \*", match[0]):
        start = match.start() + power.start()
        new = "" if power[0] == "**2" else "4 *"
        yield Place(kind, path, start, start + len(power[0]), new)


def _cell(path, code, shift):
    lines = [0]
    for line in code.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    yield from _python(path, code, None, shift)
    for call in ast.walk(ast.parse(code)):
        if not isinstance(call, ast.Call):
            continue
        for keyword in call.keywords:
            if keyword.arg in ("caption", "alt"):
                node = keyword.value
                start = lines[node.lineno - 1] + node.col_offset
                end = lines[node.end_lineno - 1] + node.end_col_offset
                before = len(code.encode()[:start].decode())
                words = code.encode()[start:end].decode()
                blank = re.sub(r"\{[^{}]*\}", lambda m: " " * len(m[0]), words)
                yield from _words(
                    "caption or alternative text", path, blank, before + shift
                )
