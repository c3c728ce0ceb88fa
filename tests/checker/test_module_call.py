"""`attention.check`, imported as a module, is called like the function."""

import importlib

from attention import SelfAttention_v2


def test_named_arguments_reach_the_check():
    module = importlib.import_module("attention.check")
    report = module(SelfAttention_v2, causal=False, d_in=5, d_out=3)
    assert "d_in=5" in report.subject
    assert "d_out=3" in report.subject
