"""Threads of a block that work together: thread axes, barriers, shuffles and shared memory.

    team = Team(rows, length)                        # threads that share the elements of a row
    team.kernel(lambda: [team.steps(step), *team.joined(accumulators, merge)])

A team is a power of two of neighbouring threads. Teams of at most a warp stand side by side in a
block, and meet by warp operations alone; a larger team is a block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm.ir import Range

from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import memory_buffer
from tracejit.backends.tvm.codegen.scalar.accumulators import ScalarAccumulators
from tracejit.backends.tvm.ir.tir import (
    SERIAL,
    UNROLLED,
    AllocBuffer,
    Buffer,
    Evaluate,
    Expr,
    IfThenElse,
    Stmt,
    buffer,
    const,
    loop,
    seq,
    store,
    tirx,
    var,
)
from tracejit.shapes import Shape

WARP = 32
ALL_LANES = (1 << WARP) - 1
BLOCK_OF_TEAMS = 128
"""Threads of a block that holds several teams."""
ELEMENTS = 4
"""Elements of a row for each thread of a team, at least, before the team grows."""
LARGEST, LARGEST_OF_FEW = 256, 1024
"""Threads of a team; the second where there are fewer rows than `FEW`."""
FEW = 256
ENOUGH_THREADS = 1 << 17
"""Threads that keep a device busy: as many results need no threads that share one."""
ENOUGH_BLOCKS = 256
"""Blocks that keep a device busy."""
UNROLLED_TURNS = 16
"""Elements of a thread that its registers can hold."""
SHARED_BYTES = 48 << 10
"""Shared memory that every device grants a block without being asked."""

ThreadBody = Callable[[Expr], Sequence[Stmt]]


def axis(name: str, tag: str, extent: int, body: Callable[[Expr], Sequence[Stmt]]) -> Stmt:
    """``body`` on each of ``extent`` blocks or threads, such as those of ``threadIdx.x``."""
    index = var(name, "int32")
    made = tirx.IterVar(Range(0, extent), index, 1, tag)
    return tirx.AttrStmt(made, "thread_extent", const(extent, "int32"), seq(*body(index)))


def blocks(count: int, threads: int, body: Callable[[Expr, Expr], Sequence[Stmt]]) -> Stmt:
    """A grid of ``count`` blocks; ``body`` gets the numbers of a block and of its thread."""
    return axis(
        "block",
        "blockIdx.x",
        count,
        lambda b: [axis("thread", "threadIdx.x", threads, lambda t: body(b, t))],
    )


def barrier() -> Stmt:
    """All threads of the block have come here before one goes on."""
    return Evaluate(tirx.call_extern("int32", "__syncthreads"))


def shared(kind: Shape) -> Buffer:
    """Memory of a block for an array, in the layout of memory."""
    flat = memory_buffer(kind)
    return buffer("shared", [int(n) for n in flat.shape], str(flat.dtype), scope="shared")


def power_of_two(number: int) -> int:
    """The least power of two that is not below a positive number."""
    return 1 << (number - 1).bit_length()


Join = Callable[[Emitter, ScalarAccumulators, Sequence[object]], Sequence[Stmt]]
"""Combines accumulators with other partial results."""


class Team:
    """Threads that share each of ``rows`` rows of ``length`` elements.

    ``row_bytes`` is the shared memory of a row; a team has at most ``most`` threads. Within
    `kernel`, ``row`` is the number of the team's row, ``lane`` that of the thread in the team, and
    ``here`` whether there is such a row.
    """

    def __init__(
        self,
        rows: int,
        length: int,
        row_bytes: int = 0,
        dtype: str = "int32",
        most: int | None = None,
    ) -> None:
        most = most or (LARGEST if rows >= FEW else LARGEST_OF_FEW)
        wanted = max(power_of_two(-(-length // ELEMENTS)), min(WARP, power_of_two(length)))
        self.width = min(wanted, most)
        self.rows, self.length, self.dtype = rows, length, dtype
        self.side_by_side = 1
        if self.width <= WARP:
            fits = SHARED_BYTES // row_bytes if row_bytes else BLOCK_OF_TEAMS
            # Whole warps: the lanes that a shuffle names must be there.
            self.side_by_side = max(min(BLOCK_OF_TEAMS // self.width, fits), WARP // self.width)
        self.threads = self.width * self.side_by_side
        self.row = self.lane = self.number = self.turn = const(0, dtype)
        self.here: Expr | None = None
        self._thread = const(0, "int32")

    def kernel(self, body: Callable[[], Sequence[Stmt]]) -> Stmt:
        """The grid: a team for each row."""

        def thread(block: Expr, number: Expr) -> Sequence[Stmt]:
            self._thread = number
            wide = block if self.dtype == "int32" else tirx.Cast(self.dtype, block)
            self.row, self.lane = wide, self._index(number)
            if self.side_by_side > 1:
                width = const(self.width, "int32")
                self.number = self._index(tirx.truncdiv(number, width))
                self.row = wide * const(self.side_by_side, self.dtype) + self.number
                self.lane = self._index(tirx.truncmod(number, width))
                if self.rows % self.side_by_side:
                    self.here = self.row < const(self.rows, self.dtype)
            return body()

        return blocks(-(-self.rows // self.side_by_side), self.threads, thread)

    def _index(self, number: Expr) -> Expr:
        return number if self.dtype == "int32" else tirx.Cast(self.dtype, number)

    @property
    def count(self) -> int:
        """Elements of a row for each thread, at most."""
        return -(-self.length // self.width)

    def steps(self, body: ThreadBody) -> Stmt:
        """``body`` for each element of the row, neighbours on neighbouring threads.

        While it runs, ``turn`` counts the thread's elements.
        """
        width, length = self.width, self.length

        def step(number: Expr) -> Stmt:
            self.turn = number
            at = number * const(width, self.dtype) + self.lane
            inside = self.here
            if length % width:
                fits = at < const(length, self.dtype)
                inside = fits if inside is None else tirx.And(inside, fits)
            made = seq(*body(at))
            return made if inside is None else IfThenElse(inside, made, None)

        kind = UNROLLED if self.count <= UNROLLED_TURNS else SERIAL
        return loop(self.count, step, kind, dtype=self.dtype)

    def first(self, statements: Sequence[Stmt]) -> Stmt:
        """On the first thread of each team."""
        is_first = self.lane < const(1, self.dtype)
        if self.here is not None:
            is_first = tirx.And(is_first, self.here)
        return IfThenElse(is_first, seq(*statements), None)

    def guarded(self, statements: Sequence[Stmt]) -> Stmt:
        """On all threads of teams that have a row."""
        made = seq(*statements)
        return made if self.here is None else IfThenElse(self.here, made, None)

    def meet(self) -> Stmt:
        """What the team's threads have stored is there for all of them."""
        if self.width > WARP:
            return barrier()
        return Evaluate(tirx.call_extern("int32", "__syncwarp", const(ALL_LANES, "uint32")))

    def joined(
        self, totals: ScalarAccumulators, emitter: Callable[[], Emitter], join: Join
    ) -> list[Stmt]:
        """Every thread's totals become the team's, joined in one order for all threads."""
        made: list[Stmt] = []
        inside = min(self.width, WARP)
        made += self._across(totals, emitter, join, inside)
        if self.width <= WARP:
            return made
        warps = self.width // WARP
        words = [shared(Shape(t, (warps,))) for t in totals.types]
        made += [AllocBuffer(word) for word in words]
        lanes = const(WARP, "int32")
        scope = emitter()
        puts = totals.put(scope, words, tirx.truncdiv(self._thread, lanes), totals.read(scope))
        is_first = tirx.truncmod(self._thread, lanes) < const(1, "int32")
        made += [IfThenElse(is_first, seq(*puts), None), barrier()]
        scope = emitter()
        mine = tirx.truncmod(self._thread, const(warps, "int32"))
        made += totals.write(scope, totals.get(scope, words, mine))
        return [*made, *self._across(totals, emitter, join, warps)]

    def _across(
        self, totals: ScalarAccumulators, emitter: Callable[[], Emitter], join: Join, width: int
    ) -> list[Stmt]:
        """Merges the totals of each ``width`` neighbouring lanes of a warp."""
        made: list[Stmt] = []
        others = ScalarAccumulators(totals.types)
        if width > 1:
            made += others.allocations
        while width > 1:
            width //= 2
            for source, target in zip(totals.buffers, others.buffers, strict=True):
                for part in range(int(source.shape[0])):
                    at = const(part, "int32")
                    mask, step = const(ALL_LANES, "uint32"), const(width, "int32")
                    dtype = str(source.dtype)
                    # The exchange is symmetric: all lanes merge the same pairs.
                    taken = tirx.call_extern(dtype, "__shfl_xor_sync", mask, source[at], step)
                    made.append(store(target, at, taken))
            scope = emitter()
            made += join(scope, totals, others.read(scope))
        return made
