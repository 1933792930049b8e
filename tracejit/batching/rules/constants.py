"""Parameter, Constant and Iota have no operands, so they are never batched."""

from __future__ import annotations

from tracejit.batching.batch import batching
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, IOTA, PARAMETER, TUPLE

for _op in (PARAMETER, CONSTANT, IOTA):
    batching.decline(_op, "has no operands")
for _op in (TUPLE, GET_TUPLE_ELEMENT):
    batching.decline(_op, "is part of the pass itself")
