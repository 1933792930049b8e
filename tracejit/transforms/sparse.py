"""Sparse Jacobians: which elements can differ from zero is read off the graph.

sparse_jacobian(f, 0)(x)      a SciPy csr_array [size of f(x), size of x]

Each element of each value in the graph carries the set of elements of the argument that it can
depend on. Columns that share no row are then found at once, along the sum of their directions, so
a banded Jacobian of any size takes as many products as it has diagonals.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from tracejit.autodiff.reverse import differentiate, is_differentiable
from tracejit.backends.numpy.interpreter import evaluate_instruction
from tracejit.errors import ArgumentError, UnsupportedError
from tracejit.graph import Instruction
from tracejit.ops.constants import PARAMETER, constant
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.indexing import GATHER
from tracejit.ops.layout import (
    BROADCAST_IN_DIM,
    CONCATENATE,
    DYNAMIC_SLICE,
    DYNAMIC_UPDATE_SLICE,
    PAD,
    RESHAPE,
    REV,
    SLICE,
    TRANSPOSE,
)
from tracejit.ops.reduction import REDUCE
from tracejit.shapes import ElementType, Shape
from tracejit.trace.evaluation import evaluate
from tracejit.trace.tracer import Tracer
from tracejit.transforms.forward import linearize
from tracejit.transforms.gradient import positions_of
from tracejit.transforms.recorded import run
from tracejit.transforms.signature import Parameters, title_of
from tracejit.transforms.staging import Output, outputs_of
from tracejit.transforms.vmap import vmap
from tracejit.traversal import in_order, rebuild

Function = Callable[..., Any]
Pattern = Any
"""A csr_array of truth values, [size of a value, size of the argument]; None where all is zero."""

# Ops that place elements of their first operands, and how many operands are indices behind them.
_MOVING = {
    BROADCAST_IN_DIM: 1,
    CONCATENATE: None,
    DYNAMIC_SLICE: 1,
    DYNAMIC_UPDATE_SLICE: 2,
    GATHER: 1,
    PAD: 2,
    RESHAPE: 1,
    REV: 1,
    SLICE: 1,
    TRANSPOSE: 1,
}
_POINTWISE = ("comparison", "element_types", "elementwise", "elementwise_unary")


def sparse_jacobian(function: Function, argnum: int) -> Function:
    """The Jacobian as a csr_array, of a function of one real array that returns one real array.

    Rows are the elements of the result, columns those of the argument. Raises `ArgumentError` for
    trees, `UnsupportedError` inside `jit` and other transformations.
    """
    parameters = Parameters(function, title_of(function))

    @functools.wraps(function)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        (position,) = positions_of((argnum,), args, parameters)
        if any(isinstance(argument, Tracer) for argument in args):
            raise UnsupportedError("jacobian: sparse=True makes SciPy arrays, outside jit only")
        x = np.asarray(args[position])
        if x.dtype.kind != "f":
            raise ArgumentError(
                f"jacobian: sparse=True needs one array of real numbers as argument "
                f"{parameters.name_of(position)} of {parameters.title}, not {x.dtype}"
            )

        def of_one(one: Any) -> Any:
            return function(*args[:position], one, *args[position + 1 :], **kwargs)

        of_one.__name__ = parameters.title
        found = pattern_of(of_one, x)
        return _compressed(of_one, x, found)

    return jacobian


def pattern_of(function: Function, x: np.ndarray) -> Any:
    """Which elements of ``function(x)`` can depend on which of ``x``, as a csr_array of bool."""
    parameters = Parameters(function, title_of(function))

    def finish(result: Any) -> Output:
        outputs, structure = outputs_of(result, parameters.title)
        if not structure.is_leaf():
            raise ArgumentError(
                f"jacobian: sparse=True needs one array as the result of {parameters.title}, "
                f"not {structure}"
            )
        return outputs[0]

    ran = run(function, parameters, (x,), {}, (0,), finish)
    (argument,) = ran.inputs_of(0)
    root = ran.result.instruction
    patterns: dict[Instruction, Pattern] = {argument.parameter: _identity(x.size)}
    for instruction in in_order([root]):
        if instruction not in patterns:
            patterns[instruction] = _pattern(instruction, patterns, x.size)
    found = patterns[root]
    if found is None:
        return sp.csr_array((root.array_shape.size, x.size), dtype=bool)
    return found


def _identity(size: int) -> Pattern:
    return sp.csr_array(sp.eye_array(size, dtype=bool))


def _pattern(
    instruction: Instruction, patterns: dict[Instruction, Pattern], columns: int
) -> Pattern:
    operands = instruction.operands
    known = [patterns[o] for o in operands]
    if all(p is None for p in known) or differentiate.reason(instruction.op) is not None:
        return None
    shape = instruction.shape
    if isinstance(shape, Shape) and not is_differentiable(instruction):
        return None
    if isinstance(shape, Shape) and not shape.is_dynamic:
        if instruction.op.family in _POINTWISE:
            return _pointwise(shape, operands, known)
        if instruction.op in _MOVING:
            moved = _moved(instruction, known, columns)
            if moved is not None:
                return moved
        if instruction.op is REDUCE and len(operands) == 2:
            return _reduced(instruction, known[0], known[1])
        if instruction.op is DOT_GENERAL:
            return _contracted(instruction, known)
    # Anything may depend on anything that goes in.
    size = sum(s.size for s in instruction.element_shapes if isinstance(s, Shape))
    return _repeated(_union([_row(p) for p in known if p is not None]), size)


def _union(parts: Sequence[Pattern]) -> Pattern:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return sp.csr_array(total)


def _row(pattern: Pattern) -> Pattern:
    """The union of all rows, as one."""
    ones = sp.csr_array(np.ones((1, pattern.shape[0]), bool))
    return sp.csr_array(ones @ pattern)


def _repeated(row: Pattern, size: int) -> Pattern:
    return sp.csr_array(sp.csr_array(np.ones((size, 1), bool)) @ row)


def _pointwise(shape: Shape, operands: Sequence[Instruction], known: Sequence[Pattern]) -> Pattern:
    parts = []
    for operand, pattern in zip(operands, known, strict=True):
        if pattern is None:
            continue
        # A scalar, as bounds and predicates may be, stands for every element.
        same = operand.array_shape.size == shape.size
        parts.append(pattern if same else _repeated(pattern, shape.size))
    return _union(parts)


def _moved(instruction: Instruction, known: Sequence[Pattern], columns: int) -> Pattern:
    """The op itself, done to the numbers of elements, says which of them it puts where."""
    count = _MOVING[instruction.op] or len(instruction.operands)
    values: list[Any] = []
    start = 0
    rows = []
    for operand, pattern in zip(instruction.operands[:count], known, strict=False):
        shape = operand.array_shape
        numbers = np.arange(start, start + shape.size, dtype=np.int64)
        values.append(numbers.reshape(shape.dimensions))
        start += shape.size
        empty = sp.csr_array((shape.size, columns), dtype=bool)
        rows.append(empty if pattern is None else pattern)
    indices = instruction.operands[count:]
    if any(i.op is PARAMETER for i in in_order(indices)):
        return None
    values += evaluate(indices, {}) if indices else []
    numbered = [constant(v) for v in values[:count]]
    moved = rebuild(instruction, [*numbered, *indices])
    whole = instruction.array_shape.with_element_type(ElementType.S64)
    made = Instruction(moved.op, moved.operands, whole, moved.attributes, moved.source)
    places = np.asarray(evaluate_instruction(made, values)).ravel()
    return sp.csr_array(sp.vstack(rows, format="csr")[places])


def _groups(sizes: Sequence[int], dimensions: Sequence[int]) -> np.ndarray:
    """For each element of an array the number of the element that summing up leads to."""
    kept = [d for d in range(len(sizes)) if d not in dimensions]
    numbers = np.arange(int(np.prod([sizes[d] for d in kept], dtype=np.int64)))
    shape = [sizes[d] if d in kept else 1 for d in range(len(sizes))]
    return np.broadcast_to(numbers.reshape(shape), sizes).ravel()


def _gathered(pattern: Pattern, groups: np.ndarray, size: int) -> Pattern:
    ones = np.ones(len(groups), bool)
    sums = sp.csr_array((ones, (groups, np.arange(len(groups)))), shape=(size, len(groups)))
    return sp.csr_array(sums @ pattern)


def _reduced(instruction: Instruction, pattern: Pattern, start: Pattern) -> Pattern:
    size = instruction.array_shape.size
    parts = [] if start is None else [_repeated(start, size)]
    if pattern is not None:
        sizes = instruction.operands[0].array_shape.dimensions
        groups = _groups(sizes, instruction.attributes["dimensions"])
        parts.append(_gathered(pattern, groups, size))
    return _union(parts)


def _contracted(instruction: Instruction, known: Sequence[Pattern]) -> Pattern:
    """Each element of a product depends on a row of the left side and a column of the right."""
    given = instruction.attributes
    sizes = instruction.array_shape.dimensions
    parts = []
    batch = len(given["lhs_batch_dims"])
    free_left = instruction.operands[0].array_shape.rank - batch
    free_left -= len(given["lhs_contracting_dims"])
    for side, pattern in zip(("lhs", "rhs"), known, strict=True):
        if pattern is None:
            continue
        operand = instruction.operands[0 if side == "lhs" else 1].array_shape.dimensions
        summed, batched = given[f"{side}_contracting_dims"], given[f"{side}_batch_dims"]
        free = [d for d in range(len(operand)) if d not in summed and d not in batched]
        # Numbers of the elements that are left, in the order of the result's dimensions.
        groups = _groups(operand, summed)
        kept = [d for d in range(len(operand)) if d not in summed]
        left = _gathered(pattern, groups, int(np.prod([operand[d] for d in kept])))
        numbers = np.arange(left.shape[0]).reshape([operand[d] for d in kept])
        numbers = numbers.transpose([kept.index(d) for d in (*batched, *free)])
        before = free_left if side == "rhs" else 0
        after = len(sizes) - batch - len(free) - before
        places = numbers.reshape(
            *numbers.shape[:batch], *[1] * before, *numbers.shape[batch:], *[1] * after
        )
        parts.append(left[np.broadcast_to(places, sizes).ravel()])
    return _union(parts)


def colours_of(pattern: Any) -> np.ndarray:
    """A colour for each column, so that columns of one colour share no row; most filled first."""
    by_column = sp.csc_array(pattern)
    rows = sp.csr_array(pattern)
    colours = np.full(pattern.shape[1], -1)
    counts = np.diff(by_column.indptr)
    for column in np.argsort(-counts, kind="stable"):
        own = by_column.indices[by_column.indptr[column] : by_column.indptr[column + 1]]
        beside = [rows.indices[rows.indptr[r] : rows.indptr[r + 1]] for r in own]
        taken = set(colours[np.concatenate(beside)].tolist()) if beside else set()
        colour = 0
        while colour in taken:
            colour += 1
        colours[column] = colour
    return colours


def _compressed(function: Function, x: np.ndarray, pattern: Any) -> Any:
    """The Jacobian's elements at the places of the pattern, one product for each colour."""
    pattern = sp.coo_array(pattern)
    colours = colours_of(pattern)
    value, push = linearize(function, x)
    kind = np.asarray(value).dtype
    if not pattern.nnz:
        return sp.csr_array(pattern.shape, dtype=kind)
    seeds = (np.arange(colours.max() + 1)[:, None] == colours).astype(x.dtype)
    products = np.asarray(vmap(push)(seeds.reshape(-1, *x.shape)))
    row, column = pattern.coords
    data = products.reshape(len(seeds), -1)[colours[column], row]
    return sp.csr_array((data, (row, column)), shape=pattern.shape, dtype=kind)
