"""The loop nests of an FFT as LLVM text: sweeps, strips and stages around one body for each radix.

Stages and strips are planned by `analysis.fft_plan`; the radix bodies are in `stages`. Programs
share the loops and the bodies: what is particular to one transform, its plan and the sizes of its
memory, are arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from tracejit.backends.tvm.analysis.fft_plan import (
    BEFORE_STAGES,
    COARSE,
    FINE,
    FROM_MATRIX,
    FROM_ROW,
    LAST,
    LENGTH,
    PER_STAGE,
    STAGES,
    STRIPS,
    TO_MATRIX,
    TO_ROW,
    Radix,
    Transform,
)
from tracejit.backends.tvm.cpu.llvm.procedures import Procedure
from tracejit.backends.tvm.cpu.schedule.fft.stages import Strip, stage, transpose
from tracejit.backends.tvm.ir.contracts import for_each
from tracejit.backends.tvm.ir.tir import Expr, IfThenElse, Stmt, i64, seq, tirx

POINTERS = ("source", "middle", "target", "scratch", "table", "plan")
INTEGERS = ("sweep", "first", "count", "worker")
_LOOPS = ("sweep", "first", "count", "room")
"""The integers of the loops that programs share; ``room`` is the bytes of a scratch buffer."""


def fourier_code(what: Transform, name: str) -> Procedure:
    """The procedure: of sweep ``sweep``, ``count`` strips from strip ``first`` on.

    With `Transform.by_rows`, both sweeps of ``count`` rows instead.
    """
    code = Procedure(name, POINTERS, INTEGERS, 2 * what.lanes)
    code.accesses(partial(_accesses, what))
    number = 2 * what.itemsize
    scratch = code.address("%scratch", code.product("%worker", str(2 * number * what.room)))
    middle, plan, room = "%middle", "%plan", str(number * what.room)
    if what.by_rows:
        begin = code.product("%worker", str(number * what.middle))
        middle = code.address(middle, begin)
    else:
        plan = code.address(plan, code.product("%sweep", str(8 * what.stride)))
    loops = _Code(what).procedure
    loops.share("fourier")
    integers = ["%sweep", "%first", "%count", room]
    code.invoke(loops, ["%source", middle, "%target", scratch, "%table", plan, *integers])
    return code


def _accesses(what: Transform, given: Mapping[str, Any]) -> Stmt:
    """The accesses of a call, for the verifier; the last strip is moved to end with the matrix."""
    source, middle, target, scratch, table, plan = (given[name] for name in POINTERS)
    first, count, worker = (given[name] for name in INTEGERS[1:])
    room, between = 4 * what.room, 2 * what.middle
    before = seq(table.load_all(), plan.load_all(), scratch.use(worker * room, room))

    def row(n: Expr) -> Stmt:
        numbers, begin = 2 * what.length, (first + n) * (2 * what.length)
        return seq(
            for_each(lambda i: source.load(begin + i), numbers),
            middle.use(worker * between, between),
            for_each(lambda i: target.store(begin + i), numbers),
        )

    if what.by_rows:
        return seq(before, for_each(row, count))

    def strip(sweep: int, n: Expr) -> Stmt:
        """Reads a strip's columns, and writes them, in the first sweep of a row as rows."""
        rows, columns = what.sizes[sweep]
        turns = what.is_row and sweep == 0
        read = middle if sweep else source
        written = middle if turns else target
        fields = what.tables()[0].reshape(len(what.ways), -1)[sweep]
        matrix, number = (first + n) // what.strips[sweep], (first + n) % what.strips[sweep]
        begin = number * what.width
        width = tirx.min(i64(what.width), columns - begin)

        def at(field: int, row: Expr) -> Expr:
            part = what.itemsize
            to_matrix, to_row = int(fields[field]) // part, int(fields[field + 1]) // part
            return matrix * to_matrix + row * to_row

        def stored(k: Expr, x: Expr, part: Expr) -> Stmt:
            if turns:
                return written.store(at(TO_MATRIX, begin + x) + 2 * k + part)
            return written.store(at(TO_MATRIX, k) + 2 * (begin + x) + part)

        return seq(
            for_each(
                lambda k, x, part: read.load(at(FROM_MATRIX, k) + 2 * (begin + x) + part),
                rows,
                width,
                2,
            ),
            for_each(stored, rows, width, 2),
        )

    sweeps = [for_each(partial(strip, sweep), count) for sweep in range(len(what.ways))]
    if len(sweeps) == 1:
        return seq(before, sweeps)
    return seq(before, IfThenElse(given["sweep"] == 0, *sweeps))


class _Code:
    """Writes the loops. ``parameters`` are a sweep's integers; known ones are literals."""

    def __init__(self, what: Transform) -> None:
        self.what = what
        self.procedure = Procedure("fourier", POINTERS, _LOOPS, 2 * what.lanes)
        self.number = 2 * what.itemsize
        """Bytes of a complex number."""
        self.line = self.number * what.width
        """Bytes of a row of a strip."""
        self.vectors = what.vectors
        """Bytes of the current strip."""
        self.parameters: list[str] = []
        code = self.procedure
        self.room = str(self.number * what.room) if what.by_rows else "%room"
        some = code.holds("sgt", "%count", "0")
        each = self._row if what.by_rows else self._generic_strip
        if not what.by_rows:
            self.parameters = [code.number("%plan", str(field)) for field in range(BEFORE_STAGES)]
            self.is_first = code.holds("eq", "%sweep", "0")
        code.when(some, lambda: code.loop("%count", each))

    def _row(self, number: str) -> None:
        """Both sweeps of a row, with all sizes as constants."""
        code, what = self.procedure, self.what
        row = code.sum("%first", number)
        plan, _ = what.tables()
        for sweep, fields in enumerate(plan.reshape(2, -1)):
            parameters = self.parameters = [str(field) for field in fields]
            is_first = sweep == 0
            source = "%middle"
            target = code.address("%target", code.product(row, parameters[TO_MATRIX]))
            if is_first:
                source = code.address("%source", code.product(row, parameters[FROM_MATRIX]))
                target = "%middle"
            do = partial(self._constant_strip, is_first, source, target)
            self.vectors = what.vectors
            if parameters[STAGES] == "1" and not is_first and what.sizes[1][1] % what.width == 0:
                # Strips that take a single stage are merged.
                self.vectors *= what.strips[1]
                do("0")
            else:
                code.loop(parameters[STRIPS], do)

    def _constant_strip(self, is_first: bool, source: str, target: str, strip: str) -> None:
        code, parameters = self.procedure, self.parameters
        first = code.lesser(code.product(strip, str(self.what.width)), parameters[LAST])
        source = code.address(source, code.product(first, str(self.number)))
        ahead = parameters[TO_ROW] if is_first else str(self.number)
        target = code.address(target, code.product(first, ahead))
        stages = int(parameters[STAGES])
        line = str(self.line)
        for number in range(stages):
            begin = BEFORE_STAGES + PER_STAGE * number
            which, m, s, table = parameters[begin : begin + PER_STAGE]
            begins, ends = number == 0, number == stages - 1 and not is_first
            self._body(
                self.what.bodies[int(which)],
                m,
                s,
                source if begins else self._scratch(str(number - 1)),
                parameters[FROM_ROW] if begins else line,
                target if ends else self._scratch(str(number)),
                parameters[TO_ROW] if ends else line,
                code.address("%table", table),
            )
        if is_first:
            self._transposed(strip, str(stages - 1), target)

    def _generic_strip(self, number: str) -> None:
        """A strip of either sweep, with all sizes as parameters."""
        code, parameters = self.procedure, self.parameters
        matrix, strip = code.quotient(code.sum("%first", number), parameters[STRIPS])
        first = code.lesser(code.product(strip, str(self.what.width)), parameters[LAST])
        source, target, ahead = "%source", "%target", str(self.number)
        if self.what.is_row:
            source = code.chosen(self.is_first, "ptr", source, "%middle")
            target = code.chosen(self.is_first, "ptr", "%middle", target)
            ahead = code.chosen(self.is_first, "i64", parameters[TO_ROW], ahead)
        offset = code.product(first, str(self.number))
        source = code.address(
            source, code.sum(code.product(matrix, parameters[FROM_MATRIX]), offset)
        )
        offset = code.product(first, ahead)
        target = code.address(target, code.sum(code.product(matrix, parameters[TO_MATRIX]), offset))
        last = code.sum(parameters[STAGES], "-1")
        code.loop(
            parameters[STAGES], lambda stage: self._generic_stage(stage, last, source, target)
        )
        if self.what.is_row:
            code.when(self.is_first, lambda: self._transposed(strip, last, target))

    def _scratch(self, stage: str) -> str:
        """The buffer that ``stage`` writes to."""
        code = self.procedure
        return code.address("%scratch", code.product(code.parity(stage), self.room))

    def _generic_stage(self, stage: str, last: str, source: str, target: str) -> None:
        code = self.procedure
        begins, ends = code.holds("eq", stage, "0"), code.holds("eq", stage, last)
        if self.what.is_row:
            ends = code.chosen(self.is_first, "i1", "false", ends)
        line = str(self.line)
        source = code.chosen(begins, "ptr", source, self._scratch(code.sum(stage, "1")))
        target = code.chosen(ends, "ptr", target, self._scratch(stage))
        from_row = code.chosen(begins, "i64", self.parameters[FROM_ROW], line)
        to_row = code.chosen(ends, "i64", self.parameters[TO_ROW], line)
        place = code.sum(code.product(stage, str(PER_STAGE)), str(BEFORE_STAGES))
        which, m, s, table = (
            code.number("%plan", code.sum(place, str(n))) for n in range(PER_STAGE)
        )
        factors = code.address("%table", table)
        for number, body in enumerate(self.what.bodies):
            do = partial(self._body, body, m, s, source, from_row, target, to_row, factors)
            code.when(code.holds("eq", which, str(number)), do)

    def _body(
        self,
        body: Radix,
        m: str,
        s: str,
        source: str,
        from_row: str,
        target: str,
        to_row: str,
        factors: str,
    ) -> None:
        code, what = self.procedure, self.what
        is_scaled = what.inverse and not what.is_row and not body.twiddled
        scale = 1 / what.length if is_scaled else 1.0
        do = stage(body, what.lanes, what.itemsize, what.inverse, scale)
        group = code.product(s, from_row)
        if body.twiddled:
            count = code.product(s, str(self.vectors))
            code.invoke(do, [source, target, factors, group, m, count])
            return
        rows = s, str(self.vectors), str(self.number * what.lanes)
        if self.vectors == 1:
            rows = "1", s, to_row
        count, vectors, step = rows
        apart = code.product(s, to_row)
        code.invoke(do, [source, target, group, apart, count, to_row, vectors, step])

    def _transposed(self, strip: str, last: str, target: str) -> None:
        """Transpose the strip from scratch memory, and store its columns as rows."""
        code, what = self.procedure, self.what
        length = self.parameters[LENGTH]
        before = code.product(strip, length)
        fine = code.address("%table", self.parameters[FINE])
        coarse = code.address("%table", self.parameters[COARSE])
        if what.coarse:
            coarse = code.address(coarse, code.product(before, str(2 * self.number)))
        else:
            fine = code.address(fine, code.product(before, str(2 * self.line)))
        to_row, scratch = self.parameters[TO_ROW], self._scratch(last)
        where = Strip(scratch, target, fine, coarse, to_row, length)
        transpose(code, where, what.vectors, what.lanes, what.itemsize, what.coarse)
