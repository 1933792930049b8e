"""The emitter: builds TIR for elements of instructions, while a kernel is written."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tvm import sym

from tracejit.backends.tvm.analysis.duplication import repeats
from tracejit.backends.tvm.analysis.element_rules import (
    Value,
    indexed,
    on_scalars,
    own_indices,
    pointwise,
)
from tracejit.backends.tvm.ir.affine import (
    Index,
    LoopVariable,
    Opaque,
    index_variables,
    linear,
    split_row_major,
)
from tracejit.backends.tvm.ir.complex import Complex
from tracejit.backends.tvm.ir.dtypes import is_narrow, memory_dtype, register_dtype
from tracejit.backends.tvm.ir.mathematics import offset
from tracejit.backends.tvm.ir.narrow_types import decode, encode, only_widened, rounded
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Buffer,
    Expr,
    Stmt,
    buffer,
    const,
    i32,
    real,
    reinterpret,
    store,
    tirx,
)
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, TUPLE
from tracejit.ops.control import CALL
from tracejit.ops.element_types import BITCAST_CONVERT_TYPE
from tracejit.ops.lifting import keeps_scalar
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import in_order


class Emitter:
    """The emitting scope: turns queries into TIR expressions, and keeps shared values in
    registers.

    ``positions`` gives the TIR expression of every loop variable that appears in addresses;
    ``lanes`` is the width of the vectorised loop around the statements (1 for none), ``lane`` its
    variable. With ``holding`` False nothing is kept and a value is one pure expression. Otherwise
    statements are collected in ``statements``, in execution order, and their buffers in
    ``allocations``, which belong outside the vectorised loop. Lane-invariant values are computed
    there too, if ``along`` names the variables that differ between lanes.
    """

    def __init__(
        self,
        inputs: Mapping[Instruction, Buffer],
        positions: Mapping[LoopVariable, Expr],
        *,
        lanes: int = 1,
        lane: Expr | None = None,
        uses: Mapping[Instruction, int] | None = None,
        index_dtype: str = "int32",
        holding: bool = True,
        along: Iterable[LoopVariable] = (),
    ) -> None:
        self.inputs = inputs
        self.positions = positions
        self.lanes = lanes
        self.lane = i32(0) if lane is None else lane
        self.uses = uses
        self.index_dtype = index_dtype
        self.holding = holding
        self.along = frozenset(along)
        self.statements: list[Stmt] = []
        self.allocations: list[Stmt] = []
        self.given: dict[Instruction, Value] = {}
        self._memo: dict[Any, Value] = {}

    def anew(self) -> Emitter:
        """An emitter at other positions, whose statements and allocations join this one's."""
        made = copy.copy(self)
        made.given, made._memo = {}, {}
        return made

    # Indices and addresses

    def expression(self, index: Index) -> Expr:
        """The TIR expression of an index."""
        if isinstance(index, Opaque):
            return index.expression
        total: Expr = const(index.constant, self.index_dtype)
        for variable, coefficient in index.terms.items():
            position = self.positions.get(variable)
            if position is None:
                continue
            term = position if coefficient == 1 else position * const(coefficient, self.index_dtype)
            total = total + term
        return total

    def address(self, indices: Sequence[Index], dimensions: Sequence[int]) -> Expr:
        """The row-major address of an element."""
        affine, opaque = linear(indices, dimensions)
        total = self.expression(affine)
        for part in opaque:
            total = total + part.expression
        return total

    # Values

    def value(self, instruction: Instruction, indices: Sequence[Index]) -> Value:
        if instruction in self.given:
            return self.given[instruction]
        key = (instruction, tuple(indices))
        if key not in self._memo:
            if instruction in self.inputs:
                made = self.fetch(instruction, indices, instruction.array_shape.dimensions)
            else:
                made = self.compute(instruction, indices)
            if self.is_shared(instruction):
                made = self.bind(made, instruction)
            self._memo[key] = made
        return self._memo[key]

    def is_shared(self, instruction: Instruction) -> bool:
        """Whether values of an instruction are kept in registers because they are used
        repeatedly.
        """
        # A bitcast duplicates its operand, and so would a chain of them.
        if instruction.op is BITCAST_CONVERT_TYPE:
            return True
        return self.uses is None or self.uses.get(instruction, 2) > 1

    def result(self, instruction: Instruction, indices: Sequence[Index]) -> Value:
        """One element of a kernel's own result, computed once for all its uses."""
        key = (instruction, tuple(indices))
        if key not in self._memo:
            self._memo[key] = self.bind(self.compute(instruction, indices), instruction)
        return self._memo[key]

    def compute(self, instruction: Instruction, indices: Sequence[Index]) -> Value:
        """One element, computed even if the instruction has a buffer."""
        if instruction.op is CONSTANT:
            return literal(instruction)
        rule = indexed.get(instruction.op)
        if rule is not None:
            return rule(self, instruction, indices)
        values = [self.value(o, own_indices(o, indices)) for o in instruction.operands]
        if repeats(instruction):
            pairs = zip(values, instruction.operands, strict=True)
            values = [v if self.is_shared(o) else self.bind(v, o) for v, o in pairs]
        return self.apply_op(instruction, values)

    def apply_op(self, instruction: Instruction, values: Sequence[Value]) -> Value:
        """A pointwise op on register values, its result rounded to the precision of memory."""
        made = self._apply_unrounded(instruction, values)
        if not isinstance(instruction.shape, Shape):
            return made
        element_type = instruction.shape.element_type
        # Rounding duplicates its operand.
        held = self.hold(made, element_type) if is_narrow(element_type) else made
        return self.settled(held, element_type)

    def _apply_unrounded(self, instruction: Instruction, values: Sequence[Value]) -> Value:
        rule = pointwise.get(instruction.op) or on_scalars.get(instruction.op)
        assert rule is not None, f"no TIR for {instruction.op}"
        return rule(instruction, *values)

    def settled(self, value: Value, element_type: ElementType) -> Value:
        """``value`` rounded to the precision of memory."""
        return rounded(value, element_type) if needs_rounding(element_type) else value

    def apply(self, computation: Computation, arguments: Sequence[Value]) -> Value:
        """A computation of scalars on register values, each op rounded."""
        return self._run(computation, arguments, self.apply_op)

    def accumulate(
        self, computation: Computation, arguments: Sequence[Value], once: bool = False
    ) -> Value:
        """A computation of scalars without rounding in between: narrow floats stay in f32.

        Operands that are used ``once`` are not put into registers first.
        """
        return self._run(computation, arguments, self._apply_unrounded, once)

    def _run(
        self,
        computation: Computation,
        arguments: Sequence[Value],
        apply: Callable[[Instruction, Sequence[Value]], Value],
        once: bool = False,
    ) -> Value:
        known: dict[Instruction, Value] = dict(zip(computation.parameters, arguments, strict=True))
        for instruction in in_order([computation.root]):
            if instruction in known:
                continue
            values = [known[operand] for operand in instruction.operands]
            if instruction.op is CONSTANT:
                known[instruction] = literal(instruction)
            elif instruction.op is TUPLE:
                known[instruction] = tuple(values)
            elif instruction.op is GET_TUPLE_ELEMENT:
                known[instruction] = values[0][instruction.attributes["index"]]
            elif instruction.op is CALL:
                known[instruction] = self._run(instruction.attributes["to_apply"], values, apply)
            elif keeps_scalar(instruction):
                known[instruction] = values[0]
            else:
                made = apply(instruction, values)
                is_free = once and instruction is computation.root and not isinstance(made, Complex)
                known[instruction] = made if is_free else self.bind(made, instruction)
        return known[computation.root]

    def bind(self, value: Value, instruction: Instruction) -> Value:
        """``value`` computed here, once, and named; literals and tuples are unchanged."""
        if not isinstance(instruction.shape, Shape) or instruction.op is CONSTANT:
            return value
        return self.hold(value, instruction.shape.element_type)

    def hold(self, value: Value, element_type: ElementType) -> Value:
        """``value`` stored to a local buffer (one item per lane), which LLVM promotes to
        registers.
        """
        if not self.holding:
            return value
        if isinstance(value, Complex):
            return Complex(
                self.hold(value.re, element_type.real), self.hold(value.im, element_type.real)
            )
        if element_type is ElementType.PRED:
            held = self._hold(encode(value, element_type), "uint8")
            return decode(held, element_type)
        code = only_widened(value, element_type)
        if code is not None:
            return decode(self._hold(code, memory_dtype(element_type)), element_type)
        return self._hold(value, register_dtype(element_type))

    def _hold(self, value: Expr, dtype: str) -> Expr:
        # A local buffer and not a TIR let: passes expand lets into the expressions that use them,
        # which is exponential on graphs with sharing; LLVM promotes these to registers.
        local = buffer("t", (self.lanes,), dtype, scope="local")
        self.allocations.append(AllocBuffer(local))
        self.statements.append(store(local, self.lane, value))
        return local[self.lane]

    def fetch(
        self, instruction: Instruction, indices: Sequence[Index], dimensions: Sequence[int]
    ) -> Value:
        """One element from an instruction's memory, with indices under ``dimensions``."""
        address = self.address(indices, dimensions)
        return self.load(self.inputs[instruction], address, instruction.array_shape.element_type)

    def load(self, source: Buffer, address: Expr, element_type: ElementType) -> Value:
        """The register value of the item of ``source`` at an address."""
        if element_type.is_complex:
            start = address * const(2, self.index_dtype)
            return Complex(source[start], source[start + const(1, self.index_dtype)])
        return decode(source[address], element_type)

    def store(
        self, target: Buffer, address: Expr, value: Value, element_type: ElementType
    ) -> Stmt | list[Stmt]:
        """The statement that stores a register value to memory."""
        if isinstance(value, Complex):
            start = address * const(2, self.index_dtype)
            return [
                store(target, start, value.re),
                store(target, start + const(1, self.index_dtype), value.im),
            ]
        return store(target, address, encode(value, element_type))

    # Queries of indexed rules

    def reshaped(
        self, instruction: Instruction, dimensions: Sequence[int], indices: Sequence[Index]
    ) -> Value:
        own = instruction.array_shape.dimensions
        address, opaque = linear(indices, dimensions)
        if instruction in self.given:
            return self.given[instruction]
        if instruction in self.inputs:
            return self.fetch(instruction, indices, dimensions)
        parts = None if opaque and 0 not in own else split_row_major(address, own)
        if parts is not None:
            return self.value(instruction, parts)
        flat = self.address(indices, dimensions)
        variables = address.variables | index_variables(opaque)
        new: list[Index] = []
        for size in reversed(own):
            new.append(Opaque(tirx.truncmod(flat, const(size, self.index_dtype)), variables))
            flat = tirx.truncdiv(flat, const(size, self.index_dtype))
        return self.value(instruction, new[::-1])

    def _in_lanes(self, position: Expr) -> Expr:
        """An index as a value: in a vector, a scalar plus the lanes' distances.

        From their sum TVM would compute each lane separately.
        """
        if self.lanes == 1 or not isinstance(self.lane, tirx.Var):
            return position
        terms = sym.detect_linear_equation(position, [self.lane])
        if not terms or not isinstance(terms[0], tirx.IntImm) or not int(terms[0]):
            return position
        return offset(terms[1], self.lane * terms[0], str(position.ty))

    def number(self, index: Index, element_type: ElementType) -> Value:
        position = self._in_lanes(self.expression(index))
        if element_type.is_complex:
            part = memory_dtype(element_type)
            return Complex(tirx.Cast(part, position), real(0, part))
        dtype = register_dtype(element_type)
        if dtype.startswith("uint"):
            # TVM would cast each part of the index separately, and fail for those that count down.
            position = reinterpret(f"u{self.index_dtype}", position)
        made = tirx.Cast(dtype, position)
        return rounded(made, element_type) if needs_rounding(element_type) else made

    def start(self, instruction: Instruction, indices: Sequence[Index], limit: int) -> Opaque:
        variables = index_variables(indices)
        if self.lanes > 1 and self.along and not variables & self.along:
            return self._start_of_all(instruction, indices, limit)
        element_type = instruction.array_shape.element_type
        dtype = register_dtype(element_type)
        highest = 2 ** (element_type.bits - element_type.is_signed) - 1
        zero, top = const(0, dtype), const(min(limit, highest), dtype)
        value = self.hold(self.value(instruction, indices), element_type)
        inside = tirx.Select(value < zero, zero, tirx.Select(value > top, top, value))
        held = self.hold(inside, element_type)
        return Opaque(tirx.Cast(self.index_dtype, held), variables)

    def _start_of_all(
        self, instruction: Instruction, indices: Sequence[Index], limit: int
    ) -> Opaque:
        """A lane-invariant start: computed once, so that loads at it are vector loads."""
        scalar = Emitter(self.inputs, self.positions, uses=self.uses, index_dtype=self.index_dtype)
        made = scalar.start(instruction, indices, limit)
        self.allocations += [*scalar.allocations, *scalar.statements]
        return made

    def shifted(self, index: Index, by: Opaque) -> Opaque:
        expression = self.expression(index) + by.expression
        return Opaque(expression, index.variables | by.variables)

    def map(self, function: Callable[..., Value], *values: Value) -> Value:
        return function(*values)


def needs_rounding(element_type: ElementType) -> bool:
    """Whether an op's register result may be more precise than memory."""
    return is_narrow(element_type) or (element_type.is_integral and element_type.bits < 8)


def literal(instruction: Instruction) -> Value:
    """The register value of a rank-0 Constant."""
    array = instruction.attributes["literal"]
    element_type = instruction.array_shape.element_type
    if element_type.is_complex:
        part = memory_dtype(element_type)
        number = complex(array)
        return Complex(real(number.real, part), real(number.imag, part))
    if element_type is ElementType.PRED:
        return const(bool(array), "bool")
    if element_type.is_floating:
        return real(float(array), register_dtype(element_type))
    return const(int(array), register_dtype(element_type))
