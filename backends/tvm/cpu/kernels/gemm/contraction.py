"""A matrix product as a problem: its sizes, its operands, and their memory access patterns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tracejit.backends.tvm.cpu.kernels.access import AccessPattern, reading, writing
from tracejit.backends.tvm.cpu.kernels.arithmetic import Arithmetic, Parts, Value
from tracejit.backends.tvm.ir.tir import Expr, Stmt, var

Load = Callable[[Expr, Expr, Expr], Value]
Store = Callable[[Expr, Expr, Expr, Value], Stmt]


@dataclass(frozen=True)
class Contraction:
    """``store(b, i, j, sum of left(b, i, q) * right(b, q, j) over q < k)``, i < m and j < n.

    The accessors exchange parts (see `cpu.kernels.arithmetic`); ``left_access`` and the others
    hold their memory access patterns, by the positions of their indices.
    """

    m: int
    n: int
    k: int
    left: Callable[[Expr, Expr, Expr], Parts]
    right: Callable[[Expr, Expr, Expr], Parts]
    store: Callable[[Expr, Expr, Expr, Parts], Stmt]
    arithmetic: Arithmetic
    left_access: AccessPattern
    right_access: AccessPattern
    result_access: AccessPattern

    @staticmethod
    def of(
        m: int,
        n: int,
        k: int,
        lhs: Load,
        rhs: Load,
        store: Store,
        accumulate_dtype: str,
        index_dtype: str,
    ) -> Contraction:
        """The problem for a caller's accessors."""
        left_access, sample = reading(lhs, 3, index_dtype)
        right_access, _ = reading(rhs, 3, index_dtype)
        arithmetic = Arithmetic.like(sample, accumulate_dtype)
        total = arithmetic.join([var("sum", accumulate_dtype) for _ in range(arithmetic.parts)])
        result_access = writing(store, 3, total, index_dtype)

        def index(x: Expr) -> Expr:
            return x.astype(index_dtype)

        return Contraction(
            m,
            n,
            k,
            lambda b, i, q: arithmetic.split(lhs(index(b), index(i), index(q))),
            lambda b, q, j: arithmetic.split(rhs(index(b), index(q), index(j))),
            lambda b, i, j, v: store(index(b), index(i), index(j), arithmetic.join(v)),
            arithmetic,
            left_access,
            right_access,
            result_access,
        )

    def transposed(self) -> Contraction:
        """The same problem with rows for columns: the product of the transposes."""
        left, right, store = self.left, self.right, self.store
        return Contraction(
            self.n,
            self.m,
            self.k,
            lambda b, i, q: right(b, q, i),
            lambda b, q, j: left(b, j, q),
            lambda b, i, j, v: store(b, j, i, v),
            self.arithmetic,
            self.right_access.permuted(0, 2, 1),
            self.left_access.permuted(0, 2, 1),
            self.result_access.permuted(0, 2, 1),
        )
