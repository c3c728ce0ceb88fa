"""Small experiments whose stored results the pages of the book show."""
