"""Loops whose iterations are independent: threads run whole iterations, in one kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.lowered import lower
from tests.runtime.programs import loaded
from tracejit import lax
from tracejit.api import interpret
from tracejit.graph import Module
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tracejit.backends.tvm.cpu.iterations import SCHEDULE
    from tracejit.backends.tvm.cpu.machine import Machine
    from tracejit.backends.tvm.cpu.objects.build import build
    from tracejit.backends.tvm.cpu.processor import processor_of
    from tracejit.backends.tvm.program.program import Loop, Program, walk
    from tracejit.backends.tvm.verification.program import verify_program

RNG = np.random.default_rng(0)


def machine(vector_bytes: int = 32, threads: int = 2) -> Machine:
    """One that finds little work worth a thread, and vectorises no loop."""
    return Machine(vector_bytes, threads, l2=512, parallel_work=64, least_batched=1 << 30)


def drawn(*dimensions: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(dimensions).astype(dtype)


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def attention(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ np.swapaxes(k, -1, -2) * 0.25) @ v


def layers(x: Any, w: Any) -> Any:
    """A map over blocks, with an array that each iteration reads whole."""
    return lax.map(lambda rows: np.tanh(rows @ w) @ w.T, x)


def times_number(x: Any) -> Any:
    """The counter is a value as well as an index, and some reads are of other blocks."""

    def step(state: Any) -> Any:
        i, made = state
        other = lax.dynamic_slice(x, ((i + 1) % 6, 0, 0), (1, 40, 10))
        rows = np.sqrt(abs(lax.dynamic_slice(x, (i, 0, 0), (1, 40, 10)))) + other.sum()
        rows = rows * i.astype(np.float32)
        return i + 1, lax.dynamic_update_slice(made, rows, (i, 0, 0))

    return lax.while_loop(lambda state: state[0] < 6, step, (np.int32(0), np.zeros_like(x)))


def two_results(x: Any) -> Any:
    return lax.scan(lambda _, rows: (None, (rows @ rows.T, np.exp(rows))), None, x)[1]


MAPPED: dict[str, tuple[Callable[..., Any], Sequence[np.ndarray]]] = {
    "heads": (attention, [drawn(6, 17, 8), drawn(6, 19, 8), drawn(6, 19, 9)]),
    "rows": (attention, [drawn(64, 4), drawn(30, 4), drawn(30, 3)]),
    "heads of rows": (attention, [drawn(4, 64, 4), drawn(4, 40, 4), drawn(4, 40, 3)]),
    "heads of uneven rows": (attention, [drawn(4, 67, 4), drawn(4, 40, 4), drawn(4, 40, 3)]),
    "f64": (attention, [drawn(6, 17, 8, dtype=np.float64) for _ in range(3)]),
    "map": (layers, [drawn(8, 20, 12), drawn(12, 10)]),
    "counter": (times_number, [drawn(6, 40, 10)]),
    "two results": (two_results, [drawn(8, 20, 12)]),
}


def carried(x: Any) -> Any:
    return lax.scan(lambda total, row: (np.tanh(total @ row), np.exp(row)), x[0], x)


def written(x: Any, count: int, place: Callable[[Any], Any], read: Any = None) -> Any:
    """Rows of ``count`` iterations, written to a place for each."""

    def step(state: Any) -> Any:
        i, made = state
        rows = np.sqrt(abs(lax.dynamic_slice(x, (i, 0, 0), (1, 40, 10))))
        if read is not None:
            rows = rows + lax.dynamic_slice(made, (read(i), 0, 0), (1, 40, 10))
        return i + 1, lax.dynamic_update_slice(made, rows, (place(i), 0, 0))

    begin = np.int32(0), np.ones_like(x)
    return lax.while_loop(lambda state: state[0] < count, step, begin)[1]


DEPENDENT: dict[str, tuple[Callable[..., Any], Sequence[np.ndarray]]] = {
    "carries a product": (carried, [drawn(8, 20, 20)]),
    "reads what another wrote": (
        lambda x: written(x, 6, lambda i: i, lambda i: i - 1),
        [drawn(6, 40, 10)],
    ),
    "two write to one place": (lambda x: written(x, 6, lambda i: i // 2), [drawn(6, 40, 10)]),
    "in another order": (lambda x: written(x, 6, lambda i: 5 - i), [drawn(6, 40, 10)]),
    "some are not written": (lambda x: written(x, 4, lambda i: i), [drawn(6, 40, 10)]),
    "few for many threads": (layers, [drawn(3, 20, 12), drawn(12, 10)]),
}


def module_of(function: Callable[..., Any], arguments: Sequence[np.ndarray]) -> Module:
    return tj.jit(function).lower(*arguments).module


def mapped(program: Program) -> list[str]:
    return [kernel.name for kernel in program.kernels if kernel.stats.schedule == SCHEDULE]


def check(module: Module, program: Program, arguments: Sequence[np.ndarray]) -> None:
    """The results are the interpreter's."""
    wanted = interpret(module, *arguments)
    results = loaded(build(program, processor_of()))([*arguments])
    for one, other in zip(results, wanted if isinstance(wanted, tuple) else [wanted], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("name", MAPPED)
def test_iterations_make_what_the_loop_makes(name: str, vector_bytes: int, threads: int) -> None:
    function, arguments = MAPPED[name]
    module = module_of(function, arguments)
    program = lower(module.entry, machine(vector_bytes, threads))
    check(module, program, arguments)
    if threads < 3:  # three do not share four or eight iterations evenly
        assert len(mapped(program)) == 1
        assert not any(isinstance(node, Loop) for node in walk(program.calls))
        assert not verify_program(program).unproven


@pytest.mark.parametrize("name", DEPENDENT)
def test_other_loops_stay(name: str) -> None:
    function, arguments = DEPENDENT[name]
    module = module_of(function, arguments)
    program = lower(module.entry, machine(threads=2))
    assert not mapped(program)
    check(module, program, arguments)


def test_blocks_are_not_copied() -> None:
    """Each kernel of an iteration reads and writes arrays where they are."""
    function, arguments = MAPPED["heads"]
    program = lower(module_of(function, arguments).entry, machine())
    (kernel,) = program.kernels
    assert kernel.stats.bytes_written < 2 * sum(a.nbytes for a in arguments) + 2 * 6 * 17 * 19 * 4


def test_little_work_stays_a_loop() -> None:
    function, arguments = MAPPED["map"]
    little = Machine(32, 2, l2=512, least_batched=1 << 30)
    assert not mapped(lower(module_of(function, arguments).entry, little))
