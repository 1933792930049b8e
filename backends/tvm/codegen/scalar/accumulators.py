"""Partial results in registers, one variable for each element type."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.backends.tvm.analysis.element_rules import Value
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import memory_buffer
from tracejit.backends.tvm.ir.complex import Complex
from tracejit.backends.tvm.ir.tir import AllocBuffer, Buffer, Expr, Stmt, const
from tracejit.graph import Computation
from tracejit.shapes import ElementType, Shape


def held(element_type: ElementType) -> ElementType:
    """Narrow floats accumulate in f32."""
    if element_type.is_floating and element_type.bits < 32:
        return ElementType.F32
    return element_type


class ScalarAccumulators:
    """A variable for each of some element types."""

    def __init__(self, element_types: Sequence[ElementType]) -> None:
        self.types = [held(t) for t in element_types]
        self.buffers: list[Buffer] = [memory_buffer(Shape(t, (1,)), "acc") for t in self.types]
        self.allocations: list[Stmt] = [AllocBuffer(b) for b in self.buffers]

    def read(self, emitter: Emitter) -> list[Value]:
        """The values of the variables."""
        zero: Expr = const(0, "int32")
        return [emitter.load(b, zero, t) for b, t in zip(self.buffers, self.types, strict=True)]

    def write(self, emitter: Emitter, values: Sequence[Value]) -> list[Stmt]:
        """The statements that compute and store ``values``, all of them before any is stored."""
        return self.put(emitter, self.buffers, const(0, "int32"), values)

    def put(
        self, emitter: Emitter, targets: Sequence[Buffer], at: Expr, values: Sequence[Value]
    ) -> list[Stmt]:
        """The same, to the elements ``at`` of other buffers of these types."""
        bound = [emitter.hold(v, t) for v, t in zip(values, self.types, strict=True)]
        stores: list[Stmt] = []
        for b, t, value in zip(targets, self.types, bound, strict=True):
            made = emitter.store(b, at, value, t)
            stores += made if isinstance(made, list) else [made]
        return [*emitter.allocations, *emitter.statements, *stores]

    def get(self, emitter: Emitter, sources: Sequence[Buffer], at: Expr) -> list[Value]:
        """The elements ``at`` of buffers of these types."""
        pairs = zip(sources, self.types, strict=True)
        return [emitter.load(b, at, t) for b, t in pairs]


def accumulated(computation: Computation, emitter: Emitter, values: Sequence[Value]) -> list[Value]:
    """The results of a combiner on partial results and elements, narrow floats unrounded."""
    made = emitter.accumulate(computation, values)
    return [made] if isinstance(made, Complex) or not isinstance(made, tuple) else [*made]
