"""Node, as the tests of the labs find it."""

from tests.coding_attention.labs.conftest import node

__all__ = ["node"]
