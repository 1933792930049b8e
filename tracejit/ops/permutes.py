"""Collective ops that send parts of arrays from one device to another.

collective_permute(x, [(0, 1), (1, 2), (2, 0)])        around a ring of three
ragged_all_to_all(...)                                 slices of any sizes to every device
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.attributes import Attribute, Kind
from tracejit.errors import AttributeValueError, ShapeError
from tracejit.graph import Instruction
from tracejit.ops.base import (
    INTEGRAL,
    define,
    make,
    require_array,
    require_element_type,
    require_same_element_type,
)
from tracejit.ops.collective import (
    CHANNEL,
    GROUPS,
    arrays_of,
    as_groups,
    joined,
    operands_of,
)
from tracejit.ops.constants import tuple_
from tracejit.ops.groups import Groups, group_mode, group_size, require_groups, require_pairs
from tracejit.shapes import AnyShape, Shape, TupleShape

PAIRS = Attribute("source_target_pairs", Kind.INT_LISTS)
SLICES = Attribute("slice_sizes", Kind.INT_LISTS, ())


def permuted_shape(
    function: str,
    operands: Sequence[AnyShape],
    channel_id: int | None,
    source_target_pairs: Groups,
    slice_sizes: Groups,
) -> AnyShape:
    """The shape of a permute's result. Raises for what the rules of CollectivePermute refuse."""
    group_mode(function, channel_id)
    require_pairs(function, source_target_pairs)
    if not slice_sizes:
        return joined(arrays_of(function, operands))
    if len(operands) != 4:
        raise ShapeError(
            f"{function}: slice_sizes go with an input, an output and the starts of the slices in "
            f"both, not with {len(operands)} operands"
        )
    given = require_array(function, "input", operands[0])
    result = require_array(function, "output", operands[1])
    require_same_element_type(function, input=given, output=result)
    for name, array, starts in (("input", given, operands[2]), ("output", result, operands[3])):
        for numbers, sizes in zip(
            _starts(function, name, starts, len(slice_sizes)), slice_sizes, strict=True
        ):
            if len(numbers) != array.rank or len(sizes) != array.rank:
                raise ShapeError(
                    f"{function}: a slice of {name} {array} needs {array.rank} starts and sizes, "
                    f"not {len(numbers)} and {len(sizes)}"
                )
            if any(not 0 <= s <= n for s, n in zip(sizes, array.dimensions, strict=True)):
                raise ShapeError(f"{function}: a slice of {sizes} does not fit into {name} {array}")
    return result


def _starts(function: str, name: str, starts: AnyShape, count: int) -> list[tuple[Shape, ...]]:
    """The starts of each slice: one tuple of integers, or a tuple of as many as there are."""
    slices = starts.elements if isinstance(starts, TupleShape) else (starts,)
    if not any(isinstance(part, TupleShape) for part in slices) and count == 1:
        slices = (starts,)
    if len(slices) != count:
        raise ShapeError(f"{function}: {count} slices need as many starts in {name}, not {starts}")
    found = []
    for part in slices:
        numbers = part.elements if isinstance(part, TupleShape) else (part,)
        arrays = [require_array(function, f"a start in {name}", number) for number in numbers]
        for array in arrays:
            require_element_type(function, f"a start in {name}", array, INTEGRAL)
            if array.rank:
                raise ShapeError(f"{function}: a start in {name} must be a scalar, not {array}")
        found.append(tuple(arrays))
    return found


@define("CollectivePermute", "collective-permute", CHANNEL, PAIRS, SLICES)
def COLLECTIVE_PERMUTE(
    *operands: AnyShape,
    channel_id: int | None,
    source_target_pairs: Groups,
    slice_sizes: Groups,
) -> AnyShape:
    return permuted_shape(
        "collective_permute", operands, channel_id, source_target_pairs, slice_sizes
    )


def collective_permute(
    operand: Instruction | Sequence[Instruction],
    source_target_pairs: Sequence[Sequence[int]],
    channel_id: int | None = None,
    inplace: bool = False,
) -> Instruction:
    """The operand of the source that is paired with this target (XLA: CollectivePermute).

    A device that is no target gets zeros. The numbers are replicas', or, with a ``channel_id``,
    partitions'. ``inplace`` lets the result take the operand's memory; no value depends on it.
    Raises `AttributeValueError` where a source or a target comes twice.
    """
    return make(
        COLLECTIVE_PERMUTE,
        *operands_of(operand),
        channel_id=channel_id,
        source_target_pairs=as_groups(source_target_pairs),
    )


def collective_permute_slices(
    operand: Instruction,
    output: Instruction,
    operand_starts: Sequence[Sequence[Instruction]],
    output_starts: Sequence[Sequence[Instruction]],
    slice_sizes: Sequence[Sequence[int]],
    source_target_pairs: Sequence[Sequence[int]],
    channel_id: int | None = None,
) -> Instruction:
    """``output`` with slices of the paired source's ``operand`` written to it.

    The form of CollectivePermute that works in place. Slice i starts at ``operand_starts[i]`` there
    and at ``output_starts[i]`` here, both clamped as those of a dynamic slice. A device that is no
    target gets ``output`` unchanged.
    """
    counts = {len(operand_starts), len(output_starts), len(slice_sizes)}
    if len(counts) > 1 or 0 in counts:
        raise AttributeValueError(
            "collective_permute: operand_starts, output_starts and slice_sizes must be equally "
            "many, at least one"
        )
    starts = [
        tuple_(parts[0].operands if len(parts) == 1 else parts)
        for parts in ([tuple_(s) for s in given] for given in (operand_starts, output_starts))
    ]
    return make(
        COLLECTIVE_PERMUTE,
        operand,
        output,
        *starts,
        channel_id=channel_id,
        source_target_pairs=as_groups(source_target_pairs),
        slice_sizes=as_groups(slice_sizes),
    )


@define("RaggedAllToAll", "ragged-all-to-all", CHANNEL, GROUPS)
def RAGGED_ALL_TO_ALL(
    input: AnyShape,
    output: AnyShape,
    input_offsets: AnyShape,
    send_sizes: AnyShape,
    output_offsets: AnyShape,
    recv_sizes: AnyShape,
    *,
    channel_id: int | None,
    replica_groups: Groups,
) -> Shape:
    function = "ragged_all_to_all"
    mode = group_mode(function, channel_id)
    require_groups(function, replica_groups, mode)
    given = require_array(function, "input", input)
    result = require_array(function, "output", output)
    require_same_element_type(function, input=given, output=result)
    if not given.rank or given.dimensions[1:] != result.dimensions[1:] or not result.rank:
        raise ShapeError(
            f"{function}: input and output must have the same dimensions but for the first; "
            f"input {given}, output {result}"
        )
    metadata = {
        "input_offsets": input_offsets,
        "send_sizes": send_sizes,
        "output_offsets": output_offsets,
        "recv_sizes": recv_sizes,
    }
    first = require_array(function, "input_offsets", input_offsets)
    for name, shape in metadata.items():
        array = require_array(function, name, shape)
        require_element_type(function, name, array, INTEGRAL)
        if array != first:
            raise ShapeError(
                f"{function}: offsets and sizes must have one shape; input_offsets {first}, "
                f"{name} {array}"
            )
    if first.rank not in (1, 2):
        raise ShapeError(
            f"{function}: offsets and sizes must be [num_devices] or [num_devices, num_updates], "
            f"not {first}"
        )
    size = group_size(mode, replica_groups)
    if size is not None and first.dimensions[0] != size:
        raise ShapeError(
            f"{function}: dimension 0 of input_offsets {first} must be the size of a group, {size}"
        )
    return result


def ragged_all_to_all(
    input: Instruction,
    input_offsets: Instruction,
    send_sizes: Instruction,
    output: Instruction,
    output_offsets: Instruction,
    recv_sizes: Instruction,
    replica_groups: Sequence[Sequence[int]] = (),
    channel_id: int | None = None,
) -> Instruction:
    """``output`` with rows that all devices of the group send written to it (XLA: RaggedAllToAll).

    Of ``input``, the ``send_sizes[i]`` rows from ``input_offsets[i]`` on go to the device at place
    i of the group, to its rows from ``output_offsets[i]`` on; ``recv_sizes[i]`` rows come from
    there. Offsets and sizes are integers [num_devices], or [num_devices, num_updates] for several
    slices to each device. Rows that one of the two arrays does not have are left out. Raises
    `ShapeError` or `ElementTypeError` for operands that do not fit.
    """
    return make(
        RAGGED_ALL_TO_ALL,
        input,
        output,
        input_offsets,
        send_sizes,
        output_offsets,
        recv_sizes,
        channel_id=channel_id,
        replica_groups=as_groups(replica_groups),
    )
