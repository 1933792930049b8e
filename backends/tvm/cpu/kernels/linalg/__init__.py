"""Linear algebra kernels: factorisations, eigenvalues, singular values; batched small, blocked
large.

When: in `lower`, for a factorisation, a solve or a decomposition.
"""
