"""DotGeneral: a thread for each element of the product."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.backends.tvm.analysis.element_rules import Value
from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.cuda.grid import Elements
from tracejit.backends.tvm.cuda.table import rooted
from tracejit.backends.tvm.ir.affine import Index
from tracejit.backends.tvm.ir.complex import Complex
from tracejit.backends.tvm.ir.dtypes import memory_dtype, register_dtype
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Expr,
    Stmt,
    buffer,
    const,
    real,
    store,
    tirx,
)
from tracejit.graph import Instruction
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.shapes import ElementType

FMA = "tj_fma"
"""The prelude's function that rounds once."""


class Sum:
    """A thread's sum of products, in the registers that results of an element type have."""

    def __init__(self, element_type: ElementType) -> None:
        self._type = element_type
        self._dtype = "int32"
        if element_type.is_complex:
            self._dtype = memory_dtype(element_type)
        elif element_type is not ElementType.PRED:
            self._dtype = register_dtype(element_type)
        parts = 2 if element_type.is_complex else 1
        self._parts = [buffer("sum", (1,), self._dtype, scope="local") for _ in range(parts)]

    def begin(self) -> list[Stmt]:
        """The sum of nothing."""
        made = [AllocBuffer(part) for part in self._parts]
        zero = real(0, self._dtype) if self._dtype.startswith("float") else const(0, self._dtype)
        return [*made, *(store(part, const(0, "int32"), zero) for part in self._parts)]

    def add(self, emitter: Emitter, a: Value, b: Value) -> list[Stmt]:
        """The statements that add a product."""
        zero = const(0, "int32")
        now = [part[zero] for part in self._parts]
        if self._type.is_complex:
            x, y = self._complex(a), self._complex(b)
            new = [
                self._fused(x.im, -y.im, self._fused(x.re, y.re, now[0])),
                self._fused(x.im, y.re, self._fused(x.re, y.im, now[1])),
            ]
            held = [emitter.hold(value, self._type.real) for value in new]
        else:
            held = [self._fused(self._real(a), self._real(b), now[0])]
        stores = [store(part, zero, value) for part, value in zip(self._parts, held, strict=True)]
        return [*emitter.allocations, *emitter.statements, *stores]

    def value(self) -> Value:
        """The sum so far."""
        zero = const(0, "int32")
        if self._type.is_complex:
            re, im = self._parts
            return Complex(re[zero], im[zero])
        (part,) = self._parts
        return part[zero] != zero if self._type is ElementType.PRED else part[zero]

    def _real(self, value: Value) -> Expr:
        # What compares two numbers is no expression yet, and has no type.
        if not hasattr(value, "ty") or str(value.ty) == "bool":
            return tirx.Select(value, const(1, self._dtype), const(0, self._dtype))
        return value if str(value.ty) == self._dtype else tirx.Cast(self._dtype, value)

    def _complex(self, value: Value) -> Complex:
        if isinstance(value, Complex):
            return Complex(self._real(value.re), self._real(value.im))
        return Complex(self._real(value), real(0, self._dtype))

    def _fused(self, a: Expr, b: Expr, c: Expr) -> Expr:
        if self._dtype.startswith("float"):
            return tirx.call_pure_extern(self._dtype, FMA, a, b, c)
        return c + a * b


@rooted.attach(DOT_GENERAL)
def dot_general(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """Batch, then rows, then columns; each thread sums the products of its element."""
    frame.schedule = "thread an element"
    lhs, rhs = instruction.operands[:2]
    sizes = lhs.array_shape.dimensions, rhs.array_shape.dimensions
    attributes = instruction.attributes
    batch = attributes["lhs_batch_dims"], attributes["rhs_batch_dims"]
    summed = attributes["lhs_contracting_dims"], attributes["rhs_contracting_dims"]
    free = [[d for d in range(len(sizes[n])) if d not in (*batch[n], *summed[n])] for n in range(2)]

    def locate(number: int, at: Sequence[Index], over: Sequence[Index]) -> list[Index]:
        first = len(batch[0]) + (len(free[0]) if number else 0)
        own = at[first : first + len(free[number])]
        dimensions = (*batch[number], *free[number], *summed[number])
        where = dict(zip(dimensions, (*at[: len(batch[0])], *own, *over), strict=True))
        return [where[d] for d in range(len(sizes[number]))]

    def ask(scope: Accesses, at: Sequence[Index], over: Sequence[Index]) -> None:
        scope.value(lhs, locate(0, at, over))
        scope.value(rhs, locate(1, at, over))

    shape = instruction.array_shape
    inner = [sizes[0][d] for d in summed[0]]
    elements = Elements(frame, shape.dimensions, inner, [instruction], results, ask)
    total = Sum(shape.element_type)

    def step() -> list[Stmt]:
        emitter = elements.emitter()
        a = emitter.value(lhs, locate(0, elements.at, elements.over))
        b = emitter.value(rhs, locate(1, elements.at, elements.over))
        return total.add(emitter, a, b)

    def thread() -> list[Stmt]:
        begin = total.begin()
        steps = elements.steps(step)
        value = elements.emitter().settled(total.value(), shape.element_type)
        return [*begin, steps, *elements.finish([value])]

    return elements.kernel(thread)
