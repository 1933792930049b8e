"""Scatter: copy, then combine updates, one window after the other."""
