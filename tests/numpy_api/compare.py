"""Runs one function by NumPy, recorded at once, and compiled; all three must agree.

check(lambda np, x: np.sum(x, axis=0), x)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy
import numpy as np

import tracejit as tj
from tracejit import tree

Function = Callable[..., Any]

# A few units in the last place of the results' own precision.
TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "complex64": 2e-5}


def by_numpy(function: Function, *args: Any, **kwargs: Any) -> Any:
    """The reference: NumPy itself, silent about NaN and overflow."""
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(numpy, *args, **kwargs)


def at_once(function: Function, *args: Any) -> Any:
    """Outside every trace."""
    return function(tj.numpy, *args)


def compiled(function: Function, *args: Any) -> Any:
    """With every argument unknown while tracing."""
    return tj.jit(lambda *traced: function(tj.numpy, *traced))(*args)


def through_protocols(function: Function, *args: Any) -> Any:
    """NumPy's own functions called on traced values."""
    return tj.jit(lambda *traced: function(numpy, *traced), record_numpy=False)(*args)


WAYS = {"at once": at_once, "compiled": compiled, "through protocols": through_protocols}


def check(function: Function, *args: Any, rtol: float | None = None) -> None:
    """Compares values, dtypes, shapes and kinds (array or scalar) with NumPy's."""
    expected = by_numpy(function, *args)
    for way, run in WAYS.items():
        same(run(function, *args), expected, way, rtol)


def check_writes(function: Function, *args: Any) -> None:
    """The same for functions that make arrays and write to them, which need the namespace."""
    expected = by_numpy(function, *args)
    same(compiled(function, *args), expected, "compiled", None)


def same(got: Any, expected: Any, way: str = "", rtol: float | None = None) -> None:
    """Fails unless two trees have the same leaves in the same order."""
    leaves, wanted = tree.leaves(got), tree.leaves(expected)
    assert len(leaves) == len(wanted), f"{way}: {len(leaves)} results for {len(wanted)}"
    for one, other in zip(leaves, wanted, strict=True):
        same_leaf(one, other, way, rtol)


def same_leaf(one: Any, other: Any, way: str, rtol: float | None) -> None:
    actual, reference = np.asarray(one), np.asarray(other)
    assert actual.shape == reference.shape, f"{way}: shape {actual.shape} for {reference.shape}"
    assert actual.dtype == reference.dtype, f"{way}: {actual.dtype} for {reference.dtype}"
    assert isinstance(one, np.ndarray) == isinstance(other, np.ndarray), (
        f"{way}: {type(one).__name__} for {type(other).__name__}"
    )
    if reference.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, reference, err_msg=way)
        return
    tolerance = TOLERANCES.get(str(reference.dtype), 1e-11) if rtol is None else rtol
    wide = np.complex128 if reference.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(
        actual.astype(wide), reference.astype(wide), tolerance, tolerance, err_msg=way
    )
