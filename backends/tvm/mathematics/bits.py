"""population_count and clz, of integers of every width."""

from __future__ import annotations

from tracejit.backends.tvm.mathematics.llvm import Value


def population_count(x: Value) -> Value:
    """How many bits are set."""
    function = x.function
    return function.call(x.kind, f"ctpop.{function.suffix(x.kind)}", x)


def clz(x: Value) -> Value:
    """How many zeros lead the highest bit set; all of them for 0."""
    function = x.function
    return function.call(x.kind, f"ctlz.{function.suffix(x.kind)}", x, "i1 false")
