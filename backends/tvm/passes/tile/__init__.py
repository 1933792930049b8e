"""Large intermediate arrays are made block by block, or not at all.

`tile_and_fuse` runs while composites are whole; `overlapped_tiling` runs last.
"""
