"""Replaces collective ops in a program for one device, which is the only one of its group.

In programs for several devices, `with_host_collectives` has replaced collectives by calls of the
host before.
An op that names another device raises `UnsupportedError`.
"""

from __future__ import annotations

from tracejit.backends.tvm.passes.legalize.called_computations import with_straight_calls
from tracejit.backends.tvm.passes.legalize.tokens_and_async import (
    Made,
    Operands,
    at_source,
    no_token,
    plain,
    plain_shape,
    simpler_names,
    zeros,
)
from tracejit.errors import UnsupportedError
from tracejit.graph import Computation, Instruction
from tracejit.ops.channels import RECV, RECV_DONE, SEND, SEND_DONE
from tracejit.ops.comparison import ge, lt
from tracejit.ops.constants import constant, elements_of, get_tuple_element, iota, tuple_
from tracejit.ops.custom import RECV_TARGET, SEND_TARGET, custom_call
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import add, and_, select, sub
from tracejit.ops.indexing import ScatterDimensionNumbers, replace_computation, scatter
from tracejit.ops.layout import (
    broadcast_in_dim,
    dynamic_slice,
    dynamic_update_slice,
    full_like,
    reshape,
)
from tracejit.ops.permutes import COLLECTIVE_PERMUTE, RAGGED_ALL_TO_ALL
from tracejit.ops.replicas import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    COLLECTIVE_BROADCAST,
    PARTITION_ID,
    REDUCE_SCATTER,
    REPLICA_ID,
)
from tracejit.ops.starts import (
    ALL_GATHER_DONE,
    ALL_GATHER_START,
    ALL_REDUCE_DONE,
    ALL_REDUCE_START,
    COLLECTIVE_PERMUTE_DONE,
    COLLECTIVE_PERMUTE_START,
)
from tracejit.shapes import AnyShape, ElementType, Shape, TupleShape

_ALONE = ((), ((0,),))


def legalize_devices(computation: Computation) -> Computation:
    """`plain`, with the rules of this module for ops between devices."""
    return with_straight_calls(plain(computation))


def _require_alone(instruction: Instruction, shape: AnyShape) -> None:
    """Raises `UnsupportedError` unless the op's group is one device and its result has
    ``shape``.
    """
    operands = [operand.shape for operand in instruction.operands]
    fits = shape == (TupleShape(tuple(operands)) if isinstance(shape, TupleShape) else operands[0])
    if instruction.attributes["replica_groups"] not in _ALONE or not fits:
        raise _unsupported(instruction)


def _unsupported(instruction: Instruction) -> UnsupportedError:
    return UnsupportedError(
        f"{instruction.op.function}: the program is for one device, and the op names others; a "
        "module has replica_count or num_partitions for several",
        instruction.source,
    )


@simpler_names.attach(ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, ALL_REDUCE_START)
def _itself(instruction: Instruction, operands: Operands) -> Instruction:
    _require_alone(instruction, instruction.shape)
    return tuple_(operands) if isinstance(instruction.shape, TupleShape) else operands[0]


@simpler_names.attach(ALL_GATHER_START)
def _gathered(instruction: Instruction, operands: Operands) -> Instruction:
    _require_alone(instruction, instruction.element_shapes[1])
    return _begun(instruction, operands)


def _begun(instruction: Instruction, results: Operands) -> Instruction:
    """The operand, the result and contexts, the value of an async start."""
    first, second, *contexts = map(plain_shape, instruction.element_shapes)
    result = tuple_(results) if isinstance(second, TupleShape) else results[0]
    return tuple_([zeros(first), result, *map(zeros, contexts)])


@simpler_names.attach(ALL_REDUCE_DONE)
def _all_reduce_done(instruction: Instruction, operands: Operands) -> Instruction:
    return operands[0]


@simpler_names.attach(ALL_GATHER_DONE, COLLECTIVE_PERMUTE_DONE)
def _second(instruction: Instruction, operands: Operands) -> Instruction:
    return get_tuple_element(operands[0], 1)


@simpler_names.attach(COLLECTIVE_BROADCAST)
def _collective_broadcast(instruction: Instruction, operands: Operands) -> Instruction:
    _require_alone(instruction, instruction.shape)
    return operands[0]


def _permuted(instruction: Instruction, operands: Operands) -> list[Instruction]:
    pairs = instruction.attributes["source_target_pairs"]
    if pairs not in ((), ((0, 0),)):
        raise _unsupported(instruction)
    slices = instruction.attributes["slice_sizes"]
    if not slices:
        return [operand if pairs else full_like(operand, 0) for operand in operands]
    given, result, sources, targets = operands
    if pairs:
        for sizes, there, here in zip(slices, _starts(sources), _starts(targets), strict=True):
            result = dynamic_update_slice(result, dynamic_slice(given, there, sizes), here)
    return [result]


def _starts(operand: Instruction) -> list[tuple[Instruction, ...]]:
    """The start indices of each slice."""
    parts = elements_of(operand)
    nested = any(isinstance(part.shape, TupleShape) for part in parts)
    return [elements_of(part) for part in (parts if nested else (operand,))]


@simpler_names.attach(COLLECTIVE_PERMUTE)
def _collective_permute(instruction: Instruction, operands: Operands) -> Instruction:
    results = _permuted(instruction, operands)
    return tuple_(results) if isinstance(instruction.shape, TupleShape) else results[0]


@simpler_names.attach(COLLECTIVE_PERMUTE_START)
def _collective_permute_start(instruction: Instruction, operands: Operands) -> Instruction:
    return _begun(instruction, _permuted(instruction, operands))


@simpler_names.attach(RAGGED_ALL_TO_ALL)
def _ragged_all_to_all(instruction: Instruction, operands: Operands) -> Instruction:
    """A Scatter of all rows for each update; rows outside the slice are dropped."""
    given, output, *metadata = operands
    if instruction.attributes["replica_groups"] not in _ALONE or (
        metadata[0].array_shape.dimensions[0] != 1
    ):
        raise _unsupported(instruction)
    rows, *inner = given.array_shape.dimensions
    updates = metadata[0].array_shape.size
    grid = (updates, rows)
    first, size, target = (
        broadcast_in_dim(
            reshape(convert_element_type(array, ElementType.S64), (updates,)), grid, (0,)
        )
        for array in metadata[:3]
    )
    row = iota(Shape(ElementType.S64, grid), 1)
    inside = and_(ge(row, first), lt(row, add(first, size)))
    place = select(inside, add(target, sub(row, first)), full_like(row, -1))
    return scatter(
        output,
        reshape(place, (updates * rows,)),
        reshape(
            broadcast_in_dim(given, (updates, rows, *inner), range(1, 2 + len(inner))),
            (updates * rows, *inner),
        ),
        replace_computation(given.array_shape.element_type),
        ScatterDimensionNumbers(tuple(range(1, 1 + len(inner))), (0,), (0,), 1),
    )


@simpler_names.attach(REPLICA_ID, PARTITION_ID)
def _first_device(instruction: Instruction, operands: Operands) -> Instruction:
    return constant(0, ElementType.U32)


@simpler_names.attach(SEND)
def _send(instruction: Instruction, operands: Operands) -> Made:
    data, token = operands
    context = tuple_([data, constant(0, ElementType.U32), token])
    if not instruction.attributes["is_host_transfer"]:
        return context
    handle = str(instruction.attributes["channel_id"])
    parts = tuple_(elements_of(data)) if isinstance(data.shape, TupleShape) else data
    nothing = TupleShape(())
    made = custom_call(SEND_TARGET, [parts], nothing, handle, has_side_effect=True)
    return context, at_source(instruction, made)


@simpler_names.attach(SEND_DONE)
def _send_done(instruction: Instruction, operands: Operands) -> Instruction:
    return no_token()


@simpler_names.attach(RECV)
def _recv(instruction: Instruction, operands: Operands) -> Instruction:
    return zeros(plain_shape(instruction.shape))


@simpler_names.attach(RECV_DONE)
def _recv_done(instruction: Instruction, operands: Operands) -> Made:
    """The host's data, the data found by `send_recv`, or zeros for a device that is no target."""
    data = instruction.element_shapes[0]
    if not instruction.operands[0].attributes["is_host_transfer"]:
        return tuple_([operands[0] if operands else zeros(data), no_token()])
    handle = str(instruction.operands[0].attributes["channel_id"])
    made = at_source(instruction, custom_call(RECV_TARGET, [], data, handle, has_side_effect=True))
    return tuple_([made, no_token()]), made
