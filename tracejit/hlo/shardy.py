"""Shardy's attributes, as JAX writes them in HLO text, read as HLO's own shardings.

frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=2, "b"=2]>}}     the devices of a module
xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\"a\"}, {}]>]>"    {devices=[2,1,2]0,1,2,3
                                                                   last_tile_dim_replicate}

The custom calls ``xla.sdy.GlobalToLocalShape`` and ``LocalToGlobalShape``, between which a
`shard_map` stands, become ``SPMDFullToShardShape`` and ``SPMDShardToFullShape`` of each array.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tracejit.errors import AttributeValueError
from tracejit.graph import Instruction
from tracejit.ops.constants import tuple_
from tracejit.ops.custom import custom_call
from tracejit.ops.dumps import COPY
from tracejit.shapes import Shape, TupleShape

ENTER, LEAVE = "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"

_MESH = re.compile(r"([\w.$-]+) = #sdy\.mesh<\[([^\]]*)\](?:, device_ids=\[([^\]]*)\])?>")
_AXIS = re.compile(r'"([^"]*)"(?:=(\d+))?(:\(\d+\)\d+)?')
_VALUE = re.compile(r"<@([\w.$-]+), \[((?:\{[^}]*\}(?:, )?)*)\]")


@dataclass(frozen=True)
class Mesh:
    """Devices in a grid: the sizes of its axes, and the devices' numbers in row-major order."""

    axes: Mapping[str, int]
    devices: tuple[int, ...]


def read_meshes(text: str) -> dict[str, Mesh]:
    """The meshes that a module's frontend attributes name."""
    found = {}
    for name, axes, numbers in _MESH.findall(text):
        sizes = {axis: int(size) for axis, size, _ in _AXIS.findall(axes)}
        given = [int(word) for word in numbers.split(",")] if numbers else []
        count = math.prod(sizes.values())
        found[name] = Mesh(sizes, tuple(given) if given else tuple(range(count)))
    return found


def as_edges(instruction: Instruction, text: str, meshes: Mapping[str, Mesh]) -> Instruction:
    """A custom call at the edge of a region that is partitioned by hand, array by array.

    ``text`` has its frontend attributes. Any other instruction is returned as it is. Raises
    `AttributeValueError` for shardings that are not there, or by parts of an axis.
    """
    target = instruction.attributes.get("custom_call_target")
    if target not in (ENTER, LEAVE):
        return instruction
    attributes = text.replace('\\"', '"')
    manual = re.search(r"manual_axes\{([^}]*)\}", attributes)
    axes = {axis for axis, _, _ in _AXIS.findall(manual[1])} if manual else set()
    values = _VALUE.findall(attributes)
    shapes = instruction.element_shapes
    if len(values) != len(instruction.operands) or len(shapes) != len(values):
        raise AttributeValueError(
            f"{target}: {len(values)} shardings for {len(instruction.operands)} operands and "
            f"{len(shapes)} results"
        )
    made = []
    for operand, shape, (name, dimensions) in zip(
        instruction.operands, shapes, values, strict=True
    ):
        assert isinstance(shape, Shape)
        if name not in meshes:
            raise AttributeValueError(f"{target}: the module names no mesh {name!r}")
        spread = _hlo_sharding(meshes[name], re.findall(r"\{([^}]*)\}", dimensions), axes)
        if target == ENTER:
            given = Instruction(COPY, (operand,), operand.shape, {}, sharding=spread)
            edge, sharding = custom_call("SPMDFullToShardShape", [given], shape), "manual"
        else:
            edge, sharding = custom_call("SPMDShardToFullShape", [operand], shape), spread
        made.append(
            Instruction(
                edge.op,
                edge.operands,
                shape,
                edge.attributes,
                instruction.source,
                sharding=sharding,
            )
        )
    return tuple_(made) if isinstance(instruction.shape, TupleShape) else made[0]


def _hlo_sharding(mesh: Mesh, dimensions: Sequence[str], manual: set[str]) -> str:
    """HLO's text for dimensions that are spread over axes, those that are ``manual`` alone."""
    spread = []
    for dimension in dimensions:
        axes = _AXIS.findall(dimension)
        if any(part for _, _, part in axes):
            raise AttributeValueError(f"sharding: parts of an axis, {{{dimension}}}, are not known")
        spread.append([axis for axis, _, _ in axes if axis in manual])
    named = [axis for axes in spread for axis in axes]
    unknown = [axis for axis in named if axis not in mesh.axes]
    if unknown or len(set(named)) != len(named):
        raise AttributeValueError(f"sharding: {named} are no axes of {dict(mesh.axes)}, each once")
    if not named:
        return "replicated"
    rest = [axis for axis in mesh.axes if axis not in named]
    place = list(mesh.axes)
    grid = np.array(mesh.devices).reshape(list(mesh.axes.values()))
    numbers = grid.transpose([place.index(axis) for axis in (*named, *rest)]).reshape(-1)
    sizes = [math.prod(mesh.axes[axis] for axis in axes) for axes in (*spread, rest)]
    written = ",".join(map(str, numbers.tolist()))
    return f"devices=[{','.join(map(str, sizes))}]{written} last_tile_dim_replicate"
