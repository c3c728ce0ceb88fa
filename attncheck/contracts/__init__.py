"""Presets: what a cache, a mask of padding and cross-attention have to keep."""

from attncheck.contracts.cache import check_cache
from attncheck.contracts.cross import check_cross
from attncheck.contracts.padding import check_padding

__all__ = ["check_cache", "check_cross", "check_padding"]
