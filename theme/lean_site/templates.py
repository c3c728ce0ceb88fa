"""Finish each page after the theme has rendered it.

Uses Sphinx's `template_bridge`, its documented way to put something of one's own in
the place of the template engine.
"""

from sphinx.jinja2glue import BuiltinTemplateLoader

from theme.lean_site import (
    assets,
    change,
    contents,
    describe,
    find,
    footer,
    icons,
    policy,
    repair,
)


class Templates(BuiltinTemplateLoader):
    """Sphinx's own template engine, with a last step for HTML pages."""

    def init(self, builder, theme=None, dirs=None):
        super().init(builder, theme, dirs)
        self.app = builder.app
        self.found = change.Found(builder.app)

    def render(self, template, context):
        """Render a page and apply the site's changes, the policy last."""
        text = super().render(template, context)
        if not template.endswith(".html") or "</head>" not in text:
            return text
        text = find.change(text, self.found)
        text = assets.change(text, self.app, self.found)
        text = repair.change(text, self.found)
        text = contents.change(text, self.app, context)
        text = footer.change(text, self.app, context)
        text = icons.change(text, self.app)
        text = describe.change(text, self.app, context)
        return policy.change(text)


def _use(app, config):
    config.template_bridge = "theme.lean_site.templates.Templates"


def _complete(app, error):
    if error is None and app.builder.name == "html":
        change.Found(app).complete()


def setup(app):
    app.connect("build-finished", _complete)
    app.connect("config-inited", _use)
