"""Devices in a grid with named axes, and how the dimensions of an array are spread over it.

mesh = make_mesh((2, 2), ("rows", "columns"), devices("cpu", 4))
NamedSharding(mesh, P("rows", None)).indices((8, 3))      which elements each device has
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracejit.errors import ArgumentError, ShapeError
from tracejit.loading import load
from tracejit.runtime.devices.world import rank_communicator
from tracejit.trace.named_axes import MeshAxes
from tracejit.tracebacks import names_misuse

Index = tuple[slice, ...]


@dataclass(frozen=True)
class Device:
    """A device: a rank of MPI (``process_index``), or one of the threads of this process."""

    id: int
    process_index: int = 0
    platform: str = "cpu"

    def __str__(self) -> str:
        return f"{self.platform}:{self.id}"


@names_misuse
def devices(platform: str | None = None, count: int | None = None) -> list[Any]:
    """The devices that programs run on.

    "cpu": after `tracejit.distributed.initialize` the ranks of MPI, else ``count`` threads of this
    process, by default one. "cuda": the CUDA devices of this machine. Without a platform the ranks,
    else the CUDA devices. Raises `ArgumentError` for another platform, or for another number than
    MPI has ranks.

    >>> len(tj.devices("cpu", 4))
    4
    """
    communicator = rank_communicator()
    if platform == "cuda" or (platform is None and communicator is None):
        found: list[Any] = load("tracejit.cuda").devices()
        return found
    if platform not in ("cpu", None):
        raise ArgumentError(f"devices: the platform is 'cpu' or 'cuda', not {platform!r}")
    if communicator is None:
        return [Device(number) for number in range(1 if count is None else count)]
    if count is not None and count != communicator.count:
        raise ArgumentError(
            f"devices: {count} are requested, and MPI has {communicator.count} ranks; start "
            f"with mpiexec -n {count}"
        )
    return [Device(number, number) for number in range(communicator.count)]


class Mesh:
    """Devices as an array, whose dimensions are named by ``axis_names``."""

    def __init__(self, devices: Any, axis_names: str | Sequence[str]) -> None:
        grid = np.array(devices, dtype=object)
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if grid.ndim != len(names) or len(set(names)) != len(names):
            raise ArgumentError(
                f"Mesh: {len(names)} axis_names {names} for an array of devices of rank {grid.ndim}"
            )
        numbers = [getattr(device, "id", None) for device in grid.flat]
        if sorted(map(str, numbers)) != sorted(map(str, range(grid.size))):
            raise ArgumentError(
                f"Mesh: its devices must be all those of the program, numbered from 0, once each; "
                f"they are {numbers}"
            )
        self.devices = grid
        self.axis_names = names
        self._numbers = np.array(numbers).reshape(grid.shape)

    @property
    def shape(self) -> Mapping[str, int]:
        """The size of each axis."""
        return dict(zip(self.axis_names, self.devices.shape, strict=True))

    @property
    def size(self) -> int:
        """How many devices there are."""
        return int(self.devices.size)

    @property
    def axes(self) -> MeshAxes:
        """What collective functions know of the mesh."""
        return MeshAxes(self.axis_names, self._numbers)

    def coordinates(self, number: int) -> dict[str, int]:
        """Where a device stands along each axis."""
        (place,) = np.argwhere(self._numbers == number)
        return dict(zip(self.axis_names, place.tolist(), strict=True))

    def local_devices(self) -> list[Device]:
        """Those of this process."""
        communicator = rank_communicator()
        if communicator is None:
            return sorted(self.devices.flat, key=lambda device: int(device.id))
        return [device for device in self.devices.flat if device.id == communicator.number]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mesh) or self.axis_names != other.axis_names:
            return False
        return np.array_equal(self._numbers, other._numbers)

    def __hash__(self) -> int:
        return hash((self.axis_names, self._numbers.tobytes(), self._numbers.shape))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name!r}: {size}" for name, size in self.shape.items())
        return f"Mesh({{{sizes}}})"


def _cpus(count: int) -> list[Device]:
    """The ranks of MPI, however many; else as many threads as asked for."""
    return devices("cpu", count if rank_communicator() is None else None)


@names_misuse
def make_mesh(
    axis_shapes: Sequence[int], axis_names: Sequence[str], devices: Sequence[Device] | None = None
) -> Mesh:
    """A mesh of these sizes; without ``devices`` all ranks of MPI, or as many threads.

    Raises `ArgumentError` where there are more or fewer devices than the sizes say.

    >>> tj.make_mesh((2,), ("data",), devices=tj.devices("cpu", 2))
    Mesh({'data': 2})
    """
    count = math.prod(axis_shapes)
    given = _cpus(count) if devices is None else list(devices)
    if len(given) != count:
        raise ArgumentError(
            f"make_mesh: {tuple(axis_shapes)} takes {count} devices, and there are {len(given)}; "
            f"start with mpiexec -n {count}, or pass devices('cpu', {count})"
        )
    return Mesh(np.array(given, dtype=object).reshape(tuple(axis_shapes)), axis_names)


class PartitionSpec(tuple[Any, ...]):
    """For each dimension of an array the axis that it is spread over: a name, several, or None.

    Dimensions that are not mentioned are whole on every device.
    """

    def __new__(cls, *entries: str | Sequence[str] | None) -> PartitionSpec:
        kept = [tuple(e) if isinstance(e, list | tuple) else e for e in entries]
        return super().__new__(cls, kept)

    def __repr__(self) -> str:
        return f"P({', '.join(map(repr, self))})"

    def __reduce__(self) -> tuple[object, ...]:
        return PartitionSpec, tuple(self)

    def names(self) -> list[tuple[str, ...]]:
        """The axes of each dimension that is mentioned."""
        return [() if e is None else e if isinstance(e, tuple) else (e,) for e in self]


P = PartitionSpec


@dataclass(frozen=True)
class NamedSharding:
    """How an array is spread over a mesh."""

    mesh: Mesh
    spec: PartitionSpec

    def __post_init__(self) -> None:
        names = [name for entry in self.spec.names() for name in entry]
        unknown = [name for name in names if name not in self.mesh.shape]
        if unknown:
            raise ArgumentError(f"{self.spec}: {unknown[0]!r} is no axis of {self.mesh}")
        if len(set(names)) != len(names):
            raise ArgumentError(f"{self.spec}: names an axis more than once")

    def counts(self, rank: int) -> list[int]:
        """Into how many parts each dimension is split."""
        entries = self.spec.names()
        if len(entries) > rank:
            raise ShapeError(f"{self.spec}: has {len(entries)} entries for an array of rank {rank}")
        entries += [()] * (rank - len(entries))
        return [math.prod(self.mesh.shape[name] for name in entry) for entry in entries]

    def shard_shape(self, shape: Sequence[int], what: str = "sharding") -> tuple[int, ...]:
        """The sizes on one device. Raises `ShapeError` for a dimension that does not divide."""
        counts = self.counts(len(shape))
        for dimension, (size, count) in enumerate(zip(shape, counts, strict=True)):
            if size % count:
                raise ShapeError(
                    f"{what}: dimension {dimension} of {list(shape)} must be divisible by "
                    f"{count}, the devices along {self.spec[dimension]!r}"
                )
        return tuple(size // count for size, count in zip(shape, counts, strict=True))

    def global_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The sizes of the whole, of those on one device."""
        return tuple(s * c for s, c in zip(shape, self.counts(len(shape)), strict=True))

    def index(self, number: int, shape: Sequence[int]) -> Index:
        """Which elements of an array a device has."""
        place = self.mesh.coordinates(number)
        part = self.shard_shape(shape)
        entries = self.spec.names() + [()] * (len(shape) - len(self.spec))
        found = []
        for entry, size in zip(entries, part, strict=True):
            at = 0
            for name in entry:
                at = at * self.mesh.shape[name] + place[name]
            found.append(slice(at * size, (at + 1) * size))
        return tuple(found)

    def indices(self, shape: Sequence[int]) -> dict[Device, Index]:
        """Which elements of an array each device has."""
        return {device: self.index(device.id, shape) for device in self.mesh.devices.flat}

    @property
    def unmentioned(self) -> list[str]:
        """The axes along which all devices have the same."""
        named = set(itertools.chain.from_iterable(self.spec.names()))
        return [name for name in self.mesh.axis_names if name not in named]
