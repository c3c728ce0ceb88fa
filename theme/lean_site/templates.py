"""Finish each page after the theme has rendered it.

Uses Sphinx's `template_bridge`, its documented way to put something of one's own in
the place of the template engine.
"""

from sphinx.jinja2glue import BuiltinTemplateLoader

from lean_site import (
    assets,
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

    def render(self, template, context):
        """Render a page and apply the site's changes, the policy last."""
        text = super().render(template, context)
        if not template.endswith(".html") or "</head>" not in text:
            return text
        text = find.change(text)
        text = assets.change(text, self.app)
        text = repair.change(text)
        text = contents.change(text, self.app, context)
        text = footer.change(text, self.app, context)
        text = icons.change(text, self.app)
        text = describe.change(text, self.app, context)
        return policy.change(text)


def _use(app, config):
    config.template_bridge = "lean_site.templates.Templates"


def setup(app):
    app.connect("config-inited", _use)
