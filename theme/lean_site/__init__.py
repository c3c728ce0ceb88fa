"""What makes the site small, private and readable by everyone.

The theme's pages load icons, mathematics and live-code tools as large scripts or from
other hosts. These modules replace them: the frame around a page is our own template
(templates/layout.html), and of the theme it uses class names and the addresses of the
buttons. One module for each concern; `theme.setup` says when each runs:

    frame     what the template shows: title, policy, foot
    markup    the article's markup, where it fails accessibility checks
    maths     formulas as MathML, made at build time, in place of MathJax
    icons     the icons in use as inline SVG, in place of Font Awesome
    assets    scripts and styles: those the page needs, none that blocks it
    contents  the side bar, with the numbers of pages and sections
    policy    a Content-Security-Policy that the page itself meets
    describe  title, description, social card and structured data
    launch    the buttons that open a page elsewhere
    extras    the entry page, the page for wrong addresses, the site map
    find      the search, with its index of sections and cells (`sections` cuts them)
"""
