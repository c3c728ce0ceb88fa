"""The Sphinx extension that makes the site lean; the parts are in `theme.lean_site`."""

from theme import pipeline


def setup(app):
    """Let the steps of `theme.pipeline` run that are marked LEAN."""
    pipeline.set_up(app, pipeline.LEAN)
    return {"version": "2", "parallel_read_safe": True, "parallel_write_safe": True}
