"""Ops that slide a window over arrays: ReduceWindow, SelectAndScatter.

reduce_window(x, init, scalar_computation("max", F32), (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
cumulative("add", x, 0)                     cumulative sums as one ReduceWindow
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.attributes import Attribute, Kind, Window, WindowDimension
from tracejit.errors import AttributeValueError, ShapeError
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import define, make, require_array, require_same_element_type
from tracejit.ops.computations import (
    collate,
    identity_value,
    operand_list,
    require_computation,
    require_reducer,
    require_reducer_operands,
    scalar_computation,
)
from tracejit.ops.constants import constant
from tracejit.shapes import AnyShape, ElementType, Shape, canonical_dimension

Padding = str | Sequence[Sequence[int]]
"""``"SAME"``, ``"VALID"``, or (low, high) for each dimension of the window."""


def make_padding(
    function: str,
    padding: Padding,
    sizes: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
) -> list[tuple[int, int]]:
    """(low, high) for each dimension; ``window`` holds the windows' dilated extents.

    SAME makes as many positions as the base has elements, divided by the stride and rounded up;
    an odd element of padding goes to the high side. VALID pads nothing.
    """
    if isinstance(padding, str):
        if padding == "VALID":
            return [(0, 0)] * len(sizes)
        if padding != "SAME":
            raise AttributeValueError(
                f"{function}: padding must be SAME, VALID or pairs, not {padding!r}"
            )
        totals = [
            max((-(-size // stride) - 1) * stride + extent - size, 0)
            for size, extent, stride in zip(sizes, window, strides, strict=True)
        ]
        return [(total // 2, total - total // 2) for total in totals]
    pairs = [tuple(pair) for pair in padding]
    if len(pairs) != len(sizes) or any(len(pair) != 2 for pair in pairs):
        raise AttributeValueError(
            f"{function}: padding must be {len(sizes)} pairs (low, high), not {padding!r}"
        )
    return [(low, high) for low, high in pairs]


def make_window(
    function: str,
    base_sizes: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    base_dilations: Sequence[int] | None = None,
    window_dilations: Sequence[int] | None = None,
    window_reversal: Sequence[bool] | None = None,
) -> Window:
    """The window with one entry for each of ``base_sizes``; None means ones, or no reversal.

    Raises `AttributeValueError` when an argument has another length or is not positive.
    """
    rank = len(base_sizes)

    def complete(argument: str, values: Sequence[int] | None) -> list[int]:
        if values is None:
            return [1] * rank
        if len(values) != rank or any(value < 1 for value in values):
            raise AttributeValueError(
                f"{function}: {argument} must be {rank} positive numbers, not {tuple(values)}"
            )
        return list(values)

    sizes = complete("window_dimensions", window_dimensions)
    strides = complete("window_strides", window_strides)
    base_dilation = complete("base_dilations", base_dilations)
    window_dilation = complete("window_dilations", window_dilations)
    if window_reversal is not None and len(window_reversal) != rank:
        raise AttributeValueError(
            f"{function}: window_reversal must be {rank} booleans, not {tuple(window_reversal)}"
        )
    reversal = [False] * rank if window_reversal is None else [bool(r) for r in window_reversal]
    holes = [
        WindowDimension(size, window_dilation=w, base_dilation=b)
        for size, w, b in zip(sizes, window_dilation, base_dilation, strict=True)
    ]
    pads = make_padding(
        function,
        padding,
        [h.dilated_base(size) for h, size in zip(holes, base_sizes, strict=True)],
        [h.dilated_size for h in holes],
        strides,
    )
    return tuple(
        WindowDimension(*entry)
        for entry in zip(
            sizes,
            strides,
            [low for low, _ in pads],
            [high for _, high in pads],
            window_dilation,
            base_dilation,
            reversal,
            strict=True,
        )
    )


def window_output_sizes(
    function: str, argument: str, base: Shape, sizes: Sequence[int], window: Window
) -> list[int]:
    """How many positions ``window`` takes over each of ``sizes``; raises on an impossible window.

    ``base`` is the shape that errors show.
    """
    if len(window) != len(sizes):
        raise AttributeValueError(
            f"{function}: window must have {len(sizes)} dimensions for {argument} {base}, "
            f"not {len(window)}"
        )
    positions = []
    for i, (entry, size) in enumerate(zip(window, sizes, strict=True)):
        if min(entry.size, entry.stride, entry.window_dilation, entry.base_dilation) < 1:
            raise AttributeValueError(
                f"{function}: window dimension {i} must have positive size, stride and "
                f"dilations, not {entry}"
            )
        if entry.dilated_base(size) + entry.padding_low + entry.padding_high < 0:
            raise AttributeValueError(
                f"{function}: padding ({entry.padding_low}, {entry.padding_high}) of window "
                f"dimension {i} removes more than there is of {argument} {base}"
            )
        positions.append(entry.positions(size))
    return positions


@define(
    "ReduceWindow",
    "reduce-window",
    Attribute("window", Kind.WINDOW, ()),
    Attribute("to_apply", Kind.COMPUTATION),
)
def REDUCE_WINDOW(*shapes: AnyShape, window: Window, to_apply: Computation) -> AnyShape:
    operands = require_reducer_operands("reduce_window", shapes)
    first = operands[0]
    if any(entry.reversal for entry in window):
        raise AttributeValueError("reduce_window: window must not be reversed")
    sizes = window_output_sizes("reduce_window", "operand 0", first, first.dimensions, window)
    require_reducer("reduce_window", to_apply, operands)
    return collate([s.with_dimensions(sizes) for s in operands])


def reduce_window(
    operands: Instruction | Sequence[Instruction],
    init_values: Instruction | Sequence[Instruction],
    computation: Computation,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    base_dilations: Sequence[int] | None = None,
    window_dilations: Sequence[int] | None = None,
) -> Instruction:
    """The elements within each position of a window combined into one (XLA: ReduceWindow).

    ``window_dimensions`` and what follows have one entry for each dimension of the operands;
    ``padding`` is SAME, VALID or (low, high) pairs, negative to crop. ``computation`` takes N
    accumulators, then N elements, and returns N scalars; it must be associative. Padding and
    holes are skipped. The result is an array, or a tuple of N > 1 arrays.
    Raises `ShapeError` or `AttributeValueError` when something does not fit.
    """
    arrays = operand_list(operands)
    if not arrays:
        raise ShapeError("reduce_window: needs at least one operand")
    base = require_array("reduce_window", "operand 0", arrays[0].shape)
    window = make_window(
        "reduce_window",
        base.dimensions,
        window_dimensions,
        window_strides,
        padding,
        base_dilations,
        window_dilations,
    )
    return make(
        REDUCE_WINDOW,
        *arrays,
        *operand_list(init_values),
        window=window,
        to_apply=computation,
    )


def reduce_window_by(
    name: str,
    operand: Instruction,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    base_dilations: Sequence[int] | None = None,
    window_dilations: Sequence[int] | None = None,
) -> Instruction:
    """`reduce_window` of one operand with the computation ``name`` and its identity.

    ``name`` is add, mul, max, min, and, or, xor. Max pooling is ``"max"``.
    """
    shape = require_array("reduce_window", "operand 0", operand.shape)
    return reduce_window(
        operand,
        constant(identity_value(name, shape.element_type), shape.element_type),
        scalar_computation(name, shape.element_type),
        window_dimensions,
        window_strides,
        padding,
        base_dilations,
        window_dilations,
    )


def running_axis(window: Window, sizes: Sequence[int]) -> int | None:
    """The dimension along which a ReduceWindow is cumulative, if it is.

    Its window then covers all elements up to each one, or from each one on if it pads high.
    """
    axes = [axis for axis, entry in enumerate(window) if entry.size > 1]
    if len(axes) != 1:
        return None
    (axis,) = axes
    long, size = window[axis], sizes[axis]
    whole = (long.padding_low, long.padding_high) in ((size - 1, 0), (0, size - 1))
    still = all(
        entry.padding_low == entry.padding_high == 0 for entry in window if entry is not long
    )
    plain = all(e.stride == e.window_dilation == e.base_dilation == 1 for e in window)
    return axis if long.size == size and whole and still and plain else None


def cumulative(
    name: str, operand: Instruction, dimension: int, reverse: bool = False
) -> Instruction:
    """Each element combined with all before it along ``dimension`` (after it, if ``reverse``).

    ``name`` is add, mul, max, min, and, or, xor. One ReduceWindow as long as the dimension.
    """
    shape = require_array(f"cumulative {name}", "operand", operand.shape)
    axis = canonical_dimension(dimension, shape.rank, f"cumulative {name}")
    size = shape.dimensions[axis] if shape.rank else 1
    if size < 2:
        return operand
    sizes, padding = [1] * shape.rank, [(0, 0)] * shape.rank
    sizes[axis] = size
    padding[axis] = (0, size - 1) if reverse else (size - 1, 0)
    return reduce_window_by(name, operand, sizes, padding=padding)


@define(
    "SelectAndScatter",
    "select-and-scatter",
    Attribute("window", Kind.WINDOW, ()),
    Attribute("select", Kind.COMPUTATION),
    Attribute("scatter", Kind.COMPUTATION),
)
def SELECT_AND_SCATTER(
    operand: AnyShape,
    source: AnyShape,
    init_value: AnyShape,
    *,
    window: Window,
    select: Computation,
    scatter: Computation,
) -> Shape:
    function = "select_and_scatter"
    base = require_array(function, "operand", operand)
    values = require_array(function, "source", source)
    init = require_array(function, "init_value", init_value)
    require_same_element_type(function, operand=base, source=values, init_value=init)
    if init.rank:
        raise ShapeError(f"{function}: init_value {init} must be a scalar")
    if any(w.reversal or w.window_dilation != 1 or w.base_dilation != 1 for w in window):
        raise AttributeValueError(f"{function}: window must not be dilated or reversed")
    sizes = window_output_sizes(function, "operand", base, base.dimensions, window)
    if list(values.dimensions) != sizes:
        raise ShapeError(
            f"{function}: source {values} must have the dimensions {sizes}, the window's "
            f"positions over operand {base}"
        )
    scalar = Shape(base.element_type)
    require_computation(function, "select", select, [scalar] * 2, Shape(ElementType.PRED))
    require_computation(function, "scatter", scatter, [scalar] * 2, scalar)
    return base.with_dimensions(base.dimensions)


def select_and_scatter(
    operand: Instruction,
    select: Computation,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None,
    padding: Padding,
    source: Instruction,
    init_value: Instruction,
    scatter: Computation,
) -> Instruction:
    """``source`` scattered to the element selected at each window position (XLA: SelectAndScatter).

    ``select`` takes the selected element so far and a later one of the window, and is true to keep
    the first; ``scatter`` combines what has arrived at a place, starting from ``init_value``,
    with a value of ``source``. The result has the operand's shape; ``source`` has one element for
    each window position. Windows are walked in row-major order, which decides among equal elements;
    XLA's order is its own. Raises `ShapeError` or `AttributeValueError` when something does not
    fit.
    """
    base = require_array("select_and_scatter", "operand", operand.shape)
    window = make_window(
        "select_and_scatter", base.dimensions, window_dimensions, window_strides, padding
    )
    return make(
        SELECT_AND_SCATTER,
        operand,
        source,
        init_value,
        window=window,
        select=select,
        scatter=scatter,
    )
