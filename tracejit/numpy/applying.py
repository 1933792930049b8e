"""``ufunc.at``: a function applied in place at places that may repeat.

add.at(x, i, v) counts every place of ``i``; where none repeats it is x[i] = add(x[i], v).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import ShapeError
from tracejit.graph import Instruction
from tracejit.lax.scanning import scan
from tracejit.numpy.folding import FEW
from tracejit.numpy.manipulation import as_array
from tracejit.ops import elementwise_unary, layout
from tracejit.ops.computations import scalar_computation
from tracejit.shapes import element_type_of
from tracejit.trace.convert import operand, stretch
from tracejit.trace.evaluation import known_value
from tracejit.trace.index_basic import BasicIndex, IndexPart, Moving
from tracejit.trace.index_fancy import Fancy, FancyIndex
from tracejit.trace.index_parse import UnknownMask, parse_index
from tracejit.trace.promotion import ufunc_dtypes
from tracejit.trace.tracer import Tracer, lift
from tracejit.trace.views import broadcast


def apply_at(ufunc: Any, a: Tracer, indices: Any, *operands: Any) -> None:
    """``a[indices] = ufunc(a[indices], *operands)``, where repeated indices count repeatedly.

    Results are cast to the array's dtype whatever they are. Raises `ShapeError` for operands that
    do not stretch to ``a[indices]``.
    """
    name = f"{ufunc.__name__}.at"
    given = [operand(_without_leading_ones(value)) for value in operands]
    dtypes, results = ufunc_dtypes(ufunc.like, (a.dtype, *(value.type for value in given)))
    wanted = [element_type_of(dtype) for dtype in dtypes[1:]]
    inputs = [ufunc.convert(value, t) for value, t in zip(given, wanted, strict=True)]
    try:
        index = parse_index(indices, a.shape, lambda item: operand(item).natural)
    except UnknownMask:
        a[indices] = ufunc(a[indices], *operands)
        return
    if isinstance(index, BasicIndex):
        view = a.through(index, False)
        rest = [lift(_stretched(name, value, view.shape), False) for value in inputs]
        view[...] = ufunc(view, *rest)
        return
    dimensions = index.result_dimensions(a.instruction)
    values = [_stretched(name, value, dimensions) for value in inputs]
    if _are_distinct(index):
        a[indices] = ufunc(a[indices], *(lift(value, False) for value in values))
        return
    reducer = "add" if ufunc.like is np.subtract else ufunc.reducer
    if reducer is not None and _is_same_in_place(reducer, results[0], a.dtype):
        update = stretch(name, given[0].to(a.element_type), dimensions)
        if ufunc.like is np.subtract:
            update = elementwise_unary.neg(update)
        a.write(index.write(a.instruction, update, scalar_computation(reducer, a.element_type)))
        return
    a.write(_one_by_one(ufunc, a, index, dimensions, values))


def _without_leading_ones(value: Any) -> Any:
    """An operand without dimensions of size 1 in front, as broadcasting takes it.

    NumPy ignores those by which its rank exceeds that of ``a[indices]``.
    """
    dimensions = operand(value).dimensions
    extra = 0
    while len(dimensions) - extra > 1 and dimensions[extra] == 1:
        extra += 1
    return as_array(value).reshape(dimensions[extra:]) if extra else value


def _stretched(function: str, value: Instruction, dimensions: tuple[int, ...]) -> Instruction:
    if value.array_shape.rank > len(dimensions):
        raise ShapeError(
            f"{function}: {value.shape} is not broadcastable to what the index gives, {dimensions}"
        )
    return stretch(function, value, dimensions)


def _is_same_in_place(reducer: str, loop: np.dtype, own: np.dtype) -> bool:
    """Whether computing in the array's own dtype gives what NumPy's loop does, but for rounding."""
    if loop == own:
        return True
    kinds = {loop.kind, own.kind}
    return reducer in ("add", "mul") and (kinds <= {"i", "u"} or kinds <= {"f", "V", "c"})


def _are_distinct(index: FancyIndex) -> bool:
    """Whether the places are known, and none stands there twice."""
    known = []
    for part in index.parts:
        if not isinstance(part, Fancy):
            continue
        found = known_value(part.indices)
        if found is None:
            return False
        known.append(found)
    places = np.stack([array.ravel() for array in np.broadcast_arrays(*known)])
    # A place counted from the back may be one that is counted from the front.
    has_both_signs = bool((places < 0).any() and (places >= 0).any())
    return not has_both_signs and np.unique(places, axis=1).shape[1] == places.shape[1]


def _one_by_one(
    ufunc: Any,
    a: Tracer,
    index: FancyIndex,
    dimensions: tuple[int, ...],
    values: list[Instruction],
) -> Instruction:
    """The array after one application for each place, in their order."""
    batch, front = index.batch(a.instruction)
    count = int(np.prod(batch))
    places = [
        layout.reshape(broadcast(part.indices, batch), [count])
        for part in index.parts
        if isinstance(part, Fancy)
    ]
    rows = [_batch_first(value, dimensions, front, len(batch)) for value in values]

    def step(carry: Any, row: Any) -> Any:
        given, operands = row
        array = carry.copy()
        rest = iter(given)
        parts: list[IndexPart] = []
        for part in index.parts:
            if not isinstance(part, Fancy):
                parts.append(part)
                continue
            place = Moving(next(rest).instruction)
            if not part.is_new:
                parts.append(place)
        view = array.through(BasicIndex(tuple(parts)), False)
        shape = view.shape
        view[...] = ufunc(view, *(value.reshape(shape) for value in operands))
        return array, ()

    columns = ([lift(place, False) for place in places], [lift(row, False) for row in rows])
    last, _ = scan(step, a.copy(), columns, length=count, unroll=count <= FEW)
    made: Instruction = last.instruction
    return made


def _batch_first(
    value: Instruction, dimensions: tuple[int, ...], front: int, rank: int
) -> Instruction:
    """A value of the result's dimensions with the places, as one dimension, in front."""
    batch = range(front, front + rank)
    rest = [d for d in range(len(dimensions)) if d not in batch]
    turned = layout.transpose(value, [*batch, *rest])
    count = int(np.prod([dimensions[d] for d in batch]))
    return layout.reshape(turned, [count, *(dimensions[d] for d in rest)])
