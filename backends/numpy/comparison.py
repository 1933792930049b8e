"""Comparisons."""

from __future__ import annotations

import numpy as np

from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.backends.numpy.precision import bits_of, widened
from tracejit.graph import Instruction
from tracejit.ops.comparison import COMPARE
from tracejit.shapes import element_type_of

_FUNCTIONS: dict[str, np.ufunc] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
}


def total_order_key(operand: np.ndarray) -> Value:
    """Signed integers in the order -NaN < -inf < … < -0 < +0 < … < +inf < +NaN.

    The bits of positive numbers ascend already; those of negative ones, sign aside, descend.
    """
    element_type = element_type_of(operand.dtype)
    # In f32, where the sign is not the highest bit of a byte.
    is_wide = element_type.bits == 8 and element_type.float_format.has_negative_zero
    bits = bits_of(widened(operand) if element_type.is_small_float and not is_wide else operand)
    signed = bits.view(f"i{bits.dtype.itemsize}")
    return np.where(signed < 0, signed ^ np.iinfo(signed.dtype).max, signed)


@interpret.attach(COMPARE)
def compare(instruction: Instruction, lhs: np.ndarray, rhs: np.ndarray) -> Value:
    function = _FUNCTIONS[instruction.attributes["direction"]]
    key = total_order_key if instruction.attributes["type"] == "TOTALORDER" else widened
    return function(key(lhs), key(rhs))
