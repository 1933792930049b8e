"""Kernels that are compiled once for several calls, and kernels that must not be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.backends_tvm.compiled import check, computation
from tests.runtime.programs import elementwise, executable, spec
from tracejit import ops
from tracejit.runtime import importing_tvm
from tracejit.shapes import ElementType, Shape

with importing_tvm():
    from tracejit.backends.tvm.kernels.machine import Machine
    from tracejit.backends.tvm.lower import lower
    from tracejit.backends.tvm.program import Argument, Branch, Call, Kernel, Loop, Program
    from tracejit.backends.tvm.tir import const
    from tracejit.backends.tvm.twins import without_twins

ARRAY = spec("float32", 8)


def plus(name: str, number: float, size: int = 8) -> Kernel:
    return elementwise(name, lambda x: x + const(number, "float32"), size, 1)


def chain(*kernels: Kernel) -> Program:
    """Each kernel applied to what the one before made."""
    places = [Argument.workspace(32 * n) for n in range(len(kernels) - 1)]
    memory = [Argument.input(0), *places, Argument.output(0)]
    calls = [Call(kernel.name, memory[n : n + 2]) for n, kernel in enumerate(kernels)]
    return Program(kernels, calls, [ARRAY], [ARRAY], workspace_bytes=32 * len(kernels))


def names(program: Program) -> list[str]:
    return [kernel.name for kernel in program.kernels]


def test_the_first_of_each_kind_stays() -> None:
    program = without_twins(chain(plus("a", 1), plus("b", 2), plus("c", 1), plus("d", 2)))
    assert names(program) == ["a", "b"]
    assert [call.kernel for call in program.calls if isinstance(call, Call)] == list("abab")
    np.testing.assert_array_equal(executable(program)([np.ones(8, np.float32)])[0], [7.0] * 8)


@pytest.mark.parametrize(
    "other",
    [
        plus("b", 1.0000001),
        plus("b", 1, size=7),
        elementwise("b", lambda x: const(1.0, "float32") - x, 8, 1),
        elementwise("b", lambda x: x + const(1.0, "float32"), 8, 1, parallel=True),
        elementwise("b", lambda x: x + const(1.0, "float64"), 8, 1, "float64"),
    ],
    ids=["number", "size", "operation", "parallel", "type"],
)
def test_what_differs_stays_apart(other: Kernel) -> None:
    calls = [Call("a", []), Call("b", [])]
    assert names(without_twins(Program([plus("a", 1), other], calls, [], []))) == ["a", "b"]


def test_zeros_of_either_sign_stay_apart() -> None:
    zeros = [elementwise(n, lambda x, z=z: x * const(z, "float32"), 8, 1) for n, z in
             (("a", 0.0), ("b", -0.0))]  # fmt: skip
    assert names(without_twins(Program(zeros, [], [], []))) == ["a", "b"]


def test_calls_in_loops_and_branches_are_renamed() -> None:
    one, other = Call("a", []), Call("b", [])
    loop = Loop([other], Argument.workspace(0), [one, other])
    branch = Branch(Argument.workspace(0), [[one], [loop, other]])
    program = without_twins(Program([plus("a", 1), plus("b", 1)], [branch], [], []))
    assert program.calls == [
        Branch(
            Argument.workspace(0), [[one], [Loop([one], Argument.workspace(0), [one, one]), one]]
        )
    ]


def test_layers_that_repeat_share_their_kernels() -> None:
    """Twelve equal layers need as many kernels as three, and are right."""
    shape = Shape(ElementType.F32, (16, 16))

    def layers(count: int) -> Any:
        def build(x: Any, w: Any) -> Any:
            for _ in range(count):
                x = ops.tanh(ops.dot(x, w))
            return x

        return computation(build, shape, shape)

    few, many = (len(without_twins(lower(layers(n), Machine(32, 1))).kernels) for n in (3, 12))
    assert few == many
    random = np.random.default_rng(0)
    check(layers(12), [random.normal(size=(16, 16)).astype(np.float32) / 4 for _ in range(2)])
