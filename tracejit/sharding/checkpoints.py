"""Trees of sharded arrays in folders, each process writing its own parts.

    save_checkpoint("run", step, state)                 run/step-00000012, whole or not at all
    state = load_checkpoint("run", like=state)          the latest, on any number of processes

A folder gets its name when all parts are written, so that whoever dies leaves earlier ones whole.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.errors import ArgumentError
from tracejit.runtime.devices.world import rank_communicator
from tracejit.sharding.arrays import ShardedArray
from tracejit.sharding.mesh import Index

_NAME = re.compile(r"step-(\d{8,})")
_MANIFEST = "manifest.json"


def save_checkpoint(folder: str | Path, step: int, state: Any) -> Path:
    """Writes a tree of arrays, and returns its folder; all processes must call it.

    Each process writes the parts of `ShardedArray`s that it has first; the first one writes other
    arrays. Raises `OSError` for what cannot be written, and `ArgumentError` for a step below 0.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = tj.save_checkpoint(folder, 100, {"w": np.ones(2)})
    ...     tj.load_checkpoint(folder, {"w": np.zeros(2)})
    {'w': array([1., 1.])}
    """
    if step < 0:
        raise ArgumentError(f"save_checkpoint: the step must be 0 or more, not {step}")
    root = Path(folder)
    final, unfinished = root / f"step-{step:08d}", root / f".unfinished-{step:08d}"
    communicator = rank_communicator()
    number = 0 if communicator is None else communicator.number
    if number == 0:
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
    _meet()
    leaves, structure = tree.flatten(state)
    described = []
    for place, leaf in enumerate(leaves):
        array = leaf if isinstance(leaf, ShardedArray) else np.asarray(leaf)
        described.append({"dtype": array.dtype.name, "shape": list(array.shape)})
        for index, part in _own_parts(array, number):
            name = ",".join(f"{each.start}-{each.stop}" for each in index)
            _write(unfinished / f"{place}[{name}]", np.ascontiguousarray(part).tobytes())
    _meet()
    if number == 0:
        manifest = {"step": step, "paths": tree.paths(structure), "arrays": described}
        _write(unfinished / _MANIFEST, json.dumps(manifest).encode())
        shutil.rmtree(final, ignore_errors=True)
        os.replace(unfinished, final)
        _flush(root)
    _meet()
    return final


def _own_parts(array: ShardedArray | np.ndarray, number: int) -> Iterator[tuple[Index, np.ndarray]]:
    if isinstance(array, ShardedArray):
        yield from ((s.index, s.data) for s in array.addressable_shards if s.replica_id == 0)
    elif number == 0:
        yield tuple(slice(0, size) for size in array.shape), array


def _meet() -> None:
    communicator = rank_communicator()
    if communicator is not None:
        communicator.barrier()


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _flush(folder: Path) -> None:
    """Makes the names in a folder last, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def steps_of(folder: str | Path) -> list[int]:
    """The steps of the whole checkpoints of a folder, in order."""
    names = (_NAME.fullmatch(path.name) for path in Path(folder).glob("step-*"))
    return sorted(int(name[1]) for name in names if name is not None)


def load_checkpoint(folder: str | Path, like: Any, step: int | None = None) -> Any:
    """The latest checkpoint of a folder, or that of a step, as a tree like ``like``.

    A leaf is spread as the `ShardedArray` in its place is, however it was when it was saved, and is
    a NumPy array otherwise. Raises `FileNotFoundError` where there is none, and `ArgumentError`
    where structure, shapes or dtypes differ.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = tj.save_checkpoint(folder, 100, {"w": np.ones(2)})
    ...     tj.load_checkpoint(folder, {"w": np.zeros(2)})
    {'w': array([1., 1.])}
    """
    steps = steps_of(folder)
    if not steps or (step is not None and step not in steps):
        wanted = "no checkpoint" if step is None else f"no checkpoint of step {step}"
        raise FileNotFoundError(f"load_checkpoint: there is {wanted} in {folder}")
    source = Path(folder) / f"step-{steps[-1] if step is None else step:08d}"
    manifest = json.loads((source / _MANIFEST).read_text(encoding="utf-8"))
    leaves, structure = tree.flatten(like)
    if manifest["paths"] != tree.paths(structure):
        raise ArgumentError(f"load_checkpoint: {source} holds another tree than ``like``")
    files: dict[int, list[tuple[Index, Path]]] = {}
    for path in source.glob("*[[]*]"):
        number, _, box = path.name.rstrip("]").partition("[")
        pairs = [part.split("-") for part in box.split(",") if part]
        files.setdefault(int(number), []).append(
            (tuple(slice(int(a), int(b)) for a, b in pairs), path)
        )
    made = []
    arrays: list[dict[str, Any]] = manifest["arrays"]
    for place, (leaf, saved) in enumerate(zip(leaves, arrays, strict=True)):
        given = leaf if isinstance(leaf, ShardedArray) else np.asarray(leaf)
        if (list(given.shape), given.dtype.name) != (saved["shape"], saved["dtype"]):
            raise ArgumentError(
                f"load_checkpoint: {manifest['paths'][place]} in {source} is "
                f"{saved['dtype']}{saved['shape']}, not {given.dtype}{list(given.shape)}"
            )
        made.append(_read(given, files.get(place, [])))
    return tree.unflatten(structure, made)


def _read(like: ShardedArray | np.ndarray, files: list[tuple[Index, Path]]) -> Any:
    if not isinstance(like, ShardedArray):
        whole = tuple(slice(0, size) for size in like.shape)
        return _piece(whole, like.dtype, files)
    parts = {s.device.id: _piece(s.index, like.dtype, files) for s in like.addressable_shards}
    return ShardedArray(like.shape, like.sharding, parts)


def _piece(wanted: Index, dtype: np.dtype, files: list[tuple[Index, Path]]) -> np.ndarray:
    """The elements of a box, from the files whose boxes overlap it."""
    made = np.empty([each.stop - each.start for each in wanted], dtype)
    left = made.size
    for box, path in files:
        pairs = list(zip(wanted, box, strict=True))
        common = [(max(w.start, b.start), min(w.stop, b.stop)) for w, b in pairs]
        if any(start >= stop for start, stop in common):
            continue
        stored = np.memmap(path, np.uint8, "r").view(dtype)
        stored = stored.reshape([b.stop - b.start for b in box])
        here = _within(common, wanted)
        made[here] = stored[_within(common, box)]
        left -= made[here].size
    if left:
        raise ArgumentError(f"load_checkpoint: {left} elements of {wanted} are in no file")
    return made


def _within(common: list[tuple[int, int]], box: Index) -> Index:
    """A part of a box, counted from where the box begins."""
    pairs = zip(common, box, strict=True)
    return tuple(slice(start - b.start, stop - b.start) for (start, stop), b in pairs)
