"""Schedules: the loop nest of each kind of kernel, independent of the computation inside.

When: in `lower`, once for each kernel, called by `roots` or, for pointwise kernels, by the target.
"""
