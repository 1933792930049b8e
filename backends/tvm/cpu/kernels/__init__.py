"""Contraction kernels for CPUs: matrix products and convolutions of anything that can be indexed.

    gemm.gemm(m, n, k, lhs, rhs, store, accumulate_dtype="float32", machine=machine)
    convolution.convolution(shape, lhs, rhs, store, accumulate_dtype="float32", machine=machine)

Operands and results are reached through the caller's accessors, so that producers and epilogues
are fused into the kernel. A kernel is a statement and the scratch buffers that it needs.

When: in `lower`, called by the op's function in `roots`.
"""
