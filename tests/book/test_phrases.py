"""Turns of phrase that come back all over the book say one thing, which is computed.

"Keys and values", "a row of scores", "subtract the largest": such a phrase has one word
for which it is true. Under the expression that holds for that word alone, FACTS lists
its turns of phrase, with `…` for the word. So no page, exercise or message says
"queries and values".
"""

import ast
import inspect
import math  # noqa: F401 - expressions read it, and the next but one
import re
import unicodedata  # noqa: F401
from functools import cache
from itertools import pairwise

import pytest
import torch

from attention import CausalAttention, MultiHeadAttention
from coding_attention.exercises.files import FOLDER, NUMBERS, anchor
from coding_attention.gallery.cases import CASES  # noqa: F401
from coding_attention.grading.assignments import ASSIGNMENTS  # noqa: F401
from coding_attention.models.induction import Config as InductionConfig  # noqa: F401
from tests.book.claims import CELL, COMMENT, HEADER, WRITTEN
from tests.book.pages import BOOK
from theme import minutes  # noqa: F401

queries, keys, values = (torch.randn(n, 4) for n in (3, 5, 5))
scores = queries @ keys.mT  # (3, 5)
weights = scores.softmax(dim=-1)
future = torch.ones(4, 4).triu(1).bool()  # (t, t)
past = ~future
equal = torch.zeros(4, 4)
large = torch.tensor([100.0, 1.0, -100.0])
linear = torch.nn.Linear(3, 5)
layer = MultiHeadAttention(8, 8, 6, 0.0, num_heads=2)
x = torch.randn(1, 5, 8)  # (b, t, d)
heads = x.view(1, 5, 2, 4).transpose(1, 2)  # (b, h, t, d_head)
words = ["Your", "journey", "starts", "with", "one", "step"]
steps = inspect.getsource(CausalAttention.forward)


def said(page):
    """The source of a page."""
    return (BOOK / f"{page}.md").read_text(encoding="utf-8")


def hidden(early):
    """Weights whose future is hidden before softmax, or after it."""
    if early:
        return equal.masked_fill(future, -torch.inf).softmax(dim=-1)
    return equal.softmax(dim=-1).masked_fill(future, 0)


def summed(axis):
    """Whether scores, after softmax along an axis, sum to one in each row."""
    return bool((scores.softmax(axis).sum(dim=-1) - 1).abs().max() < 1e-5)


def task(stem):
    """The text of an exercise."""
    return (FOLDER / f"{stem}.md").read_text(encoding="utf-8")


# Each word beside the one that would make it false, and what both stand for.
PAIRS = {
    "keys/queries": (keys, queries),
    "rows/columns": (0, 1),
    "first/last": (0, -1),
    "largest/smallest": (torch.amax, torch.amin),
    "larger/smaller": (torch.maximum, torch.minimum),
    "before/after": (True, False),
    "above/below": (torch.triu, torch.tril),
    "upper/lower": (torch.triu, torch.tril),
    "zeros/ones": (0, 1),
    "left/right": (-1, 1),
    "more/less": (1, -1),
    "equal/different": (torch.ones(2), large[:2]),
    "count": range(len(NUMBERS)),
}
SINGULAR = {"key": "keys", "query": "queries", "row": "rows", "column": "columns"}
THE = r"(?:(?:an?|the|its|one|only|all|some|many|each|those|new|past|cached) )*"
FACTS = {
    "keys/queries": {
        # A key for each value and each column of scores, a query for each row.
        "len(it) == len(values)": [
            r"(?:compare with all the cached|if these|with only the) …",
            r"rebuilding every …",
            r"but a … is made from the vector",
            r"there is one per …\.",
            r"(?<!out of )…(?:,|,? and|,? or|-)(?:,? then)? ?(?:an? )?values?\b",
            rf"\bquer(?:y|ies)(?: and| or|,| or only| with| for| i and| by) {THE}"
            r"(?:token's )?…",
            r"\bcolumns?(?: are| by| per) …",
            r"columns, where it is the …",
            r"\bshare (?:an? |one )?…",
            rf"\b(?:cut the|grouped|blocks of|hal(?:f|ves) of|tiles? of|hides?|drop"
            r"|sees|sums? over|cutting|attend to|softmax over|vectors for|cache stores"
            rf"|how far back|scores (?:with|without)|without computing) {THE}…",
            r"(?:append (?:its|the new)|brings its own|take some|splits the) …",
            r"(?:how many|rotary|entry by its|with the best|the better a) …",
            r"column changes, it makes the …",
            r"\b(?:a|each) … (?:is hidden|lies)",
            r"… (?:are|had been) in \w+ block",
            r"(?:per|fewer|count|single|one|the) … heads?\b(?! share)",
            r"(?:row all|all but the first) …",
            r"(?:one|there is one) (?:per )?… (?:per group|\.)",
            r"(?:the new|in each layer for each) … (?:is joined|head)",
            r"(?:root of the number of|counts only|computing any|number as with) …",
            r"(?:replace|where the|what its) … (?:as wide|were cut|carried)",
            r"(?:the|token's) … (?:are the last axis|would be|still come from else)",
            r"weights an? … receives",
            r"(?:queries with 6|why not for the|query i and|query two with) …",
        ],
        "len(it) == len(scores)": [
            r"no other … shares the cost",
            r"(?:with )?one (?:block of )?… (?:at a time|per head:)",
            r"so splitting by …",
            rf"…(?: and| or|,| or only| with| for| to compare with) {THE}"
            r"(?:token's )?keys?\b",
            r"\brows?(?: are| by| per| belongs to a| i \w+ the \w+ of) …",
            r"rows, where it is the …",
            r"… heads (?:share|doesn't)",
            r"\b(?:multi|grouped)-…",
            r"every … sees",
            r"\b(?:each|all) …(?:, a kernel| has its own| is one column| share one)",
            r"\bwhat an? … may see",
            r"\beach head's …",
            r"suppl(?:y|ies) the …",
            r"value by value: the … journey",
            r"(?:search with a|looking is called the|matrix to the|and u to the) …",
            r"(?:the|divide the) … (?:of both heads|by √)",
            r"row of scores changes, [a-z ]+ makes the …",
            r"same …, each computed",
            r"the (?:only|first) … (?:is the newest|of a chunk)",
            r"(?:adjacent|for each) … heads?(?: belong|\. they share)",
            r"\b(?:a|one) … (?:sums over|depends on|averages the|per sentence)",
            r"(?:however long a|normalize the|those of a|numbers of all) …",
            r"the … (?:of the first head|come from the other)",
            r'one …(?: \(3|: "journey)',
            r"(?:can be|respect to|slider sets) the …",
            r"(?:for every|thousand random|of both|but a few|is|score of) …"
            r"(?:, since|, for| with| layers| get| two| i\b)",
            r"all … at once",
        ],
        # Softmax along the wrong axis, the last but one.
        "len(it) == scores.shape[-2]": [
            r"(?:softmax (?:runs )?over|wrong axis:|weights are averaged over) the …",
            r"axis 1 counts …",
        ],
    },
    "rows/columns": {
        "linear.weight.T.shape[it] == linear.out_features": [
            r"stored weight, but … in",
        ],
        "scores.shape[it] == len(queries) and summed(-1)": [
            r"the first … can't show",
            r"\ba … has one query's",
            r"… (?:are|by|per|i \w+ the \w+ of|belongs to a) quer",
            r"… of (?:finite )?scores",
            r"scores? (?:of|in) (?:a|each|the whole) …",
            r"(?<!now the )(?<!then )… (?:must |still |no longer )?sums? to",
            r"softmax runs along each …",
            r"(?:divid\w+|pairs)(?: by the sum of)?(?: a| the)? (?:each|whole) …",
            r"fully (?:hidden|masked) …",
            r"each …(?: only)? (?:uses|is shifted|has its own|hides|sees)\b",
            r"padding's …",
            r"\b(?:a|the) … (?:has kept|far|for which|that has nothing|was cut)",
            r"(?:weight in each|same number in every) …",
            r"… (?:and|with) columns",
            r"in the (?:first|last) … (?:all|none)",
            r"(?:than the|mask for one|its) … (?:above|hides|of the mask)",
            r"(?:the first|no such|avoid such|all other|earlier|the) …"
            r"(?: of each head| unless|: let| differ| are the same| spreads)",
        ],
        # One for each key, and what sums to one after softmax along the wrong axis.
        "scores.shape[it] == len(keys) and not summed(-2)": [
            r"… (?:are|by) keys?\b",
            r"softmax runs (?:along|down) the …",
            r"(?:now the|then) … sum to",
            r"its … changes, it makes the keys",
            r"\b(?:one|it one|add one|own|wrong) … (?:to the (?:right|left|scores)"
            r"|further right|left|was dropped|for)",
            r"hide (?:their|its|the) …(?! of padding instead)",
            r"\b(?:hidden|a|the) … is (?:right next|true if)",
            r"\b(?:is that|needs its own) …",
            r"\brows (?:and|with) …",
        ],
        "x.shape[it + 1] == 5": [  # of a batch: a row is a token
            r"tokens are …",
            r"(?:which|values, one per) …(?: of the (?:result|output|keys)|\.)",
            r"(?:its|each|second) … (?:is nan|needs no|averages|ends up|is a token)",
            r"\b(?:one|after:|them:) … (?:per (?:position|token)|are in token order)",
            r"(?:the|those|output's) … (?:of inputs|were|are shuffled)",
            r"mask takes …",
        ],
        "x.shape[it + 1] == 8": [r"each … one coordinate"],  # of a batch, too
        # Layer norm makes that of each row zero.
        "torch.layer_norm(scores, (5,)).mean(1 - it).abs().max() > 0.01": [
            r"the notes' …",
        ],
        "torch.zeros(2, 6).shape[it] == 2": [  # of a batch of texts
            r"(?:every|each) … of (?:a|the) batch",
            r"(?:mask of one|alone in its|into one long) …",
        ],
        "linear.weight.shape[it] == linear.out_features": [
            r"its weights are the first …",
            r"\bone … per output",
            r"(?:block of|stack the|heads'|head's) …",
            r"… make\b",
            r"… of w_",
            r"(?:first matrix|features:) (?:by )?…",
            r"(?:makes the heads:) …",
            r"out_proj is cut into …, so",
        ],
        "linear.weight.shape[it] == linear.in_features": [
            r"columns read features, so out_proj is cut into …",
            r"… of out_proj",
            r"out_proj by …(?! here| in|, so)",
            r"cut into … here, which read",
            r"… reads?\b",
            r"which … come from",
            r"needs only the … for",
            r"second by …",
        ],
        # What a sum over each row leaves where it keeps the axis.
        "scores.sum(-1, keepdim=True).shape[it] == 1": [
            r"keeps (?:those|the sums) (?:in|as) a …",
        ],
    },
    "first/last": {
        "past[:, it].all()": [
            r"(?:picks|on) the … (?:token|word), an attention sink",
        ],
        "summed(it)": [r"softmax(?:, along| along) the … axis"],
        "heads.mT.shape[it] == heads.shape[-2]": [
            r"the … two (?:axes|dimensions)",
            r"(?:on|over|splits?|cuts?) the … axis",
            r"(?:keys are|key, its) (?:the )?… axis",
        ],
        # Nobody may see the last token; the first sees itself alone.
        "future[:, it].sum() == 3": [
            r"chang\w+ the … token",
            r"the … token has no future",
        ],
        "past[it].sum() == 1": [
            r"each token except the …",
            r"the … token (?:sees nothing, and its|has only itself|can't see anything)",
            r"the … (?:one|row of each head) (?:sees nothing|divides zero|attends to)",
        ],
        "past[:, it].sum() == 1": [
            r"(?:sees?|see only|see)(?: only)? the … few",
            r"the … token leaks",
        ],
    },
    "largest/smallest": {
        "it(torch.tensor([12, 25]), 0) == 25": [
            r"\blargest, count: parameters of one layer, …",
            r"the … has 25 heads",
        ],
        "torch.exp(large - it(large, 0)).isfinite().all()": [
            r"the … weight in each row is one",
            r"…(?: one| common)? (?:scores?|exponentials?|first)\b",
            r"\b(?:own|old|new|common|subtracts? the|subtracted the) …",
            r"the … weight needs",
            r"needs the …",
        ],
        "it(torch.tensor([12, 25]), 0) == 12": [
            r"\bsmallest, count: parameters of one layer, …",
            r"\bthe … gpt-2(?: has|:)",
            r"12 in its …",
        ],
        # Shares of one: the one that nears one is never below their mean.
        "it(weights, -1).ge(1 / 5).all()": [r"gradient of the … weight"],
    },
    "larger/smaller": {
        "torch.exp(large[0] - it(large[0], large[2])).isfinite()": [
            r"the … of the two",
            r"\b(?:have|had|when) a … (?:score|number|one)\b",
        ],
    },
    "before/after": {
        # Before any tile, nothing is summed.
        "len(keys[: 0 if it else 5]) == 5": [
            r"divide once, … all tiles",
        ],
        "hidden(it)[0, 0] == 1": [
            r"minus infinity … softmax",
            r"rightly, …",
        ],
        "hidden(it)[0, 0] < 1": [
            r"\b(?:a mask|applies the mask|zeroing weights|for queries:) … softmax",
        ],
        "(steps.index('scores') < steps.index('softmax')) == it": [
            r"(?:softmax runs|the scores,|a sum) … (?:the scores|(?:its )?softmax)",
        ],
        "(steps.index('softmax') < steps.index('@ values')) == it": [
            r"… they (?:meet|are multiplied)",
            r"weighted sum runs … its weights",
        ],
        "(heads.shape.index(2, 1) < heads.shape.index(5)) == it": [
            r"(?:heads|move them|h comes) … (?:the tokens|their features|d_head)",
        ],
        "torch.exp(large - large.max() * it).isfinite().all()": [
            r"is subtracted … the exponential",
        ],
        "torch.exp(large - large.max() * (not it)).isfinite().all()": [
            r"exponentials … subtracting",
        ],
        "(steps.index('keys') < steps.index('scores')) == it": [
            r"append its key and value … attending",
        ],
        "(steps.index('scores') < steps.index('shape[-1] ** 0.5')) == it": [
            r"value … division",
        ],
        # With one score more, the rest sum to less than one only then.
        "(torch.cat([scores, scores], 1).softmax(1)[:, :5].sum(1) < 1).all() != it": [
            r"drop it … softmax",
        ],
        # A model is to say what follows: the future of what it has seen.
        "past[-2, -1] == it": [
            r"(?:tokens right|looks at what came|second token) … (?:its|it|the)\b",
        ],
        # What a later token changes, no earlier output may feel.
        "past[-1, -2] == it": [
            r"outputs … it\b",
            r"(?:token right|the few(?: tokens)?) … (?:it|each query)\b",
            r"(?:token(?: that)? occurred|which token came) …",
        ],
    },
    "above/below": {
        "(-torch.inf < large.min()) == (it is torch.tril)": [
            r"infinity is … every score",
        ],
        "future[0 if it is torch.triu else 2].sum() == future[1].sum() + 1": [
            r"fewer than the row …",
        ],
        "not it(torch.ones(4, 4), 1 if it is torch.triu else -1)[past].any()": [
            r"true … the diagonal",
            r"\bon or … a diagonal",
        ],
        "it(torch.ones(4, 4)).bool().equal(past)": [r"ones on and … the diagonal"],
    },
    "upper/lower": {
        "(-math.log(1 / 2) < -math.log(1 / 8)) == (it is torch.tril)": [
            r"a … loss knows",
        ],
        "it(torch.ones(4, 4)).bool().equal(past)": [
            r"\ba … triangle of ones",
            r"\ba …-triangular",
        ],
        "it(torch.ones(4, 4), 1).bool().equal(future)": [r"triu keeps the … triangle"],
    },
    "zeros/ones": {
        "repr(torch.tensor([0.5, 0.25])).count(f'0.5{it}') == 1": [
            r"trailing …",
        ],
        # What softmax over the past turns into a mean.
        "equal.add(it).masked_fill(future, -torch.inf).exp().equal(past * 1.0)": [
            r"(?:softmax over masked|replace the) …",
        ],
        "torch.exp(10 * (large - large.max()))[1:].eq(it).all()": [r"nothing but …"],
        "(past * it).equal(past)": [
            r"numbers, and … mark where",
            r"triangle of …",
        ],
        "torch.eye(6)[0, 1] == it": [r"vector: all …, with a one"],
        "(values * it).eq(0).all()": [r"… in a head's rows"],
        # Only there can what is dropped be seen.
        "torch.dropout(torch.full((9,), float(it)), 1, True).ne(it).any()": [
            r"dropout (?:on|of) …",
        ],
        "torch.nn.functional.scaled_dot_product_attention(queries, keys, values,"
        " torch.zeros(3, 5).bool()).eq(it).all()": [r"the function returns …"],
    },
    "equal/different": {
        "it.softmax(dim=0).eq(1 / 2).all()": [
            r"(?:return for|attention with|to one;) … scores",
        ],
    },
    "left/right": {
        "past[1, 1 + it]": [
            r"one column … of the diagonal",
        ],
        "future[1, 1 + it]": [
            r"\b(?:column|position|one column|one position) to the …",
            r"from left to …",
            r"hide the columns … of the diagonal",
        ],
    },
    "more/less": {
        "minutes.QUESTION * it > 0 < minutes.LAB * it": [
            r"(?:two|four) … for a (?:question|lab)",
        ],
        "(torch.cat([scores] * 2, 1).softmax(1)[:, :5].sum(1) < 1).all() == (it < 0)": [
            r"tokens' weights (?:now )?sum to … than",
        ],
        "(-math.log(1 / 2) < -math.log(1 / 8)) == (it == 1)": [
            r"loss knows …",
        ],
        "len(torch.cat([keys, keys[:1]])) - len(keys) == it": [
            r"\bone … (?:axis|token|tile|word|product|part|window|difference)\b",
        ],
        "(heads.shape[1] - 1) * it > 0": [r"why … than one head"],
        # Of two scores, one of which is zero.
        "(torch.tensor(2.0).sigmoid() - torch.tensor(1.0).sigmoid()) * it > 0": [
            r"key fits, the … of its value",
        ],
    },
    "count": {
        "all(1 + len(others) == it for _, _, others in CASES)": [
            r"choose one of … causes",
        ],
        "it == max(task.total for task in ASSIGNMENTS.values())": [
            r"each has … points",
        ],
        "it == task('repair').count('# Before: ')": [
            r"but it has … mistakes",
        ],
        "it == task('window').count('answer, praise, window=')": [
            r"compared … windows",
        ],
        "it == scores.ndim": [
            r"how far apart … tokens are",
        ],
        "it == InductionConfig.num_blocks": [r"\bblock (?!one\b)…"],
        "it == len(words)": [
            r"(?:all|chapter's|order of the|same|each of its) … "
            r"(?:words|vectors|tokens)\b",
            r"… by six\b",
            r"\bsix by …",
        ],
        "it == sum(a != b for a, b in zip(heads.shape, heads.mT.shape))": [
            r"the last … (?:axes|dimensions)",
        ],
        "it == round(-math.log10(torch.finfo(torch.float32).eps))": [
            r"(?:about|with) … digits"
        ],
        "it == torch._tensor_str.PRINT_OPTS.precision": [r"… decimals"],
        "it == sum(w.ndim == 2 for w in layer.parameters())": [r"… square matrices"],
        "it == len(inspect.signature(CausalAttention).parameters)": [
            r"… constructor arguments"
        ],
        "it == minutes.QUESTION": [r"… more for a question"],
        "it == minutes.LAB": [r"… more for a lab"],
        "it == len(ASSIGNMENTS)": [r"\band … assignments that"],
        "it == len((hidden(True), hidden(False)))": [
            r"\bin … ways\b",
            r"… ways (?:that|to hide)",
        ],
        "it == scores[None].ndim": [r"with … axes"],
        "it == unicodedata.digit('₂')": [r"ω₂₁ is query … with"],
        "it == len(re.findall('^- [*]', said('notation'), re.M))": [
            r"… sets of letters",
        ],
        "it == len(re.findall('^# [0-9]', said('summary'), re.M))": [r"… mechanisms"],
    },
}


def forms(pair):
    """The words of a pair, in the order of what they stand for, and their singulars."""
    words = NUMBERS if pair == "count" else pair.split("/")
    return words, [*words, *(one for one, many in SINGULAR.items() if many in words)]


@cache
def ways():
    """(the pattern of a phrase, the word that is right in it) of each."""
    found = []
    for pair, facts in FACTS.items():
        names, all_forms = forms(pair)
        slot = rf"\b(?P<word>{'|'.join(all_forms)})\b"
        for expression, phrases in facts.items():
            right = [word for it, word in zip(PAIRS[pair], names, strict=True)
                     if eval(expression, globals() | {"it": it})]  # fmt: skip
            assert len(right) == 1, f"{expression} holds for {right}, and not for one"
            found += [(re.compile(p.replace("…", slot)), *right) for p in phrases]
    return found


def plain(text):
    """What is read of a file, in small letters and without marks; ¶ ends a block."""
    text = CELL.sub(_captions, HEADER.sub("", text))
    for pattern in (WRITTEN, FENCE, COMMENT):
        text = pattern.sub("", text)
    text = re.sub("`([^`]*)`", lambda m: m[1] if m[1].isidentifier() else "", text)
    text = re.sub(r"\]\([^)]*\)|[*\[]", "", text)
    return " ".join(re.sub(r"\n\n|\n(?=[-|#])", " ¶ ", text).split()).lower()


def _captions(cell):
    strings = re.findall(r'"([^"\n]*)"', cell[0].partition("caption=")[2])
    return "\n\n" + "".join(strings) + "\n\n"


def wrong(text):
    """Phrases of a text with another word than the one for which they are true."""
    text = plain(text)
    for pattern, right in ways():
        for match in pattern.finditer(text):
            if SINGULAR.get(match["word"], match["word"]) != right:
                around = text[max(0, match.start() - 30) : match.end() + 20]
                yield f"…{around}…: {match['word']!r}, and not {right!r}"
    for match in TWICE.finditer(text):
        yield f"{match[0]!r} says the same of two things"


FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
TWICE = re.compile(
    r"\b(quer(?:y|ies)|keys?|rows?|columns?|first|last|(?:larg|small)est|before|after"
    r"|left|right|more|less|larger|smaller|zeros|ones)"
    r"(?:,? and|,? or|,| by| are| to| with| are \w+[,;]) (?:the )?\1\b"
)
FILES = {
    path.stem: path
    for path in [*BOOK.glob("*.md"), *FOLDER.glob("*.md")]
    if path.stem not in ("exercises", "solutions")  # made from the tasks
}


@pytest.mark.parametrize("stem", FILES)
def test_a_phrase_has_the_word_for_which_it_is_true(stem):
    assert not list(wrong(FILES[stem].read_text(encoding="utf-8")))


EXERCISE = re.compile(r"\[([^\]]+)\]\(exercises\.ipynb#([\w-]+)\) \(\w+\)")


@pytest.mark.parametrize("stem", FILES)
def test_a_link_to_an_exercise_says_its_title(stem):
    """On its page, and from the exercise's side."""
    told = {s: p.read_text(encoding="utf-8").replace("`", "") for s, p in FILES.items()}
    tasks = [told[path.stem] for path in FOLDER.glob("*.md")]
    titles = {re.search("^# (.+)$", task, re.M)[1] for task in tasks}
    for title, target in EXERCISE.findall(told[stem]):
        assert title in titles
        assert target == anchor(title)
    if told[stem] in tasks:
        linked = {
            title for text in told.values() for title, _ in EXERCISE.findall(text)
        }
        assert re.search("^# (.+)$", told[stem], re.M)[1] in linked


def test_what_a_figure_is_said_to_name_is_named_in_its_code():
    labels = [(label, text) for path in FILES.values()
              for text in [path.read_text(encoding="utf-8")]
              for label in re.findall("“([^”]+)” in the figure", text)]  # fmt: skip
    assert len(labels) > 1
    for label, text in labels:
        assert f'"{label}"' in "".join(cell[0] for cell in CELL.finditer(text))


def test_every_phrase_is_said_somewhere():
    told = " ¶ ".join(
        plain(path.read_text(encoding="utf-8")) for path in FILES.values()
    )
    unsaid = [pattern.pattern for pattern, _ in ways() if not pattern.search(told)]
    assert not unsaid, "said nowhere any more: take them out of FACTS"


def test_cases_of_find_the_bug_are_numbered_as_they_are_shown():
    told = FILES["find_the_bug"].read_text(encoding="utf-8")
    cases = re.findall(r"^### Case (\w+)\n+```\{bug-case\} (\d+)$", told, re.M)
    assert len(cases) == told.count("{bug-case}")
    words = [*NUMBERS, "thirteen", "fourteen", "fifteen", "sixteen"]
    assert [word for word, _ in cases] == [words[int(n)] for _, n in cases]


@pytest.mark.parametrize(
    "text",
    [
        "It keeps the *queries* and values.",
        "Softmax subtracts the smallest score.",
        "Swap the last `three` axes, and then the last three\naxes.",
        "Before and before.",
        '```{code-cell}\nshow(x, caption="Rows are keys; columns are keys.")\n```',
    ],
)
def test_a_wrong_word_is_seen(text):
    assert list(wrong(text))


CELLS = re.compile(r"^```(?:\{code-cell\}[^\n]*|python)\n(.*?)^```$", re.M | re.S)


def mislabeled(code):
    """Labels of what is printed that say the opposite of the comparison behind them."""
    for call in ast.walk(ast.parse(code)):
        printed = isinstance(call, ast.Call) and getattr(call.func, "id", "") == "print"
        for label, shown in pairwise(call.args) if printed else ():
            words, truth = str(getattr(label, "value", "")), ast.unparse(shown)
            equal = re.search(r"\b(all)?(close|equal)\(", truth)
            if equal and "differ" in words and not truth.startswith("not "):
                yield words, truth


@pytest.mark.parametrize("stem", FILES)
def test_what_is_printed_as_different_is_not_whether_two_are_equal(stem):
    text = FILES[stem].read_text(encoding="utf-8")
    for cell in CELLS.findall(text):
        code = re.sub(r"^(:\w.*|[%!].*|\[.*\])$", "", cell, flags=re.M)
        assert not list(mislabeled(code))


def test_a_wrong_label_is_seen():
    assert list(mislabeled('print("different:", torch.allclose(a, b))'))
    assert not list(mislabeled('print("different:", not torch.equal(a, b))'))
    assert not list(mislabeled('print("equal:", torch.equal(a, b))'))
