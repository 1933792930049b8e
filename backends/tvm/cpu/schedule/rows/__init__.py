"""Row kernels: several reductions and pointwise phases over each row while it is in cache.

When: in `lower`, for a kernel that `fusion.row_fusion` has made.
"""
