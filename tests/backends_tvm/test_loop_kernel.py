"""Loops in one kernel: scalarised arrays, dead state, loops that repeat another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.backends_tvm.compiled import check, computation
from tracejit import ops
from tracejit.graph import Computation, Instruction
from tracejit.ops.loops import loop
from tracejit.runtime import importing_tvm
from tracejit.shapes import ElementType, Shape

with importing_tvm():
    from tvm.tirx import While
    from tvm_ffi import structural_walk

    from tests.lowered import lower
    from tracejit.backends.tvm.cpu import loop_kernel
    from tracejit.backends.tvm.cpu.machine import Machine
    from tracejit.backends.tvm.cpu.objects.tir_pipeline import contents
    from tracejit.backends.tvm.program.program import Branch, Loop, Node, Program

TURNS = 5


def turned(step: Callable[[Any], Any], state: Any) -> Any:
    """``step`` five times, in a loop."""
    after = tj.lax.while_loop(lambda s: s[0] < TURNS, lambda s: (s[0] + 1, step(s[1])), (0, state))
    return after[1]


def agrees(function: Callable[..., Any], *arguments: Any) -> None:
    """Compiled and interpreted, on the module that is traced."""
    leaves = [np.asarray(a) for a in tj.tree.leaves(arguments)]
    check(tj.jit(function).lower(*arguments).module.entry, leaves)


def rotated(y: Any) -> Any:
    return np.stack([y[1], -y[0]]) * 0.9


def reversed_and_padded(y: Any) -> Any:
    longer = np.pad(y[::-1], (1, 1))
    return longer[1:3] + np.concatenate([y[:1], y[1:]]) * 0.5


def by_matrix(y: Any) -> Any:
    matrix = np.stack([np.stack([y[0], y[1]]), np.stack([y[1], 1 - y[0]])])
    return np.tanh(matrix.T @ y + matrix.sum(axis=0) - matrix.max(axis=1))


def clipped(y: Any) -> Any:
    total = np.sum(np.where(y > 0.2, y, -y))
    return np.clip(y * 1.7, -1.0, total).astype(np.float32).astype(np.float64)


def with_a_sort(y: Any) -> Any:
    return np.sort(np.stack([y[1] + 0.1, y[0] * -1.5]))


def with_a_long_row(y: Any) -> Any:
    row = np.arange(50.0) * y[0] + y[1]
    return np.stack([np.mean(np.sin(row)), row[7] / 10])


STEPS = [rotated, reversed_and_padded, by_matrix, clipped, with_a_sort, with_a_long_row]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_values(step: Callable[[Any], Any]) -> None:
    agrees(lambda y: turned(step, y), np.array([0.3, -0.7]))


def test_special_numbers() -> None:
    for special in (np.nan, np.inf, -0.0):
        agrees(lambda y: turned(by_matrix, y), np.array([special, 0.5]))
        agrees(lambda y: turned(reversed_and_padded, y), np.array([special, -0.0]))


def test_nested_loops_and_branches() -> None:
    def step(y: Any) -> Any:
        inner = turned(rotated, y)
        return tj.lax.cond(y[0] > 0, lambda z: np.stack([z[1], z[0]]), lambda z: z * 2, inner)

    agrees(lambda y: turned(step, y), np.array([0.3, -0.7]))


def program(function: Callable[..., Any], *arguments: Any) -> Program:
    return lower(tj.jit(function).lower(*arguments).module.entry, Machine())


def kernels(function: Callable[..., Any], *arguments: Any) -> list[str]:
    """The names of the kernels that are compiled."""
    return [kernel.name for kernel in program(function, *arguments).kernels]


def loops(function: Callable[..., Any], *arguments: Any) -> tuple[int, int]:
    """How many loops there are in kernels, and how many around them."""
    inside: list[Any] = []
    made = program(function, *arguments)
    for kernel in made.kernels:
        structural_walk(kernel.body, [(While, inside.append)])
    return len(inside), _around(made.calls)


def _around(nodes: Sequence[Node]) -> int:
    found = 0
    for node in nodes:
        if isinstance(node, Loop):
            found += 1 + _around(node.condition) + _around(node.body)
        elif isinstance(node, Branch):
            found += sum(map(_around, node.branches))
    return found


def test_a_loop_over_numbers_is_one_kernel() -> None:
    assert kernels(lambda y: turned(rotated, y), np.array([0.3, -0.7])) == ["k0_while"]


def halved(p: Any) -> Any:
    return turned(lambda y: turned(lambda z: z * p - 0.1, y) * 0.5, 1.0)


def told(p: Any) -> Any:
    return turned(lambda y: tj.lax.cond(y > p, lambda z: np.sin(z), lambda z: z * 2 + p, y), p)


def switched(p: Any) -> Any:
    branches = [lambda z: z + p, lambda z: np.exp(z), lambda z: -z]
    return turned(lambda y: tj.lax.switch(np.floor(y).astype(np.int32), branches, y), p)


def swapped(p: Any) -> Any:
    def step(state: Any) -> Any:
        a, b, c, n = state
        return b, a + c, n * p, n + np.int8(100)

    return tj.lax.fori_loop(0, 7, lambda i, s: step(s), (p, p * 2, 0.0, np.int8(1)))


def many_types(p: Any) -> Any:
    def step(state: Any) -> Any:
        z, flag, half, small = state
        return z * z + p, ~flag, half * np.float16(1.5), small + np.uint8(200)

    init = (1j * p, p > 0, np.float16(0.5), np.uint8(3))
    return tj.lax.fori_loop(0, 5, lambda i, s: step(s), init)


def no_step(p: Any) -> Any:
    return tj.lax.while_loop(lambda s: s[0] < p, lambda s: (s[0] - 1, s[1] * 2), (p, p))


def elements(p: Any) -> Any:
    """Arrays stay in memory: reads and writes of one element, at places that loops count."""

    def step(i: Any, state: Any) -> Any:
        x, total = state
        return x.at[i % 3].add(x[(i + 1) % 3] * p), total + x[i % 3]

    return tj.lax.fori_loop(0, 11, step, (np.arange(3.0), 0.0))


NUMBERS = [halved, told, switched, swapped, many_types, no_step, elements]


@pytest.mark.parametrize("function", NUMBERS, ids=lambda f: f.__name__)
def test_loops_in_registers(function: Callable[..., Any]) -> None:
    for p in (0.7, 1.3, -0.0, np.nan, np.inf):
        agrees(function, np.float64(p))
    inside, around = loops(function, np.float64(0.7))
    assert inside
    assert not around


def test_numbers_that_are_read_once_and_written_over() -> None:
    """A number goes into a vector as another takes its place."""

    def scaled(a: Any, b: Any) -> tuple[Any, Any]:
        return np.exp(b[0] - b[1]), np.stack([b[0] * b[1], a * 3])

    def kept(a: Any, b: Any) -> tuple[Any, Any]:
        return np.sin(b[0] + b[1]), np.stack([a, b[0] * b[1]])

    a, b = np.array(7.0), np.array([0.5, 1.5])
    for step in (kept, scaled):
        agrees(lambda a, b, step=step: tj.lax.fori_loop(0, 4, lambda i, s: step(*s), (a, b)), a, b)
        given_away = tj.jit(step, donate_argnums=(0, 1))(a.copy(), b.copy())
        for made, expected in zip(given_away, step(a, b), strict=True):
            np.testing.assert_allclose(made, expected, rtol=1e-14)


@pytest.mark.parametrize("name", ["bf16", "f16", "f8e5m2"])
def test_narrow_numbers_stored_under_a_condition(name: str) -> None:
    """LLVM would write four bytes for two, also to an array that is a variable of the loop."""
    element_type = ElementType(name)
    kind = Shape(element_type, (16,))
    left, right = (ops.parameter(n, Shape(element_type)) for n in range(2))
    above = Computation("above", (left, right), ops.gt(left, right))
    add = ops.scalar_computation("add", element_type)

    def step(count: Instruction, wide: Instruction, start: Instruction) -> list[Instruction]:
        narrow = ops.convert_element_type(wide, element_type)
        source = ops.iota(Shape(element_type, (21,)), 0)
        made = ops.select_and_scatter(narrow, above, [1], [1], [(3, 2)], source, start, add)
        following = ops.add(count, ops.constant(1, ElementType.S32))
        return [following, ops.convert_element_type(made, ElementType.F32), start]

    def build(x: Instruction, start: Instruction) -> Instruction:
        init = ops.constant(0, ElementType.S32), ops.convert_element_type(x, ElementType.F32), start
        limit = ops.constant(3, ElementType.S32)
        return loop("narrow", init, lambda count, *_: ops.lt(count, limit), step)[1]

    entry = computation(build, kind, Shape(element_type))
    for start in (-7, 1):
        check(entry, [np.full(16, 0.5, kind.dtype), np.array(start, kind.dtype)])


def test_two_numbers_that_begin_as_one() -> None:
    """The first may lie where the argument does; the other has to be read before it is written."""

    def both(p: Any) -> Any:
        q = np.sin(p)
        return tj.lax.fori_loop(0, 3, lambda i, s: (s[1] * 2, s[0] - s[2], s[2]), (q, q, q))

    agrees(both, np.float64(0.7))


def test_large_steps_stay_a_loop_around_kernels() -> None:
    x = np.linspace(0, 1, 5000)
    assert loops(lambda x: turned(lambda y: np.sin(y) * x, x), x) == (0, 1)


def test_steps_that_need_much_of_the_stack_stay_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(y: Any) -> Any:
        return turned(by_matrix, y)

    y = np.array([0.3, -0.7])
    made = {kernel.name: kernel for kernel in program(function, y).kernels}
    used = contents(made["k0_while"].body).stack_bytes
    assert used > 8
    monkeypatch.setattr(loop_kernel, "STACK_LIMIT", used - 1)
    assert "k0_while" not in kernels(function, y)


def test_state_that_nothing_needs_is_left_out() -> None:
    def both(y: Any, matrix: Any) -> Any:
        def step(state: Any) -> Any:
            vector, product, count = state
            return rotated(vector), product @ matrix, count + 1

        after = tj.lax.while_loop(lambda s: s[2] < TURNS, step, (y, matrix, 0))
        return after[0]

    arguments = np.array([0.3, -0.7]), np.eye(9)
    agrees(both, *arguments)
    assert not any("dot" in name for name in kernels(both, *arguments))


def test_what_a_later_loop_does_not_need_an_earlier_one_does_not_make() -> None:
    def chained(y: Any, matrix: Any) -> Any:
        def step(state: Any) -> Any:
            return state[0] * 0.5, state[1] @ matrix, state[2] + 1

        first = tj.lax.while_loop(lambda s: s[2] < TURNS, step, (y, matrix, 0))
        return tj.lax.while_loop(lambda s: s[2] < 2 * TURNS, step, first)[0]

    arguments = np.array([0.3, -0.7]), np.eye(9)
    agrees(chained, *arguments)
    assert not any("dot" in name for name in kernels(chained, *arguments))


def settled(p: Any) -> Any:
    """A loop that turns as often as the numbers want, and its sum."""

    def goes_on(y: Any) -> Any:
        return np.sum(np.abs(y)) > 0.05

    return np.sum(tj.lax.while_loop(goes_on, lambda y: y * p - 0.01, np.array([1.0, 0.5])))


def test_a_derivative_takes_no_step_twice() -> None:
    p = np.array([0.7, 0.6])
    agrees(tj.value_and_grad(settled), p)
    assert sum(loops(tj.value_and_grad(settled), p)) == 1


def test_a_scan_of_loops_takes_no_step_twice() -> None:
    def total(p: Any) -> Any:
        def move(y: Any, x: Any) -> Any:
            after = tj.lax.while_loop(lambda y: y[0] < x, lambda y: y * p + 0.1, y)
            return after * 0.5, after[1]

        return np.sum(tj.lax.scan(move, np.array([0.1, 0.2]), np.arange(4.0))[1])

    p = np.array([1.1, 1.05])
    agrees(tj.value_and_grad(total), p)
    # The two scans, and the loop within the first.
    assert sum(loops(tj.value_and_grad(total), p)) == 3


def test_a_solver_that_halves_takes_no_step_twice() -> None:
    def total(p: Any) -> Any:
        after = tj.lax.while_loop(
            lambda s: s[0] < 3.0,
            lambda s: (s[0] + 0.5, s[1] + s[0] / 2 * (s[1] * p + s[1])),
            (0.0, np.array([0.1, 0.2])),
        )
        return np.sum(after[1])

    p = np.array([0.3, 0.2])
    agrees(tj.value_and_grad(total), p)
    assert sum(loops(tj.value_and_grad(total), p)) == 1


def test_a_part_that_also_has_memory_of_its_own() -> None:
    """The vector is made of the numbers; a sort wants one of them as an array."""

    def step(y: Any) -> Any:
        first = np.reshape(np.sin(y[0]) * np.exp(y[1]), (1,))
        wide = np.sort(np.concatenate([np.broadcast_to(first, (70,)), first]))
        return np.concatenate([first, np.reshape(y[0] + wide[3], (1,))]) * 1.0

    agrees(lambda y: turned(step, y), np.array([0.3, -0.7]))


def test_a_long_step() -> None:
    """More ops than one kernel holds."""

    def step(y: Any) -> Any:
        for _ in range(60):
            y = np.stack([np.sin(y[0]) + y[1] * 0.5, y[0] * y[1] + 0.1, y[2] - y[0]])
        return y

    agrees(lambda y: turned(step, y), np.array([0.3, -0.7, 0.2]))


def test_arrays_without_elements() -> None:
    """In the condition, and in the state."""

    def until(e: Any, a: Any) -> Any:
        n = 0
        while np.any(e >= a[0]) and n < 3:
            n += 1
            a = a * 2
        return a, n

    def grown(e: Any, a: Any) -> Any:
        n = 0
        while n < a[0]:
            e = e * 2 + n
            n += 1
            a[1] += e.sum()
        return a, n, e

    e, a = np.zeros((0, 4)), np.arange(2.0, 6.0)
    for function in (until, grown):
        made = tj.jit(function, autograph=True)(e, a)
        for one, other in zip(made, function(e, a.copy()), strict=True):
            np.testing.assert_array_equal(one, other)
