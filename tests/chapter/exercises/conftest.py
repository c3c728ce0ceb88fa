"""Node, as the tests of the labs find it."""

from tests.chapter.labs.conftest import node

__all__ = ["node"]
