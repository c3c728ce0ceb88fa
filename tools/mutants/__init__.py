"""Break the book in one place at a time and see that a check fails: make mutants."""
