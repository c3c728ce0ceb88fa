"""A deck of slides for each page: ``python -m theme.slides``."""
