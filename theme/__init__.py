"""How pages become a site: a Sphinx extension, its parts in the order they are set up.

Each part is a module that says what it promises. ``theme.lean_site`` is an extension
of its own, so that the measuring can build the book without it.
"""

# Those that change a page's tree come first, in the order in which they see it; then
# those that add files and what stands around a page.
PARTS = (
    "fast",
    "stored",
    "cell_anchors",
    "proofs",
    "provenance",
    "published",
    "labs",
    "practice",
    "figure_numbers",
    "roles",
    "opening",
    "find_the_bug",
    "api",
)


def setup(app):
    """Set up every part; Sphinx calls this."""
    for name in PARTS:
        app.setup_extension(f"theme.{name}")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
