"""Rows that the kernels of a program's loop store are proven to be written."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.backends_tvm.test_verification import load
from tracejit.backends.abi import ArraySpec
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tests.lowered import lower
    from tracejit.backends.target import CPU
    from tracejit.backends.tvm.cpu.processor import processor_of
    from tracejit.backends.tvm.ir.tir import Expr, Stmt, buffer, i32, loop, store, tirx
    from tracejit.backends.tvm.program.program import (
        Argument,
        Branch,
        Call,
        Kernel,
        Loop,
        Node,
        Program,
    )
    from tracejit.backends.tvm.verification.program import Finding, verify_program

F32, S32, PRED = (np.dtype(name) for name in ("float32", "int32", "uint8"))
ROWS, WIDTH = 40, 6
AT, NEXT, FLAG, TURN = (Argument.workspace(64 * n) for n in range(4))
OUTPUT = Argument.output(0)


def kernel(name: str, body: Callable[..., Stmt], *memories: tuple[np.dtype, int]) -> Kernel:
    """A kernel that writes its last parameter."""
    parameters = [buffer(f"m{n}", (size,), str(dtype)) for n, (dtype, size) in enumerate(memories)]
    return Kernel(name, parameters, body(*parameters), reads=len(memories) - 1)


def scalar(name: str, function: Callable[[Expr], Expr], target: np.dtype = S32) -> Kernel:
    return kernel(
        name, lambda x, z: store(z, i32(0), function(load(x, i32(0)))), (S32, 1), (target, 1)
    )


def rows(index: Callable[[Expr], Expr] = lambda at: at, width: int = WIDTH) -> Kernel:
    """Stores the input's row of a number to the output's, which is clamped."""

    def body(at: Any, x: Any, z: Any) -> Stmt:
        number = index(load(at, i32(0)))
        row = tirx.Select(number < 0, i32(0), tirx.min(number, i32(ROWS - 1)))
        return loop(width, lambda i: store(z, row * WIDTH + i, load(x, i)))

    return kernel("rows", body, (S32, 1), (F32, WIDTH), (F32, ROWS * WIDTH))


def compared(bound: int, first: int = 1, other: int = 0, dtype: np.dtype = PRED) -> Kernel:
    def chosen(at: Expr) -> Expr:
        return tirx.Select(at < bound, tirx.const(first, str(dtype)), tirx.const(other, str(dtype)))

    return scalar("compared" if dtype is PRED else "turn", chosen, dtype)


ROW = Call("rows", [AT, Argument.input(0), OUTPUT])
STEP = [Call("stepped", [AT, NEXT]), Call("moved", [NEXT, AT])]
TEST = [Call("compared", [AT, FLAG])]


def program(
    body: list[Node],
    start: int = 0,
    bound: int = ROWS,
    step: int = 1,
    row: Kernel | None = None,
    steps: int | None = None,
    more: tuple[Kernel, ...] = (),
) -> Program:
    """``i = start; while i < bound: body``, where the body has STEP, which adds ``step`` to i."""
    kernels = [
        kernel("start", lambda z: store(z, i32(0), i32(start)), (S32, 1)),
        compared(bound),
        scalar("stepped", lambda at: at + step),
        scalar("moved", lambda at: at),
        rows() if row is None else row,
        *more,
    ]
    specs = [ArraySpec(F32, (WIDTH,))], [ArraySpec(F32, (ROWS * WIDTH,))]
    calls: list[Node] = [Call("start", [AT]), Loop(TEST, FLAG, body, steps)]
    return Program(kernels, calls, *specs, workspace_bytes=256)


def unwritten(made: Program) -> list[Finding]:
    return [f for f in verify_program(made).unproven if f.rule == "initialisation"]


@pytest.mark.parametrize("steps", [None, ROWS])
def test_rows_at_a_counter_are_written(steps: int | None) -> None:
    made = program([ROW, *STEP], steps=steps)
    assert not verify_program(made).unproven


@pytest.mark.parametrize(
    "changed",
    [
        {"start": 1},
        {"bound": ROWS - 1},
        {"step": 2},
        {"row": rows(width=WIDTH - 1)},
        {"row": rows(lambda at: at * 2)},
        {"row": rows(lambda at: at + 1)},
        {"start": ROWS},
    ],
    ids=str,
)
def test_a_row_that_is_left_out_is_found(changed: dict[str, Any]) -> None:
    assert unwritten(program([ROW, *STEP], **changed))


def test_a_counter_may_start_anywhere_and_run_backwards_to_the_rows() -> None:
    assert not unwritten(program([ROW, *STEP], row=rows(lambda at: (ROWS - 1) - at)))
    assert not unwritten(program([ROW, *STEP], -5, ROWS - 5, row=rows(lambda at: at + 5)))
    two = Call("more", [AT, Argument.input(0), OUTPUT])
    odd = Kernel("more", (kernel_ := rows(lambda at: at + 1)).parameters, kernel_.body, 2)
    assert not unwritten(program([ROW, two, *STEP], step=2, more=(odd,)))


def test_what_a_branch_may_leave_out_is_not_written() -> None:
    """Of a selector that nothing is known of, in the loop or around it."""
    branch = Branch(Argument.input(0), [[ROW], []])
    assert unwritten(program([branch, *STEP]))
    made = program([ROW, *STEP])
    start, whole = made.calls
    both = [[start, whole], [start]]
    assert unwritten(dataclasses.replace(made, calls=[Branch(Argument.input(0), both)]))


@pytest.mark.parametrize(
    ("bound", "count", "is_whole"),
    [(ROWS, ROWS, True), (ROWS - 1, ROWS, True), (ROWS - 1, ROWS - 1, False)],
)
def test_loops_that_take_turns(bound: int, count: int, is_whole: bool) -> None:
    """Two iterations in one; the second is left out if the first was the last."""
    turn = compared(count, 0, 1, S32)
    back = [Call("rows", [NEXT, Argument.input(0), OUTPUT]), Call("stepped", [NEXT, AT])]
    body: list[Node] = [
        ROW,
        Call("stepped", [AT, NEXT]),
        Call("turn", [NEXT, TURN]),
        Branch(TURN, [back, [Call("moved", [NEXT, AT])]]),
    ]
    assert (not unwritten(program(body, bound=bound, more=(turn,)))) == is_whole


def test_an_integer_that_something_else_writes_is_unknown() -> None:
    other = kernel("other", lambda x, z: store(z, i32(0), load(x, i32(0))), (S32, 1), (S32, 1))
    over = Call("other", [Argument.input(0), AT])
    assert unwritten(program([ROW, over, *STEP], more=(other,)))


def test_a_row_is_not_written_before_its_iteration() -> None:
    """What an outer loop's iteration reads of rows that only the last one stores."""
    own = Argument.workspace(256)
    copied = kernel(
        "read",
        lambda x, z: loop(ROWS * WIDTH, lambda i: store(z, i, load(x, i))),
        *[(F32, ROWS * WIDTH)] * 2,
    )
    made = program([], more=(copied,))
    row, read = Call("rows", [AT, Argument.input(0), own]), Call("read", [own, OUTPUT])
    for body, after, is_right in (([row, read], [], False), ([row], [read], True)):
        calls = [made.calls[0], Loop(TEST, FLAG, [*body, *STEP]), *after]
        size = 256 + ROWS * WIDTH * 4
        changed = dataclasses.replace(made, calls=calls, workspace_bytes=size)
        assert (not unwritten(changed)) == is_right


@pytest.mark.parametrize("stated", [0, 1, ROWS - 1, ROWS + 1])
def test_a_stated_trip_count_is_checked(stated: int) -> None:
    (finding,) = (f for f in unwritten(program([ROW, *STEP], steps=stated)) if f.is_certain)
    assert f"runs {ROWS} times, not {stated} as the program states" in finding.text


def _stacked(x: Any) -> Any:
    return tj.lax.scan(lambda c, row: (c + row, c * row), x[0], x)[1]


def _sorted(x: Any) -> Any:
    return tj.lax.scan(lambda c, row: (c + row, np.sort(c * row)), x[0], x)[1]


def _nested(x: Any) -> Any:
    def step(total: Any, row: Any) -> Any:
        more, sums = tj.lax.scan(lambda a, b: (a + b, a * b), row.sum(), row)
        return total + more, sums

    return tj.lax.scan(step, np.float32(0), x)


def _gradient(x: Any) -> Any:
    def total(x: Any) -> Any:
        return tj.lax.scan(lambda c, row: (np.tanh(c + row), c * row), x[0], x)[1].sum()

    return tj.grad(total)(x)


@pytest.mark.parametrize("function", [_stacked, _sorted, _nested, _gradient])
@pytest.mark.parametrize("shape", [(33, 17), (801, 600), (2000, 600)], ids=str)
def test_scans_outside_of_registers(function: Callable[[Any], Any], shape: tuple[int, int]) -> None:
    module = tj.jit(function).lower(np.ones(shape, F32)).module
    assert not verify_program(lower(module.entry, processor_of(CPU).machine)).unproven
