"""Every op of the table can be compiled: it has a rule in exactly one of the backend's tables."""

from __future__ import annotations

import pytest

from tracejit.backends.tvm.codegen.rules import indexed, pointwise
from tracejit.backends.tvm.cpu.root_rules import rooted
from tracejit.backends.tvm.passes.legalize import collectives
from tracejit.backends.tvm.passes.legalize.composites import expansions
from tracejit.backends.tvm.passes.legalize.tokens_and_async import CALLS, simpler_names
from tracejit.backends.tvm.target.host_calls import HostLibraries
from tracejit.graph import OPS
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, PARAMETER, TUPLE
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.control import CONDITIONAL, OPTIMIZATION_BARRIER, WHILE
from tracejit.ops.custom import CUSTOM_CALL
from tracejit.ops.elementwise import DIV, POW
from tracejit.ops.spectra import FFT
from tracejit.ops.windows import REDUCE_WINDOW

__all__ = ["collectives"]  # imported for the table it fills

# What the program's structure is made of; `lower` deals with these, calls are inlined. Ops on
# dynamic sizes become ops on pairs of an array and its sizes.
STRUCTURE = {PARAMETER, CONSTANT, TUPLE, GET_TUPLE_ELEMENT, *CALLS}


@pytest.mark.parametrize("name", OPS)
def test_op_can_be_compiled(name: str) -> None:
    op = OPS[name]
    tables = (simpler_names, pointwise, indexed, rooted, expansions)
    found = [table.concern for table in tables if table.get(op) is not None]
    found += ["library"] if HostLibraries().call(op) else []
    if op is CUSTOM_CALL:
        # Without tokens it is called back, its kernel is put in, or what it is made of.
        assert found == ["plain", "emit rooted", "legalise"]
    elif op is OPTIMIZATION_BARRIER:
        # One for each array, which then is computed no earlier.
        assert found == ["plain", "emit pointwise"]
    elif op is REDUCE_WINDOW:
        # Padding goes away first, then the window has a schedule.
        assert found == ["emit rooted", "legalise"]
    elif op is DOT_GENERAL:
        # Sums of columns become reductions.
        assert found == ["emit rooted", "legalise"]
    elif op is FFT:
        # Rows of a power of two become an op of the compiler's own, the rest is called back.
        assert found == ["legalise", "library"]
    elif op in (DIV, POW):
        # log2, log10 and exp2 are made of them, and become ops of the compiler's own.
        assert found == ["emit pointwise", "legalise"]
    elif op in (CONDITIONAL, WHILE):
        # Their tuples are taken apart; then `lower` makes loops and branches of them.
        assert found == ["legalise"]
    elif op in STRUCTURE or op.family == "dynamic_sizes":
        assert found == []
    else:
        assert len(found) == 1
