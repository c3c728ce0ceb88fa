"""No page of 01 to 05 uses a term before the place where the reader is told what it is.

A definition sets its term in italics. Headings, links and exercises name things in
passing, and do not count; nor do formulas, whose names are told below them, and what
the first page announces under "The way ahead".
"""

import re

import pytest

from tests.book.pages import BOOK

PAGES = [
    "01_why_attention",
    "02_simple_self_attention",
    "03_trainable_self_attention",
    "04_causal_attention",
    "05_multi_head_attention",
]
# Terms, in the order in which the pages define them, as a pattern of their forms.
TERMS = {
    "self-attention": "self-attention",
    "token": "tokens?",
    "embedding": "embeddings?",
    "encoder": "encoders?",
    "hidden state": "hidden states?",
    "recurrent": "recurrent",
    "decoder": "decoders?",
    "bottleneck": "bottleneck",
    "parameter": "parameters?",
    "loss": "loss(?:es)?",
    "training step": r"training \*?steps?|\d+ steps",
    "seed": "seeds?",
    "softmax": "softmax",
    "attention weight": "attention weights?",
    "context vector": "context vectors?",
    "query": "quer(?:y|ies)",
    "dot product": "dot products?",
    "attention score": "attention scores?",
    "one-hot": "one-hot",
    "key": "(?<!arrow )keys?",
    "value": r"\*value\*|value (?:matrix|vector)s?",
    "dropout": "dropout",
}
DEFINED = {"training step": "step", "value": "value"}  # the word in italics
LINK = re.compile(r"\[[^\]]*\]\([^)]*\)")


def paragraphs():
    """The paragraphs of the five pages in reading order, without code and headings."""
    for page in PAGES:
        text = (BOOK / f"{page}.md").read_text(encoding="utf-8").split("---\n", 2)[2]
        text = re.sub(r"```\{code-cell\}.*?\n```", "", text, flags=re.S)
        text = re.sub(r"<!--.*?-->|`[^`]*`|\$\$.*?\$\$", "", text, flags=re.S)
        text = re.sub(r"^## The way ahead$.*?(?=^## )", "", text, flags=re.S | re.M)
        for paragraph in re.split(r"\n\s*\n", text):
            if not paragraph.lstrip().startswith(("#", "> **Exercise")):
                yield page, LINK.sub("", paragraph)


def first_use(pattern, texts):
    """The place of the first paragraph that uses a term, and of its first letter."""
    found = re.compile(rf"\b(?:{pattern})\b", re.I)
    return next(((i, m.start()) for i, t in enumerate(texts) if (m := found.search(t))))


def definition(word, texts):
    """The place where a term is set in italics for the first time."""
    found = re.compile(rf"(?<!\*)\*(?:{word})\*(?!\*)", re.I)
    places = ((i, m.start()) for i, t in enumerate(texts) if (m := found.search(t)))
    return next(places, None)


TEXTS = [text for _, text in paragraphs()]


@pytest.mark.parametrize("term", TERMS)
def test_no_term_is_used_before_it_is_defined(term):
    word = DEFINED.get(term, TERMS[term])
    defined = definition(word, TEXTS)
    assert defined, f"No page of 01 to 05 sets *{term}* in italics where it is defined."
    used = first_use(TERMS[term], TEXTS)
    assert used >= defined or used[0] == defined[0], (
        f"{term} is used before it is defined: {TEXTS[used[0]].strip()[:200]!r}"
    )


def test_a_term_that_comes_too_early_is_noticed():
    texts = ["The loss falls.", "The *loss* measures how wrong a network is."]
    assert first_use(TERMS["loss"], texts) < definition(TERMS["loss"], texts)
    assert definition("seeds?", texts) is None
