"""Contraction kernels for CPUs: matrix products and convolutions of whatever can be indexed.

    gemm.gemm(m, n, k, lhs, rhs, store, accumulate_dtype="float32", machine=machine)
    convolution.convolution(shape, lhs, rhs, store, accumulate_dtype="float32", machine=machine)

Operands and results are reached through the caller's accessors, so that producers and epilogues
are computed where they are used. A kernel is a statement and the scratch buffers that it needs.
"""
