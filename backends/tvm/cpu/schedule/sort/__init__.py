"""Sorts and selections: `choose` picks the algorithm by comparator and size."""
