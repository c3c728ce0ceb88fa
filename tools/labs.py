"""Bundle the scripts of the labs: coding_attention/labs/*.js into bundle.js.

    python -m tools.labs

Notebooks and the site load bundle.js alone, a classic script that sets attentionLabs.
It is committed, so only who edits a lab needs npm. Its first line names its sources by
their digest, from which a test sees that it is out of date.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "coding_attention" / "labs"
BUNDLE = FOLDER / "bundle.js"
ESBUILD = "esbuild@0.25.12"


def first_line():
    """Return the first line of a bundle of the sources as they are now."""
    digest = hashlib.sha256(ESBUILD.encode())
    for path in sorted(FOLDER.glob("*.js")):
        if path != BUNDLE:
            digest.update(f"\n{path.name}\n".encode() + path.read_bytes())
    return f"// Made by `make labs`, sources {digest.hexdigest()[:16]}"


def write_bundle():
    """Run esbuild, which npx fetches, on index.js."""
    subprocess.run(
        ["npx", "--yes", ESBUILD, "index.js", "--bundle", "--format=iife",
         "--global-name=attentionLabs", "--target=es2022", "--minify",
         "--line-limit=200", "--charset=utf8", "--legal-comments=none",
         f"--banner:js={first_line()}", f"--outfile={BUNDLE}", "--allow-overwrite"],
        cwd=FOLDER, check=True,
    )  # fmt: skip


if __name__ == "__main__":
    try:
        write_bundle()
    except FileNotFoundError:
        sys.exit("npx is not here, which comes with Node: https://nodejs.org")
