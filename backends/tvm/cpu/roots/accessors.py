"""Accessors: operands and results of a contraction, indexed by one number per group of
dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tracejit.affine import Affine
from tracejit.backends.tvm.analysis.element_rules import Value
from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.loop_nest import Axis, Space, merge, settle
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.codegen.stores import identity
from tracejit.backends.tvm.ir.affine import Index, LoopVariable
from tracejit.backends.tvm.ir.complex import Complex
from tracejit.backends.tvm.ir.dtypes import memory_dtype, register_dtype
from tracejit.backends.tvm.ir.limits import LONGEST_GROUP
from tracejit.backends.tvm.ir.tir import Expr, Stmt, const, real, seq, tirx
from tracejit.errors import CompilationError
from tracejit.graph import Instruction
from tracejit.shapes import ElementType


class DimensionGroup:
    """Dimensions that a kernel indexes with a single number."""

    def __init__(self, dimensions: Sequence[int]) -> None:
        self.space = Space(dimensions)
        self.extent = math.prod(dimensions)
        self.axes: list[Axis] = []

    def place(self, number: Expr, positions: dict[LoopVariable, Expr], dtype: str) -> None:
        """Set the positions of the group's axes to the multi-index of ``number``."""
        if self.extent == 0:
            return
        for axis in reversed(self.axes[1:]):
            positions[axis.last] = tirx.truncmod(number, const(axis.extent, dtype))
            number = tirx.truncdiv(number, const(axis.extent, dtype))
        if self.axes:
            positions[self.axes[0].last] = number


def placed(dims: Sequence[int], groups: Sequence[DimensionGroup]) -> Callable[[], list[Index]]:
    """The indices of an array whose dimensions ``dims`` are, in order, the dimensions of the
    groups.

    Further dimensions of size 1 in the groups are not the array's.
    """

    def indices() -> list[Index]:
        numbers = [index for group in groups for index in group.space.indices]
        of_dimension = dict(zip(dims, numbers, strict=False))
        return [of_dimension[d] for d in sorted(of_dimension)]

    return indices


class Accessors:
    """Operands and results of a contraction, indexed by one number per group of dimensions."""

    def __init__(
        self,
        frame: Frame,
        instruction: Instruction,
        results: Results,
        groups: Sequence[DimensionGroup],
        where: Sequence[Callable[[], list[Index]]],
        result: Callable[[], list[Index]],
    ) -> None:
        if max(group.extent for group in groups) > LONGEST_GROUP:
            raise CompilationError(
                f"{instruction.op.function}: at most {LONGEST_GROUP} numbers can be multiplied and "
                f"added, or computed, along one group of dimensions; "
                f"operands {', '.join(str(o.shape) for o in instruction.operands)}",
                instruction.source,
            )
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

    def _emitter(self, numbers: Sequence[tuple[DimensionGroup, Expr]]) -> Emitter:
        positions: dict[LoopVariable, Expr] = {}
        for group, number in numbers:
            group.place(number, positions, self.frame.index_dtype)
        return Emitter(self.visible, positions, index_dtype=self.frame.index_dtype, holding=False)

    def operand(self, number: int, *at: tuple[DimensionGroup, Expr]) -> Value:
        """An element of an operand, converted to the type that products are computed in."""
        operand = self.instruction.operands[number]
        value = self._emitter(at).value(operand, self.where[number]())
        element_type = operand.array_shape.element_type
        if element_type is ElementType.PRED:
            return tirx.Select(value, const(1, "int32"), const(0, "int32"))
        if self.element_type.is_complex and not isinstance(value, Complex):
            return Complex(value, const(0, register_dtype(element_type)))
        return value

    def store(self, value: Value, *at: tuple[DimensionGroup, Expr]) -> Stmt:
        """The statements that store a sum, after the epilogue."""
        emitter = self._emitter(at)
        if self.element_type is ElementType.PRED:
            value = value != const(0, "int32")
        elif isinstance(value, tirx.FloatImm):
            # A literal from the kernel itself: to probe the store, or for an empty sum.
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
