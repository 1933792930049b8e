"""`pmap`: a function on every device, each with one element of the arguments.

pmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(np.arange(4.0))
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.errors import ArgumentError, UnsupportedError
from tracejit.numpy import expand_dims, squeeze
from tracejit.sharding.mesh import Device, P, make_mesh
from tracejit.sharding.shard_mapping import shard_map

_DEFAULT_AXIS = "devices of pmap"


def pmap(
    f: Callable[..., Any],
    axis_name: str | None = None,
    *,
    in_axes: int | Sequence[int | None] | None = 0,
    out_axes: int = 0,
    devices: Sequence[Device] | None = None,
) -> Callable[..., Any]:
    """``f`` of each element along dimension 0 of the arguments, one for each device.

    ``in_axes`` has 0, or None for what all devices get whole, for each argument or for all. There
    are as many devices as elements: threads, or the ranks of MPI. Raises `UnsupportedError` for
    other axes, and `ArgumentError` where sizes differ.

    >>> tj.pmap(
    ...     lambda x: x / tj.lax.psum(x, "i"), axis_name="i", devices=tj.devices("cpu", 2)
    ... )(np.array([1.0, 3.0]))
    array([0.25, 0.75])
    """
    name = _DEFAULT_AXIS if axis_name is None else axis_name
    if out_axes != 0:
        raise UnsupportedError(f"pmap: out_axes must be 0, not {out_axes!r}")

    @functools.wraps(f)
    def mapped(*args: Any) -> Any:
        axes = [in_axes] * len(args) if isinstance(in_axes, int | None) else list(in_axes)
        if len(axes) != len(args) or any(axis not in (0, None) for axis in axes):
            raise UnsupportedError(f"pmap: in_axes must be 0 or None for each argument, not {axes}")
        sizes = {
            np.shape(leaf)[0]
            for axis, argument in zip(axes, args, strict=True)
            if axis == 0
            for leaf in tree.leaves(argument)
        }
        if len(sizes) != 1:
            raise ArgumentError(f"pmap: mapped arguments must be equally long, not {sorted(sizes)}")
        mesh = make_mesh((sizes.pop(),), (name,), devices)
        specs = tuple(P() if axis is None else P(name) for axis in axes)

        def single(*parts: Any) -> Any:
            own = [
                part if axis is None else tree.map(lambda leaf: squeeze(leaf, 0), part)
                for axis, part in zip(axes, parts, strict=True)
            ]
            return tree.map(lambda leaf: expand_dims(leaf, 0), f(*own))

        return _program(single, mesh, specs, name)(*args)

    programs: dict[Any, Callable[..., Any]] = {}

    def _program(single: Callable[..., Any], mesh: Any, specs: Any, name: str) -> Any:
        key = (mesh, specs)
        if key not in programs:
            programs[key] = shard_map(single, mesh=mesh, in_specs=specs, out_specs=P(name))
        return programs[key]

    return mapped
