"""Along which axes of a mesh a value may differ: what `shard_map` checks its results for."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tracejit.errors import ArgumentError
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.permutes import COLLECTIVE_PERMUTE, RAGGED_ALL_TO_ALL
from tracejit.ops.replicas import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    COLLECTIVE_BROADCAST,
    PARTITION_ID,
    REDUCE_SCATTER,
)
from tracejit.sharding.mesh import Mesh, NamedSharding
from tracejit.traversal import called_computations, in_order, instructions

Axes = frozenset[str]

_MAKES_EQUAL = frozenset({ALL_GATHER, ALL_REDUCE})
_MAKES_DIFFERENT = frozenset(
    {ALL_TO_ALL, COLLECTIVE_BROADCAST, COLLECTIVE_PERMUTE, RAGGED_ALL_TO_ALL}
)
_OF_DEVICES = frozenset({*_MAKES_DIFFERENT, PARTITION_ID, REDUCE_SCATTER})


def require_same(
    title: str,
    inputs: Sequence[tuple[Instruction, NamedSharding]],
    results: Sequence[Instruction],
    wanted: Sequence[NamedSharding],
) -> None:
    """Raises `ArgumentError` where a result may differ along an axis that is not mentioned."""
    found: dict[Instruction, Axes] = {
        value: frozenset(itertools.chain.from_iterable(sharding.spec.names()))
        for value, sharding in inputs
    }
    if not wanted:
        return
    mesh = wanted[0].mesh
    for instruction in in_order(results):
        if instruction not in found:
            found[instruction] = _varying(instruction, found, mesh)
    for number, (result, sharding) in enumerate(zip(results, wanted, strict=True)):
        left = sorted(found[result] & frozenset(sharding.unmentioned))
        if left:
            raise ArgumentError(
                f"shard_map: result {number} of {title}, {result.shape}, may differ along "
                f"{', '.join(map(repr, left))}, which out_specs {sharding.spec} does not mention; "
                "reduce it (lax.psum, lax.pmean), mention the axis, or pass check_vma=False",
                result.source,
            )


def _varying(instruction: Instruction, found: dict[Instruction, Axes], mesh: Mesh) -> Axes:
    arriving = frozenset[str]().union(*(found[o] for o in instruction.operands))
    everything = frozenset(mesh.axis_names)
    if instruction.op in _MAKES_EQUAL:
        return arriving - _along(instruction, mesh)
    if instruction.op is REDUCE_SCATTER:
        return arriving | _along(instruction, mesh)
    if instruction.op in _OF_DEVICES:
        return everything
    for computation in instruction.computations:
        if _depends_on_devices(computation):
            return everything
    return arriving


def _along(instruction: Instruction, mesh: Mesh) -> Axes:
    """The axes whose devices an op brings together."""
    groups = {frozenset(group) for group in instruction.attributes["replica_groups"]}
    for count in range(mesh.devices.ndim, 0, -1):
        for names in itertools.combinations(mesh.axis_names, count):
            if {frozenset(group) for group in mesh.axes.groups(names)} == groups:
                return frozenset(names)
    return frozenset()


def _depends_on_devices(computation: Computation) -> bool:
    return any(
        instruction.op in _OF_DEVICES
        for each in called_computations(Module("called", computation))
        for instruction in instructions(each)
    )
