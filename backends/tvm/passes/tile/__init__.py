"""Large intermediate arrays are made block by block, or not at all.

`tile_and_fuse` runs while composites are whole; `split_concats` runs last.
"""
