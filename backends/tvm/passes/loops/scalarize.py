"""Scalar replacement: small arrays in loop bodies become scalars in registers.

    scalarize(roots)

    y = a @ x + b        y0 = a00 * x0 + a01 * x1 + b0;  y1 = a10 * x0 + a11 * x1 + b1

A loop body's kernels pass arrays through memory, with a kernel for each shape. Scalars all have
one shape, so one or few kernels compute them, with values in registers. Moving elements (slices,
concatenations, transpositions) is then free.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tracejit.backends.numpy.interpreter import interpret
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import CONSTANT, constant
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.element_types import CONVERT_ELEMENT_TYPE
from tracejit.ops.elementwise import add, mul
from tracejit.ops.layout import (
    concatenate,
    reshape,
    slice_,
)
from tracejit.ops.reduction import REDUCE
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import in_order, rebuild, substitute

# The most elements of an array that is replaced; larger ones are faster in vectors.
MOST = 4
# The most scalars that are created.
MOST_IN_ALL = 600


Parts = list[Instruction]


def scalarize(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots``, with small intermediate arrays replaced by scalars where possible."""
    order = in_order(roots)
    if not any(_is_tiny(i) and i.array_shape.rank and i.op.is_movement for i in order):
        return list(roots)
    apart = _Apart()
    made = [apart.visit(instruction) for instruction in order]
    return [apart.array(root) for root in roots] if sum(made) <= MOST_IN_ALL else list(roots)


def _is_tiny(instruction: Instruction) -> bool:
    shape = instruction.shape
    return isinstance(shape, Shape) and 0 < shape.size <= MOST and not shape.is_dynamic


class _Apart:
    def __init__(self) -> None:
        # The elements of replaced arrays; other instructions, rebuilt on whole operands.
        self._parts: dict[Instruction, Parts] = {}
        self._whole: dict[Instruction, Instruction] = {}

    def visit(self, instruction: Instruction) -> int:
        """Replace one instruction, after its operands; returns the number of scalars created."""
        rule = self._rule(instruction)
        if rule is not None:
            self._parts[instruction] = parts = rule(instruction)
            return len(parts)
        operands = [self.array(operand) for operand in instruction.operands]
        changed = any(a is not b for a, b in zip(operands, instruction.operands, strict=True))
        self._whole[instruction] = rebuild(instruction, operands) if changed else instruction
        return 0

    def array(self, instruction: Instruction) -> Instruction:
        """The instruction as a whole array."""
        if instruction not in self._whole:
            shape, parts = instruction.array_shape, self._parts[instruction]
            rows = [reshape(part, (1,)) for part in parts]
            joined = rows[0] if len(rows) == 1 else concatenate(rows, 0)
            self._whole[instruction] = reshape(joined, shape.dimensions) if shape.rank else parts[0]
        return self._whole[instruction]

    def elements(self, instruction: Instruction) -> Parts:
        """All elements, in row-major order."""
        if instruction not in self._parts:
            self._parts[instruction] = _loaded(self._whole[instruction])
        return self._parts[instruction]

    def _rule(self, instruction: Instruction) -> Callable[[Instruction], Parts] | None:
        if instruction.has_effect or not all(map(_is_tiny, (instruction, *instruction.operands))):
            return None
        op = instruction.op
        if op is CONSTANT:
            return _literals
        if op.is_arithmetic or op is CONVERT_ELEMENT_TYPE:
            return self._pointwise
        if op.is_movement:
            return self._moved
        if op is REDUCE and len(instruction.operands) == 2:
            return self._reduced
        if op is DOT_GENERAL and instruction.array_shape.element_type in (
            ElementType.F32,
            ElementType.F64,
        ):
            return self._contracted
        return None

    def _pointwise(self, instruction: Instruction) -> Parts:
        shape = Shape(instruction.array_shape.element_type)
        attributes = {k: shape if k == "shape" else v for k, v in instruction.attributes.items()}
        operands = [self.elements(operand) for operand in instruction.operands]
        return [
            Instruction(
                instruction.op,
                # A bound or a predicate may be one scalar for all.
                tuple(parts[n % len(parts)] for parts in operands),
                shape,
                attributes,
                instruction.source,
            )
            for n in range(instruction.array_shape.size)
        ]

    def _moved(self, instruction: Instruction) -> Parts:
        rule = interpret.get(instruction.op)
        assert rule is not None, f"{instruction.op.name} has no rule"
        known, numbers = self._numbered(instruction.operands)
        return [known[n] for n in np.ravel(rule(instruction, *numbers)).tolist()]

    def _numbered(self, operands: Sequence[Instruction]) -> tuple[Parts, list[np.ndarray]]:
        """The elements of all operands, and arrays of their numbers in the operands' shapes."""
        known: Parts = []
        numbers = []
        for operand in operands:
            parts = self.elements(operand)
            here = np.arange(len(known), len(known) + len(parts))
            numbers.append(here.reshape(operand.array_shape.dimensions))
            known += parts
        return known, numbers

    def _reduced(self, instruction: Instruction) -> Parts:
        computation: Computation = instruction.attributes["to_apply"]
        known, (given, init) = self._numbered(instruction.operands)
        dimensions = instruction.attributes["dimensions"]
        kept = [d for d in range(given.ndim) if d not in dimensions]
        rows = given.transpose(*kept, *dimensions).reshape(instruction.array_shape.size, -1)

        def total(row: Sequence[int]) -> Instruction:
            value = known[int(init[()])]
            for number in row:
                arguments = dict(zip(computation.parameters, (value, known[number]), strict=True))
                (value,) = substitute([computation.root], arguments)
            return value

        return [total(row) for row in rows.tolist()]

    def _contracted(self, instruction: Instruction) -> Parts:
        attributes = instruction.attributes
        known, numbers = self._numbered(instruction.operands)
        sides = []
        for side, given in zip(("lhs", "rhs"), numbers, strict=True):
            batch = attributes[f"{side}_batch_dims"]
            summed = attributes[f"{side}_contracting_dims"]
            kept = [d for d in range(given.ndim) if d not in (*batch, *summed)]
            sizes = [
                math.prod(given.shape[d] for d in dimensions)
                for dimensions in (batch, kept, summed)
            ]
            sides.append(given.transpose(*batch, *kept, *summed).reshape(sizes).tolist())

        def total(row: Sequence[int], column: Sequence[int]) -> Instruction:
            products = [mul(known[a], known[b]) for a, b in zip(row, column, strict=True)]
            value = products[0]
            for product in products[1:]:
                value = add(value, product)
            return value

        return [
            total(row, column)
            for rows, columns in zip(*sides, strict=True)
            for row in rows
            for column in columns
        ]


def _literals(instruction: Instruction) -> Parts:
    values = instruction.attributes["literal"].reshape(-1)
    return [constant(value, instruction.array_shape.element_type) for value in values]


def _loaded(array: Instruction) -> Parts:
    """The elements of an array in memory."""
    dimensions = array.array_shape.dimensions
    if not dimensions:
        return [array]
    return [
        reshape(slice_(array, place, [p + 1 for p in place]), ())
        for place in np.ndindex(*dimensions)
    ]
