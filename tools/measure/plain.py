"""The same book with the theme as it comes: what this site is compared with."""

import shutil
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
# What only theme/lean_site reads.
OURS = ("site_description", "site_card_alt")


def plain_config(text):
    """Give _config.yml without the hooks that make the site lean."""
    config = yaml.safe_load(text)
    del config["sphinx"]["local_extensions"]["theme.lean"]
    for name in OURS:
        del config["sphinx"]["config"][name]
    for name in ("repository", "launch_buttons"):
        del config[name]
    return yaml.safe_dump(config, sort_keys=False)


def build_plain(folder):
    """Build the book's tracked files in ``folder`` without them; gives the HTML."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    config = folder / "_config.yml"
    config.write_text(plain_config(config.read_text(encoding="utf-8")), "utf-8")
    builder = Path(sys.executable).with_name("jupyter-book")
    command = [str(builder), "build", str(folder), "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder / "_build" / "html"
