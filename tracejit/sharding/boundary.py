"""The edges of a `shard_map` inside of a program, which every device runs on whole arrays.

Going in, a device takes its part of an array that all have whole; coming out, the parts are
gathered. With S the taking of parts and G the gathering, which adds up what devices have of the
same part, the cotangents of S are G's results and those of G are S's: both are linear.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tracejit.lax import parallel
from tracejit.lax.shapes import dynamic_slice_in_dim
from tracejit.sharding.mesh import NamedSharding
from tracejit.transforms.custom import custom_vjp

Map = Callable[[Any], Any]


def _dimensions(sharding: NamedSharding) -> list[tuple[int, tuple[str, ...]]]:
    return [(d, names) for d, names in enumerate(sharding.spec.names()) if names]


def _part(x: Any, sharding: NamedSharding) -> Any:
    sharding.shard_shape(x.shape, "shard_map")
    with sharding.mesh.axes.bound():
        for dimension, names in _dimensions(sharding):
            size = x.shape[dimension] // math.prod(sharding.mesh.shape[n] for n in names)
            start = parallel.axis_index(names) * size
            x = dynamic_slice_in_dim(x, start, size, dimension)
    return x


def _whole(x: Any, sharding: NamedSharding, adds: bool) -> Any:
    with sharding.mesh.axes.bound():
        if adds and sharding.unmentioned:
            x = parallel.psum(x, tuple(sharding.unmentioned))
        for dimension, names in _dimensions(sharding):
            x = parallel.all_gather(x, names, axis=dimension, tiled=True)
    return x


def taking(sharding: NamedSharding) -> Map:
    """This device's part of a whole array."""

    @custom_vjp
    def part(x: Any) -> Any:
        return _part(x, sharding)

    part.defvjp(
        lambda x: (_part(x, sharding), ()), lambda kept, cotangent: (adding(sharding)(cotangent),)
    )
    return part


def adding(sharding: NamedSharding) -> Map:
    """The whole array of all parts; what several devices have of one part is added."""

    @custom_vjp
    def whole(x: Any) -> Any:
        return _whole(x, sharding, True)

    whole.defvjp(
        lambda x: (_whole(x, sharding, True), ()),
        lambda kept, cotangent: (taking(sharding)(cotangent),),
    )
    return whole


def gathering(sharding: NamedSharding) -> Map:
    """The whole array of all parts; devices that have one part have the same."""
    copies = math.prod(sharding.mesh.shape[name] for name in sharding.unmentioned)

    @custom_vjp
    def whole(x: Any) -> Any:
        return _whole(x, sharding, False)

    whole.defvjp(
        lambda x: (_whole(x, sharding, False), ()),
        lambda kept, cotangent: (taking(sharding)(cotangent / copies),),
    )
    return whole
