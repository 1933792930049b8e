"""Random vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError, ShapeError
from tracejit.ops.linalg import cholesky, triangular_solve
from tracejit.random.continuous import finished
from tracejit.random.counting import sizes
from tracejit.random.intervals import DEFAULT, floating_type, standard_normal
from tracejit.random.keys import drawn
from tracejit.trace.convert import broadcast_dimensions, operand
from tracejit.trace.tracer import Tracer, lift


@drawn
def multivariate_normal(
    words: Tracer,
    mean: Any,
    cov: Any,
    shape: Any = None,
    dtype: Any = DEFAULT,
    method: str = "cholesky",
) -> Tracer:
    """Normal vectors with this mean [..., n] and covariance [..., n, n].

    ``shape`` is that of the result without its last dimension. NaN where the covariance is not
    positive definite. Raises `ShapeError` when sizes do not fit, `AttributeValueError` for another
    method than cholesky.

    >>> tj.random.multivariate_normal(tj.random.key(0), np.zeros(2), np.eye(2)).round(4)
    array([-0.2058, -0.7848])
    """
    element_type = floating_type("multivariate_normal", dtype)
    if method != "cholesky":
        raise AttributeValueError(f"multivariate_normal: method must be 'cholesky', not {method!r}")
    centre = lift(operand(mean).to(element_type), False)
    spread = lift(operand(cov).to(element_type), False)
    if centre.ndim < 1 or spread.shape[-2:] != (centre.shape[-1],) * 2:
        raise ShapeError(
            f"multivariate_normal: mean must have shape (..., n) and cov (..., n, n), not "
            f"{centre.shape} and {spread.shape}"
        )
    batch = broadcast_dimensions("multivariate_normal", [centre.shape[:-1], spread.shape[:-2]])
    dimensions = batch if shape is None else sizes(shape)
    if broadcast_dimensions("multivariate_normal", [batch, dimensions]) != dimensions:
        raise ShapeError(
            f"multivariate_normal: shape {dimensions} is smaller than that of the parameters, "
            f"{batch}"
        )
    factor = lift(cholesky(spread.instruction, True), False)
    z = lift(standard_normal(words.instruction, (*dimensions, centre.shape[-1]), element_type))
    return finished(centre + (factor @ z[..., None])[..., 0])


@drawn
def orthogonal(
    words: Tracer, n: int, shape: Any = (), dtype: Any = DEFAULT, m: int | None = None
) -> Tracer:
    """Matrices [..., n, m] with orthonormal columns (rows if n < m), uniform among all such.

    The orthogonal factor of a normal matrix whose triangular one has a positive diagonal.

    Raises `ArgumentError` for what is no array of numbers, `AttributeValueError` for an option
    or a size out of range and `ConcretizationError` for an option that is unknown while
    tracing.

    >>> tj.random.orthogonal(tj.random.key(0), 2).round(4)
    array([[-0.1126, -0.9936],
           [ 0.9936, -0.1126]])
    """
    element_type = floating_type("orthogonal", dtype)
    columns = n if m is None else m
    tall, narrow = max(n, columns), min(n, columns)
    dimensions = (*sizes(shape), tall, narrow)
    q: Any = lift(standard_normal(words.instruction, dimensions, element_type), False)
    # q R**-1 with R'R = q'q; again, because rounding squares the condition of q.
    for _ in range(3):
        factor = cholesky((np.swapaxes(q, -1, -2) @ q).instruction, True)
        solved = triangular_solve(factor, q.instruction, False, True, False, "TRANSPOSE")
        q = lift(solved, False)
    return finished(q if n >= columns else np.swapaxes(q, -1, -2))
