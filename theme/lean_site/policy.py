"""A Content-Security-Policy in the page itself, for hosts that send no headers.

Scripts come from the site's own files; the one inline script is named by its hash. No
`eval`, no frames, no other host. Inline `style` attributes stay allowed: the figures'
SVG sets its colors by them. Style elements are not.
"""

import base64
import hashlib

from theme.lean_site.assets import THEME_SCRIPT


def hash_source(text):
    """Give the hash under which a policy allows an inline script or style."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def write_policy(script=THEME_SCRIPT, **more):
    """Write the policy of a page."""
    rules = {
        "default-src": "'none'",
        "script-src": f"'self' {hash_source(script)}",
        "style-src": "'self'",
        "style-src-attr": "'unsafe-inline'",
        "img-src": "'self' data:",
        "font-src": "'self' data:",  # the text's is in its sheet
        "connect-src": "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "object-src": "'none'",
    } | more
    return "; ".join(f"{name} {value}" for name, value in rules.items())
