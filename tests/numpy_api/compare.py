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


def by_numpy(function: Function, *args: Any) -> Any:
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(numpy, *args)


def check(function: Function, *args: Any, rtol: float | None = None, exact_type: bool = True) -> None:
    """Compares values, dtypes, shapes and kinds (array or scalar) with NumPy's."""
    expected = by_numpy(function, *args)
    for how, run in (("at once", at_once), ("compiled", compiled), ("protocols", through_protocols)):
        same(run(function, *args), expected, how, rtol, exact_type)


def at_once(function: Function, *args: Any) -> Any:
    return function(tj.numpy, *args)


def compiled(function: Function, *args: Any) -> Any:
    return tj.jit(lambda *traced: function(tj.numpy, *traced))(*args)


def through_protocols(function: Function, *args: Any) -> Any:
    return tj.jit(lambda *traced: function(numpy, *traced), record_numpy=False)(*args)


def same(got: Any, expected: Any, how: str, rtol: float | None, exact_type: bool) -> None:
    got_leaves, got_structure = tree.flatten(got)
    leaves, structure = tree.flatten(list(expected) if type(expected) is not type(got) and isinstance(expected, tuple | list) and isinstance(got, list) else expected)
    assert len(got_leaves) == len(leaves), f"{how}: {got_structure} for {structure}"
    for one, wanted in zip(got_leaves, leaves, strict=True):
        actual, reference = np.asarray(one), np.asarray(wanted)
        assert actual.shape == reference.shape, f"{how}: shape {actual.shape} for {reference.shape}"
        if not exact_type:
            reference = reference.astype(actual.dtype)
        assert actual.dtype == reference.dtype, f"{how}: {actual.dtype} for {reference.dtype}"
        assert isinstance(one, np.ndarray) == isinstance(wanted, np.ndarray), (
            f"{how}: {type(one).__name__} for {type(wanted).__name__}"
        )
        tolerance = TOLERANCES.get(str(reference.dtype), 1e-11) if rtol is None else rtol
        wide = np.complex128 if reference.dtype.kind == "c" else np.float64
        if reference.dtype.kind in "biu":
            np.testing.assert_array_equal(actual, reference, err_msg=how)
        else:
            np.testing.assert_allclose(
                actual.astype(wide), reference.astype(wide), tolerance, tolerance, err_msg=how
            )
