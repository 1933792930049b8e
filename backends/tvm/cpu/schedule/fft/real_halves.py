"""The kernel that converts between a real spectrum and a complex FFT of half the length.

Of h pairs, z[k] and z[h - k] make x[k] and x[h - k]: with s, d the sum and the difference of the
one and the other's conjugate, x[k] = s / 2 + u d and x[h - k] is the conjugate of s / 2 - u d. The
factor u is exp(-pi i k / h) / 2i, or its conjugate for the inverse, which is the same otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers, share
from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.kinds import KINDS
from tracejit.backends.tvm.cpu.llvm.procedures import Procedure
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.mathematics.vocabulary import muladd
from tracejit.backends.tvm.ir.contracts import for_each
from tracejit.backends.tvm.ir.tir import Buffer, Expr, IfThenElse, Stmt, i32, loop, seq


@dataclass(frozen=True)
class Halves:
    """``count`` rows of ``points`` pairs; ``inverse`` computes the pairs from the spectrum."""

    count: int
    points: int
    inverse: bool
    itemsize: int
    vector_bytes: int

    @property
    def width(self) -> int:
        """Numbers in one vector."""
        most = self.points // 2
        wide = max(self.vector_bytes // (2 * self.itemsize), 1)
        return min(wide, 1 << (most.bit_length() - 1))

    @property
    def blocks(self) -> int:
        """Vectors in the first half of one row; the last may overlap the one before."""
        return -(-(self.points // 2) // self.width)


def fourier_halves(
    frame: Frame, what: Halves, source: Buffer, table: Buffer, target: Buffer
) -> Stmt:
    """The statement of the whole kernel."""
    procedure = _code(what)
    threads = machine_of(frame).threads if frame.is_shared(16 * what.count * what.points) else 1
    memories = [memory.data for memory in (source, table, target)]

    def part(row: Expr, first: Expr, count: Expr) -> Stmt:
        integers = [each.astype("int64") for each in (row, first, count)]
        return procedure.called([*memories, *integers])

    def rows_of(worker: Expr) -> Stmt:
        first, count = share(worker, what.count, threads)
        return loop(count, lambda row: part(first + row, i32(0), i32(what.blocks)))

    if what.count >= threads:
        return on_workers(threads, rows_of)
    workers = min(threads, what.blocks)
    return loop(
        what.count,
        lambda row: on_workers(
            workers, lambda worker: part(row, *share(worker, what.blocks, workers))
        ),
    )


def _accesses(what: Halves, sizes: tuple[int, int], given: Mapping[str, Any]) -> Stmt:
    """The accesses of a call; the last block is moved to end with the first half."""
    points, half = what.points, what.points // 2
    memories = [
        (given[name], 2 * size) for name, size in zip(("source", "target"), sizes, strict=True)
    ]

    def numbers(*which: Expr) -> Stmt:
        def part(n: Expr) -> Stmt:
            (source, from_row), (target, to_row) = memories
            at = [2 * number + n for number in which]
            return seq(
                [source.load(given["row"] * from_row + each) for each in at],
                [target.store(given["row"] * to_row + each) for each in at],
            )

        return for_each(part, 2)

    def number(n: Expr, x: Expr) -> Stmt:
        j = (given["first"] + n) * what.width + x
        factor = for_each(lambda part: given["table"].load(2 * j + part), 2)
        return IfThenElse(j < half, seq(factor, numbers(j + 1, points - 1 - j)), None)

    def ends() -> Stmt:
        (source, from_row), (target, to_row) = memories
        at = [given["row"] * row for row in (from_row, to_row)]
        one, both = (0, 1), (0, 1, 2 * points, 2 * points + 1)
        read, written = (both, one) if what.inverse else (one, both)
        return seq(
            [source.load(at[0] + part) for part in read],
            [target.store(at[1] + part) for part in written],
        )

    blocks = for_each(number, given["count"], what.width)
    return seq(IfThenElse(given["first"] == 0, ends(), None), blocks)


def _code(what: Halves) -> Procedure:
    """``count`` vectors of a row from vector ``first`` on; the ends of the row with the first."""
    kind = KINDS["float32" if what.itemsize == 4 else "float64"]
    way = "inverse" if what.inverse else "forward"
    name = f"fourier_halves_{way}_{what.points}_{kind.name}"
    code = Procedure(name, ("source", "table", "target"), ("row", "first", "count"), 2)
    number, points, width = 2 * what.itemsize, what.points, what.width
    sizes = (points + 1, points) if what.inverse else (points, points + 1)
    code.accesses(partial(_accesses, what, sizes))
    source, target = (
        code.address(f"%{memory}", code.product("%row", str(size * number)))
        for memory, size in zip(("source", "target"), sizes, strict=True)
    )
    end = str(points * number)
    reverse = [2 * n + part for n in reversed(range(width)) for part in (0, 1)]
    flipped = [lane ^ 1 for lane in range(2 * width)]

    def ends() -> None:
        first = code.get(kind, source)
        if what.inverse:
            first = code.shuffled(first, code.get(kind, code.address(source, end)), [0, 2])
        other = code.shuffled(first, first, [1, 0])
        total, less = first + other, first - other
        if what.inverse:
            code.put(code.shuffled(total, less, [0, 2]) * 0.5, target)
            return
        nothing = Value(code, kind, "zeroinitializer")
        code.put(code.shuffled(total, nothing, [0, 2]), target)
        code.put(code.shuffled(less, nothing, [0, 2]), code.address(target, end))

    def block(index: str) -> None:
        before = code.product(code.sum("%first", index), str(width))
        before = code.lesser(before, str(points // 2 - width))
        ahead = code.product(before, str(number))
        there = code.sum(code.product(before, str(-number)), str((points - width) * number))
        here = code.sum(ahead, str(number))
        turn = code.get(kind, code.address("%table", ahead))
        re = code.shuffled(turn, turn, [lane & ~1 for lane in range(2 * width)])
        im = code.shuffled(turn, turn, [lane | 1 for lane in range(2 * width)])
        conjugate = code.by_turns(kind, 1.0, -1.0)
        a = code.get(kind, code.address(source, here))
        b = code.get(kind, code.address(source, there))
        b = code.shuffled(b, b, reverse)
        total, less = muladd(b, conjugate, a), a - b * conjugate
        im = im * code.by_turns(kind, -1.0, 1.0)
        odd = muladd(code.shuffled(less, less, flipped), im, less * re)
        code.put(muladd(total, 0.5, odd), code.address(target, here))
        other = muladd(total, 0.5, -odd) * conjugate
        code.put(code.shuffled(other, other, reverse), code.address(target, there))

    code.when(code.holds("eq", "%first", "0"), ends)
    code.lanes = 2 * width
    code.when(code.holds("sgt", "%count", "0"), lambda: code.loop("%count", block))
    return code
