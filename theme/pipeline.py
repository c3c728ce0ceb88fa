"""The order in which pages become a site: one list of steps, from settings to files.

Read `STEPS` from top to bottom: that is what happens, and in which order. A step is a
function. Sphinx calls at a moment (`MOMENTS`), and all steps of that moment then run as
they stand here; no step has a priority of its own. Each says which earlier steps it
needs, and what holds once it has run. A test reads the list: what is needed must have
been done before.

A step marked LEAN belongs to `theme.lean`, an extension of its own, so that the
measuring can build the book without it.
"""

from typing import NamedTuple

from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform

from theme import (
    answers,
    api,
    cell_anchors,
    codes,
    fast,
    figure_numbers,
    find_the_bug,
    labs,
    machine,
    opening,
    own_sentence,
    practice,
    proofs,
    provenance,
    roles,
    stored,
)
from theme.lean_site import (
    assets,
    contents,
    describe,
    extras,
    find,
    frame,
    launch,
    markup,
    maths,
    styles,
)

LEAN = "theme.lean"
# What Sphinx calls, and at which of its own places: behind what others do there. The
# numbers of trees are those between Sphinx's and MyST-NB's own transforms.
MOMENTS = {
    "set up": None,
    "settings": ("config-inited", 900),
    "start": ("builder-inited", 900),
    "source": ("source-read", 900),
    "page read": (SphinxTransform, 400),
    "links": (SphinxPostTransform, 60),  # resolved at 10
    "after folds": (SphinxPostTransform, 205),  # MyST-NB folds at 199
    "more pages": ("html-collect-pages", 900),
    "page": ("html-page-context", 950),  # the theme collects its buttons up to 502
    "files": ("build-finished", 950),
}


class Step(NamedTuple):
    """What runs when, what it needs, and what holds afterwards."""

    moment: str
    run: object
    needs: tuple
    promises: str
    extension: str = "theme"

    @property
    def name(self):
        """Name the step as the list does: module.function."""
        return f"{self.run.__module__.rpartition('.')[2]}.{self.run.__name__}"


STEPS = [
    # Before anything is read.
    Step("set up", fast.use_all_cores, (), "pages are read and written in parallel"),
    Step("set up", api.use_autodoc, (), "docstrings and the literature make pages"),
    Step("set up", provenance.add_directives, (), "tables of sources can be asked for"),
    Step("set up", codes.add_directives, (), "all codes can be asked for"),
    Step("set up", find_the_bug.add_directives, (), "a case can be asked for"),
    Step("set up", roles.add_sheet, (), "what parts of a page are for can be seen"),
    Step("set up", frame.add_settings, (), "our settings have a name", LEAN),
    Step("set up", launch.add_settings, (), "the PDF has a button where there is one",
         LEAN),
    Step("set up", maths.add_renderer, (), "a formula can become MathML", LEAN),
    Step("settings", frame.use_templates, (), "our frame stands around a page", LEAN),
    Step("settings", frame.digest, (), "a changed theme writes pages anew", LEAN),
    Step("settings", fast.exclude_environments, (), "no environment has pages"),
    Step("settings", fast.allow_processes, (), "no extension stops the processes"),
    Step("settings", maths.use_renderer, ("maths.add_renderer",),
         "no MathJax is asked for", LEAN),
    Step("settings", launch.set_address, (),
         "the repository's address is the workflow's, or the file's", LEAN),
    Step("start", api.read_package, ("api.use_autodoc",),
         "the package is read with stand-ins for PyTorch"),
    Step("start", api.no_backlinks, (), "entries of the literature link nowhere back"),
    Step("start", find.drop_theirs, (), "Sphinx makes no search", LEAN),
    Step("start", labs.write_assets, (), "the labs' scripts are there"),
    Step("start", practice.write_assets, (), "so are those of the exercises"),
    Step("start", own_sentence.write_assets, (), "and what reads an own sentence"),
    # A page is read into a tree.
    Step("source", stored.restore_figures, (), "a stored figure is HTML again"),
    Step("source", labs.set_beside_figures, ("stored.restore_figures",),
         "each lab's name and traits stand beside its figure"),
    Step("page read", proofs.drop_anchors, (), "no anchor of Jupyter's is left"),
    Step("page read", proofs.drop_comments, (), "no proof is left"),
    Step("page read", cell_anchors.add, (), "each named cell has an anchor"),
    Step("page read", figure_numbers.count, ("cell_anchors.add",),
         "each figure's caption begins with its number"),
    Step("page read", roles.mark, (), "quotes and cells say what they are for"),
    Step("page read", answers.fold, (), "one switch opens the answer to a question"),
    Step("page read", contents.note_sections, (), "the sections it covers are known",
         LEAN),
    # The tree becomes what is shown.
    Step("links", figure_numbers.refer, ("figure_numbers.count",),
         "a link to a figure reads as its number"),
    Step("links", maths.keep_together, (), "no line begins with a formula's full stop",
         LEAN),
    Step("after folds", provenance.add_count, (),
         "the foot of a page says how many published values it reproduces"),
    Step("after folds", figure_numbers.put_code_below, (),
         "folded code is below what it draws"),
    Step("after folds", roles.add_titles, ("roles.mark",),
         "listings have a title, cells a link to themselves"),
    Step("after folds", machine.add_strip, (), "a page says which part it builds"),
    Step("after folds", opening.mark_way_in, (), "the way in looks like one"),
    # What stands around it is put together.
    Step("more pages", extras.missing_page, (), "there is a page for wrong addresses",
         LEAN),
    Step("more pages", find.page, ("find.drop_theirs",), "there is a page to search",
         LEAN),
    Step("page", launch.choose_buttons, ("launch.set_address",),
         "its buttons open it where there is something to open", LEAN),
    Step("page", labs.add_to_page, ("labs.set_beside_figures",),
         "a page with labs has their script"),
    Step("page", practice.add_to_page, ("launch.choose_buttons",),
         "exercises have a place to answer"),
    Step("page", find_the_bug.add_assets, (), "the game has its script"),
    Step("page", own_sentence.add_to_page, (), "a sentence can be typed"),
    Step("page", opening.add_run_link, ("opening.mark_way_in", "launch.choose_buttons"),
         "the first page can be run"),
    Step("page", describe.note, (), "it has a description", LEAN),
    Step("page", markup.mend, ("practice.add_to_page",),
         "its body passes the accessibility rules and the policy", LEAN),
    Step("page", contents.list_pages, ("contents.note_sections",),
         "the list of pages has numbers and sections", LEAN),
    Step("page", assets.choose, ("markup.mend", "labs.add_to_page"),
         "it asks for the scripts and sheets that it needs", LEAN),
    Step("page", frame.fill, ("describe.note", "contents.list_pages", "assets.choose"),
         "our frame has all that it shows", LEAN),
    # All pages are written: files beside them.
    Step("files", assets.write_script, (), "the site's script is there", LEAN),
    Step("files", markup.complete, ("markup.mend",),
         "what was to be mended stood on some page", LEAN),
    Step("files", launch.install_in_downloads, ("launch.set_address",),
         "a downloaded notebook installs the package", LEAN),
    Step("files", find.write, (), "the search has its words", LEAN),
    Step("files", extras.write, (), "entry page, wrong addresses, site map", LEAN),
    Step("files", assets.drop_unused, (), "nothing is uploaded that no page asks for",
         LEAN),
    Step("files", styles.write, ("assets.drop_unused",),
         "the sheets of every page are two files", LEAN),
]  # fmt: skip


def set_up(app, extension):
    """Run what an extension's steps do when Sphinx begins."""
    for step in STEPS:
        if (step.moment, step.extension) == ("set up", extension):
            step.run(app)


def register(app):
    """Let Sphinx run the steps of each moment in their order."""
    for moment, place in MOMENTS.items():
        steps = [step for step in STEPS if step.moment == moment]
        if place is None or not steps:
            continue
        where, priority = place
        if isinstance(where, str):
            app.connect(where, _listener(steps), priority=priority)
        else:
            _add_transform(app, moment, steps, where, priority)


def _listener(steps):
    def listen(app, *arguments):
        results = [step.run(app, *arguments) for step in _of(app, steps)]
        # Only those that add pages give anything.
        return [page for pages in results if pages for page in pages]

    return listen


def _of(app, steps):
    return [step for step in steps if step.extension in app.extensions]


def _add_transform(app, moment, steps, base, priority):
    def change(page, **options):
        for step in _of(page.app, steps):
            step.run(page)

    name = f"{moment.title().replace(' ', '')}Steps"
    members = {"default_priority": priority, "apply": change}
    if base is SphinxPostTransform:
        members = {"default_priority": priority, "run": change, "formats": ("html",)}
        app.add_post_transform(type(name, (base,), members))
    else:
        app.add_transform(type(name, (base,), members))
