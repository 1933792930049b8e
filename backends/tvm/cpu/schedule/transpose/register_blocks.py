"""Pure transposition kernels as LLVM text: square blocks in registers.

    body = transpose_kernel(frame, tile, axes, load, store, parallel)     # or None

It does the same as `tiled.in_tiles`, as one procedure: TVM sees a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracejit.affine import Affine
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.loop_nest import Axis
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers, share
from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.kinds import KINDS, Kind
from tracejit.backends.tvm.cpu.llvm.procedures import Procedure
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.schedule.transpose.tiled import CHEAP, StridedLoads
from tracejit.backends.tvm.ir.tir import Buffer, Expr, Stmt

_LEAST_BYTES = 4


@dataclass(frozen=True)
class _Walk:
    """An axis in steps of ``size``: the strides of a step in the source and in the target."""

    extent: int
    size: int
    before: int
    after: int

    @property
    def steps(self) -> int:
        return -(-self.extent // self.size)


def transpose_kernel(
    frame: Frame,
    what: StridedLoads,
    axes: Sequence[Axis],
    source: tuple[Buffer, Affine],
    target: tuple[Buffer, Affine],
    workers: int,
) -> Stmt | None:
    """A copy from one address to another, for all positions on ``axes``.

    None if elements are narrow, squares do not fit into registers, or no element may be copied
    twice.
    """
    (given, before), (made, after) = source, target
    side, along, deep = what.tile(frame)
    kind = KINDS.get(str(given.dtype))
    fits = frame.cost <= CHEAP and 2 * side <= machine_of(frame).registers
    if kind is None or str(made.dtype) != kind.name or kind.bits < 8 * _LEAST_BYTES:
        return None
    if frame.apart or not fits or side < 2 or after.coefficient(what.inner.last) != 1:
        return None
    sizes = {what.across: deep * side, what.inner: along * side}
    walks = [
        _Walk(
            axis.extent,
            sizes.get(axis, 1),
            before.coefficient(axis.last),
            after.coefficient(axis.last),
        )
        for axis in axes
    ]
    rows = before.coefficient(what.inner.last), after.coefficient(what.across.last)
    code = _Squares(kind, side, (along, deep), rows, walks, (before.constant, after.constant))
    total = 1
    for walk in walks:
        total *= walk.steps
    workers = min(workers, total)

    def work(worker: Expr) -> Stmt:
        some = (each.astype("int64") for each in share(worker, total, workers))
        return code.called([given.data, made.data, *some])

    return on_workers(workers, work)


class _Squares(Procedure):
    """``int32 name(ptr source, ptr target, i64 first, i64 count)``: ``count`` tiles from ``first``
    on.

    ``rows`` are the row strides of a square in the source and in the target; ``tile`` the numbers
    of squares in a tile, horizontally and vertically; ``first`` the offsets of the first elements.
    """

    def __init__(
        self,
        kind: Kind,
        side: int,
        tile: tuple[int, int],
        rows: tuple[int, int],
        walks: Sequence[_Walk],
        first: tuple[int, int],
    ) -> None:
        numbers = [side, *tile, *rows, *first]
        for walk in walks:
            numbers += [walk.extent, walk.size, walk.before, walk.after]
        named = "_".join(str(number).replace("-", "minus") for number in numbers)
        name = f"tracejit_turned_{kind.name}_{named}"
        super().__init__(name, ["source", "target"], ["first", "count"], side)
        self._kind = kind
        self._tile = tile
        self._rows = rows
        self._walks = walks
        self._first = first
        some = self.holds("sgt", "%count", "0")
        self.when(some, lambda: self.loop("%count", self._one))

    def _at(self, memory: str, index: str) -> str:
        return self.address(memory, self.product(index, str(self._kind.bits // 8)))

    def _one(self, number: str) -> None:
        """The tile with this number, counted from ``first``."""
        rest = self.sum("%first", number)
        before, after = (str(place) for place in self._first)
        for position, walk in reversed([*enumerate(self._walks)]):
            step = rest
            if position:
                rest, step = self.quotient(rest, str(walk.steps))
            start = self.product(step, str(walk.size))
            if walk.extent % walk.size:
                start = self.lesser(start, str(walk.extent - walk.size))
            before = self.sum(before, self.product(start, str(walk.before)))
            after = self.sum(after, self.product(start, str(walk.after)))
        source, target = self._at("%source", before), self._at("%target", after)
        along, deep = self._tile
        self.loop(
            str(deep),
            lambda down: self.loop(str(along), lambda n: self._square(source, target, down, n)),
        )

    def _square(self, source: str, target: str, down: str, along: str) -> None:
        side, (apart, step) = self.lanes, self._rows
        begin = self.sum(self.product(down, str(side)), self.product(along, str(side * apart)))
        end = self.sum(self.product(down, str(side * step)), self.product(along, str(side)))
        here, there = self._at(source, begin), self._at(target, end)
        rows = [self.get(self._kind, self._at(here, str(row * apart))) for row in range(side)]
        for row, vector in enumerate(self._transposed(rows)):
            self.put(vector, self._at(there, str(row * step)))

    def _transposed(self, rows: Sequence[Value]) -> list[Value]:
        made, half = list(rows), self.lanes // 2
        for _ in range(self.lanes.bit_length() - 1):
            pairs = zip(made[:half], made[half:], strict=True)
            made = [self._zipped(a, b, begin) for a, b in pairs for begin in (0, half)]
        return made

    def _zipped(self, a: Value, b: Value, begin: int) -> Value:
        """Interleave halves of two vectors, from lane ``begin`` on."""
        numbers = range(begin, begin + self.lanes // 2)
        return self.shuffled(a, b, [lane for n in numbers for lane in (n, self.lanes + n)])
