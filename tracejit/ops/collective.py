"""What the collective ops have in common: attributes, operands, and the sizes they make.

arrays_of("all_reduce", [shape])                     the shapes, all arrays'
gathered_shapes("all_gather", arrays, results, (0,), 4)
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.attributes import Attribute, Kind
from tracejit.errors import AttributeValueError, ShapeError
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import require_array, require_same_element_type
from tracejit.ops.computations import operand_list, require_computation
from tracejit.ops.constants import elements_of
from tracejit.ops.groups import Groups
from tracejit.shapes import AnyShape, Layout, Shape, TupleShape

CHANNEL = Attribute("channel_id", Kind.INT, None)
GROUPS = Attribute("replica_groups", Kind.REPLICA_GROUPS, ())
CONSTRAIN = Attribute("constrain_layout", Kind.BOOL, False)
GLOBAL = Attribute("use_global_device_ids", Kind.BOOL, False)


def arrays_of(function: str, operands: Sequence[AnyShape]) -> list[Shape]:
    """The operands' shapes, at least one, all arrays'."""
    if not operands:
        raise ShapeError(f"{function}: needs at least one operand")
    many = len(operands) > 1
    return [
        require_array(function, f"operand {i}" if many else "operand", shape)
        for i, shape in enumerate(operands)
    ]


def joined(shapes: Sequence[AnyShape]) -> AnyShape:
    """One array's shape, or a tuple of several."""
    return shapes[0] if len(shapes) == 1 else TupleShape(tuple(shapes))


def as_groups(groups: Sequence[Sequence[int]]) -> Groups:
    return tuple(tuple(int(number) for number in group) for group in groups)


def operands_of(operand: Instruction | Sequence[Instruction]) -> list[Instruction]:
    """The arrays of one operand, of a tuple, or of a list."""
    if isinstance(operand, Instruction) and isinstance(operand.shape, TupleShape):
        return list(elements_of(operand))
    return list(operand_list(operand))


def check_reduction(function: str, arrays: Sequence[Shape], to_apply: Computation) -> None:
    """Raises unless the computation reduces two scalars of every operand's element type."""
    for i, array in enumerate(arrays):
        require_same_element_type(function, **{"operand 0": arrays[0], f"operand {i}": array})
    scalar = Shape(arrays[0].element_type)
    require_computation(function, "computation", to_apply, [scalar, scalar], scalar)


def constrained(
    function: str, layout: Layout | None, arrays: Sequence[Instruction]
) -> dict[str, bool]:
    """``constrain_layout``; a layout that does not fit raises. Values do not depend on it."""
    if layout is not None:
        for array in arrays:
            require_array(function, "operand", array.shape).with_layout(layout)
    return {"constrain_layout": layout is not None}


def gathered_shapes(
    function: str,
    arrays: Sequence[Shape],
    results: AnyShape,
    dimensions: tuple[int, ...],
    size: int | None,
) -> AnyShape:
    """``results``, known to be ``arrays`` made ``size`` times larger along one dimension.

    A ``size`` of None leaves open how many times.
    """
    parts = results.elements if isinstance(results, TupleShape) else (results,)
    if len(parts) != len(arrays) or isinstance(results, TupleShape) != (len(arrays) > 1):
        raise ShapeError(f"{function}: {len(arrays)} operands do not make {results}")
    times = set()
    for array, part in zip(arrays, parts, strict=True):
        result = require_array(function, "result", part)
        if len(dimensions) != 1 or not 0 <= dimensions[0] < array.rank:
            raise AttributeValueError(
                f"{function}: dimensions must be one dimension of {array}, not {dimensions}"
            )
        (along,) = dimensions
        same_others = result.element_type is array.element_type and result.rank == array.rank
        if not same_others or any(
            d != along and n != array.dimensions[d] for d, n in enumerate(result.dimensions)
        ):
            raise ShapeError(
                f"{function}: result {result} must have the element type and, but for dimension "
                f"{along}, the sizes of {array}"
            )
        given, made = array.dimensions[along], result.dimensions[along]
        if (made % given if given else made) or (size is not None and made != given * size):
            raise ShapeError(
                f"{function}: dimension {along} of result {result} must be "
                f"{'a multiple' if size is None else f'{size} times that'} of {array}"
            )
        if given:
            times.add(made // given)
    if len(times) > 1:
        raise ShapeError(f"{function}: {results} is not {joined(arrays)}, each as often")
    return results


def require_count(function: str, argument: str, count: int, size: int | None) -> None:
    """Raises `AttributeValueError` unless ``count`` is a group's size, where that is known."""
    if count < 1:
        raise AttributeValueError(f"{function}: {argument} must be at least 1, not {count}")
    if size is not None and count != size:
        raise AttributeValueError(
            f"{function}: {argument} must be the size of a group of replica_groups, {size}, "
            f"not {count}"
        )


def require_divisible(
    function: str, argument: str, shape: Shape, dimension: int, count: int
) -> None:
    if shape.rank <= dimension or shape.dimensions[dimension] % count:
        raise ShapeError(
            f"{function}: dimension {dimension} of operand {shape} must be divisible by "
            f"{argument} {count}"
        )


def resized(shape: Shape, dimension: int, size: int) -> Shape:
    sizes = list(shape.dimensions)
    sizes[dimension] = size
    return shape.with_dimensions(sizes)
