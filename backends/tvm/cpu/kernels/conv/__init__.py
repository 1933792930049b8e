"""Convolutions: direct register tiles over padded slabs.

When: in `lower`, for a convolution.
"""
