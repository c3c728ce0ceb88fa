"""How pages become a site: a Sphinx extension. `theme.pipeline` lists its steps."""


def setup(app):
    """Let Sphinx run every step at its moment; Sphinx calls this."""
    from theme import pipeline  # slides and tests import a part without Sphinx

    pipeline.set_up(app, "theme")
    pipeline.register(app)
    return {"env_version": 4, "parallel_read_safe": True, "parallel_write_safe": True}
