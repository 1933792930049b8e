"""Collective ops on several devices, in every way to form groups: as the real XLA computes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tests.building import computation
from tests.replicas.judge import Program, judge
from tracejit import ops
from tracejit.graph import Computation, Instruction, Module
from tracejit.shapes import ElementType, Shape
from tracejit.verifier import verify

F32, S32, PRED = ElementType.F32, ElementType.S32, ElementType.PRED
# Replicas and partitions.
GRIDS = ((4, 1), (2, 2), (1, 4), (2, 4), (8, 1))


def program(
    build: Callable[[Instruction], Instruction],
    replicas: int,
    partitions: int,
    dimensions: Sequence[int] = (8,),
    element_type: ElementType = F32,
) -> Program:
    shape = Shape(element_type, tuple(dimensions))
    x = ops.parameter(0, shape)
    entry = Computation("entry", (x,), build(x))
    module = verify(Module("several", entry, replicas, partitions))
    sizes = (replicas * partitions, *dimensions)
    numbers = np.random.default_rng(len(dimensions)).permutation(np.prod(sizes)).reshape(sizes)
    return Program(module, [(numbers % 5 if element_type is PRED else numbers).astype(shape.dtype)])


def halves(count: int) -> list[list[int]]:
    """The numbers below ``count`` in two groups, neither in order."""
    return [list(range(0, count, 2))[::-1], [*range(3, count, 2), 1]] if count > 1 else [[0]]


def modes(replicas: int, partitions: int) -> list[dict[str, Any]]:
    """The ways to form groups that ops with ``use_global_device_ids`` have."""
    every = halves(replicas * partitions)
    return [
        {},
        {"replica_groups": halves(replicas)},
        {"channel_id": 1},
        {"replica_groups": halves(replicas), "channel_id": 2},
        {"replica_groups": every, "channel_id": 3, "use_global_device_ids": True},
    ]


def size_of(mode: dict[str, Any], replicas: int, partitions: int) -> int:
    """How many devices a group has."""
    groups: list[list[int]] = mode.get("replica_groups", [list(range(replicas))])
    size = len(groups[0])
    if mode.get("use_global_device_ids"):
        return size
    return size * (partitions if "channel_id" in mode else 1)


def test_numbers_of_the_device() -> None:
    def build(x: Instruction) -> Instruction:
        numbers = [ops.replica_id(), ops.partition_id()]
        return ops.tuple_([ops.broadcast(number, (2,)) for number in numbers])

    judge([program(build, *grid) for grid in GRIDS])


def test_all_reduce() -> None:
    programs = []
    for grid in GRIDS:
        for mode in modes(*grid):
            for name, element_type in (("add", F32), ("max", S32), ("min", F32), ("mul", S32)):
                reducer = ops.scalar_computation(name, element_type)
                programs.append(
                    program(
                        partial(ops.all_reduce, computation=reducer, **mode),
                        *grid,
                        element_type=element_type,
                    )
                )
    judge(programs)


def test_all_reduce_of_several_arrays_and_logical() -> None:
    def several(x: Instruction) -> Instruction:
        return ops.all_reduce(
            [x, ops.slice_in_dim(x, 1, 4, 1, 0)], ops.scalar_computation("add", F32)
        )

    # With partitions XLA's way through StableHLO fails on an op that makes several arrays.
    programs = [program(several, *grid) for grid in GRIDS if grid[1] == 1]
    for name in ("and", "or"):
        reducer = ops.scalar_computation(name, PRED)
        programs.append(
            program(partial(ops.all_reduce, computation=reducer), 4, 1, element_type=PRED)
        )
    judge(programs)


def test_groups_of_unequal_sizes() -> None:
    reducer = ops.scalar_computation("add", F32)
    judge([program(lambda x: ops.all_reduce(x, reducer, [[2], [3, 1, 0]]), 4, 1)])


def test_all_gather() -> None:
    programs = []
    for grid in GRIDS:
        for mode in modes(*grid):
            size = size_of(mode, *grid)
            for along in (0, 1):
                programs.append(
                    program(
                        partial(
                            ops.all_gather, all_gather_dimension=along, shard_count=size, **mode
                        ),
                        *grid,
                        dimensions=(2, 3),
                    )
                )
    judge(programs)


def test_reduce_scatter() -> None:
    reducer = ops.scalar_computation("add", F32)
    programs = []
    for grid in GRIDS:
        for mode in modes(*grid):
            size = size_of(mode, *grid)
            programs.append(
                program(
                    partial(
                        ops.reduce_scatter,
                        computation=reducer,
                        scatter_dimension=1,
                        shard_count=size,
                        **mode,
                    ),
                    *grid,
                    dimensions=(2, 8),
                )
            )
    judge(programs)


def test_all_to_all() -> None:
    programs = []
    for replicas, partitions in GRIDS:
        for count, channel in ((replicas, None), (partitions, 1)):
            for groups in ([list(range(count))], halves(count)):
                for split, concat in ((0, 0), (1, 0), (0, 2)):
                    programs.append(
                        program(
                            partial(
                                ops.all_to_all,
                                split_dimension=split,
                                concat_dimension=concat,
                                split_count=len(groups[0]),
                                replica_groups=groups,
                                channel_id=channel,
                            ),
                            replicas,
                            partitions,
                            dimensions=(8, 8, 8),
                        )
                    )
    judge(programs)


def test_all_to_all_of_tuples() -> None:
    def build(
        count: int, groups: list[list[int]], channel: int | None
    ) -> Callable[..., Instruction]:
        def exchange(x: Instruction) -> Instruction:
            scaled = [ops.mul(x, ops.full_like(x, i)) for i in range(len(groups[0]))]
            return ops.all_to_all_tuple(scaled, groups, channel_id=channel)

        return exchange

    programs = [
        program(build(count, groups, channel), replicas, partitions)
        for replicas, partitions in GRIDS
        for count, channel in ((replicas, None), (partitions, 1))
        for groups in (halves(count), [list(range(count))])
        if len(groups[0]) > 1  # XLA crashes on a tuple of one
    ]
    judge(programs)


def test_collective_permute() -> None:
    programs = []
    for replicas, partitions in GRIDS:
        for count, channel in ((replicas, None), (partitions, 1)):
            ring = [[i, (i + 1) % count] for i in range(count)]
            for pairs in (ring, ring[: count // 2], [[0, 0]], []):
                programs.append(
                    program(
                        partial(
                            ops.collective_permute, source_target_pairs=pairs, channel_id=channel
                        ),
                        replicas,
                        partitions,
                    )
                )
    judge(programs)


def test_halves_of_ops() -> None:
    add = ops.scalar_computation("add", F32)

    def build(x: Instruction) -> Instruction:
        started = [
            ops.all_reduce_start(x, add, [[0, 2], [1, 3]]),
            ops.all_gather_start(x, 0, 4),
            ops.collective_permute_start(x, [[0, 3], [2, 1]]),
        ]
        return ops.tuple_(
            [
                ops.collective_permute_done(started[2]),
                ops.all_reduce_done(started[0]),
                ops.all_gather_done(started[1]),
            ]
        )

    judge([program(build, 4, 1)])


def test_in_loops_branches_and_calls() -> None:
    """Every device runs the loop equally often, and the same branch."""
    add = ops.scalar_computation("add", S32)

    def body(state: Instruction) -> Instruction:
        step, value = ops.elements_of(state)
        summed = ops.all_reduce(value, add, [[0, 1], [2, 3]])
        turned = ops.collective_permute(summed, [[i, (i + 1) % 4] for i in range(4)])
        return ops.tuple_([ops.add(step, ops.constant(1, S32)), turned])

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
        chosen = ops.conditional(
            ops.constant(True),
            value,
            computation("sum", lambda y: ops.all_reduce(y, add), value.shape),
            value,
            computation("none", lambda y: y, value.shape),
        )
        product = computation("call", lambda y: ops.all_reduce(y, add), value.shape)
        return ops.tuple_([chosen, ops.call(product, [value])])

    judge([program(build, 4, 1, element_type=S32)])
