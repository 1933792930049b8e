"""What all reductions share: axes, accumulator types, ``keepdims=``, ``initial=``, ``where=``."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import ShapeError
from tracejit.graph import Instruction
from tracejit.numpy.building import Axis, axes_of, fill
from tracejit.numpy.complex_order import complex_extreme
from tracejit.numpy.storing import finish
from tracejit.ops import elementwise, layout
from tracejit.ops.computations import identity_value, scalar_computation
from tracejit.ops.constants import constant
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.reduction import reduce
from tracejit.shapes import ElementType, element_type_of
from tracejit.trace.convert import Operand, operand, stretch
from tracejit.trace.tracer import Tracer
from tracejit.trace.views import broadcast

NO_VALUE = (None, np._NoValue)
"""The default of arguments that were not given."""

_BUILDERS = {
    "add": elementwise.add,
    "mul": elementwise.mul,
    "max": elementwise.max,
    "min": elementwise.min,
    "and": elementwise.and_,
    "or": elementwise.or_,
    "xor": elementwise.xor,
}
NUMPY_NAMES = {"add": "sum", "mul": "prod", "max": "max", "min": "min", "and": "all", "or": "any"}


def accumulator_type(name: str, value: Operand, dtype: Any = None) -> ElementType:
    """The element type of a reduction's result: sums of small integers are 64 bits wide."""
    if dtype is not None:
        return element_type_of(dtype)
    given = value.element_type
    if name not in ("add", "mul"):
        return given
    if given is ElementType.PRED or (given.is_integral and given.is_signed):
        return ElementType.S64
    return ElementType.U64 if given.is_integral else given


def combined(
    name: str, array: Instruction, axes: tuple[int, ...], where: Instruction | None = None
) -> Instruction:
    """The elements along ``axes`` combined, those that ``where`` leaves out not counted.

    Sums and products of types narrower than 32 bits are taken in f32.
    """
    element_type = array.array_shape.element_type
    if name in ("max", "min") and element_type.is_complex:
        return complex_extreme(name, array, axes)
    narrow = name in ("add", "mul") and element_type.is_floating and element_type.bits < 32
    work = ElementType.F32 if narrow else element_type
    operand = convert_element_type(array, work)
    identity = identity_value(name, work)
    if where is not None:
        operand = elementwise.select(where, operand, fill(operand, identity))
    init = constant(identity, work)
    made = reduce(operand, init, scalar_computation(name, work), axes)
    return convert_element_type(made, element_type)


def reduction_axes(function: str, axis: Axis, rank: int) -> tuple[int, ...]:
    """The dimensions that a ufunc's reduction is over: a number has none, also along axis 0 or -1.

    Raises `DimensionError` when one is out of range or repeated.
    """
    if not rank and isinstance(axis, int | np.integer) and axis in (0, -1):
        return ()
    return axes_of(function, axis, rank)


def with_axes(
    result: Instruction, dimensions: tuple[int, ...], axes: tuple[int, ...]
) -> Instruction:
    """A reduction's result with dimensions of size 1 where it was reduced."""
    kept = [1 if d in axes else size for d, size in enumerate(dimensions)]
    return layout.reshape(result, kept)


def mask_of(function: str, where: Any, dimensions: tuple[int, ...]) -> Instruction | None:
    """``where=`` as a mask of these dimensions; None when everything counts."""
    if where is True or where in NO_VALUE if np.ndim(where) == 0 else False:
        return None
    return stretch(function, operand(where).to(ElementType.PRED), dimensions)


def reduced(
    name: str,
    array: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Tracer:
    """A reduction with NumPy's arguments; ``name`` is add, mul, max, min, and, or.

    Raises `ShapeError` when nothing may be left to take a maximum or minimum of.
    """
    function = NUMPY_NAMES.get(name, name)
    value = operand(array)
    made = value.to(accumulator_type(name, value, dtype))
    dimensions = made.array_shape.dimensions
    axes = reduction_axes(function, axis, len(dimensions))
    mask = mask_of(function, where, dimensions)
    has_initial = initial not in NO_VALUE if np.ndim(initial) == 0 else True
    is_extreme = name in ("max", "min")
    if is_extreme and not has_initial and any(dimensions[a] == 0 for a in axes):
        raise ShapeError(
            f"{function}: zero-size array {made.shape} has no {function}imum; pass initial="
        )
    if is_extreme and not has_initial and mask is not None:
        raise ShapeError(
            f"{function}: where= may leave nothing, which has no {function}imum; pass initial="
        )
    first = operand(initial).to(made.array_shape.element_type) if has_initial else None
    if is_extreme and made.array_shape.element_type.is_complex:
        result = _complex_extreme(name, made, axes, mask, first)
    else:
        result = combined(name, made, axes, mask)
        if first is not None:
            first = stretch(function, first, result.array_shape.dimensions)
            result = _BUILDERS[name](result, first)
    if keepdims is True or (keepdims not in NO_VALUE and keepdims):
        result = with_axes(result, dimensions, axes)
    return finish(function, result, out)


def _complex_extreme(
    name: str,
    array: Instruction,
    axes: tuple[int, ...],
    mask: Instruction | None,
    first: Instruction | None,
) -> Instruction:
    if first is None:
        return complex_extreme(name, array, axes)
    shape = array.array_shape
    kept = [size for d, size in enumerate(shape.dimensions) if d not in axes]
    start = broadcast(first, kept)
    if not all(shape.dimensions[a] for a in axes):
        return start
    if mask is not None:
        array = elementwise.select(mask, array, broadcast(first, shape.dimensions))
    column = [*kept, 1]
    parts = [layout.reshape(x, column) for x in (start, complex_extreme(name, array, axes))]
    return complex_extreme(name, layout.concatenate(parts, len(kept)), [len(kept)])
