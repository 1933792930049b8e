"""Convolutions: direct register tiles over padded slabs."""
