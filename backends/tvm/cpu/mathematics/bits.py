"""Bit counts of integers (population_count, clz), and identities that LLVM cannot see through."""

from __future__ import annotations

from tracejit.backends.tvm.cpu.llvm.builder import Value


def population_count(x: Value) -> Value:
    """The number of set bits."""
    function = x.function
    return function.call(x.kind, f"ctpop.{function.suffix(x.kind)}", x)


def clz(x: Value) -> Value:
    """The number of leading zero bits; the width of the type for 0."""
    function = x.function
    return function.call(x.kind, f"ctlz.{function.suffix(x.kind)}", x, "i1 false")


def opaque(x: Value) -> Value:
    """``x`` behind an empty inline assembly: LLVM knows nothing about the result."""
    kind = x.function.type(x.kind)
    return x.function.emit(x.kind, f'call {kind} asm "", "=r,0"({x.typed})')


def kept(x: Value) -> Value:
    """``x`` as an opaque value in code that LLVM may not duplicate.

    A loop whose index goes through it is not unrolled, and LLVM's analyses of addresses, which
    take most of its time, find nothing to do.
    """
    kind = x.function.type(x.kind)
    return x.function.emit(x.kind, f'call {kind} asm "", "=r,0"({x.typed}) noduplicate')


def once(x: Value) -> Value:
    """``x`` in code that LLVM may not duplicate: a loop whose index goes through it is not
    unrolled.
    """
    effects = "nounwind willreturn noduplicate memory(inaccessiblemem: readwrite)"
    x.function.act(f'call void asm sideeffect "", ""() {effects}')
    return x


def offset(x: Value, y: Value) -> Value:
    """``x + y``, which TVM's simplifier leaves as it is."""
    return x + y
