"""The verifier of finished programs proves what is right, and finds what is planted."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.verification.__main__ import main
from tracejit.backends.abi import ArraySpec
from tracejit.backends.explanation import WHOLE_LOOP
from tracejit.errors import CompilationError
from tracejit.graph import Instruction
from tracejit.ops.indexing import GATHER
from tracejit.ops.layout import RESHAPE
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tests.lowered import lower
    from tracejit.backends.target import CPU
    from tracejit.backends.tvm.analysis import in_place_safety
    from tracejit.backends.tvm.buffers import assignment, in_place
    from tracejit.backends.tvm.cpu.objects.build import build
    from tracejit.backends.tvm.cpu.processor import processor_of
    from tracejit.backends.tvm.cpu.schedule.rows.column_kernel import Columns
    from tracejit.backends.tvm.fusion.planner import _Fusion
    from tracejit.backends.tvm.ir.contracts import Contract, declare, for_each, span, whole
    from tracejit.backends.tvm.ir.limits import Limits
    from tracejit.backends.tvm.ir.reshapes import base_buffer
    from tracejit.backends.tvm.ir.tir import (
        PARALLEL,
        VECTORIZED,
        AllocBuffer,
        Buffer,
        Evaluate,
        Expr,
        IfThenElse,
        Stmt,
        While,
        buffer,
        const,
        i32,
        i64,
        loop,
        seq,
        store,
        tirx,
    )
    from tracejit.backends.tvm.lower import control
    from tracejit.backends.tvm.program.program import Argument, Call, Kernel, Loop, Node, Program
    from tracejit.backends.tvm.verification import program as verification
    from tracejit.backends.tvm.verification.program import Finding, Report, verify_program

F32 = np.dtype("float32")


def program_of(body: Callable[..., Stmt], *sizes: int, dtypes: str = "") -> Program:
    """One kernel that writes its last parameter; ``dtypes`` has an i for each of integers."""
    kinds = ["int32" if mark == "i" else "float32" for mark in dtypes.ljust(len(sizes), "f")]
    memories = [buffer(f"m{n}", (s,), k) for n, (s, k) in enumerate(zip(sizes, kinds, strict=True))]
    specs = [ArraySpec(np.dtype(k), (s,)) for s, k in zip(sizes, kinds, strict=True)]
    kernel = Kernel("kernel", memories, body(*memories), reads=len(sizes) - 1)
    inputs = [Argument.input(n) for n in range(len(sizes) - 1)]
    calls = [Call("kernel", [*inputs, Argument.output(0)])]
    return Program([kernel], calls, specs[:-1], specs[-1:])


def report(body: Callable[..., Stmt], *sizes: int, dtypes: str = "") -> Report:
    """Without what is said of a result that is not written in full."""
    found = verify_program(program_of(body, *sizes, dtypes=dtypes))
    found.unproven = [f for f in found.unproven if f.rule != "initialisation"]
    return found


def unwritten(body: Callable[..., Stmt], *sizes: int, dtypes: str = "") -> list[Finding]:
    found = verify_program(program_of(body, *sizes, dtypes=dtypes)).unproven
    return [finding for finding in found if finding.rule == "initialisation"]


def load(memory: Buffer, index: Expr) -> Expr:
    return tirx.BufferLoad(memory, [index])


def copied(extent: int) -> Callable[[Buffer, Buffer], Stmt]:
    return lambda x, z: loop(extent, lambda i: store(z, i, load(x, i)))


def test_accesses_in_bounds_are_proven() -> None:
    found = report(copied(100), 100, 100)
    assert found.proven == 2
    assert not found.unproven


def test_an_extent_that_is_one_too_large_is_reported_with_the_iteration() -> None:
    found = report(copied(101), 100, 100)
    assert [finding.is_certain for finding in found.unproven] == [True, True]
    assert "a load from m0" in str(found.unproven[0])
    assert "above the last of 100, by 1 in iteration (100,)" in str(found.unproven[0])


def blocks(last: int) -> Callable[[Buffer, Buffer], Stmt]:
    """Vectors of 32, of which the last one begins at ``last``."""

    def block(x: Buffer, z: Buffer, i: Expr) -> Stmt:
        begin = tirx.min(i * 32, i32(last))
        return loop(32, lambda lane: store(z, begin + lane, load(x, begin + lane)), VECTORIZED)

    return lambda x, z: loop(4, lambda i: block(x, z, i))


def test_overlapping_vectors_end_with_their_memory() -> None:
    assert not report(blocks(68), 100, 100).unproven
    assert report(blocks(69), 100, 100).unproven


def padded(is_guarded: bool) -> Callable[[Buffer, Buffer], Stmt]:
    def element(x: Buffer, z: Buffer, i: Expr, j: Expr) -> Stmt:
        inside = store(z, i * 4 + j, load(x, i * 4 + j - 2))
        at = i * 4 + j
        return IfThenElse(tirx.And(at >= 2, at < 12), inside, None) if is_guarded else inside

    return lambda x, z: loop(4, lambda i: loop(4, lambda j: element(x, z, i, j)))


def test_a_guard_counts_and_a_dropped_one_is_reported() -> None:
    assert not report(padded(True), 10, 16).unproven
    assert all(finding.is_certain for finding in report(padded(False), 10, 16).unproven)


def gathered(clamp: Callable[[Expr], Expr]) -> Callable[[Buffer, Buffer, Buffer], Stmt]:
    return lambda at, x, z: loop(8, lambda i: store(z, i, load(x, clamp(load(at, i)))))


def test_an_index_out_of_memory_is_clamped() -> None:
    def clamped(index: Expr) -> Expr:
        low = tirx.Select(index < 0, i32(0), index)
        return tirx.Select(low > 9, i32(9), low)

    assert not report(gathered(clamped), 8, 10, 8, dtypes="iff").unproven
    assert not report(gathered(lambda i: tirx.floormod(i, 10)), 8, 10, 8, dtypes="iff").unproven
    (finding,) = report(gathered(lambda i: tirx.min(i, i32(9))), 8, 10, 8, dtypes="iff").unproven
    assert not finding.is_certain
    assert "below 0 of 10" in str(finding)


def test_a_select_guards_no_load() -> None:
    def chosen(at: Buffer, x: Buffer, z: Buffer) -> Stmt:
        index = load(at, i32(0))
        inside = tirx.And(index >= 0, index < 10)
        return store(z, i32(0), tirx.Select(inside, load(x, index), const(0, "float32")))

    assert report(chosen, 1, 10, 1, dtypes="iff").unproven


def compacted(most: int) -> Callable[[Buffer, Buffer], Stmt]:
    """What is positive, side by side; a kernel's own integer counts."""

    def body(x: Buffer, z: Buffer) -> Stmt:
        count = buffer("count", (1,), "int32", scope="local")

        def element(i: Expr) -> Stmt:
            found = seq(
                store(z, load(count, i32(0)), load(x, i)),
                store(count, i32(0), load(count, i32(0)) + 1),
            )
            return IfThenElse(load(x, i) > const(0, "float32"), found, None)

        return seq(AllocBuffer(count), store(count, i32(0), i32(0)), loop(most, element))

    return body


def test_numbers_that_loops_count_are_followed() -> None:
    assert not report(compacted(10), 10, 10).unproven
    assert report(compacted(10), 10, 9).unproven


def test_a_while_keeps_what_each_iteration_keeps() -> None:
    def searched(most: int) -> Callable[[Buffer, Buffer], Stmt]:
        def body(x: Buffer, z: Buffer) -> Stmt:
            at = buffer("at", (1,), "int32", scope="local")
            here = load(at, i32(0))
            following = store(at, i32(0), here + 1)
            # TVM computes both sides of an And.
            going_on = here < most
            step = seq(store(z, here, load(x, here)), following)
            return seq(AllocBuffer(at), store(at, i32(0), i32(0)), While(going_on, step))

        return body

    assert not report(searched(10), 10, 10).unproven
    assert report(searched(11), 10, 10).unproven


def filling(
    first: int = 0,
    bound: int = 10,
    step: int = 1,
    is_flagged: bool = False,
    extra: Callable[[Buffer, Expr, Buffer], Stmt] | None = None,
    going_on: Callable[[Buffer, Expr], Expr] = lambda x, here: const(True, "bool"),
) -> Callable[[Buffer, Buffer], Stmt]:
    """Fills rows of 2 elements of a local buffer by a counter, and reads 10 of them afterwards.

    A loop that ``is_flagged`` tests the counter inside of its body, and keeps the answer.
    """

    def body(x: Buffer, z: Buffer) -> Stmt:
        at, flag = (buffer(name, (1,), "int32", scope="local") for name in ("at", "flag"))
        rows = buffer("rows", (20,), "float32", scope="local")
        zero = i32(0)
        here = load(at, zero)
        goes_on = here < bound if step > 0 else here >= bound
        goes_on = tirx.And(goes_on, going_on(x, here))
        filled = loop(2, lambda i: store(rows, here * 2 + i, load(x, here)))
        more = [] if extra is None else [extra(x, here, at)]
        row = seq(filled, store(at, zero, here + step), *more)
        is_set = load(flag, zero) != 0
        again = store(flag, zero, tirx.Select(goes_on, i32(1), zero))
        return seq(
            *(AllocBuffer(each) for each in (at, flag, rows)),
            store(at, zero, i32(first)),
            store(flag, zero, i32(1)),
            While(is_set, seq(again, IfThenElse(is_set, row, None)))
            if is_flagged
            else While(goes_on, row),
            loop(20, lambda i: store(z, i, load(rows, i))),
        )

    return body


@pytest.mark.parametrize("is_flagged", [False, True])
def test_a_while_that_counts_fills_the_rows_that_it_counts(is_flagged: bool) -> None:
    assert not unwritten(filling(is_flagged=is_flagged), 10, 20)
    assert not unwritten(filling(9, 0, -1, is_flagged), 10, 20)
    for first, bound, step in ((1, 10, 1), (0, 9, 1), (0, 10, 2), (9, 1, -1), (8, 0, -1)):
        found = unwritten(filling(first, bound, step, is_flagged), 10, 20)
        assert [finding.is_certain for finding in found] == [True], (first, bound, step)
    assert report(filling(0, 11, 1, is_flagged), 10, 20).unproven


@pytest.mark.parametrize("is_flagged", [False, True])
def test_a_while_that_the_data_may_end_fills_no_rows_for_certain(is_flagged: bool) -> None:
    def positive(x: Buffer, here: Expr) -> Expr:
        return load(x, tirx.min(here, i32(9))) > 0

    def again(x: Buffer, here: Expr, at: Buffer) -> Stmt:
        return IfThenElse(load(x, i32(0)) > 0, store(at, i32(0), here + 1), None)

    def ended(x: Buffer, here: Expr, at: Buffer) -> Stmt:
        return IfThenElse(load(x, i32(0)) > 0, Evaluate(tirx.break_loop()), None)

    for found in (
        unwritten(filling(is_flagged=is_flagged, going_on=positive), 10, 20),
        unwritten(filling(is_flagged=is_flagged, extra=again), 10, 20),
        unwritten(filling(is_flagged=is_flagged, extra=ended), 10, 20),
    ):
        assert found
        assert not any(finding.is_certain for finding in found)


@pytest.mark.parametrize(("first", "bound"), [(0, 1 << 19), (1, 1 << 19), (0, (1 << 19) - 1)])
def test_more_rows_than_are_enumerated_are_counted(first: int, bound: int) -> None:
    """More than `MOST_ITERATIONS` elements; indices of rows are clamped, as by `dynamic_slice`."""

    def body(x: Buffer, z: Buffer) -> Stmt:
        at, flag = (buffer(name, (1,), "int32", scope="local") for name in ("at", "flag"))
        zero, most = i32(0), i32((1 << 19) - 1)
        here, is_set = load(at, zero), load(flag, zero) != 0
        clamped = tirx.Select(here < 0, zero, tirx.Select(here > most, most, here))
        filled = loop(4, lambda i: store(z, clamped * 4 + i, load(x, i)))
        again = store(flag, zero, tirx.Select(here < bound, i32(1), zero))
        row = IfThenElse(is_set, seq(filled, store(at, zero, here + 1)), None)
        begin = [store(at, zero, i32(first)), store(flag, zero, i32(1))]
        return seq(AllocBuffer(at), AllocBuffer(flag), *begin, While(is_set, seq(again, row)))

    found = unwritten(body, 4, 1 << 21)
    is_whole = (first, bound) == (0, 1 << 19)
    assert [finding.is_certain for finding in found] == [True] * (not is_whole)
    if found:
        byte = 0 if first else 16 * bound
        assert f"byte {byte}, never written" in found[0].text


def test_a_loop_in_registers_writes_the_rows_that_it_stacks() -> None:
    def stacked(x: Any) -> Any:
        return tj.lax.scan(lambda total, row: (total + row, total * row), x[0], x)[1]

    module = tj.jit(stacked).lower(np.ones((33, 17), F32)).module
    program = lower(module.entry, processor_of(CPU).machine)
    assert any(kernel.stats.schedule == WHOLE_LOOP for kernel in program.kernels)
    assert not verify_program(program).unproven


def test_a_nested_while_reads_what_the_outer_one_wrote() -> None:
    def body(first: int) -> Callable[[Buffer, Buffer], Stmt]:
        def made(x: Buffer, z: Buffer) -> Stmt:
            outer, inner, own = (
                buffer(name, (size,), kind, scope="local")
                for name, size, kind in (
                    ("outer", 1, "int32"),
                    ("inner", 1, "int32"),
                    ("own", 4, "float32"),
                )
            )
            zero = i32(0)

            def counted(counter: Buffer, *steps: Stmt) -> Stmt:
                going_on = load(counter, zero) < tirx.Cast("int32", load(x, zero))
                return While(going_on, seq(store(counter, zero, load(counter, zero) + 1), *steps))

            filled = loop(4 - first, lambda i: store(own, i + first, load(x, i)))
            moved = loop(4, lambda i: store(z, i, load(own, i)))
            return seq(
                *(AllocBuffer(each) for each in (outer, inner, own)),
                loop(4, lambda i: store(z, i, load(x, i))),
                store(outer, zero, zero),
                counted(outer, filled, store(inner, zero, zero), counted(inner, moved)),
            )

        return made

    assert not unwritten(body(0), 4, 4)
    assert unwritten(body(1), 4, 4)


def test_a_result_whose_rows_the_data_choose_is_not_certainly_unwritten() -> None:
    def body(at: Buffer, z: Buffer) -> Stmt:
        return loop(8, lambda i: store(z, tirx.floormod(load(at, i), 8), const(1, "float32")))

    (finding,) = unwritten(body, 8, 8, dtypes="if")
    assert not finding.is_certain
    (finding,) = unwritten(body, 8, 9, dtypes="if")
    assert finding.is_certain


def test_empty_kernels_that_share_a_body_have_memory_of_their_own() -> None:
    nothing = Evaluate(i32(0))
    sizes = 8, 4
    kernels = [
        Kernel(f"k{size}", [buffer(f"m{size}", (size,), "float32")], nothing) for size in sizes
    ]
    calls = [Call(f"k{size}", [Argument.output(n)]) for n, size in enumerate(sizes)]
    outputs = [ArraySpec(F32, (size,)) for size in sizes]
    aliased = Program(kernels, calls, outputs, outputs, aliases={0: 0})
    (finding,) = verify_program(aliased).unproven
    assert "output 1 has byte 0, never written" in finding.text


def test_integers_that_wrap_are_any_number() -> None:
    def body(at: Buffer, x: Buffer, z: Buffer) -> Stmt:
        index = load(at, i32(0))
        # At most 2147483647 + 1, which is negative.
        return IfThenElse(index >= 9, store(z, i32(0), load(x, tirx.min(index + 1, i32(9)))), None)

    assert report(body, 1, 10, 1, dtypes="iff").unproven


def test_building_refuses_what_is_certainly_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(verification.VARIABLE, "1")
    with pytest.raises(CompilationError, match=r"bounds: kernel, .*m0_\d+ has an index above"):
        build(program_of(copied(101), 100, 100), processor_of(CPU))


def test_every_program_is_verified_in_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(verification, "observers", [lambda program, report: seen.append(report)])
    tj.jit(lambda x: x * 2 + 3.25)(np.ones(17, F32))
    (found,) = seen
    assert found.proven
    assert not found.unproven


def test_minus_one_is_not_minus_two() -> None:
    # Their hashes are equal.
    def body(x: Buffer, z: Buffer) -> Stmt:
        return loop(10, lambda i: store(z, i, load(x, 2 * i + i * -1 + 2 + -2)))

    assert not report(body, 10, 10).unproven


def in_parallel(step: int) -> Callable[[Buffer, Buffer], Stmt]:
    """Pieces of 25 elements, each of which begins ``step`` after the one before."""

    def piece(x: Buffer, z: Buffer, n: Expr) -> Stmt:
        return loop(25, lambda i: store(z, n * step + i, load(x, n * step + i)))

    return lambda x, z: loop(4, lambda n: piece(x, z, n), PARALLEL)


def test_parallel_iterations_write_apart() -> None:
    assert not report(in_parallel(25), 100, 100).unproven
    (finding,) = report(in_parallel(24), 100, 100).unproven
    assert finding.rule == "races"
    (finding,) = report(in_parallel(0), 100, 100).unproven
    assert "same elements of m1" in str(finding)


def test_parallel_iterations_do_not_read_what_others_write() -> None:
    def body(x: Buffer, z: Buffer) -> Stmt:
        def element(i: Expr) -> Stmt:
            return store(z, i, load(x, i) + load(z, tirx.min(i + 1, i32(9))))

        return loop(10, element, PARALLEL)

    (finding,) = report(body, 10, 10).unproven
    assert finding.rule == "races"


def test_memory_of_an_iteration_is_its_own() -> None:
    def piece(x: Buffer, z: Buffer, i: Expr) -> Stmt:
        own = buffer("own", (1,), "float32", scope="local")
        return seq(AllocBuffer(own), store(own, i32(0), load(x, i)), store(z, i, load(own, i32(0))))

    assert not report(lambda x, z: loop(9, lambda i: piece(x, z, i), PARALLEL), 9, 9).unproven


def in_memory_of_its_own(
    body: Callable[[Buffer, Buffer, Buffer], Stmt], scope: str = "local"
) -> Callable[[Buffer, Buffer], Stmt]:
    def kernel(x: Buffer, z: Buffer) -> Stmt:
        own = buffer("own", (10,), "float32", scope=scope)
        return seq(AllocBuffer(own), body(x, own, z))

    return kernel


def test_memory_is_written_before_it_is_read() -> None:
    def body(first: int) -> Callable[[Buffer, Buffer, Buffer], Stmt]:
        return lambda x, own, z: seq(
            loop(10 - first, lambda i: store(own, i + first, load(x, i))),
            loop(10, lambda i: store(z, i, load(own, 9 - i))),
        )

    assert not unwritten(in_memory_of_its_own(body(0)), 10, 10)
    (finding,) = unwritten(in_memory_of_its_own(body(1)), 10, 10)
    assert finding.is_certain
    assert re.fullmatch(r"a load from own_\d+ has element \(0,\), never written", finding.text)


def test_a_loop_reads_what_its_iterations_before_wrote() -> None:
    def body(back: int) -> Callable[[Buffer, Buffer, Buffer], Stmt]:
        def next_one(own: Buffer, z: Buffer, i: Expr) -> Stmt:
            following = store(own, tirx.min(i + 1, i32(9)), load(own, i - back + 1))
            return seq(following, store(z, i, load(own, i)))

        return lambda x, own, z: seq(
            store(own, i32(0), load(x, i32(0))), loop(9, lambda i: next_one(own, z, i))
        )

    assert not unwritten(in_memory_of_its_own(body(1)), 10, 9)
    (finding,) = unwritten(in_memory_of_its_own(body(0)), 10, 9)
    assert finding.is_certain


def test_what_a_condition_has_written_is_read_under_the_same_condition_only() -> None:
    def body(is_inside: bool) -> Callable[[Buffer, Buffer, Buffer], Stmt]:
        def element(x: Buffer, own: Buffer, z: Buffer, i: Expr) -> Stmt:
            written = store(own, i32(0), load(x, i))
            read = store(z, i, load(own, i32(0)))
            positive = load(x, i) > const(0, "float32")
            if is_inside:
                return IfThenElse(positive, seq(written, read), None)
            return seq(IfThenElse(positive, written, None), read)

        return lambda x, own, z: loop(10, lambda i: element(x, own, z, i))

    def found(is_inside: bool) -> list[bool]:
        findings = unwritten(in_memory_of_its_own(body(is_inside)), 10, 10)
        return [finding.is_certain for finding in findings if "a load from own" in finding.text]

    assert not found(True)
    assert found(False) == [False]


def chained(first: int, steps: int | None = None, size: int = 10) -> Program:
    """Copies to the workspace and from there; with ``steps``, the first copy in a loop."""
    kernels = []
    for name, extent in (("first", first), ("second", size)):
        memories = [buffer("x", (size,), "float32"), buffer("z", (size,), "float32")]
        kernels.append(Kernel(name, memories, copied(extent)(*memories), reads=1))
    copies = [Call("first", [Argument.input(0), Argument.workspace(0)])]
    last = Call("second", [Argument.workspace(0), Argument.output(0)])
    spec = ArraySpec(F32, (size,))
    calls: list[Node] = [*copies, last]
    if steps is not None:
        calls = [Loop([], Argument.input(0), copies, steps), last]
    return Program(kernels, calls, [spec], [spec], workspace_bytes=4 * size)


def test_calls_read_what_calls_before_wrote() -> None:
    assert not verify_program(chained(10)).unproven
    (finding,) = verify_program(chained(9)).unproven
    assert finding.is_certain
    assert finding.kernel == "second"
    assert "element (9,), never written" in finding.text


def test_a_loop_may_run_no_body() -> None:
    (finding,) = verify_program(chained(10, steps=2)).unproven
    assert "a loop's body is not proven to run 2 times" in finding.text
    (finding,) = verify_program(chained(10, steps=0)).unproven
    assert not finding.is_certain


def test_outputs_are_written_in_full() -> None:
    (finding,) = unwritten(copied(9), 10, 10)
    assert finding.is_certain
    assert "output 0 has byte 36, never written" in finding.text


def test_an_update_of_memory_that_nobody_wrote_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is gathered from has memory of its own; the update goes to what it reshapes."""
    monkeypatch.setenv("TRACEJIT_VERIFY", "all")
    wants_memory = _Fusion._wants_memory

    def wanted(self: _Fusion, user: Instruction, operand: Instruction) -> bool:
        is_reshaped = user.op is GATHER and operand.op is RESHAPE and operand is user.operands[0]
        return is_reshaped or wants_memory(self, user, operand)

    monkeypatch.setattr(_Fusion, "_wants_memory", wanted)
    for module in (assignment, control, in_place, in_place_safety):
        monkeypatch.setattr(module, "stored_as", lambda array, has_memory: base_buffer(array))

    def products(a: Any) -> Any:
        v = a.sum(2, keepdims=True)
        v[np.array([2, 4])] += 1
        return v.T @ v

    with pytest.raises(CompilationError, match=r"initialisation: .*never written .*_verification"):
        tj.jit(products)(np.ones((5, 5, 3)))

    def doubled(a: Any) -> Any:
        v = a.sum(2, keepdims=True)
        v[np.array([2, 4])] += 1
        return np.cumsum(v, axis=0)

    with pytest.raises(CompilationError, match=r"has element \(0,\), never written"):
        tj.jit(doubled)(np.ones((5, 7, 3)))


@pytest.mark.parametrize("vectors", [32, 64])
def test_all_of_samples_and_dumps_is_proven(
    vectors: int, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--samples", "60", "--graphs", "24", "--show", "9", "--vectors", str(vectors)]
    assert main(asked) == 0
    *unproven, total = capsys.readouterr().out.splitlines()
    assert unproven == []
    assert int(total.split()[0]) > 10_000


def told(source: int, target: int, permutes: bool = False) -> Callable[[Buffer, Buffer], Stmt]:
    """A routine that copies numbers, from places on, and a loop that reads them as indices."""
    name = f"copies_{permutes}"
    reads, writes = [span("source", "from", "count")], [span("target", "to", "count")]
    names = ("source", "target", "from", "to", "count")
    declare(name, Contract(names, reads, writes, permutes))

    def body(x: Buffer, z: Buffer) -> Stmt:
        numbers = buffer("numbers", (8,), "int32")
        given = [numbers.data, numbers.data, i64(source), i64(target), i64(4)]
        return seq(
            AllocBuffer(numbers),
            loop(8, lambda i: store(numbers, i, i)),
            Evaluate(tirx.call_extern("int32", name, *given)),
            loop(8, lambda i: store(z, i, load(x, load(numbers, i)))),
        )

    return body


def test_what_a_routine_is_given_has_what_it_reads_and_writes() -> None:
    assert not report(told(0, 4, permutes=True), 8, 8).unproven
    read, stored = report(told(5, 6), 8, 8).unproven[:2]
    assert "a load from numbers" in read.text
    assert "above the last of 8, by 1 in iteration (3,)" in read.text
    assert "a store to numbers" in stored.text
    assert read.is_certain
    assert stored.is_certain


def test_accesses_of_a_routine_are_those_of_its_loop_nest() -> None:
    def copied_by_routine(name: str, workers: int) -> Callable[[Buffer, Buffer], Stmt]:
        def accesses(given: Mapping[str, Any]) -> Stmt:
            def element(i: Expr) -> Stmt:
                at = given["first"] + i
                return seq(given["source"].load(at), given["target"].store(at))

            return for_each(element, given["count"])

        declare(name, Contract(("source", "target", "first", "count"), (), (), accesses=accesses))

        def work(x: Buffer, z: Buffer, w: Expr) -> Stmt:
            share = [x.data, z.data, tirx.Cast("int64", w * 25), i64(100 // workers)]
            return Evaluate(tirx.call_extern("int32", name, *share))

        return lambda x, z: loop(workers, lambda w: work(x, z, w), PARALLEL)

    right = copied_by_routine("copies_shares", 4)
    assert verify_program(program_of(right, 100, 100)).unproven == []
    assert verify_program(program_of(right, 100, 100)).proven == 2
    too_small = report(right, 90, 100).unproven
    assert ["a load from m0" in str(finding) for finding in too_small] == [True]
    assert too_small[0].is_certain
    wide = copied_by_routine("copies_too_much", 2)
    (race,) = report(wide, 100, 100).unproven
    assert race.rule == "races"
    assert unwritten(wide, 100, 100)[0].is_certain


def test_iterations_that_write_apart_in_no_order_are_enumerated() -> None:
    def body(back: int) -> Callable[[Buffer, Buffer], Stmt]:
        def piece(x: Buffer, z: Buffer, n: Expr) -> Stmt:
            ahead = loop(5, lambda i: store(z, n * 5 + i, load(x, i)))
            return seq(ahead, loop(5, lambda i: store(z, back - n * 5 - i, load(x, i))))

        return lambda x, z: loop(4, lambda n: piece(x, z, n), PARALLEL)

    assert not report(body(39), 40, 40).unproven
    (finding,) = report(body(31), 40, 40).unproven
    assert finding.rule == "races"


def test_two_parts_that_a_routine_divides_are_the_whole() -> None:
    def body(gap: int) -> Callable[[Buffer, Buffer], Stmt]:
        def made(x: Buffer, z: Buffer) -> Stmt:
            said = buffer("said", (1,), "int64")
            counted = Contract(
                ("said", "most"), [], [whole("said", 1)], counts=[(whole("said", 1), "most")]
            )
            declare("counts_some", counted)
            part = span("target", "first", "count")
            declare("fills_part", Contract(("target", "first", "count"), [], [part]))
            number = load(said, i32(0))
            rest = [z.data, number + gap, i64(8 - gap) - number]
            return seq(
                AllocBuffer(said),
                Evaluate(tirx.call_extern("int32", "counts_some", said.data, i64(8 - gap))),
                Evaluate(tirx.call_extern("int32", "fills_part", z.data, i64(0), number)),
                Evaluate(tirx.call_extern("int32", "fills_part", *rest)),
            )

        return made

    assert not unwritten(body(0), 8, 8)
    assert unwritten(body(1), 8, 8)


def test_a_routine_that_permutes_keeps_indices() -> None:
    (finding,) = report(told(0, 4), 8, 8).unproven
    assert re.match(r"a load from m0_\d+ has an index below 0", finding.text)


def test_what_a_routine_writes_has_been_written() -> None:
    def body(is_written: bool) -> Callable[[Buffer, Buffer], Stmt]:
        def made(x: Buffer, z: Buffer) -> Stmt:
            part = span("target", 0, "count")
            name = f"fills_{is_written}"
            contract = Contract(("target", "count"), [], [part] if is_written else [])
            declare(name, contract)
            return Evaluate(tirx.call_extern("int32", name, z.data, i64(8)))

        return made

    assert not unwritten(body(True), 8, 8)
    (finding,) = unwritten(body(False), 8, 8)
    assert finding.is_certain


def test_kernels_of_one_structure_are_proven_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    verify_kernel = verification.verify_kernel

    def counted(kernel: Kernel, report: Report) -> Any:
        asked.append(kernel.name)
        return verify_kernel(kernel, report)

    monkeypatch.setattr(verification, "verify_kernel", counted)
    monkeypatch.setattr(verification, "_proven", {})
    assert verify_program(program_of(copied(100), 100, 100)).proven == 2
    assert verify_program(program_of(copied(100), 100, 100)).proven == 2
    assert len(asked) == 1
    # Another size is another structure, and what is wrong is looked at again.
    for _ in range(2):
        assert verify_program(program_of(copied(101), 100, 100)).unproven
    assert len(asked) == 3


def test_panels_wider_than_the_axis_that_a_reshape_split_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Panels that are cut from a dimension of the array, and not from an axis of the loops."""
    layout = Columns.local_layout

    def of_dimension(self: Columns) -> tuple[int, int]:
        axes = self.row_axes
        axis = axes[-1]
        self.row_axes = [*axes[:-1], dataclasses.replace(axis, extent=2 * axis.extent)]
        made = layout(self)
        self.row_axes, self.axis = axes, axis
        return made

    monkeypatch.setattr(Columns, "local_layout", of_dimension)
    monkeypatch.setattr(Limits, "are_columns", lambda self, count: count > 1)

    def centered(a: Any) -> Any:
        x = np.repeat(a, 2, axis=1)
        return x - x.sum(0)

    for function in (centered, lambda a: np.var(np.tile(a, (1, 2)), 0)):
        with pytest.raises(CompilationError, match=r"bounds: .*columns side by side: .*_verific"):
            tj.jit(function)(np.ones((4, 8)))
