"""The two moments at which a page's tree is changed, and the order of the changes."""

from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform

from theme import (
    answers,
    cell_anchors,
    figure_numbers,
    machine,
    moved,
    opening,
    proofs,
    provenance,
    roles,
)
from theme.lean_site import contents, maths


class PrepareTree(SphinxTransform):
    """Change what was read, before MyST resolves links and titles are collected."""

    default_priority = 400

    def apply(self, **options):
        """Change the tree of the page."""
        proofs.drop_anchors(self)
        proofs.drop_comments(self)
        cell_anchors.add_anchors(self)
        figure_numbers.number_figures(self)  # its links lead to the anchors
        roles.mark_roles(self)
        answers.fold_answers(self)
        contents.note_sections(self)


class FinishTree(SphinxPostTransform):
    """Change what will be shown, when links are resolved and MyST-NB has folded."""

    default_priority = 205  # links are resolved at 10, cells folded at 199
    formats = ("html",)

    def run(self, **options):
        """Change the tree of the page."""
        figure_numbers.number_links(self)
        maths.keep_together(self)
        provenance.add_count(self)
        figure_numbers.put_code_below(self)
        roles.add_titles(self)  # in front of the code, so after the folds
        machine.add_strip(self)
        opening.mark_way_in(self)
        moved.add_old_names(self)
