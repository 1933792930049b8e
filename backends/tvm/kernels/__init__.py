"""Contraction kernels for CPUs: matrix products and convolutions of whatever can be indexed.

    gemm(m, n, k, lhs, rhs, store, accumulate_dtype="float32", machine=machine)
    convolution(shape, lhs, rhs, store, accumulate_dtype="float32", machine=machine)

Operands and results are reached through the caller's accessors, so that producers and epilogues
are computed where they are used. A kernel is a statement and the scratch buffers that it needs.
"""

from __future__ import annotations

from tracejit.backends.tvm.kernels.convolution import ConvolutionShape, convolution
from tracejit.backends.tvm.kernels.gemm import gemm
from tracejit.backends.tvm.kernels.machine import Machine
from tracejit.backends.tvm.kernels.work import Work

__all__ = ["ConvolutionShape", "Machine", "Work", "convolution", "gemm"]
