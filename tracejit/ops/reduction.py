"""Ops that combine or order the elements along dimensions: Reduce, Sort, TopK.

reduce_sum(x, (0, 1))                       the usual reductions, by name
reduce(x, init, scalar_computation("add", F32), (0,))     any computation, any number of operands
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from tracejit.attributes import Attribute, Kind
from tracejit.equality import same_graph
from tracejit.errors import AttributeValueError, DimensionError, ElementTypeError, ShapeError
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import (
    ORDERED,
    define,
    make,
    require_array,
    require_element_type,
    require_unique_dimensions,
)
from tracejit.ops.comparison import eq, gt, lt, ne
from tracejit.ops.computations import (
    collate,
    highest,
    identity_value,
    lowest,
    operand_list,
    require_computation,
    require_reducer,
    require_reducer_operands,
    scalar_computation,
)
from tracejit.ops.constants import constant, elements_of, iota, parameter, tuple_
from tracejit.ops.elementwise import and_, or_, select
from tracejit.ops.elementwise_unary import not_
from tracejit.shapes import AnyShape, ElementType, Shape, TupleShape, canonical_dimension


@define(
    "Reduce",
    "reduce",
    Attribute("dimensions", Kind.INTS),
    Attribute("to_apply", Kind.COMPUTATION),
)
def REDUCE(*shapes: AnyShape, dimensions: tuple[int, ...], to_apply: Computation) -> AnyShape:
    operands = require_reducer_operands("reduce", shapes)
    rank = operands[0].rank
    require_unique_dimensions("reduce", "dimensions_to_reduce", dimensions, rank)
    require_reducer("reduce", to_apply, operands)
    kept = [d for d in range(rank) if d not in dimensions]
    return collate([s.with_dimensions([s.dimensions[d] for d in kept]) for s in operands])


def reduce(
    operands: Instruction | Sequence[Instruction],
    init_values: Instruction | Sequence[Instruction],
    computation: Computation,
    dimensions_to_reduce: Sequence[int],
) -> Instruction:
    """The elements along ``dimensions_to_reduce`` combined into one (XLA: Reduce).

    ``computation`` takes N accumulators, then N elements, all scalars, and returns N scalars. The
    usual monoids (add, mul, max, min, and, or, xor) and argmax and argmin combine in any order; any
    other computation is applied from the left, to ``init_values`` and the first element in
    row-major order, then to that and the second. ``init_values`` are its identity;
    others take part once, though XLA drops them where one element, or none, is reduced.
    Minima and maxima of NaN are NaN; XLA's CPU backend loses it in arrays of 4,096 elements.
    The result is an array, or a tuple of N > 1 arrays. Negative dimensions count from the back.
    Raises `ShapeError` when operands or computation do not fit.
    """
    arrays = operand_list(operands)
    if not arrays:
        raise ShapeError("reduce: needs at least one operand")
    rank = require_array("reduce", "operand 0", arrays[0].shape).rank
    dimensions = tuple(sorted(canonical_dimension(d, rank, "reduce") for d in dimensions_to_reduce))
    return make(
        REDUCE,
        *arrays,
        *operand_list(init_values),
        dimensions=dimensions,
        to_apply=computation,
    )


def _reduce_by(name: str, operand: Instruction, dimensions: Sequence[int] | None) -> Instruction:
    shape = require_array(f"reduce_{name}", "operand", operand.shape)
    init = constant(identity_value(name, shape.element_type), shape.element_type)
    over = range(shape.rank) if dimensions is None else dimensions
    return reduce(operand, init, scalar_computation(name, shape.element_type), over)


def reduce_sum(operand: Instruction, dimensions: Sequence[int] | None = None) -> Instruction:
    """The sum along ``dimensions``, by default all (Reduce with add)."""
    return _reduce_by("add", operand, dimensions)


def reduce_prod(operand: Instruction, dimensions: Sequence[int] | None = None) -> Instruction:
    """The product along ``dimensions``, by default all (Reduce with mul)."""
    return _reduce_by("mul", operand, dimensions)


def reduce_max(operand: Instruction, dimensions: Sequence[int] | None = None) -> Instruction:
    """The greatest element along ``dimensions``; NaN if there is one (Reduce with max)."""
    return _reduce_by("max", operand, dimensions)


def reduce_min(operand: Instruction, dimensions: Sequence[int] | None = None) -> Instruction:
    """The least element along ``dimensions``; NaN if there is one (Reduce with min)."""
    return _reduce_by("min", operand, dimensions)


def reduce_and(operand: Instruction, dimensions: Sequence[int] | None = None) -> Instruction:
    """The bitwise, on pred logical, and along ``dimensions`` (Reduce with and)."""
    return _reduce_by("and", operand, dimensions)


def reduce_or(operand: Instruction, dimensions: Sequence[int] | None = None) -> Instruction:
    """The bitwise, on pred logical, or along ``dimensions`` (Reduce with or)."""
    return _reduce_by("or", operand, dimensions)


def reduce_xor(operand: Instruction, dimensions: Sequence[int] | None = None) -> Instruction:
    """The bitwise, on pred logical, exclusive or along ``dimensions`` (Reduce with xor)."""
    return _reduce_by("xor", operand, dimensions)


@functools.cache
def arg_computation(name: str, element_type: ElementType, index_type: ElementType) -> Computation:
    """(value, index, value, index) -> the better pair; NaN is best, lower indices win ties."""
    best, best_index, value, index = parameters = tuple(
        parameter(i, Shape(t)) for i, t in enumerate([element_type, index_type] * 2)
    )

    better = gt(value, best) if name == "argmax" else lt(value, best)
    equal = eq(value, best)
    if element_type.is_floating:
        is_nan, was_nan = ne(value, value), ne(best, best)
        better = or_(better, and_(is_nan, not_(was_nan)))
        equal = or_(equal, and_(is_nan, was_nan))
    take = or_(better, and_(equal, lt(index, best_index)))
    root = tuple_([select(take, value, best), select(take, index, best_index)])
    return Computation(f"{name}_{element_type}_{index_type}", parameters, root)


@functools.lru_cache(maxsize=256)
def extreme(computation: Computation) -> str | None:
    """ "argmax" or "argmin" for a computation that is that, whoever wrote it."""
    shapes = [p.shape for p in computation.parameters if isinstance(p.shape, Shape)]
    types = [shape.element_type for shape in shapes]
    if len(types) != 4 or types[:2] != types[2:]:
        return None
    value, index = types[:2]
    if value.is_complex or not index.is_integral:
        return None
    for name in ("argmax", "argmin"):
        if same_graph(computation, arg_computation(name, value, index)):
            return name
    return None


def _arg_reduce(
    name: str, operand: Instruction, dimension: int, index_type: ElementType
) -> Instruction:
    shape = require_array(name, "operand", operand.shape)
    require_element_type(name, "operand", shape, ORDERED)
    if not index_type.is_integral:
        raise ElementTypeError(f"{name}: index_type must be integral, not {index_type}")
    if not shape.rank:
        raise DimensionError(f"{name}: operand {shape} has no dimensions")
    axis = canonical_dimension(dimension, shape.rank, name)
    if not shape.dimensions[axis]:
        raise ShapeError(f"{name}: dimension {axis} of operand {shape} is empty")
    worst = lowest(shape.element_type) if name == "argmax" else highest(shape.element_type)
    both = reduce(
        [operand, iota(shape.with_element_type(index_type), axis)],
        [constant(worst, shape.element_type), constant(0, index_type)],
        arg_computation(name, shape.element_type, index_type),
        [axis],
    )
    return elements_of(both)[1]


def argmax(
    operand: Instruction, dimension: int, index_type: ElementType = ElementType.S32
) -> Instruction:
    """The index of the first greatest element along ``dimension``; the first NaN beats all.

    Raises `ShapeError` when the dimension is empty.
    """
    return _arg_reduce("argmax", operand, dimension, index_type)


def argmin(
    operand: Instruction, dimension: int, index_type: ElementType = ElementType.S32
) -> Instruction:
    """The index of the first least element along ``dimension``; the first NaN beats all.

    Raises `ShapeError` when the dimension is empty.
    """
    return _arg_reduce("argmin", operand, dimension, index_type)


@define(
    "Sort",
    "sort",
    Attribute("dimensions", Kind.INTS),
    Attribute("is_stable", Kind.BOOL, False),
    Attribute("to_apply", Kind.COMPUTATION),
)
def SORT(
    *shapes: AnyShape, dimensions: tuple[int, ...], is_stable: bool, to_apply: Computation
) -> AnyShape:
    if not shapes:
        raise ShapeError("sort: needs at least one operand")
    operands = [require_array("sort", f"operand {i}", s) for i, s in enumerate(shapes)]
    for i, operand in enumerate(operands):
        if operand.dimensions != operands[0].dimensions:
            raise ShapeError(
                f"sort: all operands must have the same dimensions; operand 0 is {operands[0]}, "
                f"operand {i} is {operand}"
            )
    if len(dimensions) != 1 or not 0 <= dimensions[0] < operands[0].rank:
        raise AttributeValueError(
            f"sort: dimension must be one dimension number of operand 0 {operands[0]}, "
            f"not {dimensions}"
        )
    pairs = [Shape(s.element_type) for s in operands for _ in range(2)]
    require_computation("sort", "comparator", to_apply, pairs, Shape(ElementType.PRED))
    return collate([s.with_dimensions(s.dimensions) for s in operands])


def sort(
    operands: Instruction | Sequence[Instruction],
    comparator: Computation | None = None,
    dimension: int = -1,
    is_stable: bool = False,
) -> Instruction:
    """All operands put in order together along ``dimension`` (XLA: Sort).

    ``comparator`` takes two scalars of operand 0, two of operand 1, and so on, and says whether
    the first of each pair comes before the second; None sorts operand 0 upwards with
    `sort_order`. The result is an array, or a tuple for several operands. Raises `ShapeError`
    when operands or comparator do not fit.
    """
    arrays = operand_list(operands)
    if not arrays:
        raise ShapeError("sort: needs at least one operand")
    shapes = [require_array("sort", f"operand {i}", a.shape) for i, a in enumerate(arrays)]
    if not shapes[0].rank:
        raise DimensionError(f"sort: operand 0 {shapes[0]} has no dimensions")
    axis = canonical_dimension(dimension, shapes[0].rank, "sort")
    if comparator is None:
        comparator = sort_order(*[s.element_type for s in shapes])
    return make(SORT, *arrays, dimensions=(axis,), is_stable=is_stable, to_apply=comparator)


def sort_order(
    *element_types: ElementType, descending: bool = False, num_keys: int = 1
) -> Computation:
    """The comparator that orders by the first ``num_keys`` operands; ties go to the next of these.

    NaN is last, or first when descending. -0 and +0 are equal, and so are all NaN, so that a stable
    sort keeps their order. The same arguments give the same object. Raises `ElementTypeError` for
    complex keys, `AttributeValueError` where there are fewer operands than keys, or no keys.
    """
    if not 1 <= num_keys <= len(element_types):
        raise AttributeValueError(
            f"sort: num_keys must be between 1 and the number of operands, {len(element_types)}, "
            f"not {num_keys}"
        )
    return _sort_order(element_types, descending, num_keys)


@functools.cache
def _sort_order(
    element_types: tuple[ElementType, ...], descending: bool, num_keys: int
) -> Computation:
    for i, key in enumerate(element_types[:num_keys]):
        require_element_type("sort", f"operand {i}", Shape(key), ORDERED)
    kinds = [t for t in element_types for _ in range(2)]
    parameters = tuple(parameter(i, Shape(t)) for i, t in enumerate(kinds))
    first, second = parameters[::2], parameters[1::2]
    if descending:
        first, second = second, first
    last = num_keys - 1
    root = _comes_before(first[last], second[last])
    for i in reversed(range(last)):
        # By this key, or by those after it where neither comes before the other.
        is_tie = not_(_comes_before(second[i], first[i]))
        root = or_(_comes_before(first[i], second[i]), and_(is_tie, root))
    names = "_".join(map(str, element_types))
    way = "descending" if descending else "ascending"
    return Computation(f"{way}_{names}" + (f"_by_{num_keys}" if last else ""), parameters, root)


def _comes_before(x: Instruction, y: Instruction) -> Instruction:
    less = lt(x, y)
    if not x.array_shape.element_type.is_floating:
        return less
    # x comes before NaN, and NaN before nothing.
    return or_(less, and_(eq(x, x), ne(y, y)))


@define("TopK", "topk", Attribute("k", Kind.INT), Attribute("largest", Kind.BOOL))
def TOP_K(operand: AnyShape, *, k: int, largest: bool) -> TupleShape:
    source = require_array("top_k", "operand", operand)
    require_element_type("top_k", "operand", source, ORDERED)
    if not source.rank:
        raise ShapeError(f"top_k: operand {source} must have at least one dimension")
    if not 0 <= k <= source.dimensions[-1]:
        raise AttributeValueError(
            f"top_k: k is {k}, the last dimension of operand {source} has {source.dimensions[-1]}"
        )
    dimensions = (*source.dimensions[:-1], k)
    return TupleShape((Shape(source.element_type, dimensions), Shape(ElementType.S32, dimensions)))


def top_k(operand: Instruction, k: int, largest: bool = True) -> Instruction:
    """(values, indices) of the ``k`` largest or smallest along the last dimension (XLA: TopK).

    In the types' total order (-0 below +0, NaN beyond the infinities), equal elements by index;
    indices are s32. Raises `AttributeValueError` when the last
    dimension has fewer than ``k`` elements.
    """
    return make(TOP_K, operand, k=k, largest=largest)
