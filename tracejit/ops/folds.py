"""Reduce, ReduceWindow, Scatter, SelectAndScatter and Sort as loops that apply their computations.

fold([x], [init], computation, [0])      the results of Reduce, one element after the other

They hold for computations with control flow, table look-ups or without associativity: each step
applies the computation to whole arrays of scalars, see `lifting.applied_to_elements`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tracejit.attributes import PaddingDimension, Window
from tracejit.graph import Computation, Instruction, Op
from tracejit.ops.comparison import eq, ge, le, lt
from tracejit.ops.constants import constant, elements_of, iota, parameter, tuple_
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import add, and_, div, min, mul, rem, select, sub, xor
from tracejit.ops.elementwise_unary import not_
from tracejit.ops.indexing import (
    SCATTER,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    gather,
    replace_computation,
    scatter,
)
from tracejit.ops.layout import (
    broadcast_in_dim,
    concatenate,
    dynamic_slice,
    dynamic_update_slice,
    full,
    full_like,
    pad,
    reshape,
    scalar_like,
    slice_,
    transpose,
)
from tracejit.ops.lifting import applied_to_elements
from tracejit.ops.loops import Turn, counted, loop
from tracejit.ops.reduction import REDUCE, SORT, reduce_and, reduce_or
from tracejit.ops.scanning import scan
from tracejit.ops.windows import REDUCE_WINDOW, SELECT_AND_SCATTER, running_axis
from tracejit.shapes import ElementType, Shape

# Elements of a window up to which each has instructions of its own.
UNROLLED = 8

Values = Sequence[Instruction]


def fold(
    operands: Values, inits: Values, computation: Computation, dimensions: Sequence[int]
) -> tuple[Instruction, ...]:
    """Reduce from the left: the initial values, then each element in row-major order."""
    sizes = operands[0].array_shape.dimensions
    over = sorted(dimensions)
    kept = [d for d in range(len(sizes)) if d not in over]
    left = [sizes[d] for d in kept]
    starts = [_filled(init, left) for init in inits]
    count = math.prod(sizes[d] for d in over)
    if not count or not math.prod(left):
        return tuple(starts)
    rows = [reshape(transpose(x, [*over, *kept]), [count, *left]) for x in operands]
    if count == 1:
        return applied_to_elements(computation, [*starts, *(reshape(row, left) for row in rows)])
    elements = [parameter(i, x.array_shape.with_dimensions(left)) for i, x in enumerate(rows)]
    carries = [parameter(len(rows) + i, x.shape) for i, x in enumerate(starts)]
    made = tuple_(applied_to_elements(computation, [*carries, *elements]))
    step = Computation(f"{computation.name}_step", (*elements, *carries), made)
    return elements_of(scan(rows, starts, step))


def running_fold(
    operands: Values, inits: Values, computation: Computation, axis: int
) -> tuple[Instruction, ...]:
    """Every partial result of a `fold` along one dimension."""
    sizes = operands[0].array_shape.dimensions
    left = [size for d, size in enumerate(sizes) if d != axis]
    starts = [_filled(init, left) for init in inits]
    elements = [parameter(i, x.array_shape.with_dimensions(left)) for i, x in enumerate(operands)]
    carries = [parameter(len(elements) + i, x.shape) for i, x in enumerate(starts)]
    made = applied_to_elements(computation, [*carries, *elements])
    step = Computation(f"{computation.name}_step", (*elements, *carries), tuple_([*made, *made]))
    return elements_of(scan(operands, starts, step, axis))[: len(operands)]


def reduce_as_fold(instruction: Instruction) -> Instruction:
    """A Reduce as a `fold`."""
    attributes = instruction.attributes
    operands, inits = _halves(instruction.operands)
    made = fold(operands, inits, attributes["to_apply"], attributes["dimensions"])
    return _collated(made)


def reduce_window_as_loop(instruction: Instruction) -> Instruction:
    """A ReduceWindow as a loop over the elements of its window, for all positions at once."""
    operands, inits = _halves(instruction.operands)
    window: Window = instruction.attributes["window"]
    computation = instruction.attributes["to_apply"]
    shapes = [s for s in instruction.element_shapes if isinstance(s, Shape)]
    positions = shapes[0].dimensions
    sizes = operands[0].array_shape.dimensions
    starts = [_filled(init, positions) for init in inits]
    if not shapes[0].size or not operands[0].array_shape.size:
        return _collated(starts)
    if not window:
        return _collated(applied_to_elements(computation, [*starts, *operands]))
    axis = running_axis(window, sizes)
    if axis is not None and window[axis].padding_low:
        return _collated(running_fold(operands, inits, computation, axis))
    bases = [_padded(o, init, window) for o, init in zip(operands, inits, strict=True)]
    exists = _padded(_truth(sizes, True), constant(False, ElementType.PRED), window)
    count = len(operands)

    def step(number: Instruction, *state: Instruction) -> Turn:
        results, views = state[:count], [_view(x, window, positions, number) for x in state[count:]]
        made = applied_to_elements(computation, [*results, *views[:-1]])
        new = [select(views[-1], m, r) for m, r in zip(made, results, strict=True)]
        return [*new, *state[count:]], ()

    made = _repeated("window", _elements(window), [*starts, *bases, exists], step)
    return _collated(made[:count])


def select_and_scatter_as_loop(instruction: Instruction) -> Instruction:
    """A SelectAndScatter as two loops over the elements of its window: choose, then combine."""
    operand, source, init = instruction.operands
    window: Window = instruction.attributes["window"]
    choose, combine = (instruction.attributes[name] for name in ("select", "scatter"))
    sizes = operand.array_shape.dimensions
    positions = source.array_shape.dimensions
    untouched = _filled(init, sizes)
    if not source.array_shape.size or not operand.array_shape.size:
        return untouched
    if not window:
        return applied_to_elements(combine, [init, source])[0]
    base = _padded(operand, scalar_like(operand, 0), window)
    exists = _padded(_truth(sizes, True), constant(False, ElementType.PRED), window)
    none = full(Shape(ElementType.S32, positions), -1)

    def search(number: Instruction, *state: Instruction) -> Turn:
        best, chosen, base, exists = state
        candidate, inside = (_view(x, window, positions, number) for x in (base, exists))
        (keeps,) = applied_to_elements(choose, [best, candidate])
        takes = and_(inside, not_(and_(keeps, ge(chosen, full_like(chosen, 0)))))
        here = broadcast_in_dim(number, positions, ())
        return [select(takes, candidate, best), select(takes, here, chosen), base, exists], ()

    first = full(operand.array_shape.with_dimensions(positions), 0)
    count = _elements(window)
    _, chosen, _, _ = _repeated("select", count, [first, none, base, exists], search)

    def arrive(step: Instruction, *state: Instruction) -> Turn:
        # Windows come in order of their positions, the last element of a window first.
        target, chosen, source = state
        number = sub(constant(count - 1, ElementType.S32), step)
        present = _view(target, window, positions, number)
        (combined,) = applied_to_elements(combine, [present, source])
        here = eq(chosen, broadcast_in_dim(number, positions, ()))
        return [
            _with_view(target, select(here, combined, present), window, number),
            chosen,
            source,
        ], ()

    target = _filled(init, base.array_shape.dimensions)
    target = _repeated("scatter", count, [target, chosen, source], arrive)[0]
    back = [PaddingDimension(-w.padding_low, -w.padding_high) for w in window]
    return pad(target, init, back)


def scatter_as_loop(instruction: Instruction) -> Instruction:
    """A Scatter as a loop over its windows, in the order of the indices."""
    attributes = instruction.attributes
    count = len(instruction.operands) // 2
    operands, updates = instruction.operands[:count], instruction.operands[count + 1 :]
    computation = attributes["to_apply"]
    shape = operands[0].array_shape
    sizes = shape.dimensions
    removed = {*attributes["inserted_window_dims"], *attributes["input_batching_dims"]}
    window_dims = attributes["update_window_dims"]
    given = updates[0].array_shape.dimensions
    outer = [d for d in range(len(given)) if d not in window_dims]
    number = math.prod(given[d] for d in outer)
    inner = iter([given[d] for d in window_dims])
    extent = [1 if d in removed else next(inner) for d in range(len(sizes))]
    if not number or not math.prod(extent) or not shape.size:
        return _collated(operands)
    starts = _window_starts(instruction, number, len(sizes))
    rows = [reshape(transpose(x, [*outer, *window_dims]), [number, *extent]) for x in updates]
    limits = constant([s - e for s, e in zip(sizes, extent, strict=True)], ElementType.S64)

    def step(turn: Instruction, *state: Instruction) -> Turn:
        present, given, starts, limits = state[:count], state[count:-2], state[-2], state[-1]
        zero = constant(0, ElementType.S32)
        if sizes:
            start = reshape(dynamic_slice(starts, [turn, zero], [1, len(sizes)]), [len(sizes)])
            inside = and_(ge(start, full_like(start, 0)), le(start, limits))
            fits = reduce_and(inside)
            at = [reshape(slice_(start, [d], [d + 1]), ()) for d in range(len(sizes))]
        else:
            fits, at = constant(True, ElementType.PRED), []
        old = [dynamic_slice(x, at, extent) if sizes else x for x in present]
        place = [turn, *[zero] * len(extent)]
        arriving = [reshape(dynamic_slice(x, place, [1, *extent]), extent) for x in given]
        made = applied_to_elements(computation, [*old, *arriving])
        where = broadcast_in_dim(fits, extent, ()) if extent else fits
        new = [select(where, m, o) for m, o in zip(made, old, strict=True)]
        if sizes:
            new = [dynamic_update_slice(x, n, at) for x, n in zip(present, new, strict=True)]
        return [*new, *given, starts, limits], ()

    made = _repeated("scatter", number, [*operands, *rows, starts, limits], step, unrolled=1)
    return _collated(made[:count])


def _window_starts(instruction: Instruction, number: int, rank: int) -> Instruction:
    """Where each window of a Scatter begins: s64[number, rank]."""
    attributes = instruction.attributes
    indices = instruction.operands[len(instruction.operands) // 2]
    vector_dim = attributes["index_vector_dim"]
    if vector_dim == indices.array_shape.rank:
        indices = reshape(indices, [*indices.array_shape.dimensions, 1])
    sizes = indices.array_shape.dimensions
    outer = [d for d in range(len(sizes)) if d != vector_dim]
    element_type = indices.array_shape.element_type
    vectors = transpose(indices, [*outer, vector_dim])
    if element_type is ElementType.U64:  # the greatest are out of range, in s64 as well
        vectors = min(vectors, full_like(vectors, 2**63 - 1))
    vectors = convert_element_type(vectors, ElementType.S64)
    lengths = [sizes[d] for d in outer]
    column = Shape(ElementType.S64, (*lengths, 1))
    columns = [full(column, 0)] * rank
    for place, dimension in enumerate(attributes["scatter_dims_to_operand_dims"]):
        columns[dimension] = slice_(vectors, [*[0] * len(lengths), place], [*lengths, place + 1])
    batching = zip(
        attributes["input_batching_dims"],
        attributes["scatter_indices_batching_dims"],
        strict=True,
    )
    for dimension, along in batching:
        columns[dimension] = iota(column, outer.index(along))
    flat = [reshape(c, [number, 1]) for c in columns]
    return concatenate(flat, 1) if flat else full(Shape(ElementType.S64, (number, 0)), 0)


def sort_as_loop(instruction: Instruction) -> Instruction:
    """A Sort as a merge sort, stable, whose comparisons of one step are one application.

    Runs of 1, 2, 4 … are merged, all at once: an element moves to its place within its own run
    plus the number of elements in the neighbouring run that come before it, found by bisection.
    """
    (dimension,) = instruction.attributes["dimensions"]
    comparator = instruction.attributes["to_apply"]
    operands = instruction.operands
    sizes = operands[0].array_shape.dimensions
    length, total = sizes[dimension], math.prod(sizes)
    if length < 2 or not total:
        return _collated(operands)
    count = len(operands)
    front = [dimension, *(d for d in range(len(sizes)) if d != dimension)]
    index = ElementType.S32 if 2 * total < 2**31 else ElementType.S64
    grid = Shape(index, (length, total // length))
    keys = [reshape(transpose(x, front), [total]) for x in operands]

    def level(number: Instruction, *state: Instruction) -> Turn:
        width, order, *keys = state
        place = iota(grid, 0)
        wide = broadcast_in_dim(width, grid.dimensions, ())
        run, offset = div(place, wide), rem(place, wide)
        one, size = full(grid, 1), full(grid, length)
        is_right = eq(rem(run, full(grid, 2)), one)
        neighbour = min(mul(xor(run, one), wide), size)
        own = [_taken(key, order) for key in keys]
        high = min(add(neighbour, wide), size)
        low = _bisected(comparator, own, is_right, neighbour, high)
        pair = mul(div(run, full(grid, 2)), mul(full(grid, 2), wide))
        target = add(pair, add(offset, sub(low, neighbour)))
        merged = _put(order, target)
        return [add(width, width), merged, *keys], ()

    levels = (length - 1).bit_length()
    start = [constant(1, index), iota(grid, 0), *keys]
    _, order, *_ = counted("merge", levels, start, level)
    back = [front.index(d) for d in range(len(sizes))]
    moved = [sizes[d] for d in front]
    ordered = [transpose(reshape(_taken(key, order), moved), back) for key in keys]
    return _collated(ordered[:count])


def _bisected(
    comparator: Computation,
    own: Values,
    is_right: Instruction,
    low: Instruction,
    high: Instruction,
) -> Instruction:
    """Where each element belongs between ``low`` and ``high`` in the column ``own`` is of."""

    def goes_on(low: Instruction, high: Instruction, *rest: Instruction) -> Instruction:
        return reduce_or(lt(low, high))

    def halved(low: Instruction, high: Instruction, *rest: Instruction) -> Values:
        is_right, *own = rest
        length = low.array_shape.dimensions[0]
        middle = div(add(low, high), full_like(low, 2))
        inside = min(middle, full_like(low, length - 1))
        others = [_taken(reshape(x, [x.array_shape.size]), inside) for x in own]
        # A left element passes those strictly before it, a right one those not after it.
        pairs: list[Instruction] = []
        for mine, other in zip(own, others, strict=True):
            pairs += [select(is_right, mine, other), select(is_right, other, mine)]
        (before,) = applied_to_elements(comparator, pairs)
        passes, searching = xor(before, is_right), lt(low, high)
        further = select(and_(searching, passes), add(middle, full_like(low, 1)), low)
        nearer = select(and_(searching, not_(passes)), middle, high)
        return [further, nearer, *rest]

    return loop("bisect", [low, high, is_right, *own], goes_on, halved)[0]


def _flat_places(rows: Instruction) -> Instruction:
    """For row numbers in a table, the numbers of elements in it flattened, as index vectors."""
    shape = rows.array_shape
    columns = shape.dimensions[1]
    return reshape(add(mul(rows, full_like(rows, columns)), iota(shape, 1)), [shape.size, 1])


def _taken(flat: Instruction, rows: Instruction) -> Instruction:
    """The elements of a flattened table in the rows that a table of row numbers names."""
    numbers = GatherDimensionNumbers((), (0,), (0,), 1)
    taken = gather(flat, _flat_places(rows), numbers, (1,))
    return reshape(taken, rows.array_shape.dimensions)


def _put(values: Instruction, rows: Instruction) -> Instruction:
    """A table with ``values`` in the rows that a permutation of each column names."""
    shape = values.array_shape
    flat = shape.with_dimensions((shape.size,))
    numbers = ScatterDimensionNumbers((), (0,), (0,), 1)
    replace = replace_computation(shape.element_type)
    given = reshape(values, flat.dimensions)
    made = scatter(full(flat, 0), _flat_places(rows), given, replace, numbers, unique_indices=True)
    return reshape(made, shape.dimensions)


AS_LOOPS: dict[Op, Callable[[Instruction], Instruction]] = {
    REDUCE: reduce_as_fold,
    REDUCE_WINDOW: reduce_window_as_loop,
    SCATTER: scatter_as_loop,
    SELECT_AND_SCATTER: select_and_scatter_as_loop,
    SORT: sort_as_loop,
}
"""The ops that apply computations of scalars, and each as a loop."""


def _halves(operands: Values) -> tuple[Values, Values]:
    return operands[: len(operands) // 2], operands[len(operands) // 2 :]


def _collated(made: Values) -> Instruction:
    return made[0] if len(made) == 1 else tuple_(list(made))


def _filled(scalar: Instruction, dimensions: Sequence[int]) -> Instruction:
    return broadcast_in_dim(scalar, dimensions, ()) if len(dimensions) else scalar


def _truth(dimensions: Sequence[int], value: bool) -> Instruction:
    return full(Shape(ElementType.PRED, tuple(dimensions)), value)


def _elements(window: Window) -> int:
    return math.prod(entry.size for entry in window)


def _repeated(
    name: str, count: int, state: Values, step: Callable[..., Turn], unrolled: int = UNROLLED
) -> Values:
    """``step`` taken ``count`` times: written out, or as a loop."""
    if count > unrolled:
        return counted(name, count, state, step)
    for number in range(count):
        state, _ = step(constant(number, ElementType.S32), *state)
    return state


def _padded(operand: Instruction, fill: Instruction, window: Window) -> Instruction:
    """A base with the window's base dilation and padding, or cropping, carried out."""
    entries = [PaddingDimension(w.padding_low, w.padding_high, w.base_dilation - 1) for w in window]
    return pad(operand, fill, entries)


def _offsets(window: Window, number: Instruction) -> list[Instruction]:
    """Where an element of the window lies in each dimension, from its number in row-major order."""
    made, count = [], _elements(window)
    for entry in window:
        count //= entry.size
        place = rem(div(number, scalar_like(number, count)), scalar_like(number, entry.size))
        made.append(mul(place, scalar_like(number, entry.window_dilation)))
    return made


def _spans(window: Window, positions: Sequence[int]) -> list[int]:
    return [(p - 1) * w.stride + 1 for p, w in zip(positions, window, strict=True)]


def _view(
    base: Instruction, window: Window, positions: Sequence[int], number: Instruction
) -> Instruction:
    """What an element of the window meets, for all positions."""
    spans = _spans(window, positions)
    part = dynamic_slice(base, _offsets(window, number), spans)
    return slice_(part, [0] * len(spans), spans, [w.stride for w in window])


def _with_view(
    base: Instruction, view: Instruction, window: Window, number: Instruction
) -> Instruction:
    """``base`` with another `_view`."""
    positions = view.array_shape.dimensions
    at, spans = _offsets(window, number), _spans(window, positions)
    present = dynamic_slice(base, at, spans)
    holes = [PaddingDimension(0, 0, w.stride - 1) for w in window]
    wide = pad(view, scalar_like(view, 0), holes)
    is_new = pad(_truth(positions, True), constant(False, ElementType.PRED), holes)
    return dynamic_update_slice(base, select(is_new, wide, present), at)
