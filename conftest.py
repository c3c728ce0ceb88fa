"""What every run of pytest gets here, with or without tests/.

One thread, figures compared by their HTML, and the three commands: a test that uses a
built site or a browser, and a notebook besides pages 01 to 06, is marked `site`. What
computes for longer than ten seconds is marked so where it stands, and what nobody waits
for `weekly`.
"""

import os
import re

import pytest

from coding_attention.stored import LAB, restore

# PyTorch's threads wait for each other by spinning: two of them beside another process
# on the same cores take minutes for what one does in seconds. Kernels inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

MAIN_PAGE = re.compile(r"0[1-6]_(?!questions).*\.ipynb")
USE_A_SITE = {"browser", "site", "lab_site", "set_site"}  # fixtures


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what belongs to `make test-site`, and compare figures by their HTML."""
    for item in items:
        if hasattr(item, "cell"):
            restore(item.cell.get("outputs", []))
            # Not all seven digits of a lab's numbers, in which processors differ: its
            # picture is compared, to the digits that readers see.
            item.parent.skip_compare = {*item.parent.skip_compare, LAB}
        if _needs_site(item):
            item.add_marker(pytest.mark.site)
    # The long files first, so that no worker is left alone with one in the end.
    items.sort(key=lambda item: item.path.suffix != ".ipynb")


def _needs_site(item):
    if item.path.suffix == ".ipynb":
        return not MAIN_PAGE.fullmatch(item.path.name)
    return bool(USE_A_SITE & {*getattr(item, "fixturenames", ())})
