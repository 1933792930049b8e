"""Exchange along named axes: of the mesh of a `shard_map`, or of a `vmap` with ``axis_name=``.

    lax.psum(x, "batch")              the sum over all devices along the axis
    lax.ppermute(x, "ring", [(0, 1), (1, 0)])

They are what `jax.lax` has under these names. Trees of arrays are taken where JAX takes them, and
several names at once as a tuple. With ``axis_index_groups`` devices exchange within each group of
places along the axes of a mesh. Each raises `ArgumentError` for a name that is no axis here.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.errors import ArgumentError, ShapeError, UnsupportedError
from tracejit.graph import Instruction
from tracejit.lax.elementwise import operands
from tracejit.ops.comparison import eq
from tracejit.ops.computations import scalar_computation
from tracejit.ops.constants import constant, elements_of
from tracejit.ops.dimensions import moved
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import div, select
from tracejit.ops.layout import broadcast_in_dim, dynamic_slice, full_like, reshape
from tracejit.ops.permutes import collective_permute
from tracejit.ops.replicas import all_gather as all_gather_op
from tracejit.ops.replicas import all_reduce, partition_id, reduce_scatter
from tracejit.ops.replicas import all_to_all as all_to_all_op
from tracejit.shapes import ElementType
from tracejit.trace.context import current_trace, next_channel
from tracejit.trace.named_axes import MappedAxis, MeshAxes, axis_of
from tracejit.trace.tracer import lift

Names = str | Sequence[str]
IndexGroups = Sequence[Sequence[int]] | None
BUCKET_BYTES = 1 << 20
"""The size of one op when a tree of arrays is reduced."""

_NUMBERS = (bool, int, float, complex)


def _names(name: Any) -> tuple[Any, ...]:
    return tuple(name) if isinstance(name, tuple | list) else (name,)


class _Frame:
    """The axes of one mesh, or of one vmap, that a function was given.

    ``index_groups`` are places along the axes; devices exchange with those of their group alone.
    """

    def __init__(
        self,
        owner: MeshAxes | MappedAxis,
        names: tuple[str, ...],
        index_groups: IndexGroups = None,
        function: str = "",
    ) -> None:
        self.owner = owner
        self.names = names
        self.size = math.prod(owner.sizes()[name] for name in names)
        self.groups = (
            (tuple(range(owner.size)),) if isinstance(owner, MappedAxis) else owner.groups(names)
        )
        if index_groups is not None:
            if isinstance(owner, MappedAxis):
                raise UnsupportedError(f"{function}: axis_index_groups along an axis of vmap")
            places = _places(function, index_groups, self.size)
            self.groups = tuple(
                tuple(group[n] for n in part) for group in self.groups for part in places
            )
            self.size = len(places[0])

    def attributes(self) -> dict[str, Any]:
        """The attributes for an op that names its devices by their numbers."""
        return {**self.one_sided(), "use_global_device_ids": True}

    def one_sided(self) -> dict[str, Any]:
        """The attributes for an op without use_global_device_ids, on partitions of one replica."""
        is_mapped = isinstance(self.owner, MappedAxis)
        channel = self.owner.channel if is_mapped else next_channel()  # type: ignore[union-attr]
        return {"replica_groups": self.groups, "channel_id": channel}

    def own(self, x: Any) -> Instruction:
        """An array; of a vmap's axis, one that is batched."""
        (given,) = operands(x)
        if not isinstance(self.owner, MappedAxis):
            return given
        same = eq(self.owner.index, self.owner.index)
        everywhere = broadcast_in_dim(same, given.array_shape.dimensions, ())
        return select(everywhere, given, given)

    def index(self) -> Instruction:
        """This device's place along the axes, s32[]."""
        if isinstance(self.owner, MappedAxis):
            return self.owner.index
        places = np.zeros(self.owner.numbers.size, np.int32)
        for group in self.groups:
            places[list(group)] = np.arange(len(group))
        return reshape(dynamic_slice(constant(places), (partition_id(),), (1,)), ())


def _places(function: str, groups: Any, size: int) -> list[list[int]]:
    """Groups of places along axes, equally long. Raises `ArgumentError` unless each is in one."""
    try:
        places = [[operator.index(n) for n in group] for group in groups]
    except TypeError as error:
        raise ArgumentError(f"{function}: axis_index_groups must hold lists of places") from error
    if sorted(n for group in places for n in group) != list(range(size)):
        raise ArgumentError(
            f"{function}: axis_index_groups {places} must hold each of the {size} places once"
        )
    if len({len(group) for group in places}) != 1:
        raise ArgumentError(f"{function}: axis_index_groups {places} must be equally long")
    return places


def _frames(function: str, axis_name: Names, groups: IndexGroups = None) -> list[_Frame]:
    """The axes by what has them, those of vmaps first."""
    found: dict[MeshAxes | MappedAxis, list[str]] = {}
    for name in _names(axis_name):
        found.setdefault(axis_of(function, name), []).append(name)
    if groups is not None and len(found) > 1:
        raise UnsupportedError(f"{function}: axis_index_groups along axes of mesh and vmap at once")
    frames = [_Frame(owner, tuple(names), groups, function) for owner, names in found.items()]
    return sorted(frames, key=lambda frame: isinstance(frame.owner, MeshAxes))


def _frame(function: str, axis_name: Names, groups: IndexGroups = None) -> _Frame:
    frames = _frames(function, axis_name, groups)
    if len(frames) != 1:
        raise UnsupportedError(f"{function}: axes of one mesh, or one of vmap, not {axis_name!r}")
    return frames[0]


def _in_trace(function: str) -> None:
    if current_trace() is None:
        raise ArgumentError(f"{function}: is for functions that shard_map, pmap or vmap maps")


def _reduced(function: str, kind: str, x: Any, axis_name: Names, groups: IndexGroups) -> Any:
    frames = _frames(function, axis_name, groups)

    def one(leaf: Any) -> Any:
        if kind == "add" and isinstance(leaf, _NUMBERS):
            return leaf * math.prod(frame.size for frame in frames)
        value = leaf
        for frame in frames:
            given = frame.own(value)
            if kind == "add" and given.array_shape.element_type is ElementType.PRED:
                given = convert_element_type(given, ElementType.S32)
            computation = scalar_computation(kind, given.array_shape.element_type)
            value = lift(all_reduce(given, computation, **frame.attributes()), False)
        return value

    if not any(not isinstance(leaf, _NUMBERS) for leaf in tree.leaves(x)):
        return tree.map(one, x)
    _in_trace(function)
    if len(frames) == 1 and isinstance(frames[0].owner, MeshAxes):
        return _together(kind, x, frames[0], one)
    return tree.map(one, x)


def _together(kind: str, x: Any, frame: _Frame, one: Callable[[Any], Any]) -> Any:
    """Arrays of one element type travel together, in the order in which they are computed.

    An op has `BUCKET_BYTES`, so that the first gradients travel while others are computed.
    """
    leaves, structure = tree.flatten(x)
    made: dict[int, Any] = {}
    by_type: dict[ElementType, list[int]] = {}
    given = {n: frame.own(leaf) for n, leaf in enumerate(leaves) if not isinstance(leaf, _NUMBERS)}
    for number, array in given.items():
        by_type.setdefault(array.array_shape.element_type, []).append(number)
    for element_type, numbers in by_type.items():
        if element_type is ElementType.PRED:
            continue
        computation = scalar_computation(kind, element_type)
        for bucket in _buckets(numbers, given):
            total = all_reduce([given[n] for n in bucket], computation, **frame.attributes())
            made.update(zip(bucket, elements_of(total), strict=True))
    results = [lift(made[n], False) if n in made else one(leaf) for n, leaf in enumerate(leaves)]
    return tree.unflatten(structure, results)


def _buckets(numbers: Sequence[int], given: Mapping[int, Instruction]) -> Iterator[Sequence[int]]:
    """Arrays in the order of their computation, until a bucket is full."""
    bucket: list[int] = []
    size = 0
    for number in sorted(numbers, key=lambda n: (given[n].serial, n)):
        nbytes = given[number].array_shape.nbytes
        if bucket and size + nbytes > BUCKET_BYTES:
            yield bucket
            bucket, size = [], 0
        bucket.append(number)
        size += nbytes
    if bucket:
        yield bucket


def psum(x: Any, axis_name: Names, *, axis_index_groups: IndexGroups = None) -> Any:
    """The sum of a tree of arrays over all devices along the axes.

    A Python number is multiplied by how many there are: ``psum(1, axis)`` is the axis's size.

    Raises `ArgumentError` for an axis name that nothing binds.

    >>> tj.vmap(lambda x: tj.lax.psum(x, "i"), axis_name="i")(np.array([1.0, 2.0]))
    array([3., 3.])
    """
    return _reduced("psum", "add", x, axis_name, axis_index_groups)


def pmean(x: Any, axis_name: Names, *, axis_index_groups: IndexGroups = None) -> Any:
    """The mean of a tree of arrays over all devices along the axes.

    Raises `ArgumentError` for an axis name that nothing binds.

    >>> tj.vmap(lambda x: tj.lax.pmean(x, "i"), axis_name="i")(np.array([1.0, 2.0]))
    array([1.5, 1.5])
    """
    size = math.prod(f.size for f in _frames("pmean", axis_name, axis_index_groups))

    def mean(total: Any) -> Any:
        if isinstance(total, _NUMBERS):
            return total / size
        (given,) = operands(total)
        return lift(div(given, full_like(given, size)), False)

    return tree.map(mean, _reduced("pmean", "add", x, axis_name, axis_index_groups))


def pmax(x: Any, axis_name: Names, *, axis_index_groups: IndexGroups = None) -> Any:
    """The maximum of a tree of arrays over all devices along the axes.

    Raises `ArgumentError` for an axis name that nothing binds.

    >>> tj.vmap(lambda x: tj.lax.pmax(x, "i"), axis_name="i")(np.array([1.0, 2.0]))
    array([2., 2.])
    """
    return _reduced("pmax", "max", x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Names, *, axis_index_groups: IndexGroups = None) -> Any:
    """The minimum of a tree of arrays over all devices along the axes.

    Raises `ArgumentError` for an axis name that nothing binds.

    >>> tj.vmap(lambda x: tj.lax.pmin(x, "i"), axis_name="i")(np.array([1.0, 2.0]))
    array([1., 1.])
    """
    return _reduced("pmin", "min", x, axis_name, axis_index_groups)


def _axis(function: str, name: str, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ShapeError(f"{function}: {name} {axis} is out of range for an array of rank {rank}")
    return axis % rank


def all_gather(
    x: Any,
    axis_name: Names,
    *,
    axis_index_groups: IndexGroups = None,
    axis: int = 0,
    tiled: bool = False,
) -> Any:
    """The arrays of all devices, stacked along ``axis``, or joined along it where ``tiled``.

    Raises `ArgumentError` for an axis name that nothing binds.

    >>> tj.pmap(
    ...     lambda x: tj.lax.all_gather(x, "i"), axis_name="i", devices=tj.devices("cpu", 2)
    ... )(np.arange(2.0))
    array([[0., 1.],
           [0., 1.]])
    """
    _in_trace("all_gather")
    frame = _frame("all_gather", axis_name, axis_index_groups)

    def one(leaf: Any) -> Any:
        given = frame.own(leaf)
        rank = len(given.array_shape.dimensions)
        along = _axis("all_gather", "axis", axis, rank if tiled else rank + 1)
        if not tiled:
            sizes = given.array_shape.dimensions
            given = reshape(given, (*sizes[:along], 1, *sizes[along:]))
        return lift(all_gather_op(given, along, frame.size, **frame.attributes()), False)

    return tree.map(one, x)


def psum_scatter(
    x: Any,
    axis_name: Names,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: IndexGroups = None,
    tiled: bool = False,
) -> Any:
    """One part of the sum for each device along the axes.

    The dimension ``scatter_dimension`` is as long as there are devices, and goes, or where
    ``tiled`` is divided by their number.

    Raises `ArgumentError` for an axis name that nothing binds.

    >>> tj.vmap(lambda x: tj.lax.psum_scatter(x, "i"), axis_name="i")(np.ones((2, 2)))
    array([2., 2.])
    """
    _in_trace("psum_scatter")
    frame = _frame("psum_scatter", axis_name, axis_index_groups)

    def one(leaf: Any) -> Any:
        given = frame.own(leaf)
        sizes = given.array_shape.dimensions
        along = _axis("psum_scatter", "scatter_dimension", scatter_dimension, len(sizes))
        if not tiled and sizes[along] != frame.size:
            raise ShapeError(
                f"psum_scatter: dimension {along} of {given.array_shape} must be the size of the "
                f"axis, {frame.size}; tiled=True divides it"
            )
        computation = scalar_computation("add", given.array_shape.element_type)
        made = reduce_scatter(given, computation, along, frame.size, **frame.attributes())
        if not tiled:
            made = reshape(made, (*sizes[:along], *sizes[along + 1 :]))
        return lift(made, False)

    return tree.map(one, x)


def all_to_all(
    x: Any,
    axis_name: Names,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: IndexGroups = None,
    tiled: bool = False,
) -> Any:
    """Part i along ``split_axis`` goes to device i; what arrives is put together in order.

    Where ``tiled``, parts are joined along ``concat_axis``. Otherwise ``split_axis`` is as long as
    there are devices and goes, and ``concat_axis`` is where the devices stand in the result.

    Raises `ArgumentError` for an axis name that nothing binds.

    >>> tj.vmap(lambda x: tj.lax.all_to_all(x, "i", 0, 0), axis_name="i")(
    ...     np.arange(4).reshape(2, 2)
    ... )
    array([[0, 2],
           [1, 3]])
    """
    _in_trace("all_to_all")
    frame = _frame("all_to_all", axis_name, axis_index_groups)

    def one(leaf: Any) -> Any:
        given = frame.own(leaf)
        sizes = given.array_shape.dimensions
        split = _axis("all_to_all", "split_axis", split_axis, len(sizes))
        concat = _axis("all_to_all", "concat_axis", concat_axis, len(sizes))
        if tiled:
            made = all_to_all_op(given, split, concat, frame.size, **frame.one_sided())
            return lift(made, False)
        if sizes[split] != frame.size:
            raise ShapeError(
                f"all_to_all: dimension {split} of {given.array_shape} must be the size of the "
                f"axis, {frame.size}; tiled=True divides it"
            )
        exchanged = all_to_all_op(given, split, split, frame.size, **frame.one_sided())
        return lift(moved(exchanged, split, concat), False)

    return tree.map(one, x)


def ppermute(x: Any, axis_name: Names, perm: Sequence[tuple[int, int]]) -> Any:
    """What the device ``source`` has, for each pair (source, target); zeros for no target.

    Raises `ArgumentError` for an axis name that nothing binds.

    >>> tj.vmap(lambda x: tj.lax.ppermute(x, "i", [(0, 1), (1, 0)]), axis_name="i")(
    ...     np.array([1.0, 2.0])
    ... )
    array([2., 1.])
    """
    _in_trace("ppermute")
    frame = _frame("ppermute", axis_name)
    pairs = [(int(source), int(target)) for source, target in perm]
    for pair in pairs:
        if not all(0 <= place < frame.size for place in pair):
            raise ArgumentError(f"ppermute: {pair} is out of range for an axis of {frame.size}")
    named = [(group[s], group[t]) for group in frame.groups for s, t in pairs]

    def one(leaf: Any) -> Any:
        channel = frame.one_sided()["channel_id"]
        return lift(collective_permute(frame.own(leaf), named, channel), False)

    return tree.map(one, x)


def pbroadcast(x: Any, axis_name: Names, source: int) -> Any:
    """What the device at place ``source`` of the axes has, on all of them.

    Raises `ArgumentError` for an axis name that nothing binds.

    >>> tj.vmap(lambda x: tj.lax.pbroadcast(x, "i", 1), axis_name="i")(np.array([1.0, 2.0]))
    array([2., 2.])
    """
    _in_trace("pbroadcast")
    frame = _frame("pbroadcast", axis_name)
    if not 0 <= source < frame.size:
        raise ArgumentError(f"pbroadcast: source {source} is out of range for {frame.size}")

    def one(leaf: Any) -> Any:
        given = frame.own(leaf)
        is_source = eq(frame.index(), constant(source, ElementType.S32))
        everywhere = broadcast_in_dim(is_source, given.array_shape.dimensions, ())
        alone = select(everywhere, given, full_like(given, 0))
        return psum(lift(alone, False), axis_name)

    return tree.map(one, x)


def axis_index(axis_name: Names) -> Any:
    """This device's place along the axes, an int32; of several, the last one runs fastest.

    Raises `ArgumentError` for arguments that it does not take.

    >>> tj.vmap(lambda x: x + tj.lax.axis_index("i"), axis_name="i")(np.zeros(3))
    array([0., 1., 2.])
    """
    _in_trace("axis_index")
    return lift(_frame("axis_index", axis_name).index())


def axis_size(axis_name: Names) -> int:
    """How many devices there are along the axes.

    Raises `ArgumentError` for arguments that it does not take.

    >>> tj.vmap(lambda x: x * tj.lax.axis_size("i"), axis_name="i")(np.ones(3))
    array([3., 3., 3.])
    """
    return math.prod(frame.size for frame in _frames("axis_size", axis_name))
