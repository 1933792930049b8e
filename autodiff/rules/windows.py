"""ReduceWindow and SelectAndScatter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tracejit.attributes import Window, WindowDimension
from tracejit.autodiff.composition import pullback_through
from tracejit.autodiff.reverse import Cotangents, differentiate
from tracejit.autodiff.rules.reduction import (
    extremum_with_init,
    index_type,
    is_associative,
    is_identity,
    listed,
)
from tracejit.errors import DerivativeError
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import make
from tracejit.ops.comparison import ge, lt
from tracejit.ops.computations import binary_op, scalar_computation
from tracejit.ops.constants import constant, elements_of, iota, parameter, tuple_
from tracejit.ops.elementwise import ADD, MAX, MIN, MUL, SUB, and_, or_, select
from tracejit.ops.folds import reduce_window_as_loop
from tracejit.ops.indexing import (
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    gather,
    scatter,
)
from tracejit.ops.layout import (
    broadcast_in_dim,
    concatenate,
    full_like,
    reshape,
    scalar_like,
    slice_in_dim,
)
from tracejit.ops.lifting import applied_to_elements
from tracejit.ops.reduction import reduce_sum
from tracejit.ops.windows import REDUCE_WINDOW, SELECT_AND_SCATTER, running_axis
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import inline


@differentiate.attach(REDUCE_WINDOW)
def reduce_window_rule(instruction: Instruction, cotangent: Instruction | Cotangents) -> Cotangents:
    window, computation = (instruction.attributes[n] for n in ("window", "to_apply"))
    operand, init = instruction.operands[0], instruction.operands[-1]
    op = binary_op(computation) if len(instruction.operands) == 2 else None
    axis = running_axis(window, operand.array_shape.dimensions)
    plain = all(w.base_dilation == w.window_dilation == 1 for w in window)
    if op is ADD and isinstance(cotangent, Instruction):
        return _sum_transposed(cotangent, operand.array_shape, window), reduce_sum(cotangent)
    if axis is not None and is_associative(computation):
        function = _running(computation, axis, window[axis].padding_high > 0)
    elif op in (MAX, MIN) and plain and is_identity(init, op):
        assert isinstance(cotangent, Instruction)
        return _scatter_to_extremum(instruction, cotangent), None
    elif op in (MAX, MIN) and plain:
        function = extremum_with_init(
            op,
            lambda x, start: make(REDUCE_WINDOW, x, start, window=window, to_apply=computation),
        )
    else:

        def function(*arrays: Instruction) -> Sequence[Instruction]:
            same = make(REDUCE_WINDOW, *arrays, window=window, to_apply=computation)
            return elements_of(reduce_window_as_loop(same))

    return pullback_through(function, instruction.operands, listed(cotangent))


def transposed_window(window: Window, sizes: Sequence[int], positions: Sequence[int]) -> Window:
    """The window that leads from the positions of ``window`` back to its base of ``sizes``.

    Position p sees element i through window element k where p*stride + k*d = i*b + low, with d and
    b the dilations of window and base. Read as a window over the positions, whose element m = K-1-k
    comes in the opposite order: p*stride + (K-1)*d - low = i*b + m*d. So stride and base dilation
    change places, (K-1)*d - low is the low padding, and the high padding makes room for all i.
    """
    entries = []
    for entry, size, count in zip(window, sizes, positions, strict=True):
        low = entry.dilated_size - 1 - entry.padding_low
        needed = (size - 1) * entry.base_dilation + entry.dilated_size
        entries.append(
            WindowDimension(
                entry.size,
                stride=entry.base_dilation,
                padding_low=low,
                padding_high=needed - low - ((count - 1) * entry.stride + 1),
                window_dilation=entry.window_dilation,
                base_dilation=entry.stride,
                reversal=not entry.reversal,
            )
        )
    return tuple(entries)


def _sum_transposed(cotangent: Instruction, operand: Shape, window: Window) -> Instruction | None:
    if not operand.size or not cotangent.array_shape.size:
        return None
    back = transposed_window(window, operand.dimensions, cotangent.array_shape.dimensions)
    return make(
        REDUCE_WINDOW,
        cotangent,
        scalar_like(cotangent, 0),
        window=tuple(replace(entry, reversal=False) for entry in back),
        to_apply=scalar_computation("add", operand.element_type),
    )


def _scatter_to_extremum(instruction: Instruction, cotangent: Instruction) -> Instruction:
    operand, init = instruction.operands
    element_type = operand.array_shape.element_type
    keeps = "ge" if binary_op(instruction.attributes["to_apply"]) is MAX else "le"
    return make(
        SELECT_AND_SCATTER,
        operand,
        cotangent,
        scalar_like(init, 0),
        window=instruction.attributes["window"],
        select=scalar_computation(keeps, element_type),
        scatter=scalar_computation("add", element_type),
    )


def _running(
    computation: Computation, axis: int, backwards: bool
) -> Callable[..., Sequence[Instruction]]:
    """A cumulative ReduceWindow in steps of 1, 2, 4 …: each doubles what an element has seen."""

    def function(*arrays: Instruction) -> Sequence[Instruction]:
        seen, inits = list(arrays[: len(arrays) // 2]), arrays[len(arrays) // 2 :]
        sizes = seen[0].array_shape.dimensions
        size, step = sizes[axis], 1
        while step < size:
            earlier = [slice_in_dim(x, 0, size - step, 1, axis) for x in seen]
            later = [slice_in_dim(x, step, size, 1, axis) for x in seen]
            combined = applied_to_elements(computation, [*earlier, *later])
            # The first elements, or the last, have seen everything already.
            start = size - step if backwards else 0
            settled = [slice_in_dim(x, start, start + step, 1, axis) for x in seen]
            seen = [
                concatenate([new, old] if backwards else [old, new], axis)
                for new, old in zip(combined, settled, strict=True)
            ]
            step *= 2
        starts = [broadcast_in_dim(init, sizes, ()) for init in inits]
        return applied_to_elements(computation, [*starts, *seen])

    return function


@differentiate.attach(SELECT_AND_SCATTER)
def select_and_scatter_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    """Each source element was combined in one place, whose cotangent it gets."""
    operand, source, init = instruction.operands
    window = instruction.attributes["window"]
    base = operand.array_shape
    if not source.array_shape.size or not base.size:
        return None, None, reduce_sum(cotangent)
    place = _selected_places(instruction)
    computation = instruction.attributes["scatter"]
    if binary_op(computation) is not ADD:
        # As the Scatter that it is, to places that are known; windows apart share none.
        apart = all(entry.stride >= entry.size for entry in window)
        if not apart and binary_op(computation) not in (SUB, MUL, MAX, MIN):
            raise DerivativeError(
                "select_and_scatter: where windows overlap, only adding, subtracting, multiplying "
                "and taking the maximum or minimum have a derivative",
                instruction.source,
            )
        numbers = ScatterDimensionNumbers((), (0,), (0,), place.array_shape.rank)

        def scattered(source: Instruction, init: Instruction) -> Sequence[Instruction]:
            start = broadcast_in_dim(init, (base.size,), ())
            made = scatter(start, place, source, computation, numbers, unique_indices=apart)
            return [reshape(made, base.dimensions)]

        return [None, *pullback_through(scattered, [source, init], [cotangent])]
    gathered = GatherDimensionNumbers((), (0,), (0,), place.array_shape.rank)
    taken = gather(reshape(cotangent, [base.size]), place, gathered, [1])
    if any(entry.padding_low > 0 or entry.padding_high > 0 for entry in window):
        taken = select(ge(place, full_like(place, 0)), taken, full_like(taken, 0))
    return None, taken, reduce_sum(cotangent)


def _selected_places(instruction: Instruction) -> Instruction:
    """For each window its selected element's number in row-major order, -1 where it has none."""
    operand = instruction.operands[0]
    base = operand.array_shape
    places = reshape(iota(Shape(index_type(base.size), (base.size,))), base.dimensions)
    chosen = make(
        REDUCE_WINDOW,
        operand,
        places,
        scalar_like(operand, 0),
        scalar_like(places, -1),
        window=instruction.attributes["window"],
        to_apply=_selected(
            instruction.attributes["select"], base.element_type, places.array_shape.element_type
        ),
    )
    return elements_of(chosen)[1]


def _selected(
    select_computation: Computation, element_type: ElementType, index: ElementType
) -> Computation:
    """(value, place, value, place) -> the selected pair; a negative place means no element."""
    kept, kept_place, value, place = parameters = tuple(
        parameter(i, Shape(t)) for i, t in enumerate([element_type, index] * 2)
    )
    nothing = constant(0, index)
    keeps = and_(
        ge(kept_place, nothing),
        or_(lt(place, nothing), inline(select_computation, [kept, value])),
    )
    root = tuple_([select(keeps, kept, value), select(keeps, kept_place, place)])
    return Computation(f"selected_by_{select_computation.name}", parameters, root)
