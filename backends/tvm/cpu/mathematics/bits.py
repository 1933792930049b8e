"""population_count and clz, of integers of every width; and numbers that hold the compiler back."""

from __future__ import annotations

from tracejit.backends.tvm.cpu.llvm.builder import Value


def population_count(x: Value) -> Value:
    """How many bits are set."""
    function = x.function
    return function.call(x.kind, f"ctpop.{function.suffix(x.kind)}", x)


def clz(x: Value) -> Value:
    """How many zeros lead the highest bit set; all of them for 0."""
    function = x.function
    return function.call(x.kind, f"ctlz.{function.suffix(x.kind)}", x, "i1 false")


def opaque(x: Value) -> Value:
    """The number itself, which the compiler takes for any other."""
    kind = x.function.type(x.kind)
    return x.function.emit(x.kind, f'call {kind} asm "", "=r,0"({x.typed})')


def kept(x: Value) -> Value:
    """The number itself, which the compiler takes for any other, in code that it may not repeat.

    A loop that asks for its own index is not unrolled, and LLVM's analyses of addresses, which take
    most of its time, find nothing to do.
    """
    kind = x.function.type(x.kind)
    return x.function.emit(x.kind, f'call {kind} asm "", "=r,0"({x.typed}) noduplicate')


def once(x: Value) -> Value:
    """The number itself, in code that the compiler may not repeat.

    A loop that asks for its own index is not unrolled.
    """
    effects = "nounwind willreturn noduplicate memory(inaccessiblemem: readwrite)"
    x.function.act(f'call void asm sideeffect "", ""() {effects}')
    return x


def offset(x: Value, y: Value) -> Value:
    """``x + y``, which TVM leaves as it is."""
    return x + y
