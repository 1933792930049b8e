"""Element rule of Compare: TIR for one comparison of register values."""

from __future__ import annotations

from collections.abc import Callable

from tracejit.backends.tvm.analysis.element_rules import Value, pointwise
from tracejit.backends.tvm.codegen.rules.elementwise import element_type_of, not_equal
from tracejit.backends.tvm.ir.dtypes import register_dtype
from tracejit.backends.tvm.ir.narrow_types import with_own_nan
from tracejit.backends.tvm.ir.tir import Expr, const, tirx
from tracejit.backends.tvm.ir.total_order import total_order_key
from tracejit.graph import Instruction
from tracejit.ops.comparison import COMPARE
from tracejit.shapes import ElementType

_COMPARISONS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "EQ": lambda x, y: x == y,
    "NE": not_equal,
    "GE": lambda x, y: x >= y,
    "GT": lambda x, y: x > y,
    "LE": lambda x, y: x <= y,
    "LT": lambda x, y: x < y,
}


@pointwise.attach(COMPARE)
def compare(instruction: Instruction, lhs: Value, rhs: Value) -> Value:
    element_type = element_type_of(instruction)
    direction = instruction.attributes["direction"]
    if element_type.is_complex:
        equal = tirx.And(lhs.re == rhs.re, lhs.im == rhs.im)
        if direction == "EQ":
            return equal
        return tirx.Or(not_equal(lhs.re, rhs.re), not_equal(lhs.im, rhs.im))
    if element_type is ElementType.PRED:
        lhs, rhs = (tirx.Select(v, const(1, "uint8"), const(0, "uint8")) for v in (lhs, rhs))
    if instruction.attributes["type"] == "TOTALORDER":
        if element_type is ElementType.F16:
            lhs, rhs = with_own_nan(lhs), with_own_nan(rhs)
        lhs, rhs = (total_order_key(v, register_dtype(element_type)) for v in (lhs, rhs))
    return _COMPARISONS[direction](lhs, rhs)
