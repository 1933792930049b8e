"""Recognises common comparators of Sort, and replaces them by integer keys.

An `Order` maps an element to an unsigned integer, its key: elements sort in the order of their
keys, and elements that the comparator finds equal have equal keys.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from tracejit.backends.tvm.analysis.element_rules import Value
from tracejit.backends.tvm.ir.dtypes import is_narrow, register_dtype
from tracejit.backends.tvm.ir.tir import Expr, const, reinterpret, tirx
from tracejit.backends.tvm.ir.total_order import numeric_order_key, total_order_key
from tracejit.equality import same_graph
from tracejit.graph import Computation, Instruction
from tracejit.ops.comparison import COMPARE, gt, gt_total_order, lt, lt_total_order
from tracejit.ops.constants import IOTA, parameter
from tracejit.ops.reduction import sort_order
from tracejit.shapes import ElementType, Shape

_DESCENDING = {"LT": False, "GT": True}

AS_THEY_ARE = frozenset(
    {
        ElementType.S32,
        ElementType.S64,
        ElementType.U32,
        ElementType.U64,
        ElementType.F32,
        ElementType.F64,
    }
)
"""Types whose elements vector registers and NumPy sort directly."""


@dataclass(frozen=True)
class Order:
    """The operand that is sorted by, and its order; ``total`` orders of floats distinguish zeros
    and NaN.
    """

    operand: int
    element_type: ElementType
    descending: bool
    total: bool

    @property
    def bits(self) -> int:
        """The width of a key."""
        if is_narrow(self.element_type) and self.element_type is not ElementType.F16:
            return 16
        return max(8, 32 if self.element_type is ElementType.F16 else self.element_type.bits)

    def key(self, value: Value) -> Expr:
        """The key of a register value; the value is used several times."""
        dtype = f"uint{self.bits}"
        if self.element_type is ElementType.PRED:
            made = tirx.Select(value, const(1, dtype), const(0, dtype))
        elif self.element_type.is_floating:
            made = self._key_of_float(value)
        else:
            made = reinterpret(dtype, value)
            if self.element_type.is_signed:
                made = made ^ const(1 << (self.bits - 1), dtype)
        return ~made if self.descending else made

    def _key_of_float(self, value: Expr) -> Expr:
        dtype = register_dtype(self.element_type)
        unsigned = dtype.replace("float", "uint")
        bits = int(unsigned[4:])
        key = (total_order_key if self.total else numeric_order_key)(value, dtype)
        made = reinterpret(unsigned, key) ^ const(1 << (bits - 1), unsigned)
        if bits == self.bits:
            return made
        # The lower half of a narrow float in f32 is zero but for the sign.
        return tirx.Cast(f"uint{self.bits}", made >> const(bits - self.bits, unsigned))


def counts_places(sort: Instruction, operand: Instruction) -> bool:
    """Whether an operand of a Sort is an iota that the comparator does not read.

    Operands that the comparator reads come before it.
    """
    order = order_of(sort.attributes["to_apply"])
    (dimension,) = sort.attributes["dimensions"]
    return (
        order is not None
        and operand not in sort.operands[: order.operand + 1]
        and operand.op is IOTA
        and operand.attributes["iota_dimension"] == dimension
        and operand.array_shape.element_type in (ElementType.S32, ElementType.S64)
    )


def order_of(comparator: Computation) -> Order | None:
    """The order of a comparator, if it is one of the common ones.

    These are `sort_order`'s, ascending or descending, a comparison of one operand's integers, and
    total order of its floats.
    """
    parameters, root = comparator.parameters, comparator.root
    types = [p.array_shape.element_type for p in parameters[::2]]
    key = types[0]
    if key.is_floating:
        for descending in (False, True):
            if same_graph(comparator, sort_order(*types, descending=descending)):
                return Order(0, key, descending, total=False)
    if root.op is not COMPARE or root.attributes["direction"] not in _DESCENDING:
        return None
    pair = list(root.operands)
    if not all(operand in parameters for operand in pair):
        return None
    first, second = (parameters.index(operand) for operand in pair)
    number = first // 2
    if second != first ^ 1 or types[number].is_complex:
        return None
    if types[number].is_floating and root.attributes["type"] != "TOTALORDER":
        return None
    descending = _DESCENDING[root.attributes["direction"]] != (second < first)
    return Order(number, types[number], descending, total=True)


@functools.cache
def precedes(element_type: ElementType, descending: bool) -> Computation:
    """A comparator: whether the first of two scalars precedes the second in total order."""
    lhs, rhs = (parameter(i, Shape(element_type)) for i in range(2))
    if element_type.is_floating:
        root = gt_total_order(lhs, rhs) if descending else lt_total_order(lhs, rhs)
    else:
        root = gt(lhs, rhs) if descending else lt(lhs, rhs)
    return Computation("precedes", (lhs, rhs), root)
