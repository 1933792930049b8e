"""DotGeneral and ConvGeneralDilated, handed to the contraction kernels through accessors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tracejit.attributes import ConvDimensionNumbers, Window, WindowDimension
from tracejit.backends.tvm.affine import Affine, Index, LoopVariable
from tracejit.backends.tvm.kernels.bounded import bounded
from tracejit.backends.tvm.kernels.contraction import Contraction
from tracejit.backends.tvm.kernels.convolution import ConvolutionShape, convolution
from tracejit.backends.tvm.kernels.gemm import gemm
from tracejit.backends.tvm.known import BOUNDED_DOT
from tracejit.backends.tvm.roots import Results, rooted
from tracejit.backends.tvm.schedule.frame import Frame
from tracejit.backends.tvm.schedule.loops import Axis, Space, merge, settle
from tracejit.backends.tvm.schedule.pointwise import identity
from tracejit.backends.tvm.scope import Accesses, Emitter, Value
from tracejit.backends.tvm.tir import Expr, Stmt, const, real, seq, tirx
from tracejit.backends.tvm.types import memory_dtype, register_dtype
from tracejit.backends.tvm.values import Complex
from tracejit.graph import Instruction
from tracejit.ops.contraction import CONV_GENERAL_DILATED, DOT_GENERAL
from tracejit.shapes import ElementType


class Group:
    """Some dimensions that a kernel counts with one number."""

    def __init__(self, dimensions: Sequence[int]) -> None:
        self.space = Space(dimensions)
        self.extent = math.prod(dimensions)
        self.axes: list[Axis] = []

    def place(self, number: Expr, positions: dict[LoopVariable, Expr], dtype: str) -> None:
        """Sets the positions of the group's axes to where ``number`` stands."""
        if self.extent == 0:
            return
        for axis in reversed(self.axes[1:]):
            positions[axis.last] = tirx.truncmod(number, const(axis.extent, dtype))
            number = tirx.truncdiv(number, const(axis.extent, dtype))
        if self.axes:
            positions[self.axes[0].last] = number


class Accessors:
    """Operands and results of a contraction, asked for by one number per group of dimensions."""

    def __init__(
        self,
        frame: Frame,
        instruction: Instruction,
        results: Results,
        groups: Sequence[Group],
        where: Sequence[Callable[[], list[Index]]],
        result: Callable[[], list[Index]],
    ) -> None:
        self.frame = frame
        self.instruction = instruction
        self.results = results
        self.groups = groups
        self.where = where
        self.result = result
        self.element_type = instruction.array_shape.element_type
        hidden = {instruction, *(root for root, _ in results)}
        self.visible = frame.inputs.without(hidden)

        def ask(scope: Accesses) -> None:
            for operand, indices in zip(instruction.operands, where, strict=False):
                scope.value(operand, indices())
            scope.known.add(instruction)
            for root, _ in results:
                if root is not instruction:
                    scope.result(root, result())

        accesses = settle([g.space for g in groups], ask, self.visible.__contains__)
        addresses = [load.address for load in accesses.loads]
        addresses.append(self._target(result()))
        for group in groups:
            group.axes = merge(group.space.variables, addresses, accesses.opaque)

    @property
    def accumulate_dtype(self) -> str:
        """The type that products are summed in: wide for narrow floats, integers for pred."""
        if self.element_type is ElementType.PRED:
            return "int32"
        if self.element_type.is_complex:
            return memory_dtype(self.element_type)
        return register_dtype(self.element_type)

    def _target(self, indices: Sequence[Index]) -> Affine:
        return identity(self.instruction.array_shape.dimensions)(indices)

    def _emitter(self, numbers: Sequence[tuple[Group, Expr]]) -> Emitter:
        positions: dict[LoopVariable, Expr] = {}
        for group, number in numbers:
            group.place(number, positions, self.frame.index_dtype)
        return Emitter(self.visible, positions, index_dtype=self.frame.index_dtype, holding=False)

    def operand(self, number: int, *at: tuple[Group, Expr]) -> Value:
        """An element of an operand, in registers that products can be made of."""
        operand = self.instruction.operands[number]
        value = self._emitter(at).value(operand, self.where[number]())
        element_type = operand.array_shape.element_type
        if element_type is ElementType.PRED:
            return tirx.Select(value, const(1, "int32"), const(0, "int32"))
        if self.element_type.is_complex and not isinstance(value, Complex):
            return Complex(value, const(0, register_dtype(element_type)))
        return value

    def store(self, value: Value, *at: tuple[Group, Expr]) -> Stmt:
        """The statements that store a sum, after the epilogue."""
        emitter = self._emitter(at)
        if self.element_type is ElementType.PRED:
            value = value != const(0, "int32")
        elif isinstance(value, tirx.FloatImm):
            # A kernel's own literal, to try the store or as the sum of nothing.
            value = real(float(value), register_dtype(self.element_type))
        emitter.given[self.instruction] = emitter.settled(value, self.element_type)
        indices = self.result()
        address = emitter.expression(self._target(indices))
        written: list[Stmt] = []
        for root, target in self.results:
            made = emitter.value(root, indices) if root in emitter.given else None
            if made is None:
                made = emitter.result(root, indices)
            statement = emitter.store(target, address, made, root.array_shape.element_type)
            written.extend(statement if isinstance(statement, list) else [statement])
        return seq(*written)


def _product_access(
    frame: Frame, instruction: Instruction, results: Results
) -> tuple[Accessors, tuple[Group, Group, Group, Group]]:
    """Operands and results of a product, by their numbers in groups of dimensions.

    The groups are those of the batch, the rows, the columns, and what is summed over.
    """
    lhs, rhs = (operand.array_shape.dimensions for operand in instruction.operands[:2])
    attributes = instruction.attributes
    lhs_batch, rhs_batch = attributes["lhs_batch_dims"], attributes["rhs_batch_dims"]
    lhs_sum, rhs_sum = attributes["lhs_contracting_dims"], attributes["rhs_contracting_dims"]
    lhs_free = [d for d in range(len(lhs)) if d not in (*lhs_batch, *lhs_sum)]
    rhs_free = [d for d in range(len(rhs)) if d not in (*rhs_batch, *rhs_sum)]
    batch = Group([lhs[d] for d in lhs_batch])
    rows = Group([lhs[d] for d in lhs_free])
    columns = Group([rhs[d] for d in rhs_free])
    inner = Group([lhs[d] for d in lhs_sum])

    def at(dims: Sequence[int], groups: Sequence[Group]) -> Callable[[], list[Index]]:
        def indices() -> list[Index]:
            flat: list[Index] = [index for group in groups for index in group.space.indices]
            placed = dict(zip(dims, flat, strict=True))
            return [placed[d] for d in sorted(placed)]

        return indices

    access = Accessors(
        frame,
        instruction,
        results,
        [batch, rows, columns, inner],
        [
            at([*lhs_batch, *lhs_free, *lhs_sum], [batch, rows, inner]),
            at([*rhs_batch, *rhs_sum, *rhs_free], [batch, inner, columns]),
        ],
        at(range(instruction.array_shape.rank), [batch, rows, columns]),
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
        machine=frame.machine,
        batch=batch.extent,
        index_dtype=frame.index_dtype,
        choices=frame.choices,
    )
    frame.schedule = work.schedule
    return seq(*frame.allocate(work.scratch), work.statement)


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
    work = bounded(problem, bounds[0], bounds[1], frame.machine, is_shared)
    frame.schedule = work.schedule
    return seq(*scalars.allocations, *scalars.statements, work.statement)


@rooted.attach(CONV_GENERAL_DILATED)
def conv_general_dilated(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    lhs, rhs = (operand.array_shape.dimensions for operand in instruction.operands)
    out = results[0][0].array_shape.dimensions
    attributes = instruction.attributes
    numbers: ConvDimensionNumbers = attributes["dim_labels"]
    # The kernels want a spatial dimension: where there is none, one of size 1.
    window: Window = attributes["window"] or (WindowDimension(1),)
    spare = [] if attributes["window"] else [1]
    lhs_dims = (
        numbers.input_batch_dimension,
        numbers.input_feature_dimension,
        *numbers.input_spatial_dimensions,
    )
    rhs_dims = (
        numbers.kernel_output_feature_dimension,
        numbers.kernel_input_feature_dimension,
        *numbers.kernel_spatial_dimensions,
    )
    out_dims = (
        numbers.output_batch_dimension,
        numbers.output_feature_dimension,
        *numbers.output_spatial_dimensions,
    )
    # Every dimension of every array counts by itself: padding keeps them apart.
    lhs_groups, rhs_groups, out_groups = (
        [Group([size]) for size in (*(sizes[d] for d in dims), *spare)]
        for sizes, dims in ((lhs, lhs_dims), (rhs, rhs_dims), (out, out_dims))
    )

    def at(dims: Sequence[int], groups: Sequence[Group]) -> Callable[[], list[Index]]:
        def indices() -> list[Index]:
            placed = {d: g.space.indices[0] for d, g in zip(dims, groups, strict=False)}
            return [placed[d] for d in sorted(placed)]

        return indices

    access = Accessors(
        frame,
        instruction,
        results,
        [*lhs_groups, *rhs_groups, *out_groups],
        [at(lhs_dims, lhs_groups), at(rhs_dims, rhs_groups)],
        at(out_dims, out_groups),
    )
    shape = ConvolutionShape(
        batch=lhs[lhs_dims[0]],
        in_features=lhs[lhs_dims[1]],
        out_features=rhs[rhs_dims[0]],
        in_sizes=tuple(g.extent for g in lhs_groups[2:]),
        window=tuple(w.size for w in window),
        strides=tuple(w.stride for w in window),
        padding=tuple((w.padding_low, w.padding_high) for w in window),
        lhs_dilation=tuple(w.base_dilation for w in window),
        rhs_dilation=tuple(w.window_dilation for w in window),
        window_reversal=tuple(w.reversal for w in window),
        feature_group_count=attributes["feature_group_count"],
        batch_group_count=attributes["batch_group_count"],
    )
    work = convolution(
        shape,
        lambda *where: access.operand(0, *zip(lhs_groups, where, strict=True)),
        lambda *where: access.operand(1, *zip(rhs_groups, where, strict=True)),
        lambda *where: access.store(where[-1], *zip(out_groups, where[:-1], strict=True)),
        accumulate_dtype=access.accumulate_dtype,
        machine=frame.machine,
        index_dtype=frame.index_dtype,
        choices=frame.choices,
    )
    frame.schedule = work.schedule
    return seq(*frame.allocate(work.scratch), work.statement)
