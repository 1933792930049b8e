"""The functions that formulas over `Value` use besides operators: select, fma, conversions, loops.

Each appends instructions to the LLVM function that its arguments belong to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.cpu.llvm.builder import Operand, Value
from tracejit.backends.tvm.cpu.llvm.kinds import BOOL, Kind


def select(condition: Value, if_true: Operand, if_false: Operand) -> Value:
    """``if_true`` in the lanes where ``condition`` holds; at least one of the two is a `Value`."""
    if isinstance(if_true, Value):
        a, b = if_true, if_true.operand(if_false)
    elif isinstance(if_false, Value):
        a, b = if_false.like(if_true), if_false
    else:
        raise TypeError("select needs the kind of its result")
    return a.function.emit(a.kind, f"select {condition.typed}, {a.typed}, {b.typed}")


def _call(intrinsic: str, x: Value, *others: Operand) -> Value:
    operands = [x, *(x.operand(other) for other in others)]
    return x.function.call(x.kind, f"{intrinsic}.{x.function.suffix(x.kind)}", *operands)


def fma(a: Value, b: Operand, c: Operand) -> Value:
    """``a * b + c``, rounded once."""
    return _call("fma", a, b, c)


def muladd(a: Value, b: Operand, c: Operand) -> Value:
    """``a * b + c``: fused where the processor has the instruction, else rounded twice."""
    return _call("fmuladd", a, b, c)


def sqrt(x: Value) -> Value:
    """The square root, correctly rounded."""
    return _call("sqrt", x)


def absolute(x: Value) -> Value:
    """A float with its sign bit cleared."""
    return _call("fabs", x)


def copy_sign(magnitude: Value, sign: Operand) -> Value:
    """A float with the sign bit of another."""
    return _call("copysign", magnitude, sign)


def floor(x: Value) -> Value:
    """Rounded to an integer downwards."""
    return _call("floor", x)


def ceil(x: Value) -> Value:
    """Rounded to an integer upwards."""
    return _call("ceil", x)


def truncate(x: Value) -> Value:
    """Rounded to an integer towards zero."""
    return _call("trunc", x)


def round_even(x: Value) -> Value:
    """Rounded to the nearest integer, ties to even."""
    return _call("roundeven", x)


def round_away(x: Value) -> Value:
    """Rounded to the nearest integer, ties away from zero."""
    return _call("round", x)


def maximum(x: Value, y: Operand) -> Value:
    """The larger float: NaN if either is NaN, and -0 < +0."""
    return _call("maximum", x, y)


def minimum(x: Value, y: Operand) -> Value:
    """The smaller float: NaN if either is NaN, and -0 < +0."""
    return _call("minimum", x, y)


def clamp(x: Value, low: float, high: float) -> Value:
    """``x`` forced into [low, high]; NaN stays NaN."""
    raised = select(x < low, low, x)
    return select(raised > high, high, raised)


def to_bits(x: Value) -> Value:
    """The bits of a float as a signed integer of its width."""
    return reinterpret(x, x.kind.integer)


def reinterpret(x: Value, kind: Kind) -> Value:
    """The same bits as another kind of the same width."""
    if x.kind.llvm == kind.llvm:
        return Value(x.function, kind, x.text)
    return x.function.emit(kind, f"bitcast {x.typed} to {x.function.type(kind)}")


def convert(x: Value, kind: Kind) -> Value:
    """The number as another kind: floats rounded to nearest even, integers wrapped.

    A float that an integer kind cannot hold gives an arbitrary number.
    """
    if x.kind.is_float and kind.is_float:
        opcode = "fpext" if kind.bits > x.kind.bits else "fptrunc"
    elif x.kind.is_float:
        opcode = "fptosi" if kind.is_signed else "fptoui"
    elif kind.is_float:
        opcode = "sitofp" if x.kind.is_signed else "uitofp"
    elif kind.bits < x.kind.bits:
        opcode = "trunc"
    else:
        opcode = "sext" if x.kind.is_signed else "zext"
    if x.kind.llvm == kind.llvm:
        return Value(x.function, kind, x.text)
    return x.function.emit(kind, f"{opcode} {x.typed} to {x.function.type(kind)}")


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """``c[0] + c[1] x + c[2] x**2 + …`` by Horner's rule."""
    total = x.like(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = fma(total, x, coefficient)
    return total


def product(a: Value, b: Operand) -> Value:
    """``a * b``, rounded: LLVM may not fuse it into a following sum."""
    return _call("arithmetic.fence", a * b)


def exact_product(a: Value, b: Operand) -> tuple[Value, Value]:
    """``a * b`` as the unevaluated sum of two floats, barring underflow."""
    rounded = product(a, b)
    return rounded, fma(a, b, -rounded)


def exact_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """``a + b`` as the sum of two floats."""
    return exact_difference(a, -b)


def exact_difference(a: Value, b: Value) -> tuple[Value, Value]:
    """``a - b`` as the sum of two floats."""
    difference = a - b
    part = difference - a
    return difference, (a - (difference - part)) - (b + part)


def unlikely(
    condition: Value, slow: Callable[[], Sequence[Value]], fast: Sequence[Value]
) -> list[Value]:
    """``slow()`` in the lanes where ``condition`` holds, ``fast`` elsewhere.

    The instructions of ``slow`` run only if some lane needs them.
    """
    function = condition.function
    before = function.block
    rare, join = function.fresh("rare", "join")
    function.branch(_any(condition), rare, join)
    function.start(rare)
    chosen = [select(condition, s, f) for s, f in zip(slow(), fast, strict=True)]
    after = function.block
    function.jump(join)
    function.start(join)
    return [
        function.emit(
            f.kind,
            f"phi {function.type(f.kind)} [ {f.text}, %{before} ], [ {c.text}, %{after} ]",
        )
        for f, c in zip(fast, chosen, strict=True)
    ]


def unlikely_in_pieces(
    condition: Value,
    slow: Callable[..., Sequence[Value]],
    given: Sequence[Value],
    fast: Sequence[Value],
) -> list[Value]:
    """``slow(*given)`` in the lanes where ``condition`` holds, ``fast`` elsewhere.

    Like `unlikely`, for long code that seldom runs: ``slow`` is compiled for a few lanes, and runs
    over the vector piece by piece. It may use no vectors other than ``given``.
    """
    function = condition.function
    lanes = function.lanes
    if lanes <= _PIECE:
        return unlikely(condition, lambda: slow(*given), fast)

    def compute() -> list[Value]:
        sources = [function.memory(value) for value in given]
        targets = [function.room(value.kind) for value in fast]
        before = function.block
        (loop, done) = function.fresh("pieces", "whole")
        (number, following) = function.fresh("%piece", "%following")
        function.jump(loop)
        function.start(loop)
        (place,) = function.reserve(1)
        function.lanes = _PIECE
        results = slow(*(function.loaded(kind, at, number) for kind, at in sources))
        for (_, at), result in zip(targets, results, strict=True):
            function.stored(result, at, number)
        function.lanes = lanes
        function.fill(
            place, number, f"phi i64 [ 0, %{before} ], [ {following}, %{function.block} ]"
        )
        function.advance(number, following, _PIECE, loop, done)
        function.start(done)
        return [function.loaded(kind, at, "0") for kind, at in targets]

    return unlikely(condition, compute, fast)


_PIECE = 8


def repeat(
    step: Callable[[Sequence[Value]], tuple[Value, Sequence[Value]]], state: Sequence[Value]
) -> list[Value]:
    """``condition, state = step(state)`` until ``condition`` holds in no lane."""
    function = state[0].function
    before = function.block
    (loop, done) = function.fresh("loop", "done")
    names = function.fresh(*["%s"] * len(state))
    function.jump(loop)
    function.start(loop)
    places = function.reserve(len(state))
    condition, after = step(
        [Value(function, value.kind, name) for value, name in zip(state, names, strict=True)]
    )
    last = function.block
    function.branch(_any(condition), loop, done)
    for place, name, old, new in zip(places, names, state, after, strict=True):
        kind = function.type(old.kind)
        function.fill(place, name, f"phi {kind} [ {old.text}, %{before} ], [ {new.text}, %{last} ]")
    function.start(done)
    return list(after)


def _any(condition: Value) -> str:
    """An i1: whether ``condition`` holds in some lane."""
    function = condition.function
    if function.lanes == 1:
        return condition.text
    reduction = f"vector.reduce.or.{function.suffix(BOOL)}"
    return function.emit(BOOL, f"call i1 @llvm.{reduction}({condition.typed})").text
