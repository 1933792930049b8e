"""The names that collective functions of `tracejit.lax` know: axes of meshes and of `vmap`.

    with MeshAxes(("rows", "columns"), numbers).bound(): …      the numbers of devices
    with MappedAxis("batch", 8, index).bound(): …               under vmap(axis_name="batch")

An axis of `vmap` has a channel of its own, by which `batching` knows the ops over it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from tracejit.errors import ArgumentError
from tracejit.graph import Instruction
from tracejit.ops.groups import Groups
from tracejit.trace.context import run_on

_BACK = 1 << 30
"""The bit by which the way back of a derivative has other channels (`autodiff.rules.replicas`)."""
_MAPPED = 1 << 29


class _Frames(threading.local):
    def __init__(self) -> None:
        self.stack: list[MeshAxes | MappedAxis] = []
        self.batched: list[int] = []


_frames = _Frames()


@dataclass(frozen=True, eq=False)
class MeshAxes:
    """Axes of a mesh; ``numbers`` has the number of the device at each place of it."""

    names: tuple[str, ...]
    numbers: np.ndarray

    def sizes(self) -> dict[str, int]:
        return dict(zip(self.names, self.numbers.shape, strict=True))

    def groups(self, names: Sequence[str]) -> Groups:
        """The devices that differ along ``names`` alone, in the order of the names."""
        along = [self.names.index(name) for name in names]
        others = [d for d in range(self.numbers.ndim) if d not in along]
        size = int(np.prod([self.numbers.shape[d] for d in along], dtype=np.int64))
        rows = self.numbers.transpose([*others, *along]).reshape(-1, size)
        return tuple(tuple(row) for row in rows.tolist())

    @contextmanager
    def bound(self) -> Iterator[None]:
        """Inside, functions know the axes, and what is recorded runs on all devices."""
        run_on(self.numbers.size)
        with _pushed(self):
            yield


@dataclass(frozen=True, eq=False)
class MappedAxis:
    """The axis of a `vmap`; ``index`` is the number of the element, batched itself."""

    name: str
    size: int
    index: Instruction
    channel: int = field(default_factory=lambda: _MAPPED + len(_frames.stack))

    def sizes(self) -> dict[str, int]:
        return {self.name: self.size}

    @contextmanager
    def bound(self) -> Iterator[None]:
        """Inside, functions know the axis."""
        with _pushed(self):
            yield


@contextmanager
def _pushed(frame: MeshAxes | MappedAxis) -> Iterator[None]:
    known = {name for each in _frames.stack for name in each.sizes()}
    for name in frame.sizes():
        if name in known:
            raise ArgumentError(f"axis_name: {name!r} is the name of an axis already")
    _frames.stack.append(frame)
    try:
        yield
    finally:
        assert _frames.stack.pop() is frame


def axis_of(function: str, name: object) -> MeshAxes | MappedAxis:
    """What has the axis of this name. Raises `ArgumentError` where nothing does."""
    for frame in reversed(_frames.stack):
        if name in frame.sizes():
            return frame
    names = [repr(each) for frame in _frames.stack for each in frame.sizes()]
    known = f"known here are {', '.join(names)}" if names else "none is known here"
    raise ArgumentError(
        f"{function}: {name!r} is no axis of a shard_map's mesh or of vmap(axis_name=); {known}"
    )


@contextmanager
def over_batch(channel: int) -> Iterator[None]:
    """Inside, a graph is batched over the axis with this channel."""
    _frames.batched.append(channel)
    try:
        yield
    finally:
        _frames.batched.pop()


def is_over_batch(channel: int | None) -> bool:
    """Whether an op with this channel works along the batch that is being made."""
    if channel is None or not _frames.batched:
        return False
    return channel & ~_BACK == _frames.batched[-1]
