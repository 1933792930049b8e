"""Where the greatest or the least of many numbers is: vectors of numbers and of their places.

Of equal numbers the first counts, NaN comes before all others, and zeros of either sign are equal.
Unlike other functions these look at all lanes, and say the same in each of them. Places are kept in
registers of the numbers' kind.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.kinds import Kind
from tracejit.backends.tvm.cpu.mathematics.operations import operation, unary
from tracejit.backends.tvm.cpu.mathematics.vocabulary import reinterpret, select, to_bits


def place(*numbers_and_places: Value, is_least: bool) -> Value:
    """The place of the greatest number, or of the least; half of the arguments are places."""
    numbers, _, found = _found(numbers_and_places, is_least)
    return reinterpret(found, numbers[0].kind)


def number(*numbers_and_places: Value, is_least: bool) -> Value:
    """The number at `place`."""
    numbers, places, found = _found(numbers_and_places, is_least)
    lowest = -(1 << (numbers[0].kind.bits - 1))
    chosen = [
        select(where.equals(found), to_bits(x), lowest)
        for x, where in zip(numbers, places, strict=True)
    ]
    return reinterpret(_across("smax", chosen), numbers[0].kind)


def least(x: Value) -> Value:
    """The least of all lanes, of unsigned integers."""
    return _across("umin", [x])


def _found(arguments: Sequence[Value], is_least: bool) -> tuple[list[Value], list[Value], Value]:
    """Numbers, their places as integers, and in every lane the place that is looked for."""
    count = len(arguments) // 2
    numbers, places = list(arguments[:count]), [to_bits(x) for x in arguments[count:]]
    ranks = [_rank(x, is_least) for x in numbers]
    best = _across("smax", ranks)
    highest = (1 << (best.kind.bits - 1)) - 1
    candidates = [
        select(rank.equals(best), where, highest) for rank, where in zip(ranks, places, strict=True)
    ]
    return numbers, places, _across("smin", candidates)


def _rank(x: Value, is_least: bool) -> Value:
    """Signed integers that rise as numbers get better."""
    if not x.kind.is_float:
        return ~x if is_least else x
    bits = to_bits(0.0 - x if is_least else x + 0.0)  # without negative zeros
    highest = (1 << (bits.kind.bits - 1)) - 1
    rising = bits ^ ((bits >> (bits.kind.bits - 1)) & highest)
    return select(x.is_nan, highest, rising)


def _across(intrinsic: str, vectors: Sequence[Value]) -> Value:
    """The greatest or least of all lanes of all vectors, in every lane."""
    value = functools.reduce(_lanewise(intrinsic), vectors)
    function, kind = value.function, value.kind
    if function.lanes == 1:
        return value
    reduction = f"vector.reduce.{intrinsic}.{function.suffix(kind)}"
    scalar = function.emit(kind, f"call {kind.llvm} @llvm.{reduction}({value.typed})")
    return _everywhere(scalar, kind)


def _lanewise(intrinsic: str) -> Callable[[Value, Value], Value]:
    return lambda a, b: a.function.call(a.kind, f"{intrinsic}.{a.function.suffix(a.kind)}", a, b)


def _everywhere(scalar: Value, kind: Kind) -> Value:
    function = scalar.function
    first = f"insertelement {function.type(kind)} poison, {kind.llvm} {scalar.text}, i64 0"
    vector = function.emit(kind, first)
    zeros = f"<{function.lanes} x i32> zeroinitializer"
    return function.emit(kind, f"shufflevector {vector.typed}, {vector.typed}, {zeros}")


BEST = {
    (name, count): tuple(
        operation(
            f"{name}_{part.__name__}_of_{count}",
            functools.partial(part, is_least=name == "argmin"),
            arity=2 * count,
        )
        for part in (number, place)
    )
    for name in ("argmax", "argmin")
    for count in (1, 4)
}
"""The number and the place that argmax or argmin finds in so many vectors of each."""

least_of_lanes = unary("least_of_lanes", least)
