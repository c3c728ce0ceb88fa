"""A plugin of pytest: leave out the tests that only compare a copy with its source."""

from tools.mutants.runner import COPIES


def pytest_collection_modifyitems(config, items):
    """Deselect them, so that no mutant is killed by one."""
    copies = [item for item in items if any(name in item.nodeid for name in COPIES)]
    items[:] = [item for item in items if item not in copies]
    config.hook.pytest_deselected(items=copies)
