"""Complex numbers of every special pair of parts: one definition, which docs/accuracy.md states.

Compiled code gives what the interpreter gives, in vectors, number by number, and in front of a sum,
for the host and for CUDA devices: infinities, NaN and the signs of zeros. XLA gives the same but
where `tests.fuzz.differences` has a rule.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.backends_tvm.compiled import compiled, computation
from tests.fuzz.differences.complex_numbers import COMPLEX_NUMBERS, SIGNS_OF_ZEROS_LOST
from tests.judge import run_xla
from tracejit import ops
from tracejit.backends.numpy import evaluate
from tracejit.graph import Computation, Instruction, Module
from tracejit.shapes import ElementType, Shape, shape_of

PARTS = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan)
# A hundredth of the least normal number, and a half of the greatest.
FAR = (1e-310, -1e-310, 9e307, -9e307)
BINARY = ("add", "sub", "mul", "div", "pow", "atan2")
UNARY = (
    *("abs", "sign", "sqrt", "rsqrt", "exp", "expm1", "logistic", "log", "log1p", "neg"),
    *("sinh", "cosh", "tanh", "sin", "cos", "tan"),
    *("asin", "acos", "asinh", "acosh", "atanh"),
)
DTYPES = (np.complex64, np.complex128)


def numbers(dtype: type, parts: tuple[float, ...] = PARTS) -> np.ndarray:
    """All pairs of parts, the far ones scaled to the type's own range."""
    values = np.array([complex(re, im) for re in parts for im in parts], np.complex128)
    if dtype is np.complex64:
        far = {1e-310: 1e-40, -1e-310: -1e-40, 9e307: 2e38, -9e307: -2e38}
        values = np.array(
            [complex(far.get(v.real, v.real), far.get(v.imag, v.imag)) for v in values]
        )
    return values.astype(dtype)


def operands(name: str, dtype: type, parts: tuple[float, ...] = PARTS) -> list[np.ndarray]:
    z = numbers(dtype, parts)
    return [np.repeat(z, z.size), np.tile(z, z.size)] if name in BINARY else [z]


def unequal(a: np.ndarray, b: np.ndarray, relative: float) -> np.ndarray:
    """Where a part differs: by NaN, by the sign of a zero, or by more than a few last digits."""
    size = np.maximum(abs(a), abs(b))
    wrong = np.zeros(a.shape, bool)
    for p, q in ((a.real, b.real), (a.imag, b.imag)):
        with np.errstate(all="ignore"):
            close = np.isfinite(p) & np.isfinite(q) & (abs(p - q) <= relative * size)
        same = (p == q) & ((p != 0) | (np.signbit(p) == np.signbit(q)))
        same |= close & ((p != 0) | (q != 0))
        wrong |= ~(same | (np.isnan(p) & np.isnan(q)))
    return wrong


def described(name: str, given: list[np.ndarray], a: np.ndarray, b: np.ndarray) -> str:
    relative = 64 * np.finfo(given[0].dtype).eps
    found = np.flatnonzero(unequal(a, b, relative))
    if not found.size:
        return ""
    n = found[0]
    return (
        f"{name} differs at {found.size} of {a.size}, first {[x[n] for x in given]}: "
        f"{a[n]} instead of {b[n]}"
    )


def interpreted(name: str, *given: np.ndarray) -> np.ndarray:
    entry = computation(getattr(ops, name), *map(shape_of, given))
    with np.errstate(all="ignore"):
        return np.asarray(evaluate(entry, list(given)))


def applied(x: Instruction, y: Instruction, z: Instruction) -> list[Instruction]:
    """Every function, of all pairs or of all numbers."""
    binary = [getattr(ops, name)(x, y) for name in BINARY]
    return binary + [getattr(ops, name)(z) for name in UNARY]


def entry_of(*shapes: Shape) -> Computation:
    return computation(lambda *xs: ops.tuple_(applied(*xs)), *shapes)


def vectors(*given: np.ndarray) -> list[np.ndarray]:
    return compiled(entry_of(*map(shape_of, given)))(given)


def scalars(*given: np.ndarray) -> list[np.ndarray]:
    run = compiled(entry_of(*(Shape(shape_of(x).element_type) for x in given)))
    x, y, z = given
    made = [run([x[n], y[n], z[n % z.size]]) for n in range(x.size)]
    columns = [np.array(column) for column in zip(*made, strict=True)]
    return [c if n < len(BINARY) else c[: z.size] for n, c in enumerate(columns)]


def before_a_sum(*given: np.ndarray) -> list[np.ndarray]:
    """Each value plus the zero that changes nothing, -0 in both parts."""

    def summed(made: Instruction) -> Instruction:
        sizes = (made.array_shape.size, 3)
        element_type = made.array_shape.element_type
        numbers = ops.iota(Shape(ElementType.S32, sizes), 1)
        zero = complex(-0.0, -0.0) if element_type.is_complex else -0.0
        nothing = ops.constant(np.array(zero), element_type)
        kept = ops.select(
            ops.eq(numbers, ops.full_like(numbers, 1)),
            ops.broadcast_in_dim(made, sizes, (0,)),
            ops.broadcast_in_dim(nothing, sizes, ()),
        )
        return ops.reduce(kept, nothing, ops.scalar_computation("add", element_type), [1])

    def build(*xs: Instruction) -> Instruction:
        return ops.tuple_([summed(made) for made in applied(*xs)])

    return compiled(computation(build, *map(shape_of, given)))(given)


@pytest.mark.parametrize("way", [vectors, scalars, before_a_sum])
@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_code_is_the_interpreter(
    dtype: type, way: Callable[..., list[np.ndarray]]
) -> None:
    pairs, z = operands("div", dtype), numbers(dtype)
    for name, made in zip((*BINARY, *UNARY), way(*pairs, z), strict=True):
        given = pairs if name in BINARY else [z]
        expected = interpreted(name, *given)
        if way is before_a_sum:  # zeros of a sum are positive
            made, expected = made + 0, expected + 0
        assert not described(name, given, made, expected)


def flushed(values: np.ndarray) -> np.ndarray:
    """Denormal parts, and zeros, as positive zero."""
    made: np.ndarray = values.copy()
    tiny = np.finfo(values.dtype).tiny
    made.real, made.imag = (np.where(abs(p) < tiny, 0, p) for p in (made.real, made.imag))
    return made


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_and_quotients_of_far_numbers(dtype: type) -> None:
    """Neither overflow nor vanish on the way; a denormal part has digits and signs of its own."""
    given = operands("div", dtype, PARTS + FAR)
    names = ("add", "sub", "mul", "div")
    entry = computation(
        lambda x, y: ops.tuple_([getattr(ops, name)(x, y) for name in names]),
        *map(shape_of, given),
    )
    for name, made in zip(names, compiled(entry)(given), strict=True):
        assert not described(name, given, flushed(made), flushed(interpreted(name, *given)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_xla_is_the_interpreter_but_for_the_rules(dtype: type) -> None:
    pairs, z = operands("div", dtype), numbers(dtype)
    module = Module("judged", entry_of(*map(shape_of, (*pairs, z))))
    for name, judged in zip((*BINARY, *UNARY), run_xla(module, *pairs, z), strict=True):
        given = pairs if name in BINARY else [z]
        root = computation(getattr(ops, name), *map(shape_of, given)).root
        made = interpreted(name, *given)
        allowed = np.zeros(made.shape, bool)
        for rule in COMPLEX_NUMBERS:
            if root.op.name in rule.ops and name not in WITHOUT_RULES:
                with np.errstate(all="ignore"):
                    allowed |= rule.where(root, *given)
        ours, theirs = made[~allowed], np.asarray(judged)[~allowed]
        if root.op.name in SIGNS_OF_ZEROS_LOST:
            ours, theirs = ours + 0, theirs + 0
        assert not described(name, [x[~allowed] for x in given], ours, theirs)


WITHOUT_RULES = {"add", "sub", "mul", "div", "neg", "sign"}
"""Exactly XLA's, whatever the operands are."""
