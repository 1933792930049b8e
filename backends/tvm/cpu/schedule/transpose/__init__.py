"""Transpositions through the first cache, or through registers."""
