"""Make the page of the package from its docstrings, with or without PyTorch.

Sphinx's autodoc imports the package to read it. The site is built where PyTorch is not
installed, so the package is imported once with stand-ins in its place; they are used
everywhere, so that the page is the same everywhere. Sphinx's own mocks do not do: they
cannot be compared, and they show.

The page of the literature is made here, too: its entries carry author and year.
"""

import dataclasses
import importlib
import inspect
import sys
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType

from pybtex.plugin import register_plugin
from pybtex.style.formatting.unsrt import Style as Unsorted
from pybtex.style.labels import BaseLabelStyle
from pybtex.style.template import field, sentence
from sphinx.errors import PycodeError
from sphinx.pycode import ModuleAnalyzer
from sphinxcontrib.bibtex.plugin import register_plugin as register_reference_style
from sphinxcontrib.bibtex.style.referencing import BracketStyle
from sphinxcontrib.bibtex.style.referencing.author_year import AuthorYearReferenceStyle

REFERENCING = "sphinxcontrib.bibtex.style.referencing"
OUTSIDE = ("torch",)
READ = ("attention", "attncheck")
READ += ("attention.functional", "attention.convert", "attention.parallel")


class StandIn:
    """Whatever an absent module may hold: a class, a function, a number."""

    def __init__(self, module, name):
        self._module, self._name = module, name

    def __repr__(self):
        # An annotation shows on the page by it.
        return f"{self._module}.{self._name}"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(self._module, f"{self._name}.{name}")

    def __call__(self, *args, **kwargs):
        # As a decorator it changes nothing, so that signatures stay what they are.
        if len(args) == 1 and not kwargs and inspect.isroutine(args[0]):
            return args[0]
        return self

    def __mro_entries__(self, bases):
        # A base class shows on the page by its name. Autodoc would import its module to
        # read the source: seconds for PyTorch, and nothing of it is shown.
        place, _, name = f"{self._module}.{self._name}".rpartition(".")
        ModuleAnalyzer.cache["module", place] = PycodeError("stands in for a module")
        return (type(name, (), {"__module__": place}),)

    def _same(self, *_):
        return self

    def _false(self, *_):
        return False

    __or__ = __ror__ = __getitem__ = __truediv__ = __neg__ = _same
    __lt__ = __le__ = __gt__ = __ge__ = _false


class StandInModule(ModuleType):
    """A module that holds any name and any module below it."""

    __path__ = ()
    __file__ = "of-a-stand-in"  # the checker asks where PyTorch lies

    def __getattr__(self, name):
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)
        return StandIn(self.__name__, name)


class Finder:
    """Finds a stand-in for every module of `OUTSIDE`, installed or not."""

    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self, is_package=True) if _outside(name) else None

    def create_module(self, spec):
        module = StandInModule(spec.name)
        module.__file__ = f"{spec.name}/__init__.py"  # the checker asks where it lies
        return module

    def exec_module(self, module):
        """Leave the module as it is."""


def _outside(name):
    return name.partition(".")[0] in OUTSIDE


@contextmanager
def stand_ins():
    """Put stand-ins in place of the outside modules while the block runs."""
    real = {name: sys.modules.pop(name) for name in list(sys.modules) if _outside(name)}
    finder = Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in list(sys.modules):
            if _outside(name):
                del sys.modules[name]
        sys.modules.update(real)


def read_package(app):
    """Import the package, so that autodoc finds it and imports nothing itself."""
    with stand_ins():
        for name in READ:
            module = importlib.import_module(name)
            for public in getattr(module, "__all__", ()):
                getattr(module, public)  # some are imported when they are asked for


def no_backlinks(app):
    """Leave out links from an entry back to the text: some had one, others none."""
    app.env.settings["footnote_backlinks"] = False


class AuthorYearLabels(BaseLabelStyle):
    """Labels as the docstrings and the pages cite: Vaswani et al., 2017."""

    def format_labels(self, sorted_entries):
        for entry in sorted_entries:
            names = [" ".join(p.prelast_names + p.last_names) for p in people(entry)]
            yield f"{joined(names)}, {entry.fields['year']}"


def people(entry):
    """Give the authors of an entry, without the "others" that ends a long list."""
    return [p for p in entry.persons["author"] if str(p) != "others"]


def joined(names):
    """Write the names as a sentence has them."""
    return " and ".join(names) if len(names) < 3 else f"{names[0]} et al."


class Works(Unsorted):
    """Entries in the order of the file, labeled by author and year."""

    default_label_style = AuthorYearLabels

    def format_title(self, e, which_field, as_sentence=True):
        """Leave a title's capitals as its authors wrote them."""
        return sentence[field(which_field)] if as_sentence else field(which_field)


def round_brackets():
    return BracketStyle(left="(", right=")")


@dataclasses.dataclass
class AuthorYear(AuthorYearReferenceStyle):
    """Citations in the text: Vaswani et al. (2017)."""

    bracket_textual: BracketStyle = dataclasses.field(default_factory=round_brackets)


def name_bases(app, name, obj, options, bases):
    """Show base classes by name: Python keeps the stand-in, not the class for it."""
    bases[:] = [base for b in bases for base in _resolved(b)]


def _resolved(base):
    return base.__mro_entries__(()) if isinstance(base, StandIn) else (base,)


def write_factories(app, what, name, obj, options, signature, annotation):
    """Show a list that is made anew as the empty list that it is."""
    return (signature or "").replace("<factory>", "[]") or None, annotation


def use_autodoc(app):
    """Read docstrings, and write the literature by author and year."""
    register_plugin("pybtex.style.formatting", "works", Works)
    register_reference_style(REFERENCING, "works", AuthorYear)
    app.setup_extension("sphinx.ext.autodoc")
    app.setup_extension("sphinx.ext.napoleon")
    app.connect("autodoc-process-bases", name_bases)
    app.connect("autodoc-process-signature", write_factories)
