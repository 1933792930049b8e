"""XLA's builder: a computation op by op, under XLA's names and with XLA's strict broadcasting.

builder = XlaBuilder("scaled")
x = builder.parameter(0, Shape(ElementType.F32, (2, 3)), "x")
v = builder.parameter(1, Shape(ElementType.F32, (3,)), "v")
computation = builder.build(builder.mul(x, v, broadcast_dimensions=(1,)))

`reduce`, `while_` and the like call computations, and `tracejit.compile` and `tracejit.interpret`
run them. Each op of XLA's page "Operation semantics" is a method, and each method is the function
of that name in `tracejit.ops`, which documents it. Method names are XLA's in snake case, with an
underscore where Python has a keyword; XLA's own spelling works as well, so
``builder.BatchNormGrad`` is ``builder.batch_norm_grad``.
"""

from __future__ import annotations

from tracejit.builder.xla_builder import XlaBuilder

__all__ = ["XlaBuilder"]


def __dir__() -> list[str]:
    return __all__
