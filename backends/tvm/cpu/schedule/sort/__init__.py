"""Sort and top-k kernels: `choose` picks the algorithm by comparator and size.

When: in `lower`, for Sort, TopK and FirstSorted.
"""
