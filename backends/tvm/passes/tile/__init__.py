"""Tiling: computes large intermediate arrays block by block, so that they stay in cache.

When: `tile_and_fuse` runs while composites are whole; `split_concats` runs last.
"""
