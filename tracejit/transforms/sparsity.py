"""Which elements of a function's result can depend on which of its argument's.

pattern_of(f, x)      a SciPy csr_array of truth values, [size of f(x), size of x]

Each element of each value in the graph carries the set of elements of the argument that it can
depend on; loops and branches are followed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from tracejit.autodiff.reverse import differentiate, is_differentiable
from tracejit.autodiff.scatter_windows import Windows
from tracejit.backends.numpy.interpreter import evaluate_instruction
from tracejit.errors import ArgumentError
from tracejit.graph import Computation, Instruction, Op
from tracejit.ops.constants import GET_TUPLE_ELEMENT, PARAMETER, TUPLE, constant
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.control import CALL, CONDITIONAL, WHILE
from tracejit.ops.indexing import GATHER, SCATTER
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
from tracejit.ops.scanning import SCAN, scan_length
from tracejit.shapes import AnyShape, ElementType, Shape, TupleShape
from tracejit.trace.evaluation import evaluate
from tracejit.transforms.jit.signature import Parameters, title_of
from tracejit.transforms.jit.staging import Output, outputs_of
from tracejit.transforms.recorded import run
from tracejit.traversal import in_order, rebuild

Function = Callable[..., Any]
Pattern = Any
"""A csr_array of truth values, [size of a value, size of the argument]; None where all is zero.

A tuple of patterns for a tuple.
"""

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
    found = _of_root(root, {argument.parameter: _identity(x.size)}, x.size)
    return _filled(found, root.array_shape.size, x.size)


def _of_root(root: Instruction, given: dict[Instruction, Pattern], columns: int) -> Pattern:
    """The pattern of a value, given those of the instructions it depends on."""
    patterns = dict(given)
    for instruction in in_order([root]):
        if instruction not in patterns:
            patterns[instruction] = _pattern(instruction, patterns, columns)
    return patterns[root]


def _filled(pattern: Pattern, size: int, columns: int) -> Pattern:
    """The pattern as an array in any case."""
    return sp.csr_array((size, columns), dtype=bool) if pattern is None else pattern


def _identity(size: int) -> Pattern:
    return sp.csr_array(sp.eye_array(size, dtype=bool))


def _pattern(
    instruction: Instruction, patterns: dict[Instruction, Pattern], columns: int
) -> Pattern:
    operands = instruction.operands
    known = [patterns.get(o) for o in operands]
    if instruction.op is TUPLE:
        return tuple(known)
    leaves = [leaf for pattern in known for leaf in _leaves(pattern)]
    if instruction.op is GET_TUPLE_ELEMENT and isinstance(known[0], tuple):
        return known[0][instruction.attributes["index"]]
    if not leaves or differentiate.reason(instruction.op) is not None:
        return None
    if instruction.op in _NESTED:
        return _NESTED[instruction.op](instruction, known, columns)
    shape = instruction.shape
    if isinstance(shape, Shape) and not is_differentiable(instruction):
        return None
    if isinstance(shape, Shape) and not shape.is_dynamic:
        if instruction.op.is_elementwise:
            return _pointwise(shape, operands, known)
        if instruction.op in _MOVING:
            moved = _moved(instruction, known, columns)
            if moved is not None:
                return moved
        if instruction.op is REDUCE and len(operands) == 2:
            return _reduced(instruction, known[0], known[1])
        if instruction.op is DOT_GENERAL:
            return _contracted(instruction, known)
        if instruction.op is SCATTER and len(operands) == 3:
            scattered = _scattered(instruction, known[0], known[2], columns)
            if scattered is not None:
                return scattered
    # Anything may depend on anything that goes in.
    row = _union([_row(leaf) for leaf in leaves])
    return _everywhere(instruction.shape, row)


def _leaves(pattern: Pattern) -> list[Pattern]:
    """The arrays that a pattern, of a tuple perhaps, consists of."""
    if isinstance(pattern, tuple):
        return [leaf for part in pattern for leaf in _leaves(part)]
    return [] if pattern is None else [pattern]


def _everywhere(shape: AnyShape, row: Pattern) -> Pattern:
    """The same row for every element of a value that can have a derivative."""
    if isinstance(shape, TupleShape):
        return tuple(_everywhere(element, row) for element in shape.elements)
    if not isinstance(shape, Shape) or not shape.element_type.is_differentiable:
        return None
    return _repeated(row, shape.size)


def _either(left: Pattern, right: Pattern) -> Pattern:
    """The union of two patterns of one value."""
    if left is None or right is None:
        return left if right is None else right
    if isinstance(left, tuple):
        return tuple(_either(a, b) for a, b in zip(left, right, strict=True))
    return _union([left, right])


def _applied(computation: Computation, given: Sequence[Pattern], columns: int) -> Pattern:
    pairs = zip(computation.parameters, given, strict=True)
    return _of_root(computation.root, dict(pairs), columns)


def _called(instruction: Instruction, known: Sequence[Pattern], columns: int) -> Pattern:
    return _applied(instruction.attributes["to_apply"], known, columns)


def _branched(instruction: Instruction, known: Sequence[Pattern], columns: int) -> Pattern:
    """The union of the patterns of all branches."""
    found: Pattern = None
    for branch, given in zip(instruction.computations, known[1:], strict=True):
        found = _either(found, _applied(branch, [given], columns))
    return found


def _looped(instruction: Instruction, known: Sequence[Pattern], columns: int) -> Pattern:
    """After any number of steps: all that ever gets anywhere."""
    (found,) = known
    while True:
        after = _applied(instruction.attributes["body"], [found], columns)
        whole = _either(found, after)
        if _count(whole) == _count(found):
            return whole
        found = whole


def _count(pattern: Pattern) -> int:
    return sum(leaf.nnz for leaf in _leaves(pattern))


def _scanned(instruction: Instruction, known: Sequence[Pattern], columns: int) -> Pattern:
    """Step by step, on the rows of the inputs' slices."""
    (dimension,) = instruction.attributes["dimensions"]
    carried = instruction.attributes["num_carries"]
    count, length = len(known) - carried, scan_length(instruction)
    made_count = len(instruction.element_shapes) - carried
    numbers = [
        np.moveaxis(np.arange(o.array_shape.size).reshape(o.array_shape.dimensions), dimension, 0)
        for o in instruction.operands[:count]
    ]
    carries = list(known[count:])
    stacked: list[list[Pattern]] = []
    order = range(length)
    for step in reversed(order) if instruction.attributes["is_reverse"] else order:
        slices = [
            None if pattern is None else sp.csr_array(pattern[places[step].ravel()])
            for pattern, places in zip(known[:count], numbers, strict=True)
        ]
        made = _applied(instruction.attributes["to_apply"], [*slices, *carries], columns)
        made = (None,) * (made_count + carried) if made is None else made
        stacked.append([step, *made[:made_count]])
        carries = list(made[made_count:])
    stacked.sort(key=lambda row: row[0])
    outputs = [
        _stacked(shape, [row[1 + n] for row in stacked], dimension, columns)
        for n, shape in enumerate(instruction.element_shapes[:made_count])
    ]
    return (*outputs, *carries)


def _stacked(shape: AnyShape, steps: Sequence[Pattern], dimension: int, columns: int) -> Pattern:
    """The pattern of an array whose slices along a dimension have these."""
    if all(pattern is None for pattern in steps):
        return None
    assert isinstance(shape, Shape)
    size = shape.size // len(steps)
    rows = sp.vstack([_filled(pattern, size, columns) for pattern in steps], format="csr")
    sizes = list(shape.dimensions)
    front = [sizes.pop(dimension), *sizes]
    places = np.moveaxis(np.arange(shape.size).reshape(front), 0, dimension)
    return sp.csr_array(rows[places.ravel()])


_NESTED: dict[Op, Callable[[Instruction, Sequence[Pattern], int], Pattern]] = {
    CALL: _called,
    CONDITIONAL: _branched,
    SCAN: _scanned,
    WHILE: _looped,
}


def _scattered(
    instruction: Instruction, operand: Pattern, updates: Pattern, columns: int
) -> Pattern:
    """The pattern before, and that of the updates, where their places are known."""
    array, indices, update = instruction.operands
    if any(i.op is PARAMETER for i in in_order([indices])):
        return None
    shape = array.array_shape
    windows = Windows(instruction.attributes, shape, indices, update.array_shape)
    (places,) = evaluate([windows.targets(ElementType.S64)], {})
    flat = np.asarray(places).ravel()
    inside = np.flatnonzero(flat < shape.size)
    parts = [_filled(operand, shape.size, columns)]
    if updates is not None:
        ones = np.ones(len(inside), bool)
        moved = sp.csr_array((ones, (flat[inside], inside)), shape=(shape.size, len(flat)))
        parts.append(sp.csr_array(moved @ updates))
    return _union(parts)


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
        # A scalar, as bounds and predicates may be, applies to every element.
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
