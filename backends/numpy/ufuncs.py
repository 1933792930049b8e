"""The NumPy ufuncs that do what the usual scalar computations do."""

from __future__ import annotations

import numpy as np

from tracejit.graph import Computation
from tracejit.ops.computations import binary_op
from tracejit.ops.elementwise import ADD, AND, MAX, MIN, MUL, OR, XOR

_UFUNCS = {
    ADD: np.add,
    AND: np.bitwise_and,
    MAX: np.maximum,
    MIN: np.minimum,
    MUL: np.multiply,
    OR: np.bitwise_or,
    XOR: np.bitwise_xor,
}


def reducing_ufunc(computation: Computation) -> np.ufunc | None:
    """The ufunc that does what a computation of two scalars does, where there is one.

    Complex extrema have none: NumPy orders complex numbers, XLA does not.
    """
    op = binary_op(computation)
    if op in (MAX, MIN) and computation.root.array_shape.element_type.is_complex:
        return None
    return _UFUNCS.get(op) if op is not None else None
