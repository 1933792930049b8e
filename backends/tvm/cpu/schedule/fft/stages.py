"""The inner loops of an FFT: a radix stage over a strip of columns, and the twiddled transpose.

    stage(Radix(8, True), 8, 4, False)          # a procedure with addresses as arguments
    transpose(code, strip, 1, 8, 4, True)       # appended to another procedure

Complex numbers have adjacent real and imaginary parts, in memory and in vectors. The lanes of a
vector are adjacent columns.

Stockham's algorithm: a stage of radix r, stride s and m groups reads x[q + s (p + k m)] and writes
y[q + s (r p + k)] for each q < s and p < m, k being 0 … r - 1. r m s is the length.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tracejit.backends.tvm.analysis.fft_plan import LINE, Radix, circle
from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.kinds import KINDS
from tracejit.backends.tvm.cpu.llvm.procedures import Procedure
from tracejit.backends.tvm.cpu.mathematics.vocabulary import muladd

TWIDDLED = ("group", "m", "count")
LAST = ("from_apart", "to_apart", "rows", "to_row", "count", "to_step")


@functools.lru_cache(maxsize=128)
def stage(body: Radix, lanes: int, itemsize: int, inverse: bool, scale: float = 1.0) -> Procedure:
    """The procedure of a stage; vectors that it reads one after the other are adjacent.

    A stage with twiddle factors takes ``(source, target, factors)`` and `TWIDDLED`: bytes between
    groups in the source, groups, and vectors of a group. The last stage takes ``(source, target)``
    and `LAST`: bytes between the elements of one transform that are read and written, ``rows`` of
    ``count`` vectors, and bytes between rows and vectors of the result, which is multiplied by
    ``scale``.
    """
    way = "inverse" if inverse else "forward"
    last = "turned" if body.twiddled else scale.hex().translate(_LETTERS)
    name = f"fourier_{way}_{body.radix}_{last}_{lanes}_f{8 * itemsize}"
    memory = ("source", "target", "factors") if body.twiddled else ("source", "target")
    code = Procedure(name, memory, TWIDDLED if body.twiddled else LAST, 2 * lanes, group=name)
    _Stage(code, body, lanes, itemsize, inverse, scale)
    return code


_LETTERS = str.maketrans({".": "_", "-": "_", "+": "_"})


class _Complex:
    """Arithmetic on vectors of ``count`` complex numbers with parts of ``itemsize`` bytes."""

    def __init__(self, code: Procedure, count: int, itemsize: int, inverse: bool = False) -> None:
        self.code = code
        self.count = count
        self.kind = KINDS["float32" if itemsize == 4 else "float64"]
        self.inverse = inverse
        self.number = 2 * itemsize
        """Bytes of a complex number."""
        self.vector = self.number * count
        self._swap = [lane ^ 1 for lane in range(2 * count)]

    def _apart(self, first: str, step: str, count: int) -> list[str]:
        """``count`` addresses, each computed from the one before, so that one register
        holds them.
        """
        made = [first]
        while len(made) < count:
            made.append(self.code.address(made[-1], step))
        return made

    def _factor(self, address: str) -> list[Value]:
        """A complex factor in all lanes."""
        places = address, self.code.address(address, str(self.number))
        return [self.code.pair(self.kind, place) for place in places]

    def _swapped(self, x: Value) -> Value:
        return self.code.shuffled(x, x, self._swap)

    def _times(self, x: Value, re: Value | float, im: Value) -> Value:
        """The product with a number given as the vectors (re, re, …) and (-im, im, …)."""
        return muladd(self._swapped(x), im, x * re)

    def _ahead(self, x: Value, y: Value, turn: float) -> Value:
        """x + turn i y."""
        return muladd(self._swapped(y), self.code.by_turns(self.kind, -turn, turn), x)

    def _transform(self, x: list[Value]) -> list[Value]:
        """The DFT across the vectors of ``x``."""
        sign = 1.0 if self.inverse else -1.0
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
        # Cooley-Tukey for n = b i + j: a DFT for each j, twiddle factors, then a DFT for each k.
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
        turn = complex(circle(np.asarray(numerator), size, self.inverse))
        im = self.code.by_turns(self.kind, -turn.imag, turn.imag)
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


class _Stage(_Complex):
    """The whole procedure of a stage."""

    def __init__(
        self,
        code: Procedure,
        body: Radix,
        lanes: int,
        itemsize: int,
        inverse: bool,
        scale: float,
    ) -> None:
        super().__init__(code, lanes, itemsize, inverse)
        self._radix = body.radix
        self._scale = scale
        if body.twiddled:
            apart = code.product("%group", "%m"), code.product("%count", str(self.vector))
            code.loop("%m", lambda p: self._twiddled_group(p, *apart))
        else:
            code.loop("%rows", lambda q: code.loop("%count", lambda n: self._last(q, n)))

    def _twiddled_group(self, p: str, from_apart: str, to_apart: str) -> None:
        """The vectors of group ``p``, which share their twiddle factors."""
        code, wide, others = self.code, 2 * self.number, self._radix - 1
        row = code.address("%factors", code.product(p, str(others * wide)))
        factors = [self._factor(code.address(row, str(k * wide))) for k in range(others)]
        begin = code.address("%source", code.product(p, "%group"))
        end = code.product(p, code.product(to_apart, str(self._radix)))
        end = code.address("%target", end)

        def vector(n: str) -> None:
            across = code.product(n, str(self.vector))
            first, *rest = self._transformed(code.address(begin, across), from_apart)
            twiddled = [self._times(x, *w) for x, w in zip(rest, factors, strict=True)]
            self._put([first, *twiddled], code.address(end, across), to_apart)

        code.loop("%count", vector)

    def _last(self, q: str, n: str) -> None:
        """Vector ``n`` of row ``q``."""
        code = self.code
        across = code.product(code.sum(code.product(q, "%count"), n), str(self.vector))
        made = self._transformed(code.address("%source", across), "%from_apart")
        if self._scale != 1.0:
            made = [x * self._scale for x in made]
        there = code.sum(code.product(q, "%to_row"), code.product(n, "%to_step"))
        self._put(made, code.address("%target", there), "%to_apart")

    def _transformed(self, first: str, apart: str) -> list[Value]:
        places = self._apart(first, apart, self._radix)
        return self._transform([self.code.get(self.kind, place) for place in places])

    def _put(self, values: Sequence[Value], first: str, apart: str) -> None:
        for value, place in zip(values, self._apart(first, apart, len(values)), strict=True):
            self.code.put(value, place)


class Strip(NamedTuple):
    """The addresses of a strip and of its twiddle factors, and its sizes in bytes and rows."""

    scratch: str
    target: str
    fine: str
    coarse: str
    to_row: str
    length: str


def transpose(
    code: Procedure, strip: Strip, vectors: int, lanes: int, itemsize: int, coarse: bool
) -> None:
    """Multiply a strip by twiddle factors, transpose it, and store its columns as rows.

    The factors are at ``fine``, and with ``coarse`` multiplied by those at ``coarse``.
    """
    _Transpose(code, strip, vectors, lanes, itemsize, coarse)


class _Transpose(_Complex):
    """The code of `transpose`."""

    def __init__(
        self, code: Procedure, strip: Strip, vectors: int, lanes: int, itemsize: int, coarse: bool
    ) -> None:
        super().__init__(code, lanes, itemsize)
        self._strip = strip
        self._coarse = coarse
        self._line = vectors * self.vector
        self._words = f"<{self.vector // 8} x double>"
        blocks, _ = code.quotient(code.sum(strip.length, str(lanes - 1)), str(lanes))
        self._most = code.sum(strip.length, str(-lanes))
        near = min(max(LINE // self.vector, 1), vectors)

        def line(number: str) -> None:
            """The vectors of a cache line, block by block, so that it is read once."""
            first = code.product(number, str(near))
            code.loop(
                blocks,
                lambda n: code.loop(str(near), lambda v: self._block(n, code.sum(first, v))),
            )

        code.loop(str(vectors // near), line)

    def _block(self, number: str, vector: str) -> None:
        """A square block: as many rows of a vector as it has columns."""
        code, count, strip = self.code, self.count, self._strip
        k = code.lesser(code.product(number, str(count)), self._most)
        across = code.product(vector, str(self.vector))
        here = code.sum(code.product(k, str(self._line)), across)
        places = self._apart(code.address(strip.scratch, here), str(self._line), count)
        turns = code.address(strip.fine, code.product(here, "2"))
        rough = code.address(strip.coarse, code.product(k, str(2 * self.number)))
        rows = []
        for n, place in enumerate(places):
            at = code.address(turns, str(2 * n * self._line))
            parts = at, code.address(at, str(self.vector))
            re, im = (code.get(self.kind, part) for part in parts)
            x = self._times(code.get(self.kind, place), re, im)
            if self._coarse:
                x = self._times(x, *self._factor(code.address(rough, str(2 * n * self.number))))
            rows.append(x)
        column = code.product(code.product(vector, str(count)), strip.to_row)
        there = code.address(strip.target, code.sum(column, code.product(k, str(self.number))))
        self._store(rows, self._apart(there, strip.to_row, count))

    def _store(self, rows: Sequence[Value], places: Sequence[str]) -> None:
        """Store the transpose."""
        code, words = self.code, self._words
        given = [code.bits(f"bitcast {row.typed} to {words}") for row in rows]
        for column, place in zip(self._transposed(given), places, strict=True):
            code.act(f"store {words} {column}, ptr {place}, align {self.number // 2}")

    def _transposed(self, rows: list[str]) -> list[str]:
        """Transpose rows of 64-bit words, with one or two words per number, in a square of
        numbers.

        x86 has single instructions for these shuffles, which cuts the compile time to a third.
        """
        if self.number == 16:
            return self._unshuffled(rows)
        words = range(0, self.count, 2)
        low = [n for w in words for n in (w, w + self.count)]
        high = [n + 1 for n in low]
        pairs = list(zip(rows[::2], rows[1::2], strict=True))
        even, odd = (
            self._unshuffled([self._shuffled(a, b, mask) for a, b in pairs]) for mask in (low, high)
        )
        return [row for both in zip(even, odd, strict=True) for row in both]

    def _unshuffled(self, rows: list[str]) -> list[str]:
        """The transpose of a square of pairs of words."""
        count = len(rows)
        even = [n for pair in range(0, 2 * count, 2) for n in (2 * pair, 2 * pair + 1)]
        odd = [n + 2 for n in even]
        for _ in range(count.bit_length() - 1):
            pairs = list(zip(rows[::2], rows[1::2], strict=True))
            rows = [self._shuffled(a, b, mask) for mask in (even, odd) for a, b in pairs]
        return rows

    def _shuffled(self, a: str, b: str, mask: Sequence[int]) -> str:
        """A shuffle of words: those of ``a`` are numbered from 0, those of ``b`` after them."""
        lanes = ", ".join(f"i32 {word}" for word in mask)
        words = self._words
        return self.code.bits(
            f"shufflevector {words} {a}, {words} {b}, <{len(mask)} x i32> <{lanes}>"
        )
