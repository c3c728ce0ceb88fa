"""Decks of slides, from marks in the pages: ``python -m theme.slides``."""
