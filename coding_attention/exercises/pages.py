"""Writes what the book's pages show of each exercise, from the files in ``tasks/``.

    python -m coding_attention.exercises.pages

``make notebooks`` does this first. On the pages about exercises and solutions,
everything between the words at the top and the summary is written anew; on the other
pages, the line that links the exercises of a section. Needs no PyTorch.
"""

import itertools
import re
from pathlib import Path

from coding_attention.book import make_slug
from coding_attention.exercises.files import PAGES, exercises

BOOK = Path(__file__).resolve().parents[2] / "book"
OPEN_ENDED = """## Open-ended

Three layers to write your own way, with no starting code. The package's \
[checker](checker.ipynb) tests and grades your class. All three go with \
[Attention in real models](10_attention_in_models.ipynb)."""
SOLVED = "## Open-ended: solutions\n\nShort solutions among many."
LINKS = re.compile(r"^> \*\*Exercises?\.\*\*.*\n", re.MULTILINE)
HELP = """<details>
<summary>{}</summary>

{}

</details>"""
AT_LAST = "[Compare your answer](solutions.ipynb#{})."


def check_cell(exercise):
    """Return the code that checks the answer."""
    return f'check_exercise("{exercise.name}", {exercise.answer})'


def task(exercise):
    """Return an exercise as the page shows it."""
    page, section = exercise.reads
    end = "" if section.endswith("?") else "."
    after = f"after [{section}]({page}.ipynb#{make_slug(section)}){end}"
    cell = f"```{{code-cell}} ipython3\n:name: check-{exercise.slug}\n\n"
    return "\n\n".join([
        f"### {exercise.title}",
        f"*{exercise.level.title()}*, {after}",
        exercise.given(exercise.body),
        f"{cell}{check_cell(exercise)}\n```",
        *(
            HELP.format(name, exercise.given(exercise.section(name)).strip())
            for name in ("First hint", "Second hint")
        ),
        HELP.format("Solution", AT_LAST.format(make_slug(exercise.answered))),
    ])  # fmt: skip


def solution(exercise):
    """Return a solution as the page shows it."""
    return f"### {exercise.answered}\n\n{exercise.section('Solution').strip()}"


def _introduce_tasks(chapter):
    if chapter not in PAGES:
        return OPEN_ENDED
    page = f"[{PAGES[chapter]}]({chapter}.ipynb)"
    return f"## {PAGES[chapter]}\n\nFrom the page {page}."


def _introduce_solutions(chapter):
    return f"## {PAGES[chapter]}: solutions" if chapter in PAGES else SOLVED


def _between(text, parts):
    """Put parts between the words at the top of a page and its summary."""
    top, _, rest = text.partition("\n## ")
    end = rest[rest.index("\n## Summary\n") :]
    return "\n\n".join([top.rstrip(), *parts]) + "\n" + end


def _parts(introduce, of_one):
    for chapter, found in itertools.groupby(exercises().values(), lambda e: e.chapter):
        yield introduce(chapter)
        yield from map(of_one, found)


def _links(page):
    """Return {section: line} for a page."""
    found = {}
    for exercise in exercises().values():
        if exercise.link[0] == page:
            found.setdefault(exercise.link[1], []).append(exercise)
    return {section: _line(some) for section, some in found.items()}


def _line(some):
    links = ", ".join(map(_link, some))
    return f"> **Exercise{'s' * (len(some) > 1)}.** {links}.\n"


def _link(exercise):
    page = f"exercises.ipynb#{make_slug(exercise.title)}"
    return f"[{exercise.title}]({page}) ({exercise.level})"


def link_exercises(text, page):
    """Return a page's text with the lines that link its exercises.

    Raises:
        LookupError: the page has no section of that name.
    """
    links = _links(page)
    parts = re.split(r"(?=^#{1,3} )", text, flags=re.MULTILINE)
    for i, part in enumerate(parts):
        heading = part.partition("\n")[0].lstrip("# ")
        line = links.pop(heading, "") if part.startswith("#") else ""
        if LINKS.search(part):
            parts[i] = LINKS.sub(lambda _, line=line: line, part)
        elif line:
            parts[i] = f"{part.rstrip()}\n\n{line}\n"
    if links:
        raise LookupError(
            f"{page}.md has no section {', '.join(map(repr, links))}. In the file of "
            f"the exercise, behind 'read:' or 'link:', name the page and one of its "
            f"headings."
        )
    return "".join(parts)


def pages(book=BOOK):
    """Return {file: text} of the pages that show exercises."""
    texts = {
        book / f"{page}.md": link_exercises(_text(book / f"{page}.md"), page)
        for page in PAGES
    }
    for name, parts in (
        ("exercises", _parts(_introduce_tasks, task)),
        ("solutions", _parts(_introduce_solutions, solution)),
    ):
        file = book / f"{name}.md"
        texts[file] = _between(_text(file), parts)
    return texts


def _text(file):
    return file.read_text(encoding="utf-8")


def stale(book=BOOK):
    """Return {file: text} of the pages that show something else than the files say."""
    return {file: text for file, text in pages(book).items() if _text(file) != text}


def write(book=BOOK):
    """Bring the pages up to date; return those that were not."""
    changed = stale(book)
    for file, text in changed.items():
        file.write_text(text, encoding="utf-8")
    return list(changed)


if __name__ == "__main__":
    print("\n".join(f"written: {file.name}" for file in write()))
