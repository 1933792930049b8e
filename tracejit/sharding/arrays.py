"""Sharded arrays: each device holds one part.

whole = make_array_from_process_local_data(NamedSharding(mesh, P("batch")), mine)
whole.addressable_shards[0].data          this process's part
whole.gather()                            the whole, on every process
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracejit.errors import ArgumentError, ShapeError, UnsupportedError
from tracejit.runtime.devices.world import rank_communicator
from tracejit.sharding.mesh import Device, Index, NamedSharding


@dataclass(frozen=True)
class Shard:
    """One device's part of an array: the elements at ``index`` of the whole."""

    device: Device
    index: Index
    data: np.ndarray
    replica_id: int


class ShardedArray:
    """An array spread over a mesh; this process has the parts of its own devices.

    What asks for elements (`np.asarray`, indexing, printing them) needs all parts here: that is so
    of threads, and of an array that every process has whole. `gather` brings them together.
    """

    def __init__(
        self, shape: Sequence[int], sharding: NamedSharding, parts: Mapping[int, np.ndarray]
    ) -> None:
        self.shape = tuple(shape)
        self.sharding = sharding
        self._parts = dict(parts)
        first = next(iter(self._parts.values()))
        self.dtype = first.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts that this process has, in the order of the devices."""
        seen: dict[tuple[tuple[int, int], ...], int] = {}
        shards = []
        for device in sorted(self.sharding.mesh.devices.flat, key=lambda d: int(d.id)):
            index = self.sharding.index(device.id, self.shape)
            key = tuple((part.start, part.stop) for part in index)
            seen[key] = seen.get(key, -1) + 1
            if device.id in self._parts:
                shards.append(Shard(device, index, self._parts[device.id], seen[key]))
        return shards

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device has all of it."""
        return all(count == 1 for count in self.sharding.counts(self.ndim))

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process has a part of every device."""
        return len(self._parts) == self.sharding.mesh.size

    def part(self, number: int) -> np.ndarray:
        """A device's part."""
        return self._parts[number]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if not (self.is_fully_addressable or self.is_fully_replicated):
            raise UnsupportedError(
                f"ShardedArray: other processes have parts of {self.brief}; gather() brings them "
                "here, and addressable_shards are those of this process"
            )
        whole = np.empty(self.shape, self.dtype)
        for shard in self.addressable_shards:
            whole[shard.index] = shard.data
        return whole if dtype is None else whole.astype(dtype)

    def __getitem__(self, index: Any) -> Any:
        return np.asarray(self)[index]

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError("ShardedArray: an array of rank 0 has no length")
        return self.shape[0]

    @property
    def brief(self) -> str:
        return f"{self.dtype}{list(self.shape)} over {self.sharding.mesh} by {self.sharding.spec}"

    def __repr__(self) -> str:
        shown = [
            f"  {s.device} {_written(s.index)}: {_short(s.data)}" for s in self.addressable_shards
        ]
        return "\n".join([f"ShardedArray {self.brief}", *shown])

    def gather(self) -> np.ndarray:
        """The whole array, on every process; all processes must call this."""
        communicator = rank_communicator()
        if communicator is None or self.is_fully_replicated:
            return np.asarray(self)
        whole = np.empty(self.shape, self.dtype)
        own = communicator.number
        for number, part in enumerate(communicator.gathered(self._parts[own])):
            whole[self.sharding.index(number, self.shape)] = part
        return whole


def _written(index: Index) -> str:
    return "[" + ", ".join(f"{part.start}:{part.stop}" for part in index) + "]"


def _short(array: np.ndarray) -> str:
    return np.array2string(array, threshold=8, edgeitems=2, precision=4).replace("\n", "")


def spread(array: np.ndarray, sharding: NamedSharding, what: str) -> ShardedArray:
    """Divides an array that every process has whole; each device keeps its part."""
    sharding.shard_shape(array.shape, what)
    parts = {
        device.id: np.ascontiguousarray(array[sharding.index(device.id, array.shape)])
        for device in sharding.mesh.local_devices()
    }
    return ShardedArray(array.shape, sharding, parts)


def make_array_from_process_local_data(
    sharding: NamedSharding, local_data: Any, global_shape: Sequence[int] | None = None
) -> ShardedArray:
    """The array whose parts the processes bring, each ``local_data``.

    Under MPI that is the part of this rank; with threads, whose process has all parts, the whole.
    Raises `ShapeError` where ``global_shape`` is another than the parts make.

    >>> mesh = tj.make_mesh((2,), ("data",), devices=tj.devices("cpu", 2))
    >>> sharding = tj.NamedSharding(mesh, tj.P("data"))
    >>> tj.make_array_from_process_local_data(sharding, np.arange(4.0)).shape
    (4,)
    """
    array = np.asarray(local_data)
    if rank_communicator() is None:
        made = spread(array, sharding, "make_array_from_process_local_data")
    else:
        (device,) = sharding.mesh.local_devices()
        whole = sharding.global_shape(array.shape)
        made = ShardedArray(whole, sharding, {device.id: np.ascontiguousarray(array)})
    if global_shape is not None and tuple(global_shape) != made.shape:
        raise ShapeError(
            f"make_array_from_process_local_data: the parts make {list(made.shape)}, not "
            f"{list(global_shape)}"
        )
    return made


def visualize_sharding(array: ShardedArray) -> str:
    """A picture of where the parts of an array of rank 1 or 2 lie; printed, and returned.

    Raises `ShapeError` for other ranks.

    >>> mesh = tj.make_mesh((2,), ("data",), devices=tj.devices("cpu", 2))
    >>> sharding = tj.NamedSharding(mesh, tj.P("data"))
    >>> x = tj.make_array_from_process_local_data(sharding, np.arange(4.0))
    >>> picture = tj.visualize_sharding(x)  # doctest: +SKIP
    """
    if array.ndim not in (1, 2):
        raise ShapeError(f"visualize_sharding: needs an array of rank 1 or 2, not {array.ndim}")
    owners: dict[tuple[int, int], list[str]] = {}
    for device, index in array.sharding.indices(array.shape).items():
        row = index[0].start if array.ndim == 2 else 0
        owners.setdefault((row, index[-1].start), []).append(str(device.id))
    rows = sorted({row for row, _ in owners})
    columns = sorted({column for _, column in owners})
    table = [[",".join(owners[row, column]) for column in columns] for row in rows]
    width = max(len(cell) for line in table for cell in line) + 2
    rule = "+".join(["", *["-" * width] * len(columns), ""])
    lines = [rule]
    for line in table:
        lines += ["|".join(["", *[cell.center(width) for cell in line], ""]), rule]
    picture = "\n".join(lines)
    print(picture)
    return picture
