"""Deinterleaves an axis with strided windows, so that adjacent results have contiguous operands.

Position p lies at p // stride of plane p % stride. Rows are read in whole vectors; ``stride`` of
them are shuffled into one vector for each plane.
"""

from __future__ import annotations

from tracejit.backends.tvm.cpu.kernels.arithmetic import Arithmetic, Parts
from tracejit.backends.tvm.cpu.kernels.conv.correlation import SpatialAxis
from tracejit.backends.tvm.cpu.kernels.tile import rolled, vector_loop
from tracejit.backends.tvm.cpu.kernels.tiling import ceil_div
from tracejit.backends.tvm.ir.tir import Buffer, Expr, Stmt, i32, seq, tirx

_MOST_PLANES = 4
"""The most vectors that are deinterleaved together; more do not stay in registers."""


def in_planes(axis: SpatialAxis, lanes: int) -> bool:
    """Whether an axis that vectors run along is stored in planes."""
    return 1 < axis.stride <= _MOST_PLANES and axis.base_dilation == 1 and lanes > 1


class Planes:
    """The planes of ``extent`` positions, and a row of positions for each worker."""

    def __init__(
        self, arithmetic: Arithmetic, workers: int, lanes: int, stride: int, extent: int
    ) -> None:
        self._arithmetic = arithmetic
        self._lanes = lanes
        self._count = stride
        self._length = ceil_div(ceil_div(extent, stride), lanes) * lanes
        self.row: Buffer = arithmetic.scratch("row", (workers, self.size))

    @property
    def size(self) -> int:
        """The number of elements of all planes."""
        return self._count * self._length

    def place(self, position: int | Expr) -> int | Expr:
        """The index of a position in the planes."""
        return position % self._count * self._length + position // self._count

    def clear(self, worker: Expr) -> Stmt:
        """Zeros in a worker's row."""
        arithmetic = self._arithmetic
        return vector_loop(
            self.size,
            self._lanes,
            lambda i: arithmetic.store(self.row, [worker, i], arithmetic.zero),
        )

    def deal(self, worker: Expr, target: Buffer, address: Expr) -> Stmt:
        """Copy a worker's row to the planes that begin at ``address`` of its ``target``."""
        arithmetic, lanes = self._arithmetic, self._lanes

        def vectors(q: Expr) -> Stmt:
            read = [
                arithmetic.load(self.row, worker, self._vector((q * self._count + n) * lanes))
                for n in range(self._count)
            ]
            return seq(*(put(q, plane, read) for plane in range(self._count)))

        def put(q: Expr, plane: int, read: list[Parts]) -> Stmt:
            chosen = [i32(lane * self._count + plane) for lane in range(lanes)]
            value = tuple(tirx.Shuffle(list(parts), chosen) for parts in zip(*read, strict=True))
            place = self._vector(address + plane * self._length + q * lanes)
            return arithmetic.store(target, [worker, place], value)

        return rolled(self._length // lanes, vectors)

    def _vector(self, first: Expr) -> Expr:
        """The indices of the elements of one vector."""
        return tirx.Ramp(first, 1, self._lanes)
