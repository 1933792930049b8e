"""Kernels of ops that have schedules of their own (reductions, contractions, sorts …), by op
family.

When: in `lower`, once for each kernel whose anchor is such an op.
"""
