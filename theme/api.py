"""Make the page of the package from its docstrings, with or without PyTorch.

The site is built where PyTorch may not be installed, so the package is imported once
with Sphinx's mock in PyTorch's place: always, so that the page is the same everywhere.
The page of the literature is made here, too.
"""

import dataclasses
import importlib

from pybtex.plugin import register_plugin
from pybtex.style.formatting.unsrt import Style as Unsorted
from pybtex.style.labels import BaseLabelStyle
from pybtex.style.template import field, sentence
from sphinx.errors import PycodeError
from sphinx.ext.autodoc.mock import _MockObject, mock
from sphinx.pycode import ModuleAnalyzer
from sphinxcontrib.bibtex.plugin import register_plugin as register_reference_style
from sphinxcontrib.bibtex.style.referencing import BracketStyle
from sphinxcontrib.bibtex.style.referencing.author_year import AuthorYearReferenceStyle

REFERENCING = "sphinxcontrib.bibtex.style.referencing"
READ = ("attention", "attncheck")
READ += ("attention.functional", "attention.convert", "attention.parallel")


def read_package(app):
    """Import the package for autodoc, and drop links that few entries would have."""
    import_package()
    # From an entry of the literature back to the text.
    app.env.settings["footnote_backlinks"] = False


def import_package():
    """Import the package, so that autodoc finds it and imports nothing itself."""
    # The mock knows neither `torch.Tensor | None` nor `-torch.inf`.
    _MockObject.__or__ = _MockObject.__neg__ = lambda self, *_: self
    with mock(["torch"]):
        torch, nn = map(importlib.import_module, ("torch", "torch.nn"))
        torch.__version__, torch.__file__ = "2.5", "torch/__init__.py"
        # A mocked Module would pass its own signature on to our classes.
        nn.Module = type("Module", (), {"__module__": "torch.nn"})
        for name in READ:
            module = importlib.import_module(name)
            for public in getattr(module, "__all__", ()):
                getattr(module, public)  # some are imported when they are asked for
    # Or autodoc would import PyTorch, if installed, to read the source of nn.Module.
    ModuleAnalyzer.cache["module", "torch.nn"] = PycodeError("PyTorch is mocked")


class AuthorYearLabels(BaseLabelStyle):
    """Labels as the docstrings and the pages cite: Vaswani et al., 2017."""

    def format_labels(self, sorted_entries):
        for entry in sorted_entries:
            authors = list_authors(entry)
            names = [" ".join(p.prelast_names + p.last_names) for p in authors]
            yield f"{join_names(names)}, {entry.fields['year']}"


def list_authors(entry):
    """List the authors of an entry, without the "others" that ends a long list."""
    return [p for p in entry.persons["author"] if str(p) != "others"]


def join_names(names):
    """Write the names as a sentence has them."""
    return " and ".join(names) if len(names) < 3 else f"{names[0]} et al."


class Works(Unsorted):
    """Entries in the order of the file, labeled by author and year."""

    default_label_style = AuthorYearLabels

    def format_title(self, e, which_field, as_sentence=True):
        """Leave a title's capitals as its authors wrote them."""
        return sentence[field(which_field)] if as_sentence else field(which_field)


def make_round_brackets():
    return BracketStyle(left="(", right=")")


@dataclasses.dataclass
class AuthorYear(AuthorYearReferenceStyle):
    """Citations in the text: Vaswani et al. (2017)."""

    bracket_textual: BracketStyle = dataclasses.field(
        default_factory=make_round_brackets
    )


def write_factories(app, what, name, obj, options, signature, annotation):
    """Show a list that is made anew as the empty list that it is."""
    return (signature or "").replace("<factory>", "[]") or None, annotation


def use_autodoc(app):
    """Read docstrings, and write the literature by author and year."""
    register_plugin("pybtex.style.formatting", "works", Works)
    register_reference_style(REFERENCING, "works", AuthorYear)
    app.setup_extension("sphinx.ext.autodoc")
    app.setup_extension("sphinx.ext.napoleon")
    app.connect("autodoc-process-signature", write_factories)
