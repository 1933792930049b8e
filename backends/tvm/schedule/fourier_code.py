"""The code of Fourier transforms: loops around one body for each radix, told by a plan what to do.

Complex numbers lie with their parts side by side, in memory and in vectors alike, so that every
stage reads and writes alike, from wherever to wherever. A vector is a strip of columns.

Stockham's algorithm: a stage of radix r, stride s and m groups reads x[q + s (p + k m)] and writes
y[q + s (r p + k)] for each q < s and p < m, k being 0 … r - 1. r m s is the length.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from tracejit.backends.tvm.mathematics.kinds import KINDS
from tracejit.backends.tvm.mathematics.llvm import Value
from tracejit.backends.tvm.mathematics.procedures import Procedure
from tracejit.backends.tvm.mathematics.vocabulary import muladd
from tracejit.backends.tvm.schedule.fourier_plan import (
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
    circle,
)

POINTERS = ("source", "middle", "target", "scratch", "table", "plan")
INTEGERS = ("sweep", "first", "count", "worker")


def fourier_code(what: Transform, name: str) -> Procedure:
    """The procedure: of sweep number ``sweep`` ``count`` strips, from the ``first`` on.

    Where it is done `Transform.by_rows`, both sweeps of ``count`` rows instead.
    """
    return _Code(what, name).procedure


class _Code:
    """Writes a procedure. ``told`` are a sweep's integers; their texts are literals if known."""

    def __init__(self, what: Transform, name: str) -> None:
        self.what = what
        self.kind = KINDS["float32" if what.itemsize == 4 else "float64"]
        self.procedure = Procedure(name, POINTERS, INTEGERS, 2 * what.lanes)
        self.number = 2 * what.itemsize
        """Bytes of a complex number."""
        self.vector = self.number * what.lanes
        self.line = self.number * what.width
        """Bytes of a vector, and of a row of a strip."""
        self.swap = [lane ^ 1 for lane in range(2 * what.lanes)]
        self.told: list[str] = []
        code = self.procedure
        self.scratch = code.address(
            "%scratch", code.product("%worker", str(2 * self.number * what.room))
        )
        some = code.holds("sgt", "%count", "0")
        each = self._row if what.by_rows else self._told_strip
        if not what.by_rows:
            self.plan = code.address("%plan", code.product("%sweep", str(8 * what.stride)))
            self.told = [code.number(self.plan, str(field)) for field in range(BEFORE_STAGES)]
            self.is_first = code.holds("eq", "%sweep", "0")
        code.when(some, lambda: code.loop("%count", each))

    def _row(self, number: str) -> None:
        """Both sweeps of a row, all of whose sizes are in the code."""
        code, what = self.procedure, self.what
        row = code.sum("%first", number)
        begin = code.product("%worker", str(self.number * what.middle))
        middle = code.address("%middle", begin)
        plan, _ = what.told()
        for sweep, fields in enumerate(plan.reshape(2, -1)):
            told = self.told = [str(field) for field in fields]
            is_first = sweep == 0
            source = middle
            target = code.address("%target", code.product(row, told[TO_MATRIX]))
            if is_first:
                source = code.address("%source", code.product(row, told[FROM_MATRIX]))
                target = middle
            do = functools.partial(self._known_strip, is_first, source, target)
            code.loop(told[STRIPS], do)

    def _known_strip(self, is_first: bool, source: str, target: str, strip: str) -> None:
        code, told = self.procedure, self.told
        first = code.lesser(code.product(strip, str(self.what.width)), told[LAST])
        source = code.address(source, code.product(first, str(self.number)))
        ahead = told[TO_ROW] if is_first else str(self.number)
        target = code.address(target, code.product(first, ahead))
        stages = int(told[STAGES])
        line = str(self.line)
        for stage in range(stages):
            begin = BEFORE_STAGES + PER_STAGE * stage
            which, m, s, table = told[begin : begin + PER_STAGE]
            begins, ends = stage == 0, stage == stages - 1 and not is_first
            self._body(
                self.what.bodies[int(which)],
                m,
                s,
                source if begins else self._scratch(str(stage - 1)),
                told[FROM_ROW] if begins else line,
                target if ends else self._scratch(str(stage)),
                told[TO_ROW] if ends else line,
                code.address("%table", table),
            )
        if is_first:
            self._turned(strip, str(stages - 1), target)

    def _told_strip(self, number: str) -> None:
        """A strip of whichever sweep, of which nothing is known."""
        code, told = self.procedure, self.told
        matrix, strip = code.quotient(code.sum("%first", number), told[STRIPS])
        first = code.lesser(code.product(strip, str(self.what.width)), told[LAST])
        source, target, ahead = "%source", "%target", str(self.number)
        if self.what.is_row:
            source = code.chosen(self.is_first, "ptr", source, "%middle")
            target = code.chosen(self.is_first, "ptr", "%middle", target)
            ahead = code.chosen(self.is_first, "i64", told[TO_ROW], ahead)
        offset = code.product(first, str(self.number))
        source = code.address(source, code.sum(code.product(matrix, told[FROM_MATRIX]), offset))
        offset = code.product(first, ahead)
        target = code.address(target, code.sum(code.product(matrix, told[TO_MATRIX]), offset))
        last = code.sum(told[STAGES], "-1")
        code.loop(told[STAGES], lambda stage: self._told_stage(stage, last, source, target))
        if self.what.is_row:
            code.when(self.is_first, lambda: self._turned(strip, last, target))

    def _scratch(self, stage: str) -> str:
        """What ``stage`` writes."""
        code = self.procedure
        which = code.product(code.parity(stage), str(self.number * self.what.room))
        return code.address(self.scratch, which)

    def _told_stage(self, stage: str, last: str, source: str, target: str) -> None:
        code = self.procedure
        begins, ends = code.holds("eq", stage, "0"), code.holds("eq", stage, last)
        if self.what.is_row:
            ends = code.chosen(self.is_first, "i1", "false", ends)
        line = str(self.line)
        source = code.chosen(begins, "ptr", source, self._scratch(code.sum(stage, "1")))
        target = code.chosen(ends, "ptr", target, self._scratch(stage))
        from_row = code.chosen(begins, "i64", self.told[FROM_ROW], line)
        to_row = code.chosen(ends, "i64", self.told[TO_ROW], line)
        place = code.sum(code.product(stage, str(PER_STAGE)), str(BEFORE_STAGES))
        which, m, s, table = (
            code.number(self.plan, code.sum(place, str(n))) for n in range(PER_STAGE)
        )
        factors = code.address("%table", table)
        for number, body in enumerate(self.what.bodies):
            do = functools.partial(
                self._body, body, m, s, source, from_row, target, to_row, factors
            )
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
        code, radix = self.procedure, body.radix
        group = code.product(s, from_row)
        apart, step = code.product(group, m), code.product(s, to_row)
        wide = self.number * 2

        def groups(p: str) -> None:
            begin = code.address(source, code.product(p, group))
            end = code.address(target, code.product(p, code.product(step, str(radix))))
            by = []
            if body.turned:
                row = code.address(factors, code.product(p, str((radix - 1) * wide)))
                for k in range(radix - 1):
                    at = code.address(row, str(k * wide))
                    parts = at, code.address(at, str(wide // 2))
                    by.append([code.pair(self.kind, part) for part in parts])

            def numbers(q: str, vector: str) -> None:
                across = code.product(vector, str(self.vector))
                here = code.address(begin, code.sum(code.product(q, from_row), across))
                there = code.address(end, code.sum(code.product(q, to_row), across))
                given = [code.get(self.kind, at) for at in self._apart(here, apart, radix)]
                made = self._transform(given)
                if body.turned:
                    made[1:] = [self._times(x, *w) for x, w in zip(made[1:], by, strict=True)]
                elif self.what.inverse and not self.what.is_row:
                    made = [x * (1 / self.what.length) for x in made]
                for x, at in zip(made, self._apart(there, step, radix), strict=True):
                    code.put(x, at)

            vectors = str(self.what.vectors)
            code.loop(s, lambda q: code.loop(vectors, lambda vector: numbers(q, vector)))

        code.loop(m, groups) if body.turned else groups("0")

    def _apart(self, first: str, step: str, count: int) -> list[str]:
        """Addresses, each ``step`` after the one before: so they need no more than one register."""
        made = [first]
        while len(made) < count:
            made.append(self.procedure.address(made[-1], step))
        return made

    def _turned(self, strip: str, last: str, target: str) -> None:
        """The strip from scratch memory, turned, its columns stored as rows."""
        code, lanes = self.procedure, self.what.lanes
        length = self.told[LENGTH]
        scratch = self._scratch(last)
        fine = code.address("%table", self.told[FINE])
        coarse = code.address("%table", self.told[COARSE])
        before = code.product(strip, length)
        blocks, _ = code.quotient(code.sum(length, str(lanes - 1)), str(lanes))
        most = code.sum(length, str(-lanes))
        wide = self.number * 2

        def block(number: str, vector: str) -> None:
            k = code.lesser(code.product(number, str(lanes)), most)
            across = code.product(vector, str(self.vector))
            here = code.address(scratch, code.sum(code.product(k, str(self.line)), across))
            row = k if self.what.coarse else code.sum(before, k)
            across = code.product(vector, str(2 * self.vector))
            turns = code.address(fine, code.sum(code.product(row, str(2 * self.line)), across))
            rough = code.address(coarse, code.product(code.sum(before, k), str(wide)))
            given = []
            for row_of in range(lanes):
                x = code.get(self.kind, code.address(here, str(row_of * self.line)))
                at = code.address(turns, str(2 * row_of * self.line))
                re = code.get(self.kind, at)
                x = self._times(x, re, code.get(self.kind, code.address(at, str(self.vector))))
                if self.what.coarse:
                    at = code.address(rough, str(row_of * wide))
                    re = code.pair(self.kind, at)
                    x = self._times(x, re, code.pair(self.kind, code.address(at, str(wide // 2))))
                given.append(x)
            column = code.product(code.product(vector, str(lanes)), self.told[TO_ROW])
            there = code.address(target, code.sum(column, code.product(k, str(self.number))))
            places = self._apart(there, self.told[TO_ROW], lanes)
            for x, at in zip(self._transposed(given), places, strict=True):
                code.put(x, at)

        vectors = str(self.what.vectors)
        code.loop(vectors, lambda vector: code.loop(blocks, lambda n: block(n, vector)))

    def _transposed(self, rows: Sequence[Value]) -> list[Value]:
        lanes, made = self.what.lanes, list(rows)
        for _ in range(lanes.bit_length() - 1):
            pairs = zip(made[: lanes // 2], made[lanes // 2 :], strict=True)
            made = [self._zipped(a, b, half) for a, b in pairs for half in (0, lanes // 2)]
        return made

    def _zipped(self, a: Value, b: Value, begin: int) -> Value:
        """Numbers of two vectors in turn, of each half as many from ``begin`` on."""
        count = self.what.lanes
        numbers = range(begin, begin + count // 2)
        lanes = [
            2 * n + which + part for n in numbers for which in (0, 2 * count) for part in (0, 1)
        ]
        return self.procedure.shuffled(a, b, lanes)

    def _swapped(self, x: Value) -> Value:
        return self.procedure.shuffled(x, x, self.swap)

    def _times(self, x: Value, re: Value | float, im: Value) -> Value:
        """The product with numbers given as (re, re, …) and (-im, im, …)."""
        return muladd(self._swapped(x), im, x * re)

    def _ahead(self, x: Value, y: Value, turn: float) -> Value:
        """x + turn i y."""
        return muladd(self._swapped(y), self.procedure.by_turns(self.kind, -turn, turn), x)

    def _transform(self, x: list[Value]) -> list[Value]:
        """The transform of as many vectors as there are."""
        sign = 1.0 if self.what.inverse else -1.0
        count = len(x)
        if count == 1:
            return x
        if count == 2:
            return [x[0] + x[1], x[0] - x[1]]
        if count == 4:
            even, odd = self._transform(x[::2]), self._transform(x[1::2])
            return [
                even[0] + odd[0],
                self._ahead(even[1], odd[1], sign),
                even[0] - odd[0],
                self._ahead(even[1], odd[1], -sign),
            ]
        if count % 2:
            return self._prime(x, sign)
        # Numbers n = b i + j: of each j first, turned by j k, then of each k.
        b = 4 if count % 4 == 0 and count > 8 else 2
        a = count // b
        parts = [self._transform(x[j::b]) for j in range(b)]
        for j in range(1, b):
            parts[j] = [self._by_constant(y, j * k, count) for k, y in enumerate(parts[j])]
        ends = [self._transform([part[k] for part in parts]) for k in range(a)]
        return [ends[k][n] for n in range(b) for k in range(a)]

    def _by_constant(self, x: Value, numerator: int, size: int) -> Value:
        if numerator == 0:
            return x
        turn = complex(circle(np.asarray(numerator), size, self.what.inverse))
        im = self.procedure.by_turns(self.kind, -turn.imag, turn.imag)
        return self._swapped(x) * im if turn.real == 0 else self._times(x, turn.real, im)

    def _prime(self, x: list[Value], sign: float) -> list[Value]:
        count, half = len(x), len(x) // 2
        turns = circle(np.arange(count), count, True)
        sums = [x[j] + x[count - j] for j in range(1, half + 1)]
        less = [x[j] - x[count - j] for j in range(1, half + 1)]
        first = x[0]
        for each in sums:
            first = first + each
        made = [first] * count
        for k in range(1, half + 1):
            here, ahead = x[0], less[0] * float(turns[k].imag)
            for j in range(1, half + 1):
                turn = turns[j * k % count]
                here = here + sums[j - 1] * float(turn.real)
                if j > 1:
                    ahead = ahead + less[j - 1] * float(turn.imag)
            made[k] = self._ahead(here, ahead, sign)
            made[count - k] = self._ahead(here, ahead, -sign)
        return made
