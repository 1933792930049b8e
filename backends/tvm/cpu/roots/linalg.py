"""Cholesky, TriangularSolve, QR, eigenvalues, singular values and general systems.

Small and medium matrices have kernels; LAPACK or the interpreter does the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.cpu.kernels.arithmetic import Value
from tracejit.backends.tvm.cpu.kernels.linalg.blocked_cholesky import BLOCK
from tracejit.backends.tvm.cpu.kernels.linalg.blocked_systems import (
    cholesky_factors_by_blocks,
    general_systems_by_blocks,
    triangular_systems_by_blocks,
)
from tracejit.backends.tvm.cpu.kernels.linalg.determinants import Product
from tracejit.backends.tvm.cpu.kernels.linalg.elimination import General, general_systems
from tracejit.backends.tvm.cpu.kernels.linalg.orthogonal import Orthogonal, orthogonal_factors
from tracejit.backends.tvm.cpu.kernels.linalg.singular_values import Rectangular, singular_values
from tracejit.backends.tvm.cpu.kernels.linalg.symmetric import (
    Symmetric,
    symmetric_eigenvalues,
)
from tracejit.backends.tvm.cpu.kernels.linalg.triangular import (
    Factors,
    Systems,
    cholesky_factors,
    triangular_systems,
)
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.root_rules import rooted
from tracejit.backends.tvm.ir.complex import Complex
from tracejit.backends.tvm.ir.dtypes import memory_dtype
from tracejit.backends.tvm.ir.tir import Buffer, Expr, Stmt, const, seq, store, tirx
from tracejit.backends.tvm.target.host_calls import library_call
from tracejit.graph import Instruction
from tracejit.ops.linalg import CHOLESKY, TRIANGULAR_SOLVE
from tracejit.shapes import ElementType, Shape

# The largest sizes for which kernels that process a matrix as a whole are as fast as blocked ones.
LARGEST = 64
LARGEST_GENERAL = 48
# The largest complex matrix: complex numbers have no blocked kernels, so LAPACK is faster beyond.
LARGEST_COMPLEX_FACTOR = 96
# The largest eigenvalue problem: beyond, LAPACK's blocked tridiagonalisation is faster.
LARGEST_EIGENVALUES = 512
MOST_SINGULAR_VALUES = 1 << 20
# The largest sizes without LAPACK: their offsets still fit in 32 bits.
LARGEST_ANYWAY = 1 << 13


_REAL = (ElementType.F32, ElementType.F64)


def has_kernel(instruction: Instruction) -> bool:
    """Whether there is a kernel for a system or a factorisation of these operands."""
    a, b = instruction.operands[0].array_shape, instruction.operands[-1].array_shape
    if a.element_type.is_complex:
        return a.element_type.real in _REAL and _fits(a, b, 2)
    return a.element_type in _REAL and _fits(a, b)


def _fits(a: Shape, b: Shape, parts: int = 1) -> bool:
    """Whether offsets into a copy of both, in whole blocks, fit in 32 bits."""
    size = parts * a.dimensions[-1] + BLOCK
    return size * (size + parts * max(b.dimensions[-2:], default=0) + 2 * BLOCK) < 1 << 31


def _size(instruction: Instruction) -> int:
    return instruction.operands[0].array_shape.dimensions[-1]


class Matrices:
    """A batch of matrices in flat memory, indexed by batch number, row and column."""

    def __init__(self, memory: Buffer, shape: Shape, dtype: str) -> None:
        self.memory = memory
        *batch, self.rows, self.columns = shape.dimensions
        self.batch = math.prod(batch)
        self.dtype = dtype
        self.pair = Complex if shape.element_type.is_complex else None

    def place(self, b: Expr, i: Expr, j: Expr) -> Expr:
        rows, columns = const(self.rows, self.dtype), const(self.columns, self.dtype)
        matrix = b.astype(self.dtype) * rows + i.astype(self.dtype)
        return matrix * columns + j.astype(self.dtype)

    def __call__(self, b: Expr, i: Expr, j: Expr) -> Value:
        place = self.place(b, i, j)
        if self.pair is None:
            return self.memory[place]
        return self.pair(self.memory[place * 2], self.memory[place * 2 + 1])

    def store(self, b: Expr, i: Expr, j: Expr, value: Value) -> Stmt:
        place = self.place(b, i, j)
        if self.pair is None:
            return store(self.memory, place, value)
        parts = enumerate(value)
        return seq([store(self.memory, place * 2 + part, number) for part, number in parts])


@rooted.attach(CHOLESKY)
def cholesky(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    (operand,) = instruction.operands
    if not has_kernel(instruction) or operand not in frame.inputs:
        return library_call(frame, instruction, results)
    shape, dtype = instruction.array_shape, frame.index_dtype
    given = Matrices(frame.inputs[operand], shape, dtype)
    made = Matrices(results[0][1], shape, dtype)
    lower = instruction.attributes["lower"]
    is_whole = given.pair is not None or made.rows <= LARGEST
    if given.pair is not None and made.rows > LARGEST_COMPLEX_FACTOR and machine_of(frame).python:
        return library_call(frame, instruction, results)
    by = cholesky_factors if is_whole else cholesky_factors_by_blocks
    # The lower factor is the adjoint of the upper one.
    work = by(
        Factors(
            made.batch,
            made.rows,
            memory_dtype(shape.element_type),
            matrix=lambda b, i, j: _conjugate(given(b, j, i)) if lower else given(b, i, j),
            store=lambda b, i, j, v: (
                made.store(b, j, i, _conjugate(v)) if lower else made.store(b, i, j, v)
            ),
            pair=given.pair,
        ),
        machine_of(frame),
    )
    return frame.written(work)


def _conjugate(value: Value) -> Value:
    return Complex(value.re, -value.im) if isinstance(value, Complex) else value


@rooted.attach(TRIANGULAR_SOLVE)
def triangular_solve(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    a, b = instruction.operands
    if not has_kernel(instruction) or a not in frame.inputs or b not in frame.inputs:
        return library_call(frame, instruction, results)
    attributes, shape, dtype = instruction.attributes, b.array_shape, frame.index_dtype
    left = attributes["left_side"]
    # x op(a) = b is op(a)^T x^T = b^T.
    turned = (attributes["transpose_a"] != "NO_TRANSPOSE") != (not left)
    is_lower = attributes["lower"] != turned
    matrix = Matrices(frame.inputs[a], a.array_shape, dtype)
    right = Matrices(frame.inputs[b], shape, dtype)
    made = Matrices(results[0][1], shape, dtype)
    last = matrix.rows - 1

    def row(i: Expr) -> Expr:
        """Reverses the rows, which makes an upper triangular system a lower one."""
        return i if is_lower else last - i

    def element(n: Expr, i: Expr, p: Expr) -> Value:
        value = matrix(n, row(p), row(i)) if turned else matrix(n, row(i), row(p))
        return _conjugate(value) if attributes["transpose_a"] == "ADJOINT" else value

    is_whole = matrix.pair is not None or _size(instruction) <= LARGEST
    by = triangular_systems if is_whole else triangular_systems_by_blocks
    work = by(
        Systems(
            made.batch,
            matrix.rows,
            made.columns if left else made.rows,
            memory_dtype(shape.element_type),
            attributes["unit_diagonal"],
            matrix=element,
            right=lambda n, i, j: right(n, row(i), j) if left else right(n, j, row(i)),
            store=lambda n, i, j, v: (
                made.store(n, row(i), j, v) if left else made.store(n, j, row(i), v)
            ),
            pair=matrix.pair,
        ),
        machine_of(frame),
    )
    return frame.written(work)


def solve(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """The kernel of the custom call of `numpy.linalg.solve`."""
    a, b = instruction.operands
    if not has_kernel(instruction) or a not in frame.inputs or b not in frame.inputs:
        return library_call(frame, instruction, results)
    shape, dtype = b.array_shape, frame.index_dtype
    right = Matrices(frame.inputs[b], shape, dtype)
    matrix = Matrices(frame.inputs[a], a.array_shape, dtype)
    made = Matrices(results[0][1], shape, dtype)
    systems = General(
        right.batch,
        right.rows,
        right.columns,
        memory_dtype(shape.element_type),
        matrix=matrix,
        right=right,
        store=made.store,
        pair=matrix.pair,
    )
    if systems.size <= LARGEST_GENERAL:
        return frame.written(general_systems(systems, machine_of(frame)))
    if matrix.pair is not None:
        systems = _in_real_numbers(systems, matrix, right, made)
    return frame.written(general_systems_by_blocks(systems, machine_of(frame)))


def det(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """The kernel of the custom calls of `numpy.linalg.det` and `slogdet`."""
    (a,) = instruction.operands
    is_real = a.array_shape.element_type in _REAL
    if not (is_real and has_kernel(instruction) and a in frame.inputs and a.array_shape.size):
        return library_call(frame, instruction, results)
    matrix = Matrices(frame.inputs[a], a.array_shape, frame.index_dtype)
    memories = [memory for _, memory in results]

    def give(b: Expr, determinant: Expr, sign: Expr, logarithm: Expr) -> Stmt:
        values = [determinant] if len(memories) == 1 else [sign, logarithm]
        return seq([store(m, b, value) for m, value in zip(memories, values, strict=True)])

    dtype = memory_dtype(a.array_shape.element_type)
    systems = General(
        matrix.batch,
        matrix.rows,
        0,
        dtype,
        matrix=matrix,
        right=matrix,
        store=matrix.store,
        product=Product.of(dtype, give),
    )
    by = general_systems if systems.size <= LARGEST_GENERAL else general_systems_by_blocks
    return frame.written(by(systems, machine_of(frame))._replace(schedule="determinants"))


def _in_real_numbers(systems: General, left: Matrices, right: Matrices, made: Matrices) -> General:
    """Complex systems as real ones of twice the size.

    Each number x + iy is the matrix [x, -y; y, x], each unknown and each right-hand side a column.
    """

    def matrix(b: Expr, i: Expr, j: Expr) -> Expr:
        row, column = i % 2, j % 2
        number = left.place(b, i // 2, j // 2) * 2
        value = left.memory[number + (row ^ column).astype(right.dtype)]
        return tirx.Select(row < column, -value, value)

    def part(b: Expr, i: Expr, j: Expr) -> Expr:
        number = right.place(b, i // 2, j) * 2
        return number + (i % 2).astype(right.dtype)

    return replace(
        systems,
        size=2 * systems.size,
        matrix=matrix,
        right=lambda b, i, j: right.memory[part(b, i, j)],
        store=lambda b, i, j, value: store(made.memory, part(b, i, j), value),
        pair=None,
    )


def qr(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """The kernel of the custom calls of `numpy.linalg.qr`: Q and R, or R alone."""
    (a,) = instruction.operands
    shape, dtype = a.array_shape, frame.index_dtype
    *_, (r, r_memory) = results
    rows, columns = shape.dimensions[-2:]
    # The offsets into all copies must fit in 32 bits.
    is_small = (rows + columns + 3 * BLOCK) ** 2 < 1 << 30
    real = shape.element_type in _REAL
    if not (real and is_small and shape.size and a in frame.inputs):
        return library_call(frame, instruction, results)
    made_r = Matrices(r_memory, r.array_shape, dtype)
    factors = Orthogonal(
        made_r.batch,
        rows,
        columns,
        memory_dtype(shape.element_type),
        matrix=Matrices(frame.inputs[a], shape, dtype),
        store_r=made_r.store,
        r_rows=made_r.rows,
    )
    if len(results) == 2:
        made_q = Matrices(results[0][1], results[0][0].array_shape, dtype)
        factors = replace(factors, store_q=made_q.store, q_columns=made_q.columns)
    return frame.written(orthogonal_factors(factors, machine_of(frame)))


def eigh(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """The kernel of the custom calls of `numpy.linalg.eigvalsh` and `eigh`."""
    (a,) = instruction.operands
    shape, dtype = a.array_shape, frame.index_dtype
    real = shape.element_type in _REAL
    size = shape.dimensions[-1]
    largest = LARGEST_EIGENVALUES if machine_of(frame).python else LARGEST_ANYWAY
    if not (real and shape.size and a in frame.inputs and size <= largest):
        return library_call(frame, instruction, results)
    given = Matrices(frame.inputs[a], shape, dtype)
    (_, memory), *vectors = results
    lower = instruction.attributes["custom_call_target"].endswith("l")
    problem = Symmetric(
        given.batch,
        size,
        memory_dtype(shape.element_type),
        matrix=lambda b, i, j: given(b, i, j) if lower else given(b, j, i),
        store=_values_into(memory, size, dtype),
    )
    if vectors:
        problem = replace(problem, store_vector=Matrices(vectors[0][1], shape, dtype).store)
    return frame.written(symmetric_eigenvalues(problem, machine_of(frame)))


def svd(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """The kernel of the custom calls of `numpy.linalg.svdvals` and of `svd` with min(rows,
    columns) vectors.
    """
    (a,) = instruction.operands
    shape, dtype = a.array_shape, frame.index_dtype
    real = shape.element_type in _REAL
    rows, columns = shape.dimensions[-2:]
    is_small = min(rows, columns) <= LARGEST_EIGENVALUES and rows * columns <= MOST_SINGULAR_VALUES
    if not machine_of(frame).python:
        is_small = max(rows, columns) <= LARGEST_ANYWAY
    if not (real and shape.size and a in frame.inputs and is_small):
        return library_call(frame, instruction, results)
    given = Matrices(frame.inputs[a], shape, dtype)
    with_vectors = len(results) == 3
    memory = results[1 if with_vectors else 0][1]
    problem = Rectangular(
        given.batch,
        rows,
        columns,
        memory_dtype(shape.element_type),
        matrix=given,
        store=_values_into(memory, min(rows, columns), dtype),
    )
    if with_vectors:
        u, vh = (Matrices(m, r.array_shape, dtype) for r, m in (results[0], results[2]))
        problem = replace(
            problem,
            store_left=u.store,
            store_right=lambda b, i, j, value: vh.store(b, j, i, value),
        )
    return frame.written(singular_values(problem, machine_of(frame)))


def _values_into(memory: Buffer, size: int, dtype: str) -> Callable[[Expr, Expr, Expr], Stmt]:
    """A function that stores value i of matrix b into rows of ``size``."""

    def put(b: Expr, i: Expr, value: Expr) -> Stmt:
        place = b.astype(dtype) * const(size, dtype) + i.astype(dtype)
        return store(memory, place, value)

    return put
