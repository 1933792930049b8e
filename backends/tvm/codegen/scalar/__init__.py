"""Kernels as plain loops, one element after the other: what every target can start from.

When: in `lower`, for a kernel whose target has no schedule of its own for the op.
"""
