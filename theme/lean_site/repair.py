"""Markup of the theme that fails accessibility checks, put right."""

from theme.lean_site.change import EVERY, SOME, WITH_ADDRESS, replace

# (what is wrong, where it stands, what stands there now, which pages have it)
REPAIRS = [
    (
        "sidebar outside of all landmarks",
        r'<div ((?:id="[^"]*" )?class="bd-sidebar-primary bd-sidebar[^"]*")>',
        r'<div \1 role="region" '
        'aria-label="Book">',
        EVERY,
    ),
    (
        "table that scrolls but cannot be reached by keyboard",
        r'<div class="pst-scrollable-table-container">',
        '<div class="pst-scrollable-table-container" tabindex="0" role="group" '
        'aria-label="table">',
        SOME,
    ),
    (
        "navigation without a name of its own",
        r'<nav class="bd-toc-nav page-toc">',
        '<nav class="bd-toc-nav page-toc" aria-label="On this page">',
        SOME,
    ),
    (
        "folded cell with a name that its words do not show",
        r'<summary aria-label="Toggle hidden content">',
        "<summary>",
        SOME,
    ),
    (
        "search field with a name that its words do not show",
        r'(<button class="btn search-button-field[^>]*?) aria-label="Search"',
        r"\1",
        SOME,
    ),
    (  # site.css and search.css hide the same
        "style that the policy forbids",
        r"<noscript>\s*<style>\s*\.pst-js-only.*?</noscript>",
        "",
        "pydata-sphinx-theme>=0.16",
    ),
    (
        "button of the side bar, named by its mechanism",
        r'title="Toggle primary sidebar"',
        'title="List of pages"',
        EVERY,
    ),
    (
        "button of the page's contents, named by its mechanism",
        r'title="Toggle secondary sidebar"',
        'title="Contents of this page"',
        SOME,
    ),
    (
        "button of the color theme that does not say what it is for",
        r'title="light/dark" aria-label="light/dark"',
        'title="Color theme" aria-label="Color theme"',
        SOME,
    ),
    (
        "heading whose name ends in the sign of its link",
        r'<(h[1-6])>((?:(?!</?h[1-6]).)*?)<a class="headerlink" href="#([^"]*)" '
        r'title="[^"]*">#</a>',
        r'<\1 aria-labelledby="\3--title"><span id="\3--title">\2</span>'
        r'<a class="headerlink" href="#\3" title="Link to this section" '
        r'aria-label="# link to this section">#</a>',
        SOME,
    ),
    (
        "header or footer without anything in it, a landmark that leads nowhere",
        r"<(header|footer)\b[^>]*>"
        r'(\s|<div class="prev-next-area">\s*</div>)*</\1>',
        "",
        SOME,
    ),
    (
        "link to another window that can reach back",
        r'<a href="(https?:[^"]*)" target="_blank"\s+class="btn',
        r'<a href="\1" target="_blank" rel="noopener" class="btn',
        WITH_ADDRESS,
    ),
]


def change(text, found=None):
    """Apply every repair."""
    for what, pattern, replacement, needed in REPAIRS:
        text = replace(text, what, pattern, replacement, needed, found)
    return text
