"""The slides of a page, from its cells: titles, questions, code, figures, labs."""

import html
import re
from dataclasses import dataclass

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from coding_attention import address
from coding_attention.exercises import EXERCISES
from coding_attention.exercises.files import anchor
from coding_attention.exercises.notebook import CELL as TASK_CELL
from coding_attention.published_values import text_of
from coding_attention.stored import html_of
from theme.lean_site.maths import to_mathml
from theme.slides import fitted, listings, minutes

HEADING = re.compile(r"^(#{1,3}) (.+?)\s*$", re.M)
EXERCISE = re.compile(r"^> \*\*Exercises?\.\*\*.*$", re.M)
FIGURE = re.compile(
    r'<figure class="attention-figure".*?role="img" aria-label="([^"]*)"(.*?)'
    r"<figcaption[^>]*>(.*?)</figcaption></figure>",
    re.S,
)
LONG, MANY = 230, 5  # letters of a sentence, entries of a list: set smaller beyond
SITE = "../html/book/"  # beside the decks, as `make book` leaves it
LEAD = 150  # letters of a sentence that leads to a cell
# Alone on a slide, such a sentence would not say what it speaks of.
REFERS = re.compile(r"(?:(?:Does|Do|Is|Are) )?(?:its?|they|these)\b", re.I)


@dataclass
class Slide:
    """One slide.

    Attributes:
        title: its heading, in Markdown.
        body: what stands on it, in HTML.
        kind: "title", "question", "code", "listing", "formula", "figure", "lab",
            "exercise" or "summary".
        said: the words of the page that the speaker may say, in Markdown.
        answer: what the speaker should know before it is shown, in HTML.
        minutes: by the rule of :mod:`theme.slides.minutes`.
        of: the section and the cells of the page, by which a route names the slide.
        beside: whether title and sentence stand beside a drawing that is tall.
    """

    title: str
    body: str
    kind: str
    said: str = ""
    answer: str = ""
    minutes: float = 0.0
    of: tuple = ()
    beside: bool = False


def _formula(source, options):
    return to_mathml(source, "block" if options["display_mode"] else "inline")


def _markdown():
    made = MarkdownIt("commonmark").enable("table")
    made.use(dollarmath_plugin, renderer=_formula, allow_space=False)
    return made


MARKDOWN = _markdown()


def rendered(text, inline=False):
    """Return Markdown as HTML, without comments and without links into the book."""
    text = re.sub(r"\s*<!--.*?-->", "", text, flags=re.S)
    made = MARKDOWN.renderInline(text) if inline else MARKDOWN.render(text)
    return re.sub(r"</?a\b[^>]*>", "", made)


def slides_of(notebook, name):
    """Return the slides of a page, in its order; each word and cell is on one."""
    return _Page(notebook.cells, name).slides


class _Page:
    """Walks through a page and makes its slides."""

    def __init__(self, cells, name):
        self.name, self.cells = name, cells
        self.slides, self.waiting = [], []  # paragraphs that no slide has yet
        self.heading, self.section, self.headings = "", "", 0.0
        self.answering = None  # the question whose answer comes next
        for cell in cells:
            if cell.cell_type == "markdown":
                self._words(cell.source)
            else:
                self._cell(cell)
        if self.waiting:
            self._say(self.slides[-1], self.waiting)
        self.slides[-1].minutes += self.headings

    def _add(self, body, kind, *, minutes_=0.0, cell="", answer="", said=None):
        title = self.heading
        slide = Slide(title, body, kind, answer=answer, of=(self.section, cell))
        slide.minutes = minutes_
        self._say(slide, self.waiting if said is None else said)
        if said is None:
            self.waiting = []
        if kind != "exercise":
            slide.minutes += self.headings
            self.headings = 0.0
        self.slides.append(slide)
        return slide

    def _say(self, slide, paragraphs):
        text = "\n\n".join(paragraphs)
        slide.said = "\n\n".join(part for part in (slide.said, text) if part)
        slide.minutes += minutes.spoken(text)

    def _words(self, source):
        source = re.sub(r'<a id="[^"]*"></a>', "", source)
        ends = [m.start() for m in HEADING.finditer(source)] + [len(source)]
        self._paragraphs(source[: ends[0]])
        for match, end in zip(HEADING.finditer(source), ends[1:], strict=True):
            self._answered()
            if formulas := _displayed(self.waiting):  # no cell follows it
                self._add(formulas, "formula")
            self.heading, self.section = match[2], anchor(match[2])
            self.headings += minutes.spoken(match[2])  # it is said as well
            text = source[match.end() : end].strip()
            if not self.slides:
                self._title(text)
            elif self.heading == "Summary":
                self._summary(text)
            else:
                self._paragraphs(text)

    def _title(self, text):
        first, *rest = text.split("\n\n")
        if first.startswith(">"):
            first, rest = "", [first, *rest]
        self._add(f'<div class="lead">{rendered(first)}</div>', "title", said=[first])
        self._paragraphs("\n\n".join(rest))

    def _summary(self, text):
        points = re.findall(r"^- (.+)$", text, re.M)
        items = "".join(f"<li>{rendered(_bare(p), inline=True)}</li>" for p in points)
        many = ' class="many"' if len(points) > MANY else ""
        self._add(f"<ul{many}>{items}</ul>", "summary", said=[*self.waiting, text])
        self.waiting = []

    def _paragraphs(self, text):
        for paragraph in filter(None, re.split(r"\n\n+", text.strip())):
            question = minutes.PREDICT.match(paragraph)
            if question:
                self._answered()
                self._ask(question[1], paragraph)
            elif EXERCISE.match(paragraph):
                self._exercises(paragraph)
            elif self.answering is not None and self.answering.answer:
                # The words behind the answer belong to it.
                self.answering.minutes += minutes.spoken(paragraph)
                self.answering.answer += rendered(paragraph)
                self.answering = None
            else:
                self.waiting.append(paragraph)

    def _answered(self):
        self.answering = None

    def _ask(self, question, paragraph):
        self.waiting.append(paragraph)
        body = f'<p class="question">{rendered(question, inline=True)}</p>'
        self.answering = self._add(body, "question")

    def _exercises(self, paragraph):
        for title in re.findall(r"\[([^\]]+)\]\(exercises\.ipynb#", paragraph):
            (task,) = [e for e in EXERCISES.values() if e.title == title]
            bodies = _task(task)
            share = minutes.EXERCISE[task.level] / len(bodies)
            for body in bodies:
                slide = self._add(
                    body, "exercise", minutes_=share, cell=task.slug, said=[]
                )
                slide.title, slide.answer = task_title(task), _solution(task)
        told = [s for s in self.slides if s.kind != "exercise"]
        told[-1].minutes += minutes.spoken(paragraph)

    def _cell(self, cell):
        name = cell.metadata.get("name", "")
        if address.is_install(cell):  # it prepares a reader's machine: no slide
            return
        if name.startswith("figure-"):
            self._figure(cell, name)
        elif name.startswith("lab-"):
            self._lab(cell, name)
        elif "listing" in cell.metadata.get("tags", []):
            self._listing(cell, name)
        else:
            self._code(cell, name)

    def _several(self, bodies, kind, cell, name):
        share, answer = minutes.shown(cell) / len(bodies), _answer(text_of(cell))
        made = [self._add(b, kind, minutes_=share, cell=name) for b in bodies]
        if kind == "code":
            made[0].answer = answer
        return made

    def _listing(self, cell, name):
        formulas = _displayed(self.waiting)
        made = listings.bodies(cell.source)
        self._several([formulas + made[0], *made[1:]], "listing", cell, name)

    def _code(self, cell, name):
        code, output = cell.source, text_of(cell).rstrip("\n")
        folded = "hide-cell" in cell.metadata.get("tags", [])
        question = self.answering
        if question is not None:
            taken = fitted.paragraph(_plain(question.body), 32, 0.5) + 30
            first = not question.answer
            question.of = (*question.of, name)
            question.answer += _answer(output)
            bodies = [_shown(code, output, taken, folded)]
            if not bodies[0] and not folded:  # the code is what is asked about
                bodies = [_shown(code, "", taken, folded), *_parts(output, 0, "output")]
            if first and bodies[0]:
                share = minutes.shown(cell) / len(bodies)
                question.minutes += share
                question.body += bodies[0]
                for body in bodies[1:]:
                    self._add(body, "code", minutes_=share, cell=name, said=[])
                return
        lead = _lead(self.waiting) + _displayed(self.waiting)
        taken = _taken(self.waiting)
        bodies = _pages(lead, taken, code, output, folded)
        self._several(bodies, "code", cell, name)

    def _figure(self, cell, name):
        for alt, drawn, caption in _figures(cell):
            long = " long" if len(caption) > LONG else ""
            sentence = f'<p class="sentence{long}">{caption}</p>'
            found = fitted.figures(fitted.drawings_of(drawn), alt, caption)
            made = self._several([f + sentence for f, _ in found], "figure", cell, name)
            for slide, (_, beside) in zip(made, found, strict=True):
                slide.beside = beside
            if self.answering is not None:
                self.answering.answer += f"<p>{caption}</p>"

    def _lab(self, cell, name):
        (made,) = filter(None, map(html_of, cell.outputs))
        # The picture's own words; else those of the lab, below its title.
        own = re.search(r'<svg[^>]*aria-label="([^"]*)"', made)
        words = own[1] if own else re.findall(r"<p\b[^>]*>(.*?)</p>", made, re.S)[1]
        words = _plain(words)
        link = f'<a href="{SITE}{self.name}.html#{name}">Open the lab</a>'
        drawings = [fitted.with_whole_labels(d) for d in fitted.drawings_of(made)]
        if drawings:  # the first picture stands for the lab
            picture, beside = fitted.figures(drawings, html.escape(words), "")[0]
        else:
            picture, beside = re.search(r"<table>.*?</table>", made, re.S)[0], False
        kind = re.search(r'class="(attn-static[^"]*)"', made)[1]
        picture = picture.replace('<div role="img"', f'<div class="{kind}" role="img"')
        body = f'{picture}<p class="sentence">{html.escape(words)} {link}</p>'
        self._several([body], "lab", cell, name)[0].beside = beside


def _plain(markup):
    return html.unescape(re.sub(r"<[^>]+>", "", markup))


def _answer(output):
    return f"<pre><code>{html.escape(output)}</code></pre>" if output else ""


def _shown(code, output, taken, folded):
    """Return code and output for the room below something, or nothing: too much."""
    step = "fragment" if folded else ""
    size, beside = fitted.size_of([code, output], taken), None
    if output and (size or 0) < 24:
        beside = fitted.columns(code, output, taken)
    if (beside or 0) > (size or 0):
        pair = fitted.pre(code, beside, step)
        pair += fitted.pre(output, beside, "output fragment")
        return f'<div class="columns">{pair}</div>'
    if not size:
        return None
    shown = fitted.pre(code, size, step)
    return shown + (fitted.pre(output, size, "output fragment") if output else "")


def _pages(lead, taken, code, output, folded):
    """Return the slides of a cell: one, if code and output fit it together."""
    together = _shown(code, output, taken, folded)
    if together:
        return [lead + together]
    first, *more = _parts(code, taken)
    if output and more:  # the output may fit below the end of the code
        end = _shown(fitted.cut(code, taken)[-1], output, 0, False)
        if end:
            return [lead + first, *more[:-1], end]
    return [lead + first, *more, *(_parts(output, 0, "output") if output else [])]


def _parts(text, taken, classes=""):
    """Return code or output, each part as large as its slide allows."""
    made = []
    for part in fitted.cut(text, taken):
        size = fitted.size_of([part], taken) or fitted.SMALLEST
        made.append(fitted.pre(part, size, classes))
        taken = 0
    return made


def _lead(paragraphs):
    """Return the sentence that leads to a cell, if the last words are one."""
    sentence = _leading(paragraphs)
    return (
        f'<p class="lead-in">{rendered(sentence, inline=True)}</p>' if sentence else ""
    )


def _leading(paragraphs):
    words = [p for p in paragraphs if not p.startswith(("$$", "<"))]
    if not words or words[-1].startswith(("```", "|", "-")):  # a colon leads there
        return ""
    plain = re.sub(r"\s*<!--.*?-->", "", words[-1], flags=re.S).strip()
    *before, last = re.split(r"(?<=[.?!:])\s+(?=[A-Z\"*`\[$(])", plain)
    if before and REFERS.match(last) and len(before[-1]) + len(last) < LEAD:
        last = f"{before[-1]} {last}"
    return last if last[-1:] in ":?" and len(last) <= LEAD else ""


def _displayed(paragraphs):
    found = [p for p in paragraphs if p.startswith("$$")]
    return "".join(f'<div class="formula">{rendered(p)}</div>' for p in found)


def _taken(paragraphs):
    return fitted.paragraph(_leading(paragraphs)) + 110 * sum(
        p.startswith("$$") for p in paragraphs
    )


def _bare(point):
    # "([shown here](#cell))": there is no such cell on a slide.
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", point)
    return re.sub(r"\s*\((?:\w+ )?here[^()]*\)", "", words)


def _figures(cell):
    for output in cell.outputs:
        found = FIGURE.search(html_of(output))
        if found:
            yield found.groups()


def _task(task):
    words, *rest = TASK_CELL.split(task.given(task.body))
    code = "\n\n".join(c.strip() for c in rest[::2] if "figures.show" not in c)
    text = re.sub(r"^#+ .*$", "", words, flags=re.M).strip()
    taken = fitted.paragraph(text, 24) + 60 + 30 * text.count("\n\n")
    level = f"{task.level}, {minutes.EXERCISE[task.level]} minutes"
    lead = f'<div class="task"><p class="level">{level}</p>{rendered(text)}</div>'
    return _pages(lead, taken, code, "", False)


def task_title(task):
    """Return the title of an exercise's slide."""
    named = task.title.startswith("Exercise ")  # one of the chapter's own
    return task.title if named else f"Exercise: {task.title}"


def _solution(task):
    text = next(t for h, (t, _) in task.sections.items() if h.startswith("Solution"))
    words, *rest = TASK_CELL.split(text)
    return rendered(words) + "".join(_answer(code.strip()) for code in rest[::2])
