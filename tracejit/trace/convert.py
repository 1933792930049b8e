"""From what users pass (traced values, arrays, numbers, lists) to instructions.

as_instruction([1.0, 2.0])                   a constant f64[2]
operand(2.0).to(ElementType.F32)             a weak number, made an f32[] constant
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from tracejit.errors import ArgumentError, ConcretizationError, ShapeError, ValueRangeError
from tracejit.graph import Instruction
from tracejit.ops import comparison, elementwise_unary, layout
from tracejit.ops.constants import constant
from tracejit.ops.element_types import convert_element_type
from tracejit.shapes import ElementType, element_type_of, shape_of
from tracejit.trace import int_range_checks
from tracejit.trace.affine_bounds import are_counted
from tracejit.trace.context import current_trace
from tracejit.trace.int_overflow import require_fits
from tracejit.trace.promotion import Promotable, common_element_type, weak_dtype
from tracejit.trace.table import Traced, find_traced
from tracejit.trace.views import broadcast

PYTHON_SCALARS = (bool, int, float, complex)
PLAIN_KINDS: set[type] = {np.ndarray, np.memmap}
"""The kinds of arrays that are their elements and nothing more."""


class Operand(NamedTuple):
    """A value with the type it brings to promotion, not yet of the element type it will have."""

    type: Promotable
    value: Any
    dimensions: tuple[int, ...] = ()

    def to(self, element_type: ElementType) -> Instruction:
        """The value as an instruction of this element type.

        Raises `ValueRangeError` for a Python integer that does not fit.
        """
        if isinstance(self.value, Instruction):
            if self.is_weak:
                int_range_checks.require_fits(self.value, element_type)
                if are_counted():
                    require_fits(self.value, element_type)
            return converted(self.value, element_type)
        if isinstance(self.value, np.ndarray):
            return converted(_from_array(self.value), element_type)
        return scalar(self.value, element_type)

    @property
    def is_weak(self) -> bool:
        """Whether this is a Python number."""
        return isinstance(self.type, type)

    @property
    def element_type(self) -> ElementType:
        """The element type the value has by itself: s64, f64 … for a Python number."""
        dtype = self.type if isinstance(self.type, np.dtype) else weak_dtype(self.type)
        return element_type_of(dtype)

    @property
    def natural(self) -> Instruction:
        """The value as an instruction of its own element type."""
        return self.to(self.element_type)


def operand(value: Any) -> Operand:
    """Classifies a value. Raises `ArgumentError` for what is no array of numbers."""
    if isinstance(value, Traced):
        known: Operand = value.operand()
        return known
    kind = type(value)
    if kind in PYTHON_SCALARS:
        return Operand(kind, value)
    if kind in (list, tuple) and find_traced(value) is not None:
        made = stacked(value)
        return Operand(made.array_shape.dtype, made, made.array_shape.dimensions)
    array = plain_array(value)
    return Operand(element_type_of(array.dtype).dtype, array, array.shape)


def assigned(value: Any, element_type: ElementType) -> Instruction:
    """A value as it is stored into an array of this element type.

    Raises `ValueRangeError` for Python integers that do not fit, in lists, too.
    """
    if type(value) in (list, tuple) and element_type.is_integral:
        if find_traced(value) is None:
            with suppress(ValueError, TypeError):  # which `operand` explains
                scalar(value, element_type)
        else:
            for part in value:
                assigned(part, element_type)
    return operand(value).to(element_type)


def as_instruction(value: Any) -> Instruction:
    """The value as an instruction of its own type."""
    return operand(value).natural


def plain_array(value: Any) -> np.ndarray:
    """A NumPy array with the value's elements, in memory of any layout; not copied if possible.

    Lists of numbers, and what offers NumPy's array protocol or DLPack on the CPU (tensors of
    PyTorch, columns of pandas). Raises `ArgumentError` for subclasses of arrays, such as masked
    ones, and for what has no elements XLA knows (objects, strings, dates).
    """
    kind = type(value)
    if isinstance(value, np.ndarray) and kind not in PLAIN_KINDS:
        raise ArgumentError(
            f"{kind.__name__} is not supported, since it means more than its elements; pass a "
            f"plain array (np.asarray(x), or x.filled(value) for a masked one)"
        )
    try:
        if hasattr(kind, "__dlpack__") and not hasattr(kind, "__array__"):
            array = np.from_dlpack(value)
        elif str(getattr(value, "dtype", "")) == "torch.bfloat16":
            # PyTorch makes no NumPy arrays of these.
            array = np.asarray(value.view(sys.modules["torch"].int16)).view(ml_dtypes.bfloat16)
        else:
            array = np.asarray(value)
    except ConcretizationError:
        raise
    except (ValueError, TypeError, BufferError, RuntimeError) as error:
        raise ArgumentError(f"{in_words(kind)} does not make an array: {error}") from error
    if array.dtype.kind in "OUSMm" or array.dtype.names is not None:
        raise ArgumentError(_refusal(value, array))
    element_type_of(array.dtype)
    return array


def in_words(kind: type) -> str:
    """A value of a class: an int, a list, an object of class Model."""
    name = kind.__name__
    if kind.__module__ != "builtins":
        return f"an object of class {name}"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


KNOWN_WHILE_TRACING = (
    str | bytes | type | np.dtype | slice | np.ufunc | FunctionType | BuiltinFunctionType
)
"""What is no tree of arrays whatever one does, and can be a static argument."""


def _refusal(value: Any, array: np.ndarray) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of dtype {array.dtype} cannot be traced: its elements are not numbers"
    kind = in_words(type(value))
    if isinstance(value, type(None) | KNOWN_WHILE_TRACING) or array.ndim:
        return f"{kind} is no array of numbers"
    return (
        f"{kind} is no array of numbers; make its class a tree of arrays "
        f"(tracejit.tree.register_node or register_dataclass), or make the argument static"
    )


def _from_array(array: np.ndarray) -> Instruction:
    trace = current_trace()
    if trace is not None and trace.eager:
        return trace.parameter(shape_of(array), lambda: "a given array", array)
    if array.ndim and array.dtype.kind in "fc":
        return held(array)
    return constant(array)


def held(array: np.ndarray) -> Instruction:
    """An array as a constant, or as an argument of a trace that has a memory.

    It may be another one next time, a batch; only for what no shape depends on.
    """
    trace = current_trace()
    if trace is None or trace.memory is None:
        return constant(array)
    shape = shape_of(array)
    value = np.array(array, shape.dtype, order="C")
    return trace.parameter(shape, lambda: "a given array", value)


def scalar(value: complex, element_type: ElementType) -> Instruction:
    """A Python number as a rank-0 constant."""
    try:
        array = np.asarray(value, element_type.dtype)
    except OverflowError as error:
        raise ValueRangeError(f"{value} does not fit into {element_type}") from error
    return constant(array)


def converted(value: Instruction, element_type: ElementType) -> Instruction:
    """``value.astype(element_type)``: complex to real drops the imaginary part."""
    given = value.array_shape.element_type
    if given.is_complex and element_type is ElementType.PRED:
        zero = layout.full_like(value, 0)
        return comparison.ne(value, zero)
    if given.is_complex and not element_type.is_complex:
        value = elementwise_unary.real(value)
    return convert_element_type(value, element_type)


def stacked(values: Sequence[Any]) -> Instruction:
    """The array that nested lists of numbers, arrays and traced values make, as np.array does.

    Raises `ShapeError` when the parts differ in shape.
    """
    parts = [operand(value) for value in values]
    shapes = {part.dimensions for part in parts}
    if len(shapes) > 1:
        raise ShapeError(
            f"array: the parts of a list must have equal shapes, not "
            f"{', '.join(map(str, sorted(shapes)))}"
        )
    # In a list Python numbers are not weak: they make int64, float64 … arrays.
    element_type = common_element_type(part.element_type.dtype for part in parts)
    dimensions = parts[0].dimensions
    rows = [layout.reshape(part.to(element_type), (1, *dimensions)) for part in parts]
    return layout.concatenate(rows, 0) if len(rows) > 1 else rows[0]


def broadcast_together(function: str, *operands: Instruction) -> list[Instruction]:
    """Operands stretched to one shape by NumPy's rules. Raises `ShapeError` when there is none."""
    shapes = [o.array_shape.dimensions for o in operands]
    if all(shape == shapes[0] for shape in shapes):
        return list(operands)
    dimensions = broadcast_dimensions(function, shapes)
    return [broadcast(o, dimensions) for o in operands]


def broadcast_dimensions(function: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The dimensions that arrays of these shapes stretch to."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        listed = " ".join(str(shape) for shape in shapes)
        raise ShapeError(
            f"{function}: operands could not be broadcast together with shapes {listed}"
        ) from error


def stretch(function: str, value: Instruction, dimensions: tuple[int, ...]) -> Instruction:
    """``value`` stretched to exactly these dimensions, leading ones of size 1 dropped if needed.

    Raises `ShapeError` when it does not fit.
    """
    given = value.array_shape.dimensions
    extra = len(given) - len(dimensions)
    if extra > 0 and all(size == 1 for size in given[:extra]):
        value = layout.reshape(value, given[extra:])
        given = given[extra:]
    pairs = zip(reversed(given), reversed(dimensions), strict=False)
    if len(given) > len(dimensions) or any(size not in (1, wide) for size, wide in pairs):
        raise ShapeError(
            f"{function}: could not broadcast input array from shape {given} into shape "
            f"{dimensions}"
        )
    return broadcast(value, dimensions)
