"""Modules with every collective op, kind of group and element type, several to a module.

each(4)      the modules for four devices, with arrays for each
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.building import computation
from tests.replicas.judge import Program
from tracejit import ops
from tracejit.graph import Computation, Instruction, Module
from tracejit.shapes import ElementType, Shape, TupleShape
from tracejit.verifier import verify

F32, S32, U32 = ElementType.F32, ElementType.S32, ElementType.U32
ADD = ops.scalar_computation("add", F32)
SIZES = (4, 12)


def program(
    name: str,
    build: Callable[..., Instruction],
    devices: int,
    shapes: Sequence[Shape] = (Shape(F32, SIZES),),
    replicas: int = 1,
) -> Program:
    """``build`` of parameters of these shapes, on partitions unless ``replicas`` says otherwise."""
    parameters = tuple(ops.parameter(n, shape) for n, shape in enumerate(shapes))
    entry = Computation(name, parameters, build(*parameters))
    rng = np.random.default_rng(5)
    arrays = []
    for shape in shapes:
        numbers = rng.normal(size=(devices, *shape.dimensions)) * 3
        if shape.element_type.is_complex:
            numbers = numbers + 1j * rng.normal(size=numbers.shape)
        if not shape.element_type.is_signed:
            numbers = np.abs(numbers)
        arrays.append(numbers.astype(shape.dtype))
    return Program(verify(Module(name, entry, replicas, devices // replicas)), arrays)


def reductions(devices: int) -> Program:
    """Sums, maxima and products of every element type, short and long."""
    types = [t for t in ElementType if t is not ElementType.PRED]
    shapes = [Shape(t, (size,)) for t in types for size in (3, 4099)]

    def build(*xs: Instruction) -> Instruction:
        made = []
        for x in xs:
            element_type = x.array_shape.element_type
            kinds = ["add"] if element_type.is_complex else ["add", "max"]
            for kind in kinds:
                made.append(ops.all_reduce(x, ops.scalar_computation(kind, element_type)))
        return ops.tuple_(made)

    return program("reductions", build, devices, shapes, replicas=devices)


def any_computation(devices: int) -> Program:
    """A reduction that has no name and depends on the order, of several arrays at once."""
    scalar = Shape(F32)

    def body(a: Instruction, b: Instruction) -> Instruction:
        return ops.sub(ops.mul(a, ops.constant(0.5, F32)), b)

    odd = computation("odd", body, scalar, scalar)
    shapes = [Shape(F32, (7,)), Shape(F32, (1300,)), Shape(F32, ())]

    def build(*xs: Instruction) -> Instruction:
        both = ops.all_reduce(list(xs), odd, channel_id=1)
        one = ops.all_reduce(xs[1], odd, [[*range(devices)][::-1]], 2, use_global_device_ids=True)
        return ops.tuple_([*ops.elements_of(both), one])

    return program("any_computation", build, devices, shapes)


def exchanges(devices: int, replicas: int) -> Program:
    """Gathers, scatters and exchanges along every dimension, in several groups."""
    everyone = [[*range(devices)][::-1]]
    flat: dict[str, Any] = {"channel_id": 3, "use_global_device_ids": True}
    pairs = [[n, (n + 1) % devices] for n in range(devices - 1)]

    def build(x: Instruction) -> Instruction:
        own = replicas
        ids = ops.add(ops.mul(ops.replica_id(), ops.constant(10, U32)), ops.partition_id())
        return ops.tuple_(
            [
                ops.all_gather(x, 0, devices, everyone, **flat),
                ops.all_gather(x, 1, devices, everyone, **flat),
                ops.all_gather(x, 1, own),
                ops.reduce_scatter(x, ADD, 1, devices, everyone, **flat),
                ops.reduce_scatter(x, ADD, 0, own),
                ops.all_to_all(x, 0, 1, own),
                ops.all_to_all(x, 1, 1, own),
                ops.collective_broadcast(x, [[own - 1, *range(own - 1)]]),
                ops.collective_broadcast(x, [[own - 1]]),
                ids,
                *(
                    [ops.collective_permute(x, pairs, 4), ops.collective_permute(x, [(1, 1)], 5)]
                    if own == 1
                    else []
                ),
            ]
        )

    return program("exchanges", build, devices, replicas=replicas)


def several(devices: int) -> Program:
    """Tuples, halves of ops with work between them, slices, and messages."""
    pairs = [[n, (n + 1) % devices] for n in range(devices)]

    def build(x: Instruction, y: Instruction) -> Instruction:
        first = ops.all_reduce_start([x, y], ADD)
        second = ops.all_reduce_start([y, x], ADD)
        between = ops.sin(ops.dot_general(x, x, ops.DotDimensionNumbers((1,), (1,))))
        gathering = ops.all_gather_start(between, 0, devices)
        moving = ops.collective_permute_start(x, pairs)
        later = ops.all_reduce(between, ADD)
        a, b = ops.elements_of(ops.all_reduce_done(second))
        c, d = ops.elements_of(ops.all_reduce_done(first))
        zero, one = ops.constant(0, S32), ops.constant(1, S32)
        sliced = ops.collective_permute_slices(
            x, y, [(one, one)], [(zero, ops.constant(99, S32))], [(2, 3)], pairs
        )
        exchanged = ops.all_to_all_tuple([x, y, *[x] * (devices - 2)][:devices])
        return ops.tuple_(
            [
                a,
                b,
                c,
                d,
                later,
                ops.all_gather_done(gathering),
                ops.collective_permute_done(moving),
                sliced,
                *ops.elements_of(exchanged),
            ]
        )

    shape = Shape(F32, SIZES)
    return program("several", build, devices, [shape, shape], replicas=devices)


def messages(devices: int) -> Program:
    """A ring by Send and Recv across partitions."""
    pairs = [(n, (n + 1) % devices) for n in range(devices)]

    def build(x: Instruction) -> Instruction:
        token = ops.send(ops.tuple_([x, ops.add(x, x)]), 9, pairs)
        both = TupleShape((x.shape, x.shape))
        received, token = ops.elements_of(ops.recv_with_token(token, both, 9, pairs))
        # The last device sends nothing, and the first one gets zeros.
        token = ops.send_with_token(x, token, 7, pairs[:-1])
        other = ops.recv_with_token(token, x.shape, 7, pairs[:-1])
        return ops.tuple_([*ops.elements_of(received), ops.get_tuple_element(other, 0)])

    return program("messages", build, devices)


def ragged(devices: int) -> Program:
    """Rows of any number to every device, some of them outside of the arrays."""
    numbers = Shape(S32, (devices, 2))

    def build(x: Instruction, *metadata: Instruction) -> Instruction:
        whole = [ops.convert_element_type(m, S32) for m in metadata]
        return ops.ragged_all_to_all(x, whole[0], whole[1], ops.neg(x), whole[2], whole[3])

    return program("ragged", build, devices, [Shape(F32, SIZES), *[numbers] * 4], devices)


def loop(devices: int) -> Program:
    """A loop with a collective op and a branch with another."""

    def body(state: Instruction) -> Instruction:
        count, value = ops.elements_of(state)
        summed = ops.all_reduce(value, ADD, channel_id=1)
        return ops.tuple_([ops.add(count, ops.constant(1, S32)), ops.tanh(summed)])

    def condition(state: Instruction) -> Instruction:
        return ops.lt(ops.get_tuple_element(state, 0), ops.constant(3, S32))

    def build(x: Instruction) -> Instruction:
        init = ops.tuple_([ops.constant(0, S32), x])
        looped = ops.while_(
            computation("condition", condition, init.shape),
            computation("body", body, init.shape),
            init,
        )
        value = ops.get_tuple_element(looped, 1)
        left = computation(
            "left", lambda y: ops.all_reduce(ops.add(y, y), ADD, channel_id=2), x.shape
        )
        right = computation("right", lambda y: ops.all_reduce(y, ADD, channel_id=2), x.shape)
        is_first = ops.eq(ops.partition_id(), ops.constant(0, U32))
        return ops.conditional(is_first, value, left, value, right)

    return program("loop", build, devices)


def each(devices: int) -> list[Program]:
    """All of them."""
    grids = [1, devices] if devices < 4 else [1, 2, devices]
    return [
        reductions(devices),
        any_computation(devices),
        *(exchanges(devices, replicas) for replicas in grids),
        several(devices),
        messages(devices),
        ragged(devices),
        loop(devices),
    ]
