"""Every op of the table can be compiled: it has a rule in exactly one of the backend's tables."""

from __future__ import annotations

import pytest

from tracejit.backends.tvm.emit import indexed, pointwise, rooted
from tracejit.backends.tvm.legalise import expansions
from tracejit.graph import OPS
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, PARAMETER, TUPLE
from tracejit.ops.control import CALL, CONDITIONAL, WHILE
from tracejit.ops.windows import REDUCE_WINDOW

# What the program's structure is made of; `lower` deals with these, CALL is inlined by `simplify`.
STRUCTURE = {PARAMETER, CONSTANT, TUPLE, GET_TUPLE_ELEMENT, CALL}


@pytest.mark.parametrize("name", OPS)
def test_op_can_be_compiled(name: str) -> None:
    op = OPS[name]
    found = [t.concern for t in (pointwise, indexed, rooted, expansions) if t.get(op) is not None]
    if op is REDUCE_WINDOW:
        # Padding goes away first, then the window has a schedule.
        assert found == ["emit rooted", "legalise"]
    elif op in (CONDITIONAL, WHILE):
        # Their tuples are taken apart; then `lower` makes loops and branches of them.
        assert found == ["legalise"]
    elif op in STRUCTURE:
        assert found == []
    else:
        assert len(found) == 1
