"""Cholesky factors, matrix by matrix, and triangular systems, column by column."""

from __future__ import annotations

import math
from collections.abc import Callable

from tracejit.backends.tvm.analysis.element_rules import Value
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.codegen.scalar.accumulators import ScalarAccumulators
from tracejit.backends.tvm.codegen.scalar.elements import shared_loop
from tracejit.backends.tvm.codegen.scalar.table import scalar
from tracejit.backends.tvm.ir import complex_mathematics, mathematics
from tracejit.backends.tvm.ir.affine import Opaque
from tracejit.backends.tvm.ir.complex import Complex
from tracejit.backends.tvm.ir.dtypes import register_dtype
from tracejit.backends.tvm.ir.tir import Expr, IfThenElse, Stmt, const, loop, real, seq, tirx
from tracejit.graph import Instruction
from tracejit.ops.linalg import CHOLESKY, TRIANGULAR_SOLVE


class _Matrices:
    """The arithmetic and the elements of one kernel's matrices, batch by batch."""

    def __init__(self, frame: Frame, instruction: Instruction, results: Results) -> None:
        self.frame, self.dtype = frame, frame.index_dtype
        ((_, self.target),) = results
        self.shape = instruction.array_shape
        self.type = self.shape.element_type
        *batch, self.rows, self.columns = self.shape.dimensions
        self.batch_sizes, self.batch = batch, math.prod(batch)
        self.part = register_dtype(self.type.real if self.type.is_complex else self.type)

    def c(self, number: int) -> Expr:
        return const(number, self.dtype)

    def emitter(self) -> Emitter:
        return Emitter(self.frame.inputs, {}, uses=self.frame.uses, index_dtype=self.dtype)

    def given(self, emitter: Emitter, operand: Instruction, b: Expr, i: Expr, j: Expr) -> Value:
        """An element of an operand."""
        indices = []
        for size in reversed(self.batch_sizes):
            indices.append(Opaque(tirx.truncmod(b, self.c(size)), frozenset()))
            b = tirx.truncdiv(b, self.c(size))
        places = [*reversed(indices), Opaque(i, frozenset()), Opaque(j, frozenset())]
        return emitter.value(operand, places)

    def address(self, b: Expr, i: Expr, j: Expr) -> Expr:
        return (b * self.c(self.rows) + i) * self.c(self.columns) + j

    def made(self, emitter: Emitter, b: Expr, i: Expr, j: Expr) -> Value:
        """An element of the result that is stored already."""
        return emitter.load(self.target, self.address(b, i, j), self.type)

    def stored(self, emitter: Emitter, value: Value, b: Expr, i: Expr, j: Expr) -> list[Stmt]:
        held = emitter.hold(value, self.type)
        made = emitter.store(self.target, self.address(b, i, j), held, self.type)
        stores = made if isinstance(made, list) else [made]
        return [*emitter.allocations, *emitter.statements, *stores]

    def conjugate(self, value: Value) -> Value:
        return Complex(value.re, -value.im) if isinstance(value, Complex) else value

    def without_product(self, emitter: Emitter, c: Value, a: Value, b: Value) -> Value:
        """``c - a * b``."""
        if not isinstance(c, Complex):
            return c - a * b
        x, y = (emitter.hold(v, self.type) for v in (a, b))
        re = c.re - (x.re * y.re - x.im * y.im)
        return Complex(re, c.im - (x.re * y.im + x.im * y.re))

    def quotient(self, a: Value, b: Value) -> Value:
        if isinstance(a, Complex):
            return complex_mathematics.div(a, b, self.part)
        return a / b


@scalar.attach(TRIANGULAR_SOLVE)
def triangular_solve(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """Substitution; an upper triangular system is a lower one from the last row to the first."""
    frame.schedule = "substitution"
    a, b = instruction.operands
    attributes = instruction.attributes
    left, unit = attributes["left_side"], attributes["unit_diagonal"]
    turned = (attributes["transpose_a"] != "NO_TRANSPOSE") != (not left)
    is_lower = attributes["lower"] != turned
    work = _Matrices(frame, instruction, results)
    size = a.array_shape.dimensions[-1]
    columns = work.columns if left else work.rows
    total = ScalarAccumulators([work.type])

    def row(i: Expr) -> Expr:
        return i if is_lower else work.c(size - 1) - i

    def element(emitter: Emitter, n: Expr, i: Expr, p: Expr) -> Value:
        places = (row(p), row(i)) if turned else (row(i), row(p))
        value = work.given(emitter, a, n, *places)
        return work.conjugate(value) if attributes["transpose_a"] == "ADJOINT" else value

    def place(i: Expr, j: Expr) -> tuple[Expr, Expr]:
        return (row(i), j) if left else (j, row(i))

    def column(number: Expr) -> list[Stmt]:
        n = tirx.truncdiv(number, work.c(columns))
        j = tirx.truncmod(number, work.c(columns))

        def step(i: Expr) -> Stmt:
            def term(p: Expr) -> Stmt:
                emitter = work.emitter()
                (sum_,) = total.read(emitter)
                known = work.made(emitter, n, *place(p, j))
                rest = work.without_product(emitter, sum_, element(emitter, n, i, p), known)
                return seq(*total.write(emitter, [rest]))

            begin = work.emitter()
            start = total.write(begin, [work.given(begin, b, n, *place(i, j))])
            end = work.emitter()
            (value,) = total.read(end)
            if not unit:
                value = work.quotient(value, element(end, n, i, i))
            stored = work.stored(end, value, n, *place(i, j))
            return seq(*start, loop(i, term, dtype=work.dtype), *stored)

        return [*total.allocations, loop(size, step, dtype=work.dtype)]

    return shared_loop(work.batch * columns, column, work.dtype)


@scalar.attach(CHOLESKY)
def cholesky(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """The factor column by column, with zeros beside the triangle; NaN where there is none."""
    frame.schedule = "columns of a factor"
    (operand,) = instruction.operands
    work = _Matrices(frame, instruction, results)
    lower = instruction.attributes["lower"]
    total = ScalarAccumulators([work.type])
    zero: Expr = real(0, work.part)

    def place(i: Expr, j: Expr) -> tuple[Expr, Expr]:
        return (i, j) if lower else (j, i)

    def element(n: Expr, i: Expr, j: Expr, is_diagonal: bool) -> Callable[[], list[Stmt]]:
        def write() -> list[Stmt]:
            def term(p: Expr) -> Stmt:
                emitter = work.emitter()
                (sum_,) = total.read(emitter)
                x, y = (work.made(emitter, n, *place(at, p)) for at in (i, j))
                rest = work.without_product(emitter, sum_, x, work.conjugate(y))
                return seq(*total.write(emitter, [rest]))

            begin = work.emitter()
            start = total.write(begin, [work.given(begin, operand, n, *place(i, j))])
            end = work.emitter()
            (value,) = total.read(end)
            if is_diagonal:
                root = value.re if isinstance(value, Complex) else value
                root = mathematics.sqrt(root, work.part)
                value = Complex(root, zero) if work.type.is_complex else root
            else:
                diagonal = work.made(end, n, *place(j, j))
                if isinstance(value, Complex):
                    by = end.hold(diagonal.re, work.type.real)
                    value = Complex(value.re / by, value.im / by)
                else:
                    value = value / diagonal
            stored = work.stored(end, value, n, *place(i, j))
            return [*start, loop(j, term, dtype=work.dtype), *stored]

        return write

    def matrix(n: Expr) -> list[Stmt]:
        def column(j: Expr) -> Stmt:
            def below(i: Expr) -> Stmt:
                empty = work.emitter()
                nothing = Complex(zero, zero) if work.type.is_complex else zero
                cleared = work.stored(empty, nothing, n, *place(i, j))
                inside = seq(*element(n, i, j, False)())
                return IfThenElse(i < j, seq(*cleared), IfThenElse(i > j, inside, None))

            diagonal = element(n, j, j, True)()
            return seq(*diagonal, loop(work.rows, below, dtype=work.dtype))

        return [*total.allocations, loop(work.rows, column, dtype=work.dtype)]

    return shared_loop(work.batch, matrix, work.dtype)
