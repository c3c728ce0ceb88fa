"""Find the numbers in prose, and tell whether an output shows one of them."""

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cache

from coding_attention.published_values import ROOT

SECTIONS = {f"3.{n}" for n in range(1, 7)} | {
    f"3.{n}.{m}" for n, m in ((3, 1), (3, 2), (4, 1), (4, 2), (5, 1), (5, 2), (5, 3))
} | {"3.6.1", "3.6.2"}  # fmt: skip
# Names with a digit in them that a page may tell without a cell that has them.
NAMES = {"GPT-2", "float16", "float32", "float64", "bfloat16"}
YEARS = set(
    re.findall(
        r"^\s*year\s*=\s*\{?(\d{4})",
        (ROOT / "book/references.bib").read_text(encoding="utf-8"),
        re.M,
    )
)
UNITS = {
    "%": Fraction(1, 100),
    "percent": Fraction(1, 100),
    "thousand": Fraction(10**3),
    "million": Fraction(10**6),
    "billion": Fraction(10**9),
}
NUMBER = re.compile(
    r"""(?P<sign>(?<![\w.)\]])[-−]|\bminus[ ])?
    (?<![\w.])(?P<digits>\d+/\d+ | \d+(?:\.\d+){2,}
        | (?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e[+-]?\d+)?)
    (?P<unit>\s?%|\s(?:percent|thousand|million|billion)\b)?""",
    re.VERBOSE,
)
OUTPUT = re.compile(
    r"""(?<![\w.])-?(?:inf\b
        |(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d*)?(?:e[+-]?\d+)?)(?:\s?%)?""",
    re.VERBOSE,
)
NAME = re.compile(r"(?<![\w.])[^\W\d]\w*(?:-\d\w*)?")
TOKEN = re.compile(r"\w+(?:\.\d+)?|\S")
CODE = re.compile(r"^```[^\n]*\n.*?^```$|(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", re.M | re.S)
IN_CODE = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?")
MATHS = re.compile(r"\$\$.+?\$\$|\$[^$]+\$", re.S)
SUBSCRIPT = re.compile(r"_(?:\{[^{}]*\}|\w)")
LISTED = r"(?:3\.\d(?:\.\d)?)(?:(?:,? and |,? to |, )3\.\d(?:\.\d)?)*(?!\d)"
FREE = [
    re.compile(r"\]\([^)\s]*\)|<?https?://[^\s>)]+>?"),  # addresses
    re.compile(r"^\s*\d+\.\s", re.M),  # numbered lists
    re.compile(r"\b[Cc]hapter 3\b"),
]
CITED_SECTIONS = [
    re.compile(rf"\b[Ss]ections? (?P<all>{LISTED})"),
    re.compile(rf"\((?P<all>{LISTED})\)"),
    re.compile(r"(?<![\w.])(?P<all>3\.\d\.\d)(?!\w)"),
]
CITED_EXERCISE = re.compile(
    r"\b(?:[Ee]xercise|Solution)s? "
    r"(?P<all>3\.[123](?:(?:,? and |,? to |, )3\.[123])*)(?!\.?\d)"
)
# In round brackets, or as the text of a link.
CITED_YEAR = re.compile(r"[(\[](?:[^()\[\]]*\s)?(?P<year>(?:19|20)\d\d)[)\]]")


@dataclass
class Number:
    """A number of the prose, and where it stands in its paragraph."""

    start: int
    text: str
    digits: str
    unit: str = ""


def agrees(number, output):
    """Tell whether the digits on the page are a rounding of the number in an output.

    A percentage may be a rounding of a share, and 124 million of 124,439,808. Where
    the page tells a fraction, the output's digits are a rounding of it.
    """
    percent = output.endswith("%")
    try:
        value = Decimal(output.rstrip("% ").replace(",", ""))
    except InvalidOperation:
        return False
    if not value.is_finite():
        return False
    if "/" in number.digits:
        one, over = map(int, number.digits.lstrip("-").split("/"))
        sign = -1 if number.digits.startswith("-") else 1
        exact = sign * Fraction(one, over) if over else None
        return exact is not None and abs(Fraction(value) - exact) <= _half(value)
    try:
        told = Decimal(number.digits.replace(",", ""))
    except InvalidOperation:  # 2.13.0
        return False
    unit = UNITS.get(number.unit, Fraction(1))
    if percent:
        if number.unit not in ("%", "percent"):
            return False
        unit = Fraction(1)
    return abs(Fraction(told) * unit - Fraction(value)) <= _half(told) * unit


def _half(decimal):
    return Fraction(10) ** decimal.as_tuple().exponent / 2


def outputs(text):
    """The numbers of an output as they are written there, a percent sign included."""
    return [match[0] for match in OUTPUT.finditer(text)]


def tokens(code):
    """Code as one line of tokens, so that spaces and line breaks do not count."""
    return f" {' '.join(TOKEN.findall(code))} "


def found(text, code=None):
    """The numbers of a paragraph that need a proof.

    Args:
        text: The paragraph, its comments blanked out.
        code: The tokens of the page's code and outputs, where numbers in code spans
            are free if they stand there as they do in the span; None for a page
            without cells, whose spans are free.
    """
    text = _blank(text, *_cited(text))
    text = _blank(text, *(span for p in FREE for span in _spans(p, text)))
    spans = [m.span() for m in CODE.finditer(text)]
    for start, end in spans:
        text = _blank(text, *_in_code(text, start, end, code))
    prose = _blank(text, *spans)
    for match in MATHS.finditer(prose):
        text = _blank(text, *_in_maths(match))
    for match in NAME.finditer(text):
        if re.search(r"\d", match[0]) and _is_known(match[0], code):
            text = _blank(text, match.span())
    named = list(_named(text))
    text = _blank(text, *((n.start, n.start + len(n.text)) for n in named))
    return [*named, *map(_number, NUMBER.finditer(text))]


def _number(match):
    sign = "-" if match["sign"] else ""
    unit = (match["unit"] or "").strip()
    return Number(match.start(), match[0], sign + match["digits"], unit)


def _named(text):
    # A name that nobody knows: float61, GPT-7. It wants a reason.
    for match in NAME.finditer(text):
        if re.match(r"[^\W\d]\w*\d|[A-Z]{2,}-\d", match[0]):
            yield Number(match.start(), match[0], match[0])


def _is_known(name, code):
    indexed = re.fullmatch(r"[^\W\d_]_\d+", name)  # W_2
    shown = f" {name} " in (code or "")
    return indexed or shown or name in NAMES or name in _package()


@cache
def _package():
    sources = (ROOT / "attention").glob("*.py")
    return {w for p in sources for w in re.findall(r"\w+", p.read_text("utf-8"))}


def _cited(text):
    for pattern in CITED_SECTIONS:
        for match in pattern.finditer(text):
            if set(re.findall(r"3\.[\d.]*\d", match["all"])) <= SECTIONS:
                yield match.span("all")
    yield from (match.span("all") for match in CITED_EXERCISE.finditer(text))
    for match in CITED_YEAR.finditer(text):
        if match["year"] in YEARS:
            yield match.span("year")


def _in_code(text, start, end, code):
    if code is None:
        yield start, end
        return
    for number in re.finditer(
        r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?", text[start:end]
    ):
        before = text[start : start + number.end()].strip("`")
        words = TOKEN.findall(before)
        names = [i for i, word in enumerate(words) if re.match(r"[^\W\d]", word)]
        firsts = [i for i, word in enumerate(words) if re.match(r"\d", word)]
        piece = words[names[-1] if names else firsts[0] :]
        if f" {' '.join(piece)} " in code:
            yield start + number.start(), start + number.end()


def _in_maths(match):
    # Indices, and the small whole numbers that formulas are made of.
    for pattern in (SUBSCRIPT, re.compile(r"(?<![\w.,])[012](?![\w.,]\d|\d)")):
        for inner in pattern.finditer(match[0]):
            yield match.start() + inner.start(), match.start() + inner.end()


def _spans(pattern, text):
    return [m.span() for m in pattern.finditer(text)]


def _blank(text, *spans):
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text
