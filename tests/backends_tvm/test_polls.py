"""Where compiled code looks for signals: between the rows of a loop's iterations, never in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tvm.tirx import While
    from tvm_ffi import structural_walk

    from tests.lowered import lower
    from tracejit.backends.tvm.cpu.objects.interrupts import interruptible
    from tracejit.backends.tvm.cpu.processor import processor_of
    from tracejit.backends.tvm.program.program import Kernel, Program

lax = tj.lax


def summed(x: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < x, lambda c: (c[0] + 1e-9, c[1] * 2), (0.0, x))[0]


def newton(x: Any) -> Any:
    def root(i: Any) -> Any:
        return lax.while_loop(lambda d: np.abs(d * d - i) > x, lambda d: (d + i / d) / 2, 1.0 + i)

    return lax.while_loop(lambda c: c[0] < x, lambda c: (c[0] + 1, c[1] + root(c[0])), (0.0, 0.0))


def counted(count: int) -> Callable[[Any], Any]:
    return lambda x: lax.fori_loop(
        0, count, lambda i, c: lax.fori_loop(0, 50, lambda j, d: d * 0.5 + i + j, c), x
    )


def polled(function: Callable[..., Any]) -> Program:
    module = tj.jit(function).lower(1.0).module
    target = processor_of()
    return interruptible(lower(module.entry, target.machine), target)


def innermost(kernel: Kernel) -> list[Any]:
    """The loops of a kernel without others inside."""
    found: list[Any] = []
    structural_walk(kernel.body, [(While, found.append)])
    return [loop for loop in found if not inside(loop.body, While)]


def inside(body: Any, kind: type) -> list[Any]:
    found: list[Any] = []
    structural_walk(body, [(kind, found.append)])
    return found


@pytest.mark.parametrize(("function", "loops"), [(summed, 1), (newton, 1)])
def test_iterations_only_count(function: Callable[..., Any], loops: int) -> None:
    """An innermost loop calls nothing, has one exit, and does not end by a condition of its own."""
    program = polled(function)
    (kernel,) = [kernel for kernel in program.kernels if kernel.name in program.polled]
    rows = innermost(kernel)
    assert len(rows) == loops
    for row in rows:
        assert "tracejit_count" not in str(row)
        assert str(row).count("break_loop") == 1
        assert str(row.condition) == "T.bool(True)"


def test_short_counted_loops_have_no_polls() -> None:
    assert polled(counted(10)).state is None
    assert polled(counted(1 << 20)).state is not None


def collatz(n: Any) -> Any:
    """The steps of all numbers below ``n`` until they are 1."""

    def steps(i: Any) -> Any:
        def step(c: Any) -> Any:
            return np.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1

        return lax.while_loop(lambda c: c[0] != 1, step, (i, 0))[1]

    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + steps(c[0])), (1, 0))[1]


def test_nested_loops_over_many_rows() -> None:
    """Rows end in the middle of inner loops, and between them."""
    total = 0
    for number in range(1, 2000):
        while number != 1:
            number = number // 2 if number % 2 == 0 else 3 * number + 1
            total += 1
    assert tj.jit(collatz)(2000) == total


def test_loops_nested_four_deep() -> None:
    def function(n: Any, x: Any) -> Any:
        s = 0.0
        for i in range(n):
            for j in range(n):
                s = s + x
                for k in range(n):
                    s = s * 0.5 + k
                    for m in range(n):
                        s = s + j * 0.25 - m + i
        return s

    jitted = tj.jit(function, autograph=True)
    for n in (0, 1, 3):
        np.testing.assert_allclose(jitted(n, 1.5), function(n, 1.5))
