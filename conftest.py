"""What every run of pytest gets here, with or without tests/.

One thread, the tiers, the count of what a run costs, figures compared by their HTML.
"""

import os

from coding_attention.stored import restore

# PyTorch's threads wait for each other by spinning: two of them beside another process
# on the same cores take minutes for what one does in seconds. Kernels inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

pytest_plugins = ["tests.tiers", "tests.costs"]


def pytest_collection_modifyitems(items):
    """Compare a stored figure by its HTML, which is what running a page makes."""
    for item in items:
        restore(getattr(item, "cell", {}).get("outputs", []))
