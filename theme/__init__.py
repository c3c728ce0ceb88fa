"""How pages become a site: a Sphinx extension. `setup` lists its steps in their order.

`lean_site` has what stands around an article, and what keeps a page small and private.
"""


def setup(app):
    """Connect each step with its moment and its priority; Sphinx calls this."""
    # Here, since slides and tests import a part of this package without Sphinx.
    from theme import (
        api,
        codes,
        fast,
        find_the_bug,
        labs,
        opening,
        own_sentence,
        practice,
        provenance,
        static_files,
        stored,
        trees,
    )
    from theme.lean_site import assets, extras, find, frame, launch, markup, maths

    # What pages and _config.yml may ask for.
    fast.use_all_cores(app)
    api.use_autodoc(app)
    provenance.add_directives(app)
    codes.add_directives(app)
    find_the_bug.add_directives(app)
    frame.add_settings(app)
    launch.add_settings(app)
    maths.add_renderer(app)

    # The settings are read; others change them at 500 and 800.
    app.connect("config-inited", fast.speed_up, priority=900)
    app.connect("config-inited", frame.use_templates, priority=900)
    app.connect("config-inited", launch.set_address, priority=900)
    app.connect("builder-inited", api.read_package, priority=900)
    app.connect("builder-inited", find.replace_search, priority=900)
    app.connect("builder-inited", static_files.write_scripts, priority=900)

    # Each page is read into a tree, which is changed twice: see trees.py.
    app.connect("source-read", stored.restore_outputs, priority=900)
    app.add_transform(trees.PrepareTree)
    app.add_post_transform(trees.FinishTree)

    # What stands around each article. The theme collects its buttons up to 502.
    app.connect("html-collect-pages", extras.add_missing_page, priority=900)
    app.connect("html-collect-pages", find.add_page, priority=900)
    page = "html-page-context"
    app.connect(page, launch.choose_buttons, priority=910)
    app.connect(page, labs.add_to_page, priority=920)
    app.connect(page, find_the_bug.add_assets, priority=920)
    app.connect(page, own_sentence.add_to_page, priority=920)
    app.connect(page, practice.add_to_page, priority=920)  # with the buttons' addresses
    app.connect(page, opening.add_run_link, priority=920)  # the same
    app.connect(page, markup.repair_body, priority=930)
    app.connect(page, assets.choose_files, priority=940)  # by what the body holds
    app.connect(page, frame.fill_template, priority=950)

    # All pages are written.
    app.connect("build-finished", markup.require_all, priority=900)
    app.connect("build-finished", launch.install_in_downloads, priority=900)
    app.connect("build-finished", find.write_index, priority=900)
    app.connect("build-finished", extras.write_files, priority=900)
    app.connect("build-finished", static_files.join_sheets, priority=900)
    return {"env_version": 5, "parallel_read_safe": True, "parallel_write_safe": True}
