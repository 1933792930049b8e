"""Sparse Jacobians: which elements can differ from zero is read off the graph.

sparse_jacobian(f, 0)(x)      a SciPy csr_array [size of f(x), size of x]

Columns that share no row are found at once, along the sum of their directions, so a banded Jacobian
of any size takes as many products as it has diagonals.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from tracejit.errors import ArgumentError, UnsupportedError
from tracejit.trace.tracer import Tracer
from tracejit.transforms.forward import linearize
from tracejit.transforms.gradient import positions_of
from tracejit.transforms.jit.signature import Parameters, title_of
from tracejit.transforms.sparsity import pattern_of
from tracejit.transforms.vmap import vmap

Function = Callable[..., Any]


def sparse_jacobian(function: Function, argnum: int) -> Function:
    """The Jacobian as a csr_array, of a function of one real array that returns one real array.

    Rows are the elements of the result, columns those of the argument. Raises `ArgumentError` for
    trees, `UnsupportedError` inside `jit` and other transformations.
    """
    parameters = Parameters(function, title_of(function))

    @functools.wraps(function)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        (position,) = positions_of((argnum,), args, parameters)
        if any(isinstance(argument, Tracer) for argument in args):
            raise UnsupportedError("jacobian: sparse=True makes SciPy arrays, outside jit only")
        x = np.asarray(args[position])
        if x.dtype.kind != "f":
            raise ArgumentError(
                f"jacobian: sparse=True needs one array of real numbers as argument "
                f"{parameters.name_of(position)} of {parameters.title}, not {x.dtype}"
            )

        def of_one(one: Any) -> Any:
            return function(*args[:position], one, *args[position + 1 :], **kwargs)

        of_one.__name__ = parameters.title
        found = pattern_of(of_one, x)
        return _compressed(of_one, x, found)

    return jacobian


def colours_of(pattern: Any) -> np.ndarray:
    """A colour for each column, so that columns of one colour share no row; most filled first."""
    by_column = sp.csc_array(pattern)
    rows = sp.csr_array(pattern)
    colours = np.full(pattern.shape[1], -1)
    counts = np.diff(by_column.indptr)
    for column in np.argsort(-counts, kind="stable"):
        own = by_column.indices[by_column.indptr[column] : by_column.indptr[column + 1]]
        beside = [rows.indices[rows.indptr[r] : rows.indptr[r + 1]] for r in own]
        taken = set(colours[np.concatenate(beside)].tolist()) if beside else set()
        colour = 0
        while colour in taken:
            colour += 1
        colours[column] = colour
    return colours


def _compressed(function: Function, x: np.ndarray, pattern: Any) -> Any:
    """The Jacobian's elements at the places of the pattern, one product for each colour."""
    pattern = sp.coo_array(pattern)
    colours = colours_of(pattern)
    value, push = linearize(function, x)
    kind = np.asarray(value).dtype
    if not pattern.nnz:
        return sp.csr_array(pattern.shape, dtype=kind)
    seeds = (np.arange(colours.max() + 1)[:, None] == colours).astype(x.dtype)
    products = np.asarray(vmap(push)(seeds.reshape(-1, *x.shape)))
    row, column = pattern.coords
    data = products.reshape(len(seeds), -1)[colours[column], row]
    return sp.csr_array((data, (row, column)), shape=pattern.shape, dtype=kind)
