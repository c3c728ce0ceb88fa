"""A plugin of pytest: leave out the tests that only compare a copy with its source."""

# Tests that compare a stored copy with what makes it: they see every change, and no
# meaning. A kill by one of them does not count.
COPIES = ("stored_picture", "stored_right_picture", "is_stale", "listing_equals",
          "bundle", "up_to_date", "pages_store_the_labs_as_they_are",
          "those_of_the_module", "pages_show_what_the_files_say")  # fmt: skip


def pytest_collection_modifyitems(config, items):
    """Deselect them, so that no mutant is killed by one."""
    copies = [item for item in items if any(name in item.nodeid for name in COPIES)]
    items[:] = [item for item in items if item not in copies]
    config.hook.pytest_deselected(items=copies)
