"""Sums of products in a thread's registers."""

from __future__ import annotations

from functools import partial

from tracejit.backends.tvm.analysis.element_rules import Value
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.ir.complex import Complex
from tracejit.backends.tvm.ir.dtypes import memory_dtype, register_dtype
from tracejit.backends.tvm.ir.tir import (
    UNROLLED,
    AllocBuffer,
    Buffer,
    Expr,
    Stmt,
    buffer,
    const,
    loop,
    real,
    store,
    tirx,
)
from tracejit.shapes import ElementType

FMA = "tj_fma"
"""The prelude's function that rounds once."""


class Sum:
    """A thread's sums of products, in the registers that results of an element type have."""

    def __init__(self, element_type: ElementType, count: int = 1) -> None:
        self._type = element_type
        self._count = count
        self._dtype = "int32"
        if element_type.is_complex:
            self._dtype = memory_dtype(element_type)
        elif element_type is not ElementType.PRED:
            self._dtype = register_dtype(element_type)
        parts = 2 if element_type.is_complex else 1
        self._parts = [buffer("sum", (count,), self._dtype, scope="local") for _ in range(parts)]

    def begin(self) -> list[Stmt]:
        """The sum of nothing."""
        made: list[Stmt] = [AllocBuffer(part) for part in self._parts]
        for part in self._parts:
            made.append(loop(self._count, partial(self._clear, part), UNROLLED))
        return made

    def _clear(self, part: Buffer, at: Expr) -> Stmt:
        return store(part, at, self.zero)

    @property
    def dtype(self) -> str:
        """The TIR type of real sums, and of the numbers that they take."""
        return self._dtype

    @property
    def buffer(self) -> Buffer:
        """The real sums."""
        (part,) = self._parts
        return part

    @property
    def zero(self) -> Expr:
        """The sum of nothing."""
        return real(0, self._dtype) if self._dtype.startswith("float") else const(0, self._dtype)

    def number(self, value: Value) -> Expr:
        """A real value in the type of the sums."""
        return self._real(value)

    def add_at(self, at: Expr, a: Expr, b: Expr) -> Stmt:
        """Adds a product of two such numbers to one of the sums."""
        (part,) = self._parts
        return store(part, at, self._fused(a, b, part[at]))

    def value_at(self, at: Expr) -> Value:
        """One of the real sums so far."""
        (part,) = self._parts
        return part[at] != const(0, "int32") if self._type is ElementType.PRED else part[at]

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
