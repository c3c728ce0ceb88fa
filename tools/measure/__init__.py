"""Measures built pages in a Chromium: weight, third parties, speed, accessibility."""
