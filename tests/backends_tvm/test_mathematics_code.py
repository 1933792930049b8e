"""The code that comes out: whole vectors, no calls, the same bits everywhere, made quickly."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm

from tests.backends_tvm.kernel_harness import HOST
from tests.backends_tvm.mathematics_harness import FLOATS, TARGETS, evaluate, module_of
from tracejit.backends.tvm.cpu import mathematics
from tracejit.backends.tvm.cpu.llvm.kinds import KINDS
from tracejit.backends.tvm.cpu.mathematics import complex as complex_mathematics
from tracejit.backends.tvm.cpu.mathematics.operations import operation
from tracejit.backends.tvm.ir.tir import const

OF_TWO = ("atan2", "div", "higher_rank", "max", "min", "pow", "rem")
RANKS = tuple(name for name in mathematics.__all__ if "rank" in name)
OF_INTEGERS = ("clz", "kept", "known_quotient", "offset", "once", "opaque", "population_count")
OF_WORDS = ("philox_high", "philox_low", "threefry")
NAMES = [n for n in mathematics.__all__ if n not in ("link", "is_finite", *OF_INTEGERS, *OF_WORDS)]


def assembly(name: str, dtype: str, target: str, lanes: int = 16) -> str:
    function = getattr(mathematics, name)
    arity = 2 if name in OF_TWO else 1
    kind = np.dtype(dtype)
    module = module_of(
        lambda *xs: function(*xs, dtype), [kind] * arity, kind, 4096, lanes, TARGETS[target]
    )
    return str(module.inspect_source("asm"))


@pytest.mark.skipif("x86_64" not in HOST.triple, reason="reads x86 assembly")
@pytest.mark.parametrize("target", [name for name, t in TARGETS.items() if t.has_fma])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", NAMES)
def test_whole_vectors_and_no_calls(name: str, dtype: str, target: str) -> None:
    code = assembly(name, dtype, target)
    assert not re.findall(r"\bcall\w*\s+\S+", code)
    # Arithmetic on single elements would stand in loops that are not vectorised.
    single = r"\bv(?:add|sub|mul|div|sqrt|fn?m(?:add|sub)\d+)s[sd]\b"
    assert not re.findall(single, code)


@pytest.mark.skipif("AVX2" not in TARGETS, reason="reads AVX2's assembly")
@pytest.mark.parametrize("dtype", FLOATS)
def test_fused_multiply_adds_are_instructions(dtype: str) -> None:
    suffix = {"float32": "ps", "float64": "pd"}[dtype]
    code = assembly("exp", dtype, "AVX2")
    assert len(re.findall(rf"\bvfn?m(?:add|sub)\d+{suffix}\b", code)) >= 8


@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 8, 16, 32])
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_width_gives_the_same_bits(dtype: str, lanes: int) -> None:
    """Scalars too: what a result is must not depend on the schedule."""
    x = np.random.default_rng(1).uniform(-20, 20, 96).astype(dtype)
    x[:4] = [np.inf, np.nan, 1e30, -700]

    def formula(v: Any) -> Any:
        y = mathematics.sin(mathematics.exp(v, dtype), dtype)
        return mathematics.pow(mathematics.erf(v, dtype), y, dtype)

    np.testing.assert_array_equal(evaluate(formula, x, lanes=lanes), evaluate(formula, x, lanes=8))


def test_processors_give_the_same_bits() -> None:
    x = np.random.default_rng(2).standard_normal(4096).astype(np.float32) * 30
    for name in NAMES:
        function = getattr(mathematics, name)
        arguments = [x, x[::-1].copy()][: 2 if name in OF_TWO else 1]
        results = [
            evaluate(lambda *xs, f=function: f(*xs, "float32"), *arguments, target=target)
            for target in TARGETS.values()
        ]
        for result in results[1:]:
            np.testing.assert_array_equal(results[0], result, err_msg=name)


def nested(depth: int) -> Callable[[Any], Any]:
    def formula(x: Any) -> Any:
        for _ in range(depth):
            x = mathematics.tanh(x + mathematics.exp(-x, "float32"), "float32")
        return x

    return formula


def link_time(formula: Callable[[Any], Any]) -> float:
    """Seconds to compile, the best of three."""
    kind = np.dtype(np.float32)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        module_of(formula, [kind], kind, 4096, 8, HOST)
        times.append(time.perf_counter() - start)
    return min(times)


def test_the_time_to_compile_grows_with_the_number_of_functions() -> None:
    """Not with what a chain of them would be, written out."""

    def chain(depth: int) -> Callable[[Any], Any]:
        def formula(x: Any) -> Any:
            for _ in range(depth):
                x = mathematics.exp(x, "float32")
            return x

        return formula

    assert link_time(chain(16)) < 20 * link_time(chain(1))


def test_an_argument_that_is_used_twice_is_computed_twice_only() -> None:
    x = np.linspace(-1, 1, 64).astype(np.float32)
    with np.errstate(all="ignore"):
        expected = x
        for _ in range(2):
            expected = np.tanh(expected + np.exp(-expected))
    np.testing.assert_allclose(evaluate(nested(2), x), expected, rtol=1e-5)


def test_a_module_without_functions_is_left_alone() -> None:
    module = tvm.IRModule({})
    assert mathematics.link(module).same_as(module)


def test_dtypes_that_no_register_holds_are_refused() -> None:
    for dtype in ("float16", "bfloat16", "int4", "complex64", "float32x4"):
        assert dtype not in KINDS
        with pytest.raises(ValueError, match=f"exp: no register holds {dtype}"):
            mathematics.exp(const(0, "float32"), dtype)


def test_names_are_taken_once() -> None:
    with pytest.raises(ValueError, match="operation exp is registered twice"):
        operation("exp", lambda x: x)


def test_every_function_says_how_exact_it_is() -> None:
    exact = (
        *("link", "div", "rem", "sqrt", "sign", "max", "min", "is_finite"),
        *("floor", "ceil", "round_nearest_even", "round_nearest_afz", *OF_INTEGERS, *OF_WORDS),
        *RANKS,
    )
    for name in mathematics.__all__:
        text = getattr(mathematics, name).__doc__
        assert text, name
        assert "ulp" in text or name in exact, name
    for name in complex_mathematics.__all__:
        assert getattr(complex_mathematics, name).__doc__, name
