"""Kernels of ops that need a schedule of their own, by the ops' families.

When: in `lower`, once for each kernel whose anchor is such an op.
"""
