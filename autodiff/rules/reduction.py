"""Reduce, Sort and TopK."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import ml_dtypes

from tracejit.autodiff.composition import pullback_through
from tracejit.autodiff.reverse import Cotangent, Cotangents, differentiate
from tracejit.graph import Computation, Instruction, Op
from tracejit.ops.comparison import eq
from tracejit.ops.computations import binary_op, identity_value, monoid, scalar_computation
from tracejit.ops.constants import (
    CONSTANT,
    constant,
    elements_of,
    get_tuple_element,
    iota,
    parameter,
)
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import ADD, MAX, MIN, div, select
from tracejit.ops.folds import fold
from tracejit.ops.indexing import ScatterDimensionNumbers, scatter
from tracejit.ops.layout import (
    broadcast_in_dim,
    concatenate,
    full,
    full_like,
    reshape,
    slice_in_dim,
    transpose,
)
from tracejit.ops.lifting import lift
from tracejit.ops.reduction import REDUCE, SORT, TOP_K, extreme, reduce, reduce_sum, sort
from tracejit.shapes import ElementType, Shape


@differentiate.attach(REDUCE)
def reduce_rule(instruction: Instruction, cotangent: Instruction | Cotangents) -> Cotangents:
    dimensions, computation = (instruction.attributes[n] for n in ("dimensions", "to_apply"))
    operand, init = instruction.operands[0], instruction.operands[-1]
    op = binary_op(computation) if len(instruction.operands) == 2 else None
    if op is ADD and isinstance(cotangent, Instruction):
        return _along(cotangent, operand, dimensions), reduce_sum(cotangent)
    if op in (MAX, MIN) and isinstance(cotangent, Instruction) and is_identity(init, op):
        # Shared evenly among equal elements.
        chosen = eq(operand, _along(instruction, operand, dimensions))
        ties = reduce_sum(
            convert_element_type(chosen, operand.array_shape.element_type), dimensions
        )
        share = _along(div(cotangent, ties), operand, dimensions)
        return select(chosen, share, full_like(operand, 0)), None
    if op in (MAX, MIN):
        function = extremum_with_init(
            op, lambda x, start: reduce(x, start, computation, dimensions)
        )
    elif is_associative(computation):
        function = _pairwise(computation, dimensions)
    else:
        count = len(instruction.operands) // 2

        def function(*arrays: Instruction) -> Sequence[Instruction]:
            return fold(arrays[:count], arrays[count:], computation, dimensions)

    return pullback_through(function, instruction.operands, listed(cotangent))


def is_associative(computation: Computation) -> bool:
    """Whether a computation is known to be associative, so that pairs may be combined first."""
    return monoid(computation) is not None or extreme(computation) is not None


def listed(cotangent: Instruction | Cotangents) -> Sequence[Cotangent]:
    """The cotangents of a variadic op's results, possibly a single one."""
    return [cotangent] if isinstance(cotangent, Instruction) else cotangent


def is_identity(init: Instruction, op: Op) -> bool:
    """Whether ``init`` is a constant beyond all finite values, so that ``op`` ignores it.

    ``op`` is MAX or MIN. The least finite value counts as well as minus infinity: XLA's own
    examples start maxima there.
    """
    if init.op is not CONSTANT:
        return False
    limits = ml_dtypes.finfo(init.array_shape.dtype)  # type: ignore[no-untyped-call]
    value = init.attributes["literal"]
    return bool(value <= limits.min if op is MAX else value >= limits.max)


def extremum_with_init(
    op: Op, reduced: Callable[[Instruction, Instruction], Instruction]
) -> Callable[..., Sequence[Instruction]]:
    """The maximum, or minimum, of ``reduced(operand, identity)`` and any init value."""

    def function(operand: Instruction, init: Instruction) -> Sequence[Instruction]:
        element_type = operand.array_shape.element_type
        result = reduced(operand, constant(identity_value(op.function, element_type), element_type))
        start = broadcast_in_dim(init, result.array_shape.dimensions, ())
        return [lift(scalar_computation(op.function, element_type), [start, result])]

    return function


def _along(reduced: Instruction, operand: Instruction, dimensions: Sequence[int]) -> Instruction:
    """``reduced`` repeated along the dimensions of ``operand`` that were reduced."""
    sizes = operand.array_shape.dimensions
    kept = [d for d in range(len(sizes)) if d not in dimensions]
    return broadcast_in_dim(reduced, sizes, kept)


def _pairwise(
    computation: Computation, dimensions: Sequence[int]
) -> Callable[..., Sequence[Instruction]]:
    """A Reduce as a tree: neighbours combined, then neighbouring pairs, and so on; init last.

    The order of the elements is kept, so that the computation need not be commutative.
    """

    def function(*arrays: Instruction) -> Sequence[Instruction]:
        operands, inits = arrays[: len(arrays) // 2], arrays[len(arrays) // 2 :]
        sizes = operands[0].array_shape.dimensions
        kept = [d for d in range(len(sizes)) if d not in dimensions]
        left = [sizes[d] for d in kept]
        starts = [broadcast_in_dim(init, left, ()) for init in inits]
        count = math.prod(sizes[d] for d in dimensions)
        if not count:
            return starts
        rows = [reshape(transpose(x, [*dimensions, *kept]), [count, *left]) for x in operands]
        while count > 1:
            even = count // 2 * 2
            pairs = [slice_in_dim(row, i, even, 2, 0) for i in range(2) for row in rows]
            combined = elements_of(lift(computation, pairs))
            if even < count:
                lasts = [slice_in_dim(row, even, count, 1, 0) for row in rows]
                combined = tuple(concatenate(ends, 0) for ends in zip(combined, lasts, strict=True))
            rows, count = list(combined), (count + 1) // 2
        return elements_of(lift(computation, [*starts, *(reshape(row, left) for row in rows)]))

    return function


@differentiate.attach(SORT)
def sort_rule(instruction: Instruction, cotangent: Instruction | Cotangents) -> Cotangents:
    # y[i] = x[order[i]], so the cotangent of y[i] belongs to x[order[i]].
    (dimension,) = instruction.attributes["dimensions"]
    comparator = instruction.attributes["to_apply"]
    sizes = instruction.operands[0].array_shape.dimensions
    places = iota(Shape(index_type(sizes[dimension]), sizes), dimension)
    unused = [
        parameter(len(comparator.parameters) + i, Shape(places.array_shape.element_type))
        for i in range(2)
    ]
    extended = Computation(
        f"{comparator.name}_with_place", (*comparator.parameters, *unused), comparator.root
    )
    ordered = sort([*instruction.operands, places], extended, dimension, is_stable=True)
    order = elements_of(ordered)[-1]
    return [
        None if part is None else _put_along(order, part, dimension, sizes[dimension])
        for part in listed(cotangent)
    ]


@differentiate.attach(TOP_K)
def top_k_rule(instruction: Instruction, cotangent: Cotangents) -> Cotangents:
    values = cotangent[0]
    if values is None:
        return [None]
    sizes = instruction.operands[0].array_shape.dimensions
    indices = get_tuple_element(instruction, 1)
    return [_put_along(indices, values, len(sizes) - 1, sizes[-1])]


def index_type(size: int) -> ElementType:
    """The integer type that counts ``size`` elements."""
    return ElementType.S32 if size < 2**31 else ElementType.S64


def _put_along(indices: Instruction, values: Instruction, dimension: int, size: int) -> Instruction:
    """Zeros, ``size`` along ``dimension``, with ``values`` at the ``indices``, all different."""
    shape = values.array_shape
    sizes = [size if d == dimension else s for d, s in enumerate(shape.dimensions)]
    others = tuple(d for d in range(shape.rank) if d != dimension)
    numbers = ScatterDimensionNumbers((), (dimension,), (dimension,), shape.rank, others, others)
    return scatter(
        full(shape.with_dimensions(sizes), 0),
        indices,
        values,
        scalar_computation("add", shape.element_type),
        numbers,
        unique_indices=True,
    )
