"""Applies recorded Householder reflections and Givens rotations to the rows of vectors.

Rotations mix rows within a strip of columns, and strips are independent: threads share them, and a
strip stays in the first-level cache while all recorded rotations are applied to it.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm import DataType

from tracejit.backends.tvm.cpu.kernels.sharing import on_workers
from tracejit.backends.tvm.cpu.kernels.tile import vector
from tracejit.backends.tvm.cpu.kernels.tiling import ceil_div
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import (
    UNROLLED,
    AllocBuffer,
    Buffer,
    Expr,
    Stmt,
    buffer,
    const,
    i32,
    loop,
    seq,
    store,
    tirx,
)

_VECTORS = 4
"""Vectors in a row of a strip."""

_TOGETHER = 4
"""Rows that are reflected together."""

_LINE = 64
"""Bytes of a cache line."""


class VectorRows:
    """``count`` rows of ``columns`` numbers in ``memory[copy]``; ``workers`` share the strips."""

    def __init__(
        self, copies: int, count: int, columns: int, dtype: str, machine: Machine, workers: int
    ) -> None:
        self._count = count
        self._columns = columns
        self._dtype = dtype
        self._workers = workers
        self._lanes = machine.lanes(dtype, columns)
        self._vectors = min(_VECTORS, ceil_div(columns, self._lanes))
        self._strip = self._vectors * self._lanes
        self._strips = ceil_div(columns, self._strip)
        width = self._strips * self._strip
        items = _LINE // int(DataType(dtype).itemsize)
        # Rows an even number of lines apart would conflict in the sets of the first-level cache.
        row = width + items if width // items % 2 == 0 else width
        height = ceil_div(count, _TOGETHER) * _TOGETHER
        self.memory: Buffer = buffer("rows", (copies, height, row), dtype)

    def _each_strip(self, body: Callable[[Expr], Stmt]) -> Stmt:
        """``body(column)`` of the strips, assigned to workers round-robin."""
        workers = self._workers

        def worker(w: Expr) -> Stmt:
            mine = (self._strips - w + (workers - 1)) // workers
            return loop(mine, lambda i: body((w + i * workers) * self._strip))

        return on_workers(workers, worker)

    def _each(self, body: Callable[[Expr, Expr, Expr], Stmt | list[Stmt]]) -> Stmt:
        """``body(vector, lane, column)`` within a strip."""
        lanes = self._lanes
        return loop(
            self._vectors,
            lambda u: vector(lanes, lambda v: seq(body(u, v, u * lanes + v))),
            UNROLLED,
        )

    def _held(self, name: str) -> Buffer:
        return buffer(name, (self._vectors, self._lanes), self._dtype, scope="local")

    def reflect(
        self,
        copy: Expr,
        reflections: int,
        element: Callable[[Expr, Expr], Expr],
        tau: Callable[[Expr], Expr],
        begin: int,
    ) -> Stmt:
        """Set the rows to the product H_(n - 1) … H_1 H_0, where H_k = I - tau(k) v v^T.

        ``element(k, j)`` is v's element j, zero up to j = k + ``begin``, and beyond the columns.
        """
        memory, lanes, zero = self.memory, self._lanes, const(0.0, self._dtype)
        sums = buffer("sums", (_TOGETHER, lanes), self._dtype, scope="local")
        factor = self._numbers(_TOGETHER)
        width = ceil_div(self._columns, lanes)

        def each(count: int, body: Callable[[Expr, Expr], Stmt]) -> Stmt:
            return loop(_TOGETHER, lambda h: vector(count, lambda v: body(h, v)), UNROLLED)

        def group(g: Expr) -> Stmt:
            top = g * _TOGETHER

            def identity(q: Expr) -> Stmt:
                def one(h: Expr, v: Expr) -> Stmt:
                    unit = tirx.Select(q * lanes + v == top + h, const(1.0, self._dtype), zero)
                    return store(memory, [copy, top + h, q * lanes + v], unit)

                return each(lanes, one)

            def apply(t: Expr) -> list[Stmt]:
                # Reflection k changes neither columns nor rows before k.
                k = tirx.min(top + _TOGETHER, i32(reflections)) - 1 - t
                start = (k + begin) // lanes

                def add(q: Expr) -> Stmt:
                    def one(h: Expr, v: Expr) -> Stmt:
                        j = (start + q) * lanes + v
                        product = memory[copy, top + h, j] * element(k, j)
                        return store(sums, [h, v], sums[h, v] + product)

                    return each(lanes, one)

                def fold(count: int) -> Stmt:
                    return each(
                        count, lambda h, v: store(sums, [h, v], sums[h, v] + sums[h, count + v])
                    )

                def take(q: Expr) -> Stmt:
                    def one(h: Expr, v: Expr) -> Stmt:
                        j = (start + q) * lanes + v
                        value = memory[copy, top + h, j] - factor[h] * element(k, j)
                        return store(memory, [copy, top + h, j], value)

                    return each(lanes, one)

                return [
                    each(lanes, lambda h, v: store(sums, [h, v], zero)),
                    loop(width - start, add),
                    *(fold(lanes >> n) for n in range(1, lanes.bit_length())),
                    loop(_TOGETHER, lambda h: store(factor, h, tau(k) * sums[h, i32(0)]), UNROLLED),
                    loop(width - start, take),
                ]

            return seq(
                [AllocBuffer(sums), AllocBuffer(factor)],
                loop(width, identity),
                loop(tirx.min(top + _TOGETHER, i32(reflections)), apply),
            )

        groups, workers = ceil_div(self._count, _TOGETHER), self._workers

        def worker(w: Expr) -> Stmt:
            mine = (groups - w + (workers - 1)) // workers
            return loop(mine, lambda i: group(w + i * workers))

        return on_workers(workers, worker)

    def _numbers(self, count: int) -> Buffer:
        return buffer("number", (count,), self._dtype, scope="local")

    def rotate(self, copy: Expr, record: Record) -> Stmt:
        """Apply all sweeps of a record, each from its last row to its first."""
        memory = self.memory
        carried, number = self._held("carried"), self._numbers(2)
        cosine, sine = number[i32(0)], number[i32(1)]

        def strip(x: Expr) -> Stmt:
            def sweep(s: Expr) -> list[Stmt]:
                first, last, start = (record.sweeps[copy, s, i32(n)] for n in range(3))

                def rotate(t: Expr) -> list[Stmt]:
                    row = last - 1 - t

                    def one(u: Expr, v: Expr, j: Expr) -> list[Stmt]:
                        above = memory[copy, row, x + j]
                        return [
                            store(
                                memory,
                                [copy, row + 1, x + j],
                                sine * above + cosine * carried[u, v],
                            ),
                            store(carried, [u, v], cosine * above - sine * carried[u, v]),
                        ]

                    return [
                        store(number, i32(0), record.cosines[copy, start + t]),
                        store(number, i32(1), record.sines[copy, start + t]),
                        self._each(one),
                    ]

                return [
                    self._each(lambda u, v, j: store(carried, [u, v], memory[copy, last, x + j])),
                    loop(last - first, rotate),
                    self._each(lambda u, v, j: store(memory, [copy, first, x + j], carried[u, v])),
                ]

            return seq(
                [AllocBuffer(carried), AllocBuffer(number)],
                loop(record.counts[copy, i32(1)], sweep),
            )

        return self._each_strip(strip)


class Record:
    """Recorded rotations of neighbouring rows, in sweeps: at most ``room`` of them.

    ``sweeps[copy, s]`` are a sweep's first row, its last row, and the index of its first rotation;
    ``counts[copy]`` are the numbers of rotations and of sweeps.
    """

    def __init__(self, copies: int, room: int, dtype: str) -> None:
        self.room = room
        self.cosines = buffer("cosines", (copies, room), dtype)
        self.sines = buffer("sines", (copies, room), dtype)
        self.sweeps = buffer("sweeps", (copies, room, 3), "int32")
        self.counts = buffer("counts", (copies, 2), "int32")
        self.scratch: tuple[Buffer, ...] = (self.cosines, self.sines, self.sweeps, self.counts)

    def clear(self, copy: Expr) -> list[Stmt]:
        return [store(self.counts, [copy, i32(n)], i32(0)) for n in range(2)]

    def put(self, copy: Expr, number: Expr, cosine: Expr, sine: Expr) -> list[Stmt]:
        """Record rotation ``number`` of the current sweep."""
        place = self.counts[copy, i32(0)] + number
        return [
            store(self.cosines, [copy, place], cosine),
            store(self.sines, [copy, place], sine),
        ]

    def end(self, copy: Expr, first: Expr, last: Expr) -> list[Stmt]:
        """End the current sweep, which covers the rows from ``first`` to ``last``."""
        rotations, done = (self.counts[copy, i32(n)] for n in range(2))
        return [
            store(self.sweeps, [copy, done, i32(0)], first),
            store(self.sweeps, [copy, done, i32(1)], last),
            store(self.sweeps, [copy, done, i32(2)], rotations),
            store(self.counts, [copy, i32(0)], rotations + (last - first)),
            store(self.counts, [copy, i32(1)], done + 1),
        ]
