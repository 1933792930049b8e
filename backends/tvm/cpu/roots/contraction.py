"""DotGeneral: calls the matrix product kernels with accessors."""

from __future__ import annotations

from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.cpu.kernels.gemm.bounded_product import bounded
from tracejit.backends.tvm.cpu.kernels.gemm.contraction import Contraction
from tracejit.backends.tvm.cpu.kernels.gemm.gemm import gemm
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.root_rules import rooted
from tracejit.backends.tvm.cpu.roots.accessors import Accessors, DimensionGroup, placed
from tracejit.backends.tvm.ir.dtypes import register_dtype
from tracejit.backends.tvm.ir.internal_ops import BOUNDED_DOT
from tracejit.backends.tvm.ir.tir import Stmt, const, seq, tirx
from tracejit.graph import Instruction
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.shapes import ElementType


def _product_access(
    frame: Frame, instruction: Instruction, results: Results
) -> tuple[Accessors, tuple[DimensionGroup, DimensionGroup, DimensionGroup, DimensionGroup]]:
    """Accessors of a product, and its groups: batch, rows, columns, and summed dimensions."""
    lhs, rhs = (operand.array_shape.dimensions for operand in instruction.operands[:2])
    attributes = instruction.attributes
    lhs_batch, rhs_batch = attributes["lhs_batch_dims"], attributes["rhs_batch_dims"]
    lhs_sum, rhs_sum = attributes["lhs_contracting_dims"], attributes["rhs_contracting_dims"]
    lhs_free = [d for d in range(len(lhs)) if d not in (*lhs_batch, *lhs_sum)]
    rhs_free = [d for d in range(len(rhs)) if d not in (*rhs_batch, *rhs_sum)]
    batch = DimensionGroup([lhs[d] for d in lhs_batch])
    rows = DimensionGroup([lhs[d] for d in lhs_free])
    columns = DimensionGroup([rhs[d] for d in rhs_free])
    inner = DimensionGroup([lhs[d] for d in lhs_sum])

    access = Accessors(
        frame,
        instruction,
        results,
        [batch, rows, columns, inner],
        [
            placed([*lhs_batch, *lhs_free, *lhs_sum], [batch, rows, inner]),
            placed([*rhs_batch, *rhs_sum, *rhs_free], [batch, inner, columns]),
        ],
        placed(range(instruction.array_shape.rank), [batch, rows, columns]),
    )
    return access, (batch, rows, columns, inner)


@rooted.attach(DOT_GENERAL)
def dot_general(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    access, (batch, rows, columns, inner) = _product_access(frame, instruction, results)
    work = gemm(
        rows.extent,
        columns.extent,
        inner.extent,
        lambda b, i, q: access.operand(0, (batch, b), (rows, i), (inner, q)),
        lambda b, q, j: access.operand(1, (batch, b), (inner, q), (columns, j)),
        lambda b, i, j, value: access.store(value, (batch, b), (rows, i), (columns, j)),
        accumulate_dtype=access.accumulate_dtype,
        machine=machine_of(frame),
        batch=batch.extent,
        index_dtype=frame.index_dtype,
        choices=frame.choices,
    )
    return frame.written(work)


@rooted.attach(BOUNDED_DOT)
def bounded_dot(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    lhs, rhs, first, end = instruction.operands
    access, (_, rows, columns, inner) = _product_access(frame, instruction, results)
    scalars = Emitter(access.visible, {}, index_dtype=frame.index_dtype)
    bounds = []
    for bound in (first, end):
        element_type = bound.array_shape.element_type
        dtype = register_dtype(element_type)
        held = scalars.hold(scalars.value(bound, ()), element_type)
        inside = tirx.max(tirx.min(held, const(inner.extent, dtype)), const(0, dtype))
        bounds.append(scalars.hold(tirx.Cast("int32", inside), ElementType.S32))
    problem = Contraction.of(
        rows.extent,
        columns.extent,
        inner.extent,
        lambda b, i, q: access.operand(0, (rows, i), (inner, q)),
        lambda b, q, j: access.operand(1, (inner, q), (columns, j)),
        lambda b, i, j, value: access.store(value, (rows, i), (columns, j)),
        access.accumulate_dtype,
        frame.index_dtype,
    )
    is_shared = frame.is_shared(lhs.array_shape.size + rhs.array_shape.size)
    work = bounded(problem, bounds[0], bounds[1], machine_of(frame), is_shared)
    frame.schedule = work.schedule
    return seq(*scalars.allocations, *scalars.statements, work.statement)
