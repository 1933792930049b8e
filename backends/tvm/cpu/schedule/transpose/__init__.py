"""Transposition of tiles, in the first-level cache or in registers.

When: in `lower`, for a pointwise kernel that loads across the memory order of its result.
"""
