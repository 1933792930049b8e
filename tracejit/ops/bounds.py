"""Which dimensions of an op's result are dynamic: bounds on sizes known when the program runs.

A dimension is dynamic when its size comes from a dynamic dimension of an operand. Shape rules see
static shapes, the bounds; what is here adds to their result where operands are dynamic.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tracejit.errors import UnsupportedError
from tracejit.graph import Op
from tracejit.shapes import AnyShape, Shape, TupleShape

ShapeRule = Callable[..., AnyShape]
Flags = tuple[bool, ...]

# Ops that pass values on as they are, of whatever shape, or say themselves what they return.
_PASSING = frozenset(
    {"constants", "custom", "dumps", "dynamic_sizes", "tokens", "call", "conditional", "while"}
    | {"optimization_barrier"}
)
_ELEMENTWISE = frozenset({"comparison", "element_types", "elementwise", "elementwise_unary"})


def with_dynamic_sizes(rule: ShapeRule, family: str, function: str) -> ShapeRule:
    """``rule`` for operands that may be dynamic; it sees their bounds as static sizes."""
    if family in _PASSING or function in _PASSING:
        return rule

    @functools.wraps(rule)
    def inferred(*operands: AnyShape, **attributes: Any) -> AnyShape:
        wanted = attributes.get("shape")
        for shape in (*operands, wanted):  # a loop, since every instruction made comes here
            if isinstance(shape, Shape) and shape.dynamic_dimensions:
                break
        else:
            return rule(*operands, **attributes)
        if isinstance(wanted, Shape):
            attributes["shape"] = wanted.with_dynamic(())
        given = [s.with_dynamic(()) if isinstance(s, Shape) else s for s in operands]
        result = rule(*given, **attributes)
        arrays = [s for s in operands if isinstance(s, Shape)]
        return _flagged(function, family, arrays, result, attributes)

    return inferred


def passes_on(op: Op) -> bool:
    """Whether an op takes dynamic arrays as they are, and asks for no sizes."""
    return op.family in _PASSING or op.function in _PASSING


def flags_of(shape: Shape) -> Flags:
    """For each dimension, whether it is dynamic."""
    return shape.dynamic_dimensions or (False,) * shape.rank


def _flagged(
    function: str,
    family: str,
    operands: Sequence[Shape],
    result: AnyShape,
    attributes: Mapping[str, Any],
) -> AnyShape:
    if isinstance(result, TupleShape):
        parts = [_flagged(function, family, operands, e, attributes) for e in result.elements]
        return TupleShape(tuple(parts))
    assert isinstance(result, Shape)
    if family in _ELEMENTWISE or function in _ALIKE:
        return result.with_dynamic(_any(operands, result))
    infer = _INFER.get(function)
    if infer is None:
        raise UnsupportedError(
            f"{function}: does not take operands with dynamic dimensions; "
            f"got {', '.join(map(str, operands))}"
        )
    return result.with_dynamic(infer(operands, result, attributes))


def _any(operands: Sequence[Shape], result: Shape) -> Flags:
    """Dynamic wherever an operand of the result's rank is."""
    flags = [flags_of(s) for s in operands if s.rank == result.rank]
    leading = [flags_of(s)[: result.rank] for s in operands if s.rank > result.rank > 0]
    every = flags or [f + (False,) * (result.rank - len(f)) for f in leading]
    return tuple(any(column) for column in zip(*every, strict=True)) or (False,) * result.rank


def _first(operands: Sequence[Shape], result: Shape, attributes: Mapping[str, Any]) -> Flags:
    return flags_of(operands[0]) if operands[0].rank == result.rank else (False,) * result.rank


def _broadcast(operands: Sequence[Shape], result: Shape, attributes: Mapping[str, Any]) -> Flags:
    flags = [False] * result.rank
    for source, target in enumerate(attributes["dimensions"]):
        flags[target] = flags_of(operands[0])[source]
    return tuple(flags)


def groups(source: Sequence[int], target: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The dimensions of both sides of a reshape that belong together: equal products of sizes."""
    made = []
    i = j = 0
    while i < len(source) or j < len(target):
        left, right = [i] if i < len(source) else [], [j] if j < len(target) else []
        i, j = i + len(left), j + len(right)
        while math.prod(source[d] for d in left) != math.prod(target[d] for d in right):
            if math.prod(source[d] for d in left) < math.prod(target[d] for d in right):
                left.append(i)
                i += 1
            else:
                right.append(j)
                j += 1
        made.append((left, right))
    return made


def _reshape(operands: Sequence[Shape], result: Shape, attributes: Mapping[str, Any]) -> Flags:
    """A dimension that is split gives its size to the first part, or the last one if it is last."""
    flags = [False] * result.rank
    source = flags_of(operands[0])
    if 0 in result.dimensions:
        return tuple(flags)
    for left, right in groups(operands[0].dimensions, result.dimensions):
        dynamic = [d for d in left if source[d]]
        if not dynamic:
            continue
        wide = [d for d in right if result.dimensions[d] != 1] or right
        if not wide:
            raise UnsupportedError(f"reshape: {operands[0]} would lose a dynamic dimension")
        at_end = dynamic == left[-1:] and len(left) > 1
        flags[wide[-1] if at_end else wide[0]] = True
    return tuple(flags)


def _transpose(operands: Sequence[Shape], result: Shape, attributes: Mapping[str, Any]) -> Flags:
    return tuple(flags_of(operands[0])[d] for d in attributes["dimensions"])


def _dynamic_slice(
    operands: Sequence[Shape], result: Shape, attributes: Mapping[str, Any]
) -> Flags:
    """A slice of all elements keeps their number; any other has the size that it was given."""
    pairs = zip(operands[0].dimensions, result.dimensions, flags_of(operands[0]), strict=True)
    return tuple(flag and size == whole for whole, size, flag in pairs)


def _reduce(operands: Sequence[Shape], result: Shape, attributes: Mapping[str, Any]) -> Flags:
    arrays = operands[: len(operands) // 2]
    kept = [d for d in range(arrays[0].rank) if d not in attributes["dimensions"]]
    return tuple(any(flags_of(a)[d] for a in arrays) for d in kept)


def _windows(operands: Sequence[Shape], result: Shape, attributes: Mapping[str, Any]) -> Flags:
    return _any(operands[: len(operands) // 2], result)


def _dot(operands: Sequence[Shape], result: Shape, attributes: Mapping[str, Any]) -> Flags:
    lhs, rhs = map(flags_of, operands[:2])
    pairs = zip(attributes["lhs_batch_dims"], attributes["rhs_batch_dims"], strict=True)
    flags = [lhs[a] or rhs[b] for a, b in pairs]
    used = (*attributes["lhs_batch_dims"], *attributes["lhs_contracting_dims"])
    flags += [flag for d, flag in enumerate(lhs) if d not in used]
    used = (*attributes["rhs_batch_dims"], *attributes["rhs_contracting_dims"])
    flags += [flag for d, flag in enumerate(rhs) if d not in used]
    return tuple(flags)


def _conv(operands: Sequence[Shape], result: Shape, attributes: Mapping[str, Any]) -> Flags:
    numbers = attributes["dim_labels"]
    lhs, rhs = map(flags_of, operands[:2])
    flags = [False] * result.rank
    flags[numbers.output_batch_dimension] = lhs[numbers.input_batch_dimension]
    flags[numbers.output_feature_dimension] = rhs[numbers.kernel_output_feature_dimension]
    pairs = zip(numbers.output_spatial_dimensions, numbers.input_spatial_dimensions, strict=True)
    for target, source in pairs:
        flags[target] = lhs[source]
    return tuple(flags)


def _gather(operands: Sequence[Shape], result: Shape, attributes: Mapping[str, Any]) -> Flags:
    operand, indices = operands
    gone = (*attributes["collapsed_slice_dims"], *attributes["operand_batching_dims"])
    sizes = attributes["slice_sizes"]
    offsets = iter(
        flags_of(operand)[d] and sizes[d] == operand.dimensions[d]
        for d in range(operand.rank)
        if d not in gone
    )
    vector = attributes["index_vector_dim"]
    batches = iter(flag for d, flag in enumerate(flags_of(indices)) if d != vector)
    inside = attributes["offset_dims"]
    return tuple(next(offsets) if d in inside else next(batches) for d in range(result.rank))


def _scatter(operands: Sequence[Shape], result: Shape, attributes: Mapping[str, Any]) -> Flags:
    return _first(operands, result, attributes)


def _top_k(operands: Sequence[Shape], result: Shape, attributes: Mapping[str, Any]) -> Flags:
    return (*flags_of(operands[0])[:-1], False)


_ALIKE = frozenset({"concatenate", "map", "sort"})
_INFER: dict[str, Callable[[Sequence[Shape], Shape, Mapping[str, Any]], Flags]] = {
    "batch_norm_inference": _first,
    "broadcast_in_dim": _broadcast,
    "conv_general_dilated": _conv,
    "dot_general": _dot,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _first,
    "gather": _gather,
    "pad": _first,
    "reduce": _reduce,
    "reduce_window": _windows,
    "reshape": _reshape,
    "rev": _first,
    "scatter": _scatter,
    "select_and_scatter": _first,
    "slice": _first,
    "top_k": _top_k,
    "transpose": _transpose,
}
