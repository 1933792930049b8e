"""Accesses that were not proven are checked at run time, and never made outside of a buffer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.backends_tvm.test_verification import load, program_of
from tests.runtime.programs import loaded
from tracejit.errors import CompilationError
from tracejit.graph import Instruction
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tracejit.backends.target import CPU
    from tracejit.backends.tvm.codegen.emitter import Emitter
    from tracejit.backends.tvm.cpu.llvm.kinds import FLOAT32
    from tracejit.backends.tvm.cpu.llvm.procedures import Procedure
    from tracejit.backends.tvm.cpu.objects.build import build
    from tracejit.backends.tvm.cpu.processor import processor_of
    from tracejit.backends.tvm.ir.affine import Opaque
    from tracejit.backends.tvm.ir.contracts import for_each, span
    from tracejit.backends.tvm.ir.tir import (
        PARALLEL,
        SERIAL,
        VECTORIZED,
        Buffer,
        Expr,
        Stmt,
        While,
        const,
        i32,
        i64,
        loop,
        seq,
        store,
        tirx,
    )
    from tracejit.backends.tvm.verification import program as verification

Body = Callable[[Buffer, Buffer, Buffer], Stmt]
X = np.arange(10, dtype="float32")


def run(body: Body, at: list[int], monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """What the kernel makes of places and ``X``; its result lies between other memory."""
    monkeypatch.setenv(verification.VARIABLE, "1")
    program = program_of(body, len(at), 10, 8, dtypes="iff")
    assert verification.verify_program(program).unsafe
    executable = loaded(build(program, processor_of(CPU)))
    (made,) = executable([np.array(at, "int32"), X])
    return np.asarray(made)


def gather(kind: Any) -> Body:
    return lambda at, x, z: loop(8, lambda i: store(z, i, load(x, load(at, i))), kind)


def scatter(at: Buffer, x: Buffer, z: Buffer) -> Stmt:
    clear = loop(8, lambda i: store(z, i, const(0, "float32")))
    return seq(clear, loop(8, lambda i: store(z, load(at, i), load(x, i))))


def chosen(at: Buffer, x: Buffer, z: Buffer) -> Stmt:
    """The load is evaluated under its condition only."""

    def element(i: Expr) -> Stmt:
        index = load(at, i)
        value = tirx.if_then_else(index < 100, load(x, index), const(-1, "float32"))
        return store(z, i, value)

    return loop(8, element)


def searched(at: Buffer, x: Buffer, z: Buffer) -> Stmt:
    """The condition of a while loop loads at a place that its body moves."""

    def step(i: Expr) -> Stmt:
        place = tirx.Cast("int32", load(z, i))
        return While(
            load(x, place) < tirx.Cast("float32", load(at, i)), store(z, i, x_after(place))
        )

    def x_after(place: Expr) -> Expr:
        return tirx.Cast("float32", place + 1)

    begin = loop(8, lambda i: store(z, i, const(0, "float32")))
    return seq(begin, loop(8, step))


def vectors(at: Buffer, x: Buffer, z: Buffer) -> Stmt:
    first = load(at, i32(0))
    return store(z, tirx.Ramp(i32(0), i32(1), 8), load(x, tirx.Ramp(first, i32(1), 8)))


def copy_of(name: str, is_nest: bool) -> Body:
    """A routine that copies ``count`` numbers from an index that is read from memory."""
    code = Procedure(name, ("source", "target"), ("first", "count"), 1)
    if is_nest:

        def accesses(given: Mapping[str, Any]) -> Stmt:
            source, target, first = (given[each] for each in ("source", "target", "first"))
            return for_each(lambda i: seq(source.load(first + i), target.store(i)), given["count"])

        code.accesses(accesses)
    else:
        code.touches([span("source", "first", "count")], [span("target", 0, "count")])

    def number(i: str) -> None:
        source = code.address("%source", code.product(code.sum("%first", i), "4"))
        code.put(code.get(FLOAT32, source), code.address("%target", code.product(i, "4")))

    code.loop("%count", number)
    return lambda at, x, z: code.called(
        [x.data, z.data, tirx.Cast("int64", load(at, i32(0))), i64(8)]
    )


KINDS: dict[str, Body] = {
    "serial loop": gather(SERIAL),
    "vectorized loop": gather(VECTORIZED),
    "parallel loop": gather(PARALLEL),
    "store": scatter,
    "condition": chosen,
    "while": searched,
    "ramp": vectors,
    "routine": copy_of("copies_a_region", is_nest=False),
    "routine with a nest": copy_of("copies_by_a_nest", is_nest=True),
}
WRONG = {"store": (-1, 8), "condition": (-1, 12), "while": (11,), "ramp": (-1, 3)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_index_raises_before_the_access(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    places = [0] * 8 if kind in ("while", "ramp") or "routine" in kind else [*range(8)]
    expected = {"while": np.zeros(8, "float32")}.get(kind, X[:8])
    np.testing.assert_array_equal(run(KINDS[kind], places, monkeypatch), expected)
    for wrong in WRONG.get(kind, (-1, 10)):
        what = "a store to" if kind == "store" else "a load from"
        # The first lane and the last are compared, as are the ends of a region.
        index = {"ramp": -1 if wrong < 0 else 10, "while": 10}.get(kind, wrong)
        index = 17 if kind == "routine" and wrong > 0 else index
        with pytest.raises(CompilationError, match=rf"{what} buffer m.* has index {index}\b"):
            run(KINDS[kind], [wrong, *places[1:]], monkeypatch)
    if kind == "condition":
        given = run(chosen, [100, *places[1:]], monkeypatch)
        np.testing.assert_array_equal(given, [-1, *X[1:8]])


def test_a_parallel_loop_that_may_race_is_serial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(verification.VARIABLE, "1")

    def body(at: Buffer, x: Buffer, z: Buffer) -> Stmt:
        return loop(8, lambda i: store(z, tirx.floormod(load(at, i), 8), load(x, i)), PARALLEL)

    program = program_of(body, 8, 10, 8, dtypes="iff")
    report = verification.verify_program(program, is_written=False)
    (kernel,) = verification.checked_at_run_time(program, report).kernels
    assert int(kernel.body.kind) == int(SERIAL)
    assert kernel.stats.schedule.endswith("serial")


def test_the_error_names_op_buffer_and_the_users_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gather whose clamp is left out."""

    def unclamped(self: Emitter, given: Instruction, indices: Any, limit: int) -> Opaque:
        return Opaque(tirx.Cast(self.index_dtype, self.value(given, indices)), frozenset())

    monkeypatch.setattr(Emitter, "start", unclamped)

    def taken(x: Any, i: Any) -> Any:
        return tj.lax.dynamic_slice(x, (i,), (3,)) * 2

    compiled = tj.jit(taken)
    np.testing.assert_array_equal(compiled(X, np.int32(4)), X[4:7] * 2)
    told = r"dynamic-slice, multiply: a load from buffer .* has index 4000 \(test_access_checks"
    with pytest.raises(CompilationError, match=told):
        compiled(X, np.int32(4000))
    assert "accesses checked" in str(compiled.lower(X, np.int32(4)).compile().explain())
