"""Collective ops: what one device gets from others goes back to them.

The cotangent of an operand counts what every device's result owes to it, so that the derivative is
that of the sum over all devices.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.autodiff.reverse import Cotangents, Nested, differentiate, zero_cotangent
from tracejit.errors import DerivativeError
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.collective import joined
from tracejit.ops.comparison import eq
from tracejit.ops.computations import binary_op, scalar_computation
from tracejit.ops.constants import constant, elements_of
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import ADD, MAX, MIN, MUL, add, div, mul, select
from tracejit.ops.layout import broadcast_in_dim, full_like
from tracejit.ops.permutes import collective_permute
from tracejit.ops.replicas import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    COLLECTIVE_BROADCAST,
    PARTITION_ID,
    REDUCE_SCATTER,
    REPLICA_ID,
    replica_id,
)
from tracejit.shapes import AnyShape, Shape, TupleShape

# Channels of the way back: other numbers, so that they do not meet those of the way forth.
_BACK = 1 << 30


def back(channel_id: int | None) -> int | None:
    """The channel for the cotangents of the data that went through ``channel_id``."""
    return None if channel_id is None else channel_id ^ _BACK


def parts_of(shape: AnyShape, cotangent: Nested) -> list[Instruction]:
    """A cotangent for each array of a result of ``shape``, zeros where there is none."""
    shapes = shape.elements if isinstance(shape, TupleShape) else (shape,)
    given = cotangent if isinstance(cotangent, Sequence) else [cotangent]
    parts = []
    for array, part in zip(shapes, given, strict=True):
        assert isinstance(array, Shape)
        assert part is None or isinstance(part, Instruction)
        parts.append(zero_cotangent(array) if part is None else part)
    return parts


def sum_over_devices(
    arrays: Sequence[Instruction], instruction: Instruction
) -> tuple[Instruction, ...]:
    """Each array summed over the group of ``instruction``, an AllReduce."""
    attributes = dict(instruction.attributes)
    element_type = arrays[0].array_shape.element_type
    attributes["channel_id"] = back(attributes["channel_id"])
    attributes["to_apply"] = scalar_computation("add", element_type)
    return elements_of(make(ALL_REDUCE, *arrays, **attributes))


@differentiate.attach(ALL_REDUCE)
def all_reduce_rule(instruction: Instruction, cotangent: Nested) -> Cotangents:
    op = binary_op(instruction.attributes["to_apply"])
    arriving = sum_over_devices(parts_of(instruction.shape, cotangent), instruction)
    if op is ADD:
        return arriving
    if op is MUL:
        return _of_products(instruction, arriving)
    if op not in (MAX, MIN) or instruction.operands[0].array_shape.element_type.is_complex:
        raise DerivativeError(
            "all_reduce: has no derivative but for sums, products, maxima and minima",
            instruction.source,
        )
    # The devices that have the extremum share its cotangent.
    results = elements_of(instruction)
    holds = [
        convert_element_type(eq(o, r), o.array_shape.element_type)
        for o, r in zip(instruction.operands, results, strict=True)
    ]
    counts = sum_over_devices(holds, instruction)
    return [mul(a, div(h, c)) for a, h, c in zip(arriving, holds, counts, strict=True)]


def _of_products(instruction: Instruction, arriving: Sequence[Instruction]) -> list[Instruction]:
    """Each device's share is the product of the others' operands.

    That is the product of all operands but zeros, over its own; where one device alone has a zero,
    the product is its share, and where several do, nobody has one.
    """
    attributes = dict(instruction.attributes)
    attributes["channel_id"] = back(attributes["channel_id"])
    is_zero = [eq(o, full_like(o, 0)) for o in instruction.operands]
    counted = [
        select(z, full_like(o, 1), full_like(o, 0))
        for z, o in zip(is_zero, instruction.operands, strict=True)
    ]
    zeros = sum_over_devices(counted, instruction)
    others = [
        select(z, full_like(o, 1), o) for z, o in zip(is_zero, instruction.operands, strict=True)
    ]
    products = elements_of(make(ALL_REDUCE, *others, **attributes))
    shares = []
    for product, other, own, count in zip(products, others, counted, zeros, strict=True):
        is_alone = eq(count, own)
        share = select(is_alone, div(product, other), full_like(product, 0))
        shares.append(share)
    return [mul(a, s) for a, s in zip(arriving, shares, strict=True)]


def scattered_sum(
    instruction: Instruction, operands: Sequence[Instruction], parts: Sequence[Instruction]
) -> tuple[Instruction, ...]:
    """The way back of an AllGather: each device's part of the sum of all cotangents."""
    attributes = instruction.attributes
    element_type = parts[0].array_shape.element_type
    made = make(
        REDUCE_SCATTER,
        *parts,
        channel_id=back(attributes["channel_id"]),
        replica_groups=attributes["replica_groups"],
        constrain_layout=attributes["constrain_layout"],
        use_global_device_ids=attributes["use_global_device_ids"],
        dimensions=attributes["dimensions"],
        to_apply=scalar_computation("add", element_type),
        shape=joined([operand.shape for operand in operands]),
    )
    return elements_of(made)


@differentiate.attach(ALL_GATHER)
def all_gather_rule(instruction: Instruction, cotangent: Nested) -> Cotangents:
    return scattered_sum(instruction, instruction.operands, parts_of(instruction.shape, cotangent))


@differentiate.attach(REDUCE_SCATTER)
def reduce_scatter_rule(
    instruction: Instruction, cotangent: Instruction | Cotangents
) -> Cotangents:
    attributes = instruction.attributes
    if binary_op(attributes["to_apply"]) is not ADD:
        raise DerivativeError("reduce_scatter: has no derivative but for sums", instruction.source)
    made = make(
        ALL_GATHER,
        *parts_of(instruction.shape, cotangent),
        channel_id=back(attributes["channel_id"]),
        replica_groups=attributes["replica_groups"],
        constrain_layout=attributes["constrain_layout"],
        use_global_device_ids=attributes["use_global_device_ids"],
        dimensions=attributes["dimensions"],
        shape=joined([operand.shape for operand in instruction.operands]),
    )
    return elements_of(made)


@differentiate.attach(ALL_TO_ALL)
def all_to_all_rule(instruction: Instruction, cotangent: Nested) -> Cotangents:
    # Block i of device j is block j of device i's result, so that the same exchange leads back.
    attributes = dict(instruction.attributes)
    attributes["channel_id"] = back(attributes["channel_id"])
    return elements_of(make(ALL_TO_ALL, *parts_of(instruction.shape, cotangent), **attributes))


@differentiate.attach(COLLECTIVE_BROADCAST)
def collective_broadcast_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    groups = instruction.attributes["replica_groups"]
    channel = instruction.attributes["channel_id"]
    if groups:
        # Every member sends its cotangent to the first one, which adds them up.
        total = None
        for place in range(max(map(len, groups))):
            pairs = [(group[place], group[0]) for group in groups if place < len(group)]
            sent = collective_permute(cotangent, pairs, back(channel))
            total = sent if total is None else add(total, sent)
        return [total]
    if channel is not None:
        raise DerivativeError(
            "collective_broadcast: has no derivative with a channel_id and without replica_groups",
            instruction.source,
        )
    element_type = cotangent.array_shape.element_type
    from_all = make(
        ALL_REDUCE,
        cotangent,
        channel_id=None,
        to_apply=scalar_computation("add", element_type),
    )
    is_first = eq(replica_id(), constant(0, replica_id().array_shape.element_type))
    everywhere = broadcast_in_dim(is_first, cotangent.array_shape.dimensions, ())
    return [select(everywhere, from_all, full_like(cotangent, 0))]


for _op in (REPLICA_ID, PARTITION_ID):
    differentiate.decline(_op, "is an integer")
