"""Argmax and argmin across the lanes of vectors: the winning number and its index.

Among equal numbers the first wins, NaN comes before all others, and zeros of either sign are
equal. Unlike other functions these combine lanes, and return the answer in every lane. Indices are
kept in registers of the numbers' kind.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.kinds import Kind
from tracejit.backends.tvm.cpu.mathematics.operations import operation, unary
from tracejit.backends.tvm.cpu.mathematics.vocabulary import reinterpret, select, to_bits


def winning_index(*numbers_and_indices: Value, is_least: bool) -> Value:
    """The index of the maximum, or of the minimum; the second half of the arguments are indices."""
    numbers, _, found = _winner(numbers_and_indices, is_least)
    return reinterpret(found, numbers[0].kind)


def winning_number(*numbers_and_indices: Value, is_least: bool) -> Value:
    """The maximum or minimum whose index is `winning_index`."""
    numbers, indices, found = _winner(numbers_and_indices, is_least)
    lowest = -(1 << (numbers[0].kind.bits - 1))
    chosen = [
        select(where.equals(found), to_bits(x), lowest)
        for x, where in zip(numbers, indices, strict=True)
    ]
    return reinterpret(_across("smax", chosen), numbers[0].kind)


def least(x: Value) -> Value:
    """The minimum over all lanes of unsigned integers."""
    return _across("umin", [x])


def _winner(arguments: Sequence[Value], is_least: bool) -> tuple[list[Value], list[Value], Value]:
    """The numbers, their indices as integers, and the winning index in every lane."""
    count = len(arguments) // 2
    numbers, indices = list(arguments[:count]), [to_bits(x) for x in arguments[count:]]
    ranks = [_rank(x, is_least) for x in numbers]
    best = _across("smax", ranks)
    highest = (1 << (best.kind.bits - 1)) - 1
    pairs = zip(ranks, indices, strict=True)
    candidates = [select(rank.equals(best), where, highest) for rank, where in pairs]
    return numbers, indices, _across("smin", candidates)


def _rank(x: Value, is_least: bool) -> Value:
    """Signed integers that are greater for better numbers."""
    if not x.kind.is_float:
        return ~x if is_least else x
    bits = to_bits(0.0 - x if is_least else x + 0.0)  # without negative zeros
    highest = (1 << (bits.kind.bits - 1)) - 1
    rising = bits ^ ((bits >> (bits.kind.bits - 1)) & highest)
    return select(x.is_nan, highest, rising)


def _across(intrinsic: str, vectors: Sequence[Value]) -> Value:
    """The maximum or minimum over all lanes of all vectors, in every lane."""
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
            f"{name}_{answer}_of_{count}",
            functools.partial(function, is_least=name == "argmin"),
            arity=2 * count,
        )
        for answer, function in (("number", winning_number), ("place", winning_index))
    )
    for name in ("argmax", "argmin")
    for count in (1, 4)
}
"""``BEST[name, count]`` are the operations `winning_number` and `winning_index` of argmax or
argmin, over ``count`` vectors of numbers and as many of indices.
"""

least_of_lanes = unary("least_of_lanes", least)
