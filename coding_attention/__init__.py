"""The book's own kit: what its pages import. Nothing here is public API.

Figures, labs, exercises and their grading, the running example, the small models with
their stored results, and the gallery of planted bugs. It lies in the wheel so that a
page runs wherever the package is installed. It may change with any page of the book.
"""
