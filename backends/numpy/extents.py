"""Arrays whose sizes are known only when they are made: within a bound, ``f32[<=5]``.

    x = Dynamic(np.zeros(5), (3,))        x.valid is its first three elements

An op on such arrays is evaluated as the same op on arrays of the sizes that they have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tracejit.errors import ShapeError
from tracejit.graph import Instruction
from tracejit.ops.bounds import flags_of, groups
from tracejit.ops.constants import parameter
from tracejit.shapes import AnyShape, Shape, TupleShape, shape_of

Value = Any


@dataclass(frozen=True)
class Dynamic:
    """An array with its bounds as dimensions, whose first ``sizes`` elements are valid.

    The others are kept, because a size may be set back; arithmetic leaves zeros there.
    """

    padded: np.ndarray
    sizes: tuple[int, ...]

    @property
    def valid(self) -> np.ndarray:
        return self.padded[tuple(slice(0, size) for size in self.sizes)]


def padded(array: np.ndarray, shape: Shape) -> Dynamic:
    """``array`` in the corner of an array of the shape's bounds.

    Raises `ShapeError` for an array that does not fit.
    """
    pairs = zip(array.shape, shape.dimensions, flags_of(shape), strict=True)
    fits = len(array.shape) == shape.rank and all(
        size <= bound if flag else size == bound for size, bound, flag in pairs
    )
    if not fits or array.dtype != shape.dtype:
        raise ShapeError(f"an array {shape_of(array)} does not fit {shape}")
    whole = np.zeros(shape.dimensions, shape.dtype)
    whole[tuple(slice(0, size) for size in array.shape)] = array
    return Dynamic(whole, array.shape)


def leaving(value: Value) -> Value:
    """A value for the outside: of dynamic arrays only what counts."""
    if isinstance(value, tuple):
        return tuple(map(leaving, value))
    return np.array(value.valid) if isinstance(value, Dynamic) else value


def is_dynamic(instruction: Instruction, operands: Sequence[Value]) -> bool:
    """Whether an op must be evaluated on sizes other than those of its shapes."""
    return any(isinstance(operand, Dynamic) for operand in operands)


def concrete(
    instruction: Instruction, operands: Sequence[Value]
) -> tuple[Instruction, list[np.ndarray]]:
    """The instruction with the sizes that its operands have, and the operands as arrays."""
    attributes = dict(instruction.attributes)
    arrays = _met(instruction, operands)
    change = _RESIZED.get(instruction.op.function)
    if change is not None:
        attributes |= change(instruction, operands, arrays)
    inputs = tuple(parameter(n, shape_of(array)) for n, array in enumerate(arrays))
    shape = instruction.op.shape_rule(*[i.shape for i in inputs], **attributes)
    made = Instruction(instruction.op, inputs, shape, attributes, instruction.source)
    return made, arrays


def _met(instruction: Instruction, operands: Sequence[Value]) -> list[np.ndarray]:
    """The operands, each cropped to the sizes of those that it meets."""
    function = instruction.op.function
    arrays = [o.valid if isinstance(o, Dynamic) else np.asarray(o) for o in operands]
    if function in ("dynamic_slice", "gather"):
        # Slices of less than a whole dimension start anywhere within the bound.
        source = operands[0]
        if isinstance(source, Dynamic):
            wanted = instruction.attributes[
                "dynamic_slice_sizes" if function == "dynamic_slice" else "slice_sizes"
            ]
            triples = zip(wanted, source.padded.shape, source.sizes, strict=True)
            crop = tuple(slice(0, s if w == b else b) for w, b, s in triples)
            arrays[0] = source.padded[crop]
        return arrays
    if function == "dynamic_update_slice" and isinstance(operands[0], Dynamic):
        return arrays
    if function == "dot_general":
        values = instruction.attributes
        pairs = [
            *zip(values["lhs_batch_dims"], values["rhs_batch_dims"], strict=True),
            *zip(values["lhs_contracting_dims"], values["rhs_contracting_dims"], strict=True),
        ]
        for left, right in pairs:
            size = min(arrays[0].shape[left], arrays[1].shape[right])
            arrays[0] = _cropped(arrays[0], left, size)
            arrays[1] = _cropped(arrays[1], right, size)
        return arrays
    if function in _SEPARATE:
        return arrays
    joined = instruction.attributes["dimensions"][0] if function == "concatenate" else None
    rank = max(array.ndim for array in arrays)
    for dimension in range(rank):
        if dimension == joined:
            continue
        size = min(a.shape[dimension] for a in arrays if a.ndim == rank)
        arrays = [_cropped(a, dimension, size) if a.ndim == rank else a for a in arrays]
    return arrays


_SEPARATE = frozenset(
    {"batch_norm_inference", "conv_general_dilated", "pad", "scatter", "select_and_scatter"}
)


def _cropped(array: np.ndarray, dimension: int, size: int) -> np.ndarray:
    return array[(slice(None),) * dimension + (slice(0, size),)]


def _broadcast(
    instruction: Instruction, operands: Sequence[Value], arrays: Sequence[np.ndarray]
) -> dict[str, Any]:
    shape = instruction.array_shape
    sizes = list(shape.dimensions)
    for source, target in enumerate(instruction.attributes["dimensions"]):
        if flags_of(shape)[target]:
            sizes[target] = arrays[0].shape[source]
    return {"shape": Shape(shape.element_type, tuple(sizes))}


def _reshape(
    instruction: Instruction, operands: Sequence[Value], arrays: Sequence[np.ndarray]
) -> dict[str, Any]:
    """Of dimensions that belong together, the dynamic one takes what the others leave."""
    shape = instruction.array_shape
    source = instruction.operands[0].array_shape.dimensions
    sizes = list(shape.dimensions)
    if not shape.size:
        return {"shape": Shape(shape.element_type, tuple(sizes))}
    for left, right in groups(source, shape.dimensions):
        dynamic = [d for d in right if flags_of(shape)[d]]
        if not dynamic:
            continue
        count = int(np.prod([arrays[0].shape[d] for d in left]))
        others = int(np.prod([sizes[d] for d in right if d != dynamic[0]]))
        if count % others:
            raise ShapeError(
                f"reshape: {count} elements of {instruction.operands[0].shape} do not make whole "
                f"rows of {shape}",
                instruction.source,
            )
        sizes[dynamic[0]] = count // others
    return {"shape": Shape(shape.element_type, tuple(sizes))}


def _slice(
    instruction: Instruction, operands: Sequence[Value], arrays: Sequence[np.ndarray]
) -> dict[str, Any]:
    pairs = zip(instruction.attributes["slice"], arrays[0].shape, strict=True)
    return {
        "slice": tuple(
            replace(part, start=min(part.start, size), limit=min(part.limit, size))
            for part, size in pairs
        )
    }


def _whole(name: str) -> Callable[..., dict[str, Any]]:
    """Slices, whose sizes are the attribute ``name``, of whole dimensions stay so."""

    def change(
        instruction: Instruction, operands: Sequence[Value], arrays: Sequence[np.ndarray]
    ) -> dict[str, Any]:
        bounds = instruction.operands[0].array_shape.dimensions
        triples = zip(instruction.attributes[name], bounds, arrays[0].shape, strict=True)
        return {name: tuple(size if wanted == bound else wanted for wanted, bound, size in triples)}

    return change


def _dot(
    instruction: Instruction, operands: Sequence[Value], arrays: Sequence[np.ndarray]
) -> dict[str, Any]:
    values, (lhs, rhs) = instruction.attributes, arrays
    sizes = [lhs.shape[d] for d in values["lhs_batch_dims"]]
    used = (*values["lhs_batch_dims"], *values["lhs_contracting_dims"])
    sizes += [size for d, size in enumerate(lhs.shape) if d not in used]
    used = (*values["rhs_batch_dims"], *values["rhs_contracting_dims"])
    sizes += [size for d, size in enumerate(rhs.shape) if d not in used]
    return {"shape": Shape(instruction.array_shape.element_type, tuple(sizes))}


def _conv(
    instruction: Instruction, operands: Sequence[Value], arrays: Sequence[np.ndarray]
) -> dict[str, Any]:
    values, (lhs, rhs) = instruction.attributes, arrays
    numbers, shape = values["dim_labels"], instruction.array_shape
    sizes = list(shape.dimensions)
    if flags_of(shape)[numbers.output_batch_dimension]:
        sizes[numbers.output_batch_dimension] = lhs.shape[numbers.input_batch_dimension]
    if flags_of(shape)[numbers.output_feature_dimension]:
        sizes[numbers.output_feature_dimension] = rhs.shape[numbers.kernel_output_feature_dimension]
    spatial = zip(
        values["window"],
        numbers.input_spatial_dimensions,
        numbers.output_spatial_dimensions,
        strict=True,
    )
    for window, source, target in spatial:
        sizes[target] = window.positions(lhs.shape[source])
    return {"shape": Shape(shape.element_type, tuple(sizes))}


_RESIZED: dict[str, Callable[..., dict[str, Any]]] = {
    "broadcast_in_dim": _broadcast,
    "conv_general_dilated": _conv,
    "dot_general": _dot,
    "dynamic_slice": _whole("dynamic_slice_sizes"),
    "gather": _whole("slice_sizes"),
    "reshape": _reshape,
    "slice": _slice,
}


def wrapped(shape: AnyShape, value: Value) -> Value:
    """A value with its dynamic arrays padded to their bounds, if they are not yet."""
    if isinstance(shape, TupleShape):
        return tuple(wrapped(s, v) for s, v in zip(shape.elements, value, strict=True))
    if isinstance(shape, Shape) and shape.is_dynamic and not isinstance(value, Dynamic):
        return padded(np.asarray(value), shape)
    return value


def joined(shape: AnyShape, value: Value) -> Value:
    """A value of ``shape`` out of one with a pair, array and sizes, for each dynamic array."""
    if isinstance(shape, TupleShape):
        return tuple(joined(s, v) for s, v in zip(shape.elements, value, strict=True))
    if isinstance(shape, Shape) and shape.is_dynamic:
        array, sizes = value
        return Dynamic(np.array(array), tuple(sizes.tolist()))
    return value


def split(shape: AnyShape, value: Value) -> Value:
    """The inverse of `joined`."""
    if isinstance(shape, TupleShape):
        return tuple(split(s, v) for s, v in zip(shape.elements, value, strict=True))
    if isinstance(value, Dynamic):
        return value.padded, np.array(value.sizes, np.int32)
    return value
