"""Trees of arrays in files: ``.npz`` always, ``.safetensors`` where that package is installed.

The names in a file are the paths of the leaves: ``['layers'][0]['w']``.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from tracejit import loading, tree
from tracejit.errors import ArgumentError, UnsupportedError


def save(path: str | Path, parameters: Any) -> None:
    """Writes a tree of arrays. The ending of ``path``, .npz or .safetensors, says how.

    Raises `UnsupportedError` for another ending, or if safetensors is not installed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tj.optim.save(f"{folder}/weights.npz", {"w": np.ones(2)})
    ...     tj.optim.load(f"{folder}/weights.npz", {"w": np.zeros(2)})
    {'w': array([1., 1.])}
    """
    leaves, structure = tree.flatten(parameters)
    named = {name: np.asarray(leaf) for name, leaf in zip(_names(structure), leaves, strict=True)}
    if Path(path).suffix == ".safetensors":
        contiguous = {name: np.ascontiguousarray(a).reshape(a.shape) for name, a in named.items()}
        _safetensors().save_file(contiguous, path)
        return
    _require_npz(path)
    # As bytes where NumPy's format has no name for the type, such as bfloat16.
    plain = {n: a if a.dtype.isbuiltin == 1 else a.view(f"V{a.itemsize}") for n, a in named.items()}
    with Path(path).open("wb") as file:
        np.savez(file, **plain)  # type: ignore[arg-type]


def load(path: str | Path, like: Any) -> Any:
    """The tree that a file holds, of the structure, shapes and dtypes of ``like``.

    Raises `ArgumentError` where the file and ``like`` differ, `UnsupportedError` as `save` does.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tj.optim.save(f"{folder}/weights.npz", {"w": np.ones(2)})
    ...     tj.optim.load(f"{folder}/weights.npz", {"w": np.zeros(2)})
    {'w': array([1., 1.])}
    """
    if Path(path).suffix == ".safetensors":
        found: dict[str, np.ndarray] = _safetensors().load_file(path)
    else:
        _require_npz(path)
        with np.load(path, allow_pickle=False) as file:
            found = dict(file)
    leaves, structure = tree.flatten(like)
    names = _names(structure)
    if set(names) != set(found):
        missing, extra = sorted(set(names) - set(found)), sorted(set(found) - set(names))
        raise ArgumentError(f"optim.load: {path} lacks {missing} and has besides {extra}")
    made = []
    for name, leaf in zip(names, leaves, strict=True):
        wanted, array = np.asarray(leaf), found[name]
        if array.dtype.kind == "V":
            array = array.view(wanted.dtype)
        if (array.shape, array.dtype) != (wanted.shape, wanted.dtype):
            raise ArgumentError(
                f"optim.load: {name} in {path} is {array.dtype}{list(array.shape)}, not "
                f"{wanted.dtype}{list(wanted.shape)}"
            )
        made.append(array)
    return tree.unflatten(structure, made)


def _names(structure: tree.Structure) -> list[str]:
    # A tree that is one array has the empty path, which is no name.
    return [name or "value" for name in tree.paths(structure)]


def _require_npz(path: str | Path) -> None:
    if Path(path).suffix != ".npz":
        raise UnsupportedError(f"optim: {path} must end in .npz or .safetensors")


def _safetensors() -> Any:
    if importlib.util.find_spec("safetensors") is None:
        raise UnsupportedError("optim: .safetensors needs the package safetensors; use .npz")
    return loading.load("safetensors.numpy")
