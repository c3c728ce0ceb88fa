"""The cases of "Find the bug", and correct variants that the checker must pass.

The planted bugs themselves stand in the records of ``attncheck/mistakes/``.
"""
