"""Matrix-vector products of plain arrays, bound by memory bandwidth, as LLVM text.

`dots` runs vectors along the sums, two rows at a time; `sums_of_rows` adds multiples of the right
operand's rows to the result's, several at a time.
"""

from __future__ import annotations

from tracejit.backends.tvm.cpu.kernels.gemm.contraction import Contraction
from tracejit.backends.tvm.cpu.kernels.gemm.product import Plain
from tracejit.backends.tvm.cpu.kernels.gemm.product_text import LlvmProduct
from tracejit.backends.tvm.cpu.kernels.tile import pieces
from tracejit.backends.tvm.cpu.kernels.tiling import ceil_div
from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import Stmt

_ROWS_AT_ONCE = 8
"""Rows of the right operand that are added in one pass over the result."""

_RESULT_BYTES = 16 << 10
"""Bytes of the result that are kept at a time: half of a first-level cache."""

_SUMS = 8
"""The number of independent vector accumulators."""


def dots(
    problem: Contraction, found: Plain, machine: Machine, batch: int, workers: int
) -> Stmt | None:
    """Rows times one column, both contiguous along the sums; None for other operands."""
    steps = found.left_steps[3], found.right_steps[2]
    if problem.n > 1 or any(step != found.itemsize for step in steps):
        return None
    return _Dots(problem, found, machine, batch).shared(workers)


def sums_of_rows(
    problem: Contraction, found: Plain, machine: Machine, batch: int, workers: int
) -> Stmt | None:
    """One row times a matrix with contiguous rows; None for other operands."""
    if problem.m > 1 or found.right_steps[3] != found.itemsize:
        return None
    return _Sums(problem, found, machine, batch, workers).shared(workers)


def _lanes(problem: Contraction, machine: Machine, extent: int) -> int:
    """A power of two, at most ``extent``."""
    return min(machine.lanes(problem.arithmetic.dtype), 1 << (extent.bit_length() - 1))


class _Dots(LlvmProduct):
    """Each piece is a pair of rows; the last one is moved to end with the matrix."""

    def __init__(self, problem: Contraction, found: Plain, machine: Machine, batch: int) -> None:
        self._rows = min(problem.m, 2)
        lanes = _lanes(problem, machine, problem.k)
        self._vectors = max(1, min(_SUMS // self._rows, problem.k // lanes))
        count = ceil_div(problem.m, self._rows)
        super().__init__("tracejit_dots", [lanes], problem, found, batch, count, lanes)

    def piece(self, number: str, left: str, right: str, result: str) -> None:
        rows, m, k = self._rows, self.problem.m, self.problem.k
        left_row, result_row = self.found.left_steps[2], self.found.result_steps[2]
        start = self.product(number, str(rows))
        if m % rows:
            start = self.lesser(start, str(m - rows))
        left = self.address(left, self.product(start, str(left_row)))
        result = self.address(result, self.product(start, str(result_row)))
        size, lanes = self.found.itemsize, self.lanes
        sums = [self.literal(self.kind, 0.0)] * (rows * self._vectors)
        step = self._vectors * lanes
        first = [(left, step * size), (right, step * size)]
        sums = self.steps(str(k // step), first, sums, self._step)
        done = k // step * step
        if whole := (k - done) // lanes:
            at = [self.address(memory, str(done * size)) for memory in (left, right)]
            sums = self._step(at, sums, whole)
            done += whole * lanes
        for row in range(rows):
            self.lanes = lanes
            held = sums[row * self._vectors : (row + 1) * self._vectors]
            while len(held) > 1:
                half = len(held) // 2
                pairs = zip(held[:half], held[-half:], strict=True)
                held = [*(a + b for a, b in pairs), *held[half:-half]]
            at = [self.address(left, str(row * left_row)), right]
            total = self._folded(held[0], at, done)
            self.put(total, self.address(result, str(row * result_row)))
        self.lanes = lanes

    def _step(
        self, addresses: list[str], sums: list[Value], vectors: int | None = None
    ) -> list[Value]:
        """Add ``vectors`` vectors of each row, all by default, to its sums."""
        left, right = addresses
        made, kind = list(sums), self.kind
        for u in range(self._vectors if vectors is None else vectors):
            offset = u * self.lanes * self.found.itemsize
            other = self.get(kind, self.address(right, str(offset)))
            for row in range(self._rows):
                at = self.address(left, str(row * self.found.left_steps[2] + offset))
                place = row * self._vectors + u
                made[place] = self.fused(self.get(kind, at), other, made[place])
        return made

    def _folded(self, vector: Value, operands: list[str], done: int) -> Value:
        """The sum of a vector's numbers, by halves, plus the products of the remainder."""
        kind, k = self.kind, self.problem.k
        while self.lanes > 1:
            low, high = self.halves(vector)
            vector = low + high
            if (k - done) & self.lanes:
                offset = str(done * self.found.itemsize)
                a, b = (self.get(kind, self.address(memory, offset)) for memory in operands)
                vector = self.fused(a, b, vector)
                done += self.lanes
        return vector


class _Sums(LlvmProduct):
    """Each piece is a block of columns; the result holds its sums meanwhile."""

    def __init__(
        self, problem: Contraction, found: Plain, machine: Machine, batch: int, workers: int
    ) -> None:
        lanes, n = _lanes(problem, machine, problem.n), problem.n
        sharing = workers if batch == 1 else 1
        most = _RESULT_BYTES // found.itemsize
        width = ceil_div(n, sharing * ceil_div(n, sharing * most))
        self._width = ceil_div(width, 4 * lanes) * 4 * lanes
        count = ceil_div(n, self._width)
        super().__init__("tracejit_sums", [lanes, self._width], problem, found, batch, count, lanes)

    def piece(self, number: str, left: str, right: str, result: str) -> None:
        n, k, size = self.problem.n, self.problem.k, self.found.itemsize
        left_step, right_step = self.found.left_steps[3], self.found.right_steps[2]
        first = self.product(number, str(self._width))
        columns = self.lesser(str(self._width), self.difference(str(n), first))
        offset = self.product(first, str(size))
        right, result = self.address(right, offset), self.address(result, offset)
        few = k % _ROWS_AT_ONCE
        self._pass(left, right, result, columns, few, is_first=True)
        left = self.address(left, str(few * left_step))
        right = self.address(right, str(few * right_step))

        def group(addresses: list[str], sums: list[Value]) -> list[Value]:
            here, there = addresses
            self._pass(here, there, result, columns, _ROWS_AT_ONCE, is_first=False)
            return sums

        if groups := k // _ROWS_AT_ONCE:
            along = [(left, left_step * _ROWS_AT_ONCE), (right, right_step * _ROWS_AT_ONCE)]
            self.steps(str(groups), along, [], group)

    def _pass(
        self, left: str, right: str, result: str, columns: str, rows: int, is_first: bool
    ) -> None:
        """Add the multiples of ``rows`` rows to the result, or set it to them."""
        size, n, lanes = self.found.itemsize, self.problem.n, self.lanes
        left_step, right_step = self.found.left_steps[3], self.found.right_steps[2]

        def factors() -> list[Value]:
            offsets = [str(g * left_step) for g in range(rows)]
            return [self.everywhere(self.kind, self.address(left, each)) for each in offsets]

        def vector(row: str, target: str, splats: list[Value]) -> None:
            total = self.literal(self.kind, 0.0) if is_first else self.get(self.kind, target)
            for g, splat in enumerate(splats):
                other = self.get(self.kind, self.address(row, str(g * right_step)))
                total = self.fused(splat, other, total)
            self.put(total, target)

        splats = factors()
        step = lanes * size

        def along(addresses: list[str], sums: list[Value]) -> list[Value]:
            here, there = addresses
            vector(here, there, splats)
            return sums

        count = self.quotient(columns, str(lanes))[0]

        def whole() -> None:
            self.steps(count, [(right, step), (result, step)], [], along)

        if 0 < n % self._width < lanes:
            self.when(self.holds("ne", count, "0"), whole)
        else:
            whole()
        if not n % lanes:
            return

        def rest() -> None:
            done = n % self._width // lanes * lanes
            for at, width in pieces(n % lanes, lanes):
                self.lanes = width
                offset = str((done + at) * size)
                vector(self.address(right, offset), self.address(result, offset), factors())
            self.lanes = lanes

        self.when(self.holds("ne", columns, str(self._width)), rest)
