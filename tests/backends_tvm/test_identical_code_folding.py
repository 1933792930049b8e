"""Identical code folding: kernels compiled once for several calls, and kernels that must not be."""

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
    from tests.lowered import lower
    from tracejit.backends.tvm.cpu.machine import Machine
    from tracejit.backends.tvm.cpu.objects.identical_code_folding import fold_identical_kernels
    from tracejit.backends.tvm.ir.tir import const
    from tracejit.backends.tvm.program.program import Argument, Branch, Call, Kernel, Loop, Program

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
    program = fold_identical_kernels(chain(plus("a", 1), plus("b", 2), plus("c", 1), plus("d", 2)))
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
    assert names(fold_identical_kernels(Program([plus("a", 1), other], calls, [], []))) == [
        "a",
        "b",
    ]


def test_zeros_of_either_sign_stay_apart() -> None:
    zeros = [elementwise(n, lambda x, z=z: x * const(z, "float32"), 8, 1) for n, z in
             (("a", 0.0), ("b", -0.0))]  # fmt: skip
    assert names(fold_identical_kernels(Program(zeros, [], [], []))) == ["a", "b"]


def test_calls_in_loops_and_branches_are_renamed() -> None:
    one, other = Call("a", []), Call("b", [])
    loop = Loop([other], Argument.workspace(0), [one, other])
    branch = Branch(Argument.workspace(0), [[one], [loop, other]])
    program = fold_identical_kernels(Program([plus("a", 1), plus("b", 1)], [branch], [], []))
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

    few, many = (
        len(fold_identical_kernels(lower(layers(n), Machine(32, 1))).kernels) for n in (3, 12)
    )
    assert few == many
    random = np.random.default_rng(0)
    check(layers(12), [random.normal(size=(16, 16)).astype(np.float32) / 4 for _ in range(2)])


def steps_of(build: Any, *shapes: Shape) -> int:
    """How many kernels are left of a program."""
    return len(fold_identical_kernels(lower(computation(build, *shapes), Machine(32, 1))).kernels)


def test_parts_of_an_array_share_their_kernels() -> None:
    """What is made of one column after the other and stored, in the end, in rows."""
    shape, small = Shape(ElementType.F32, (6, 40)), Shape(ElementType.F32, (6, 9))

    def rows(count: int) -> Any:
        def build(x: Any, y: Any) -> Any:
            for step in range(count):
                part = ops.slice_(x, [0, 3 * step], [6, 3 * step + 9])
                part = ops.dot(part, ops.transpose(y, [1, 0]))
                first = ops.slice_(part, [0, 0], [1, 6])
                starts = [ops.constant(n, ElementType.S32) for n in (step, 7 * step % 30)]
                x = ops.dynamic_update_slice(x, first, starts)
            return x

        return build

    assert steps_of(rows(3), shape, small) == steps_of(rows(6), shape, small)
    random = np.random.default_rng(0)
    given = [random.normal(size=s.dimensions).astype(np.float32) / 4 for s in (shape, small)]
    check(computation(rows(6), shape, small), given)


@pytest.mark.parametrize("starts", [(-5, 2), (9, 100), (0, 0)], ids=str)
def test_known_starts_of_updates_are_clamped(starts: tuple[int, int]) -> None:
    shape, small = Shape(ElementType.F32, (6, 8)), Shape(ElementType.F32, (2, 3))

    def build(x: Any, part: Any) -> Any:
        places = [ops.constant(n, ElementType.S32) for n in starts]
        return ops.dynamic_update_slice(x, ops.exp(part), places)

    random = np.random.default_rng(1)
    given = [random.normal(size=s.dimensions).astype(np.float32) for s in (shape, small)]
    check(computation(build, shape, small), given)


def test_parts_that_are_read_backwards_stay_apart_or_right() -> None:
    shape = Shape(ElementType.F32, (4, 32))

    def build(x: Any) -> Any:
        parts = [ops.slice_(x, [0, n], [4, n + 8]) for n in (0, 5, 24)]
        turned = [ops.dot(ops.rev(p, [1]), ops.transpose(p, [1, 0])) for p in parts]
        return ops.concatenate(turned, 1)

    random = np.random.default_rng(2)
    check(computation(build, shape), [random.normal(size=(4, 32)).astype(np.float32)])


def test_equal_layers_are_written_once() -> None:
    """Each kernel of a layer is the same object in all layers, on its own memory."""
    shape = Shape(ElementType.F32, (16, 16))

    def build(x: Any, w: Any) -> Any:
        for _ in range(5):
            x = ops.tanh(ops.dot(x, w))
        return x

    program = lower(computation(build, shape, shape), Machine(32, 1))
    bodies = {id(kernel.body) for kernel in program.kernels}
    assert len(bodies) < len(program.kernels)
    assert len({kernel.name for kernel in program.kernels}) == len(program.kernels)


@pytest.mark.parametrize("numbers", [(0.5, 0.5, 0.5), (0.5, 0.25, 0.75)], ids=["equal", "others"])
def test_layers_with_other_numbers_are_others(numbers: tuple[float, ...]) -> None:
    shape = Shape(ElementType.F32, (8, 8))

    def build(x: Any) -> Any:
        for number in numbers:
            factor = ops.broadcast_in_dim(ops.constant(number, ElementType.F32), (8, 8), ())
            x = ops.dot(ops.mul(x, factor), ops.transpose(x, [1, 0]))
        return x

    random = np.random.default_rng(3)
    check(computation(build, shape), [random.normal(size=(8, 8)).astype(np.float32) / 2])
