"""Experiments whose stored results the pages of the book show."""
