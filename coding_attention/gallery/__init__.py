"""Planted bugs and correct variants: what the checker is shown and tested with."""
