"""Cumulative reductions (prefix sums and the like)."""
