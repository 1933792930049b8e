"""XLA's call of a product with a sparse matrix, which JAX makes of `BCSR`, by SciPy.

find_target("cpu_csr_sparse_dense_ffi").function(values, begins, columns, b)        A b

Row i of A has the ``values`` of the ``columns`` from ``begins[i]`` to ``begins[i + 1]``; b is a
vector or a matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from tracejit.numpy.segments import segment_sum
from tracejit.targets import Target, define_target


def _product(
    values: np.ndarray, begins: np.ndarray, columns: np.ndarray, b: np.ndarray, **_: str
) -> Any:
    rows = len(begins) - 1
    # Entries beyond the last row's end belong to no row.
    stored = slice(0, int(begins[-1]))
    matrix = csr_array((values[stored], columns[stored], begins), shape=(rows, len(b)))
    return np.asarray(matrix @ b, np.result_type(values, b))


def _gradient(values: Any, begins: Any, columns: Any, b: Any, gradient: Any) -> Any:
    """A's element at (i, j) has the gradient g_i b_j, and b has A^T g."""
    numbers = np.arange(values.shape[0])
    rows = np.searchsorted(begins, numbers, side="right") - 1
    is_stored = numbers < begins[-1]
    rows = np.where(is_stored, rows, 0)
    of_rows = np.take(gradient, rows, axis=0)
    products = of_rows * np.take(b, columns, axis=0)
    of_values = products.sum(1) if products.ndim == 2 else products
    stored = np.where(is_stored, values, 0)
    weighted = of_rows * (stored[:, None] if of_rows.ndim == 2 else stored)
    of_b = segment_sum(weighted, columns, num_segments=b.shape[0])
    return np.where(is_stored, of_values, 0), None, None, of_b


define_target(Target("cpu_csr_sparse_dense_ffi", _product, _gradient))
