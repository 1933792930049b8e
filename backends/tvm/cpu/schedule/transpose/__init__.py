"""Transposition of tiles, in the first-level cache or in registers."""
