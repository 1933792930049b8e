"""Which instructions become one kernel, and which arrays are stored.

In: an optimised graph. Out: a `Plan`, the kernels in order, which `lower` writes.
"""
