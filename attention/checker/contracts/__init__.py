"""Presets: what a cache, a mask of padding and cross-attention have to keep."""

from attention.checker.contracts.cache import check_cache
from attention.checker.contracts.cross import check_cross
from attention.checker.contracts.padding import check_padding

__all__ = ["check_cache", "check_cross", "check_padding"]
