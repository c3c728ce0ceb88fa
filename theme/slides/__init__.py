"""Decks of slides for the first page and 01 to 10: ``python -m theme.slides``."""
