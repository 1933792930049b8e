"""Linear algebra kernels: factorisations, eigenvalues, singular values; batched small, blocked
large.
"""
