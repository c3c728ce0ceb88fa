"""Right classes, bugs planted in them, and the cases of "Find the bug"."""
