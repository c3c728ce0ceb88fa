"""The fixtures of the plugin, for a ``conftest.py`` that names this module.

An installed package brings them without that line. In a test::

    def test_my_attention(check_attention):
        check_attention(MyAttention, d_in=16, d_out=16, num_heads=4)
"""

from pytest_attention import attention_subtests, check_attention

__all__ = ["attention_subtests", "check_attention"]
