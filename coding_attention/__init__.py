"""The book's own kit: what its pages import. Nothing here is public API.

Figures, labs, exercises, the running example, the small models with their stored
results, and the gallery of planted bugs. It lies in the wheel so that a page runs
wherever the package is installed, and it may change with any page of the book.
"""
