"""Constants and structure."""

from __future__ import annotations

from tracejit.autodiff.reverse import differentiate
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, IOTA, PARAMETER, TUPLE

for _op in (CONSTANT, IOTA, PARAMETER):
    differentiate.decline(_op, "has no operand")
for _op in (GET_TUPLE_ELEMENT, TUPLE):
    differentiate.decline(_op, "only holds values, whose cotangents the pass itself puts together")
