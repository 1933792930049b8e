"""Canonicalisation: constant folding, algebra, common subexpressions, inlined calls.

Rewrites keep every bit of the result, NaN and signed zeros included; what floating-point
arithmetic does not allow is not here. Dead code vanishes because nothing reaches it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.attributes import attribute_key
from tracejit.backends.numpy.interpreter import evaluate_instruction, interpret
from tracejit.backends.tvm.ir.constants import splat
from tracejit.backends.tvm.passes.canonicalize.dead_stores import eliminate_dead_stores
from tracejit.backends.tvm.passes.canonicalize.transposed_dots import swap_transposed_dots
from tracejit.graph import Instruction
from tracejit.ops import elementwise as binary
from tracejit.ops import elementwise_unary as unary
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, PARAMETER, TUPLE, constant
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.control import CALL
from tracejit.ops.element_types import BITCAST_CONVERT_TYPE, CONVERT_ELEMENT_TYPE
from tracejit.ops.layout import (
    BROADCAST_IN_DIM,
    DYNAMIC_SLICE,
    DYNAMIC_UPDATE_SLICE,
    PAD,
    RESHAPE,
    REV,
    SLICE,
    TRANSPOSE,
    broadcast_in_dim,
    full,
    reshape,
    slice_,
    transpose,
)
from tracejit.rules import RuleTable
from tracejit.shapes import Shape
from tracejit.traversal import rebuild, transform

Rewrite = Callable[[Instruction], Instruction | None]

rewrites: RuleTable[Rewrite] = RuleTable("simplify")
"""``rule(instruction) -> instruction or None``: a simpler equal, None when there is none."""

# Constants of at most this many elements are computed while compiling.
FOLD_LIMIT = 16


def canonicalize(roots: Sequence[Instruction], anew: bool = False) -> list[Instruction]:
    """Equal, simpler ``roots``. Equal instructions become one.

    With ``anew`` they do not, and all but parameters are rebuilt, so that rewritten instructions
    keep their position among the others: unrolled iterations stay alike.
    """
    known: dict[Any, Instruction] = {}
    first: set[Instruction] = set()

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction:
        if instruction.op is CALL:
            # call(f, x) -> f(x)
            computation = instruction.attributes["to_apply"]
            arguments = dict(zip(computation.parameters, operands, strict=True))
            return transform([computation.root], visit, arguments)[0]
        changed = any(a is not b for a, b in zip(operands, instruction.operands, strict=True))
        # An instruction with a side effect is rebuilt, so that each call of its computation has
        # its own.
        changed |= instruction.has_effect or (anew and instruction.op is not PARAMETER)
        new = rebuild(instruction, operands) if changed else instruction
        while True:
            simpler = _simpler(new)
            if simpler is None:
                break
            new = simpler
        return new if anew else numbered(new)

    def numbered(instruction: Instruction) -> Instruction:
        """The first equal instruction, which may come from a rewrite."""
        if instruction.op is PARAMETER or instruction.has_effect or instruction in first:
            return instruction
        operands = [numbered(operand) for operand in instruction.operands]
        if any(a is not b for a, b in zip(operands, instruction.operands, strict=True)):
            instruction = rebuild(instruction, operands)
        found = known.setdefault(_key(instruction), instruction)
        first.add(found)
        return found

    return swap_transposed_dots(eliminate_dead_stores(transform(roots, visit)))


def _key(instruction: Instruction) -> Any:
    attributes = tuple(attribute_key(value) for value in instruction.attributes.values())
    return (instruction.op, instruction.operands, attributes, instruction.shape)


def _simpler(instruction: Instruction) -> Instruction | None:
    if _is_foldable(instruction):
        values = [operand.attributes["literal"] for operand in instruction.operands]
        folded = evaluate_instruction(instruction, values)
        return constant(folded, instruction.array_shape.element_type)
    rewrite = rewrites.get(instruction.op)
    return None if rewrite is None else rewrite(instruction)


def _is_foldable(instruction: Instruction) -> bool:
    return (
        bool(instruction.operands)
        and not instruction.has_effect
        and isinstance(instruction.shape, Shape)
        and instruction.shape.size <= FOLD_LIMIT
        and instruction.op not in (BROADCAST_IN_DIM, RESHAPE)
        and not instruction.computations
        and all(operand.op is CONSTANT for operand in instruction.operands)
        and interpret.get(instruction.op) is not None  # internal ops have no interpreter rule
    )


def _is(instruction: Instruction, value: complex) -> bool:
    known = splat(instruction)
    return known is not None and bool(known == value)


def _is_negative_zero(instruction: Instruction) -> bool:
    known = splat(instruction)
    return known is not None and bool(known == 0) and bool(np.signbit(np.real(known)))


@rewrites.attach(binary.ADD)
def _add(instruction: Instruction) -> Instruction | None:
    lhs, rhs = instruction.operands
    exact = instruction.array_shape.element_type.is_integral
    # x + 0 -> x for integers; x + -0.0 -> x for real floats (x + 0.0 turns -0.0 into 0.0)
    for one, other in ((lhs, rhs), (rhs, lhs)):
        if exact and _is(other, 0):
            return one
        if instruction.array_shape.element_type.is_floating and _is_negative_zero(other):
            return one
    return None


@rewrites.attach(binary.SUB)
def _sub(instruction: Instruction) -> Instruction | None:
    lhs, rhs = instruction.operands
    # x - 0 -> x, also for x = -0.0; not x - -0.0
    if _is(rhs, 0) and not instruction.array_shape.element_type.is_complex:
        integral = instruction.array_shape.element_type.is_integral
        return lhs if integral or not _is_negative_zero(rhs) else None
    return None


@rewrites.attach(binary.MUL)
def _mul(instruction: Instruction) -> Instruction | None:
    lhs, rhs = instruction.operands
    if instruction.array_shape.element_type.is_complex:
        return None
    # x * 1 -> x
    if _is(rhs, 1):
        return lhs
    return rhs if _is(lhs, 1) else None


@rewrites.attach(binary.DIV)
def _div(instruction: Instruction) -> Instruction | None:
    lhs, rhs = instruction.operands
    element_type = instruction.array_shape.element_type
    if element_type.is_complex:
        return None
    # x / 1 -> x
    if _is(rhs, 1):
        return lhs
    known = splat(rhs)
    if known is None or not element_type.is_floating or element_type.bits < 32:
        return None
    # x / 2**n -> x * 2**-n, exact while the reciprocal is a normal number
    mantissa, exponent = np.frexp(known)
    if abs(mantissa) == 0.5 and abs(int(exponent)) < 100:
        reciprocal = constant(1 / known, element_type)
        return binary.mul(lhs, broadcast_in_dim(reciprocal, rhs.array_shape.dimensions, ()))
    return None


@rewrites.attach(unary.NEG)
def _neg(instruction: Instruction) -> Instruction | None:
    (operand,) = instruction.operands
    # -(-x) -> x
    return operand.operands[0] if operand.op is unary.NEG else None


@rewrites.attach(CONVERT_ELEMENT_TYPE)
def _convert(instruction: Instruction) -> Instruction | None:
    (operand,) = instruction.operands
    # convert(x) to x's own type -> x
    return operand if operand.shape == instruction.shape else None


@rewrites.attach(BITCAST_CONVERT_TYPE)
def _bitcast(instruction: Instruction) -> Instruction | None:
    (operand,) = instruction.operands
    # bitcast(bitcast(x)) back to x's own type -> x
    if operand.op is BITCAST_CONVERT_TYPE and operand.operands[0].shape == instruction.shape:
        return operand.operands[0]
    return operand if operand.shape == instruction.shape else None


@rewrites.attach(binary.SELECT)
def _select(instruction: Instruction) -> Instruction | None:
    predicate, on_true, on_false = instruction.operands
    if on_true is on_false:
        return on_true
    # select(constant, a, b) -> a or b
    known = splat(predicate)
    return None if known is None else (on_true if known else on_false)


@rewrites.attach(RESHAPE)
def _reshape(instruction: Instruction) -> Instruction | None:
    (operand,) = instruction.operands
    dimensions = instruction.array_shape.dimensions
    # reshape(reshape(x)) -> reshape(x); to x's own dimensions -> x
    if dimensions == operand.array_shape.dimensions:
        return operand
    if operand.op is RESHAPE:
        return reshape(operand.operands[0], dimensions)
    # reshape(broadcast(scalar)) -> broadcast(scalar)
    if operand.op is BROADCAST_IN_DIM and operand.operands[0].array_shape.rank == 0:
        return broadcast_in_dim(operand.operands[0], dimensions, ())
    if operand.op is CONSTANT:
        return constant(operand.attributes["literal"].reshape(dimensions))
    return None


@rewrites.attach(BROADCAST_IN_DIM)
def _broadcast(instruction: Instruction) -> Instruction | None:
    (operand,) = instruction.operands
    sizes = instruction.array_shape.dimensions
    dimensions = instruction.attributes["dimensions"]
    if sizes == operand.array_shape.dimensions:
        return operand
    # broadcast(broadcast(x)) -> broadcast(x)
    if operand.op is BROADCAST_IN_DIM:
        inner = operand.attributes["dimensions"]
        return broadcast_in_dim(operand.operands[0], sizes, [dimensions[d] for d in inner])
    literal = operand.attributes.get("literal") if operand.op is CONSTANT else None
    # a constant with equal elements -> a scalar
    if literal is not None and literal.ndim and literal.size:
        first = literal.flat[0]
        if literal.size <= FOLD_LIMIT and literal.tobytes() == first.tobytes() * literal.size:
            return broadcast_in_dim(constant(first, operand.array_shape.element_type), sizes, ())
    return None


@rewrites.attach(TRANSPOSE)
def _transpose(instruction: Instruction) -> Instruction | None:
    (operand,) = instruction.operands
    permutation = instruction.attributes["dimensions"]
    # transpose by the identity -> x; transpose(transpose(x)) -> transpose(x)
    if permutation == tuple(range(len(permutation))):
        return operand
    if operand.op is TRANSPOSE:
        inner = operand.attributes["dimensions"]
        return transpose(operand.operands[0], [inner[d] for d in permutation])
    # Moving only dimensions of size 1 moves nothing in memory.
    moving = [d for d in permutation if operand.array_shape.dimensions[d] != 1]
    if moving == sorted(moving):
        return reshape(operand, instruction.array_shape.dimensions)
    return None


@rewrites.attach(REV)
def _rev(instruction: Instruction) -> Instruction | None:
    (operand,) = instruction.operands
    sizes = operand.array_shape.dimensions
    moving = [d for d in instruction.attributes["dimensions"] if sizes[d] > 1]
    # reverse along nothing that has two elements -> x
    return None if moving else operand


@rewrites.attach(SLICE)
def _slice(instruction: Instruction) -> Instruction | None:
    (operand,) = instruction.operands
    # x[:] -> x
    return operand if operand.shape == instruction.shape else None


@rewrites.attach(DYNAMIC_SLICE)
def _dynamic_slice(instruction: Instruction) -> Instruction | None:
    operand, *starts = instruction.operands
    sizes = instruction.array_shape.dimensions
    if all(start.op is CONSTANT for start in starts):
        # from a known place -> slice
        whole = operand.array_shape.dimensions
        places = [
            min(max(int(start.attributes["literal"]), 0), size - part)
            for start, size, part in zip(starts, whole, sizes, strict=True)
        ]
        return slice_(operand, places, [p + s for p, s in zip(places, sizes, strict=True)])
    # reads exactly what was just written there -> the update
    if operand.op is DYNAMIC_UPDATE_SLICE:
        _, update, *written = operand.operands
        if written == starts and update.array_shape.dimensions == sizes:
            return update
    return None


@rewrites.attach(DOT_GENERAL)
def _dot(instruction: Instruction) -> Instruction | None:
    lhs = instruction.operands[0].array_shape.dimensions
    summed = instruction.attributes["lhs_contracting_dims"]
    # a sum of nothing -> 0
    return full(instruction.array_shape, 0) if any(lhs[d] == 0 for d in summed) else None


@rewrites.attach(PAD)
def _pad(instruction: Instruction) -> Instruction | None:
    operand = instruction.operands[0]
    padding = instruction.attributes["padding"]
    # pad by nothing -> x (a crop at one end and padding at the other keeps the size)
    nothing = all(p.low == p.high == 0 for p in padding) and operand.shape == instruction.shape
    return operand if nothing else None


@rewrites.attach(GET_TUPLE_ELEMENT)
def _get_tuple_element(instruction: Instruction) -> Instruction | None:
    (operand,) = instruction.operands
    # get-tuple-element(tuple(a, b), 1) -> b
    return operand.operands[instruction.attributes["index"]] if operand.op is TUPLE else None
