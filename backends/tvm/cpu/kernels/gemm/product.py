"""Matrix products of plain arrays, by a precompiled routine with strides as arguments.

The code that `tiled` would emit takes longer to compile than to run, so all such products share
one routine. If operands are computed while they are read, or results while they are stored,
`tiled` emits a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tracejit.backends.tvm.codegen.work import Work
from tracejit.backends.tvm.cpu.kernels.access import linear
from tracejit.backends.tvm.cpu.kernels.gemm.contraction import Contraction
from tracejit.backends.tvm.cpu.kernels.gemm.product_routine import product_parts, product_routine
from tracejit.backends.tvm.cpu.kernels.gemm.product_vocabulary import FIELDS, Variant
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers, share
from tracejit.backends.tvm.cpu.kernels.tiling import TiledPlan, ceil_div, tile_sizes
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.routine_call import RoutineCall
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Buffer,
    BufferStore,
    Evaluate,
    Expr,
    Stmt,
    buffer,
    i32,
    i64,
    itemsize,
    loop,
    seq,
    store,
    tirx,
    var,
)

_LEAST_CYCLES = 800
"""The least multiply-adds of a tile: for less, the address computations of the routine dominate."""

_LEAST_OF_BATCH = 1 << 17
"""The least multiply-adds of each matrix of a batch."""

_PACKED_STEPS = 256
"""Steps of the contraction that are packed as one piece of work."""

_RUN_TILES = 8
"""Column tiles that are packed together where that makes for long runs of memory."""

_KINDS = ("float32", "float64")


class Plain(NamedTuple):
    """A product of arrays in memory: base pointers and strides.

    Strides are in bytes: of the operands for the batch and both indices, of the result for the
    batch and the rows; its columns are contiguous.
    """

    left: Buffer
    right: Buffer
    result: Buffer
    left_steps: Sequence[int]
    right_steps: Sequence[int]
    result_steps: Sequence[int]

    @property
    def itemsize(self) -> int:
        """Bytes of a number."""
        return itemsize(self.result)


def plain(problem: Contraction, index_dtype: str) -> Plain | None:
    """The arrays of a problem that reads and stores them unchanged; None for any other."""
    dtype = problem.arithmetic.dtype
    if dtype not in _KINDS or problem.arithmetic.pair is not None:
        return None
    b, x, y = indices = [var("probe", index_dtype) for _ in range(3)]
    operands = [linear(read(b, x, y)[0], indices) for read in (problem.left, problem.right)]
    value = var("sum", dtype)
    written = problem.store(b, x, y, (value,))
    if not isinstance(written, BufferStore) or not written.value.same_as(value):
        return None
    memories: list[Buffer] = []
    steps: list[list[int]] = []
    for access in (*operands, linear(written, indices)):
        if access is None:
            return None
        memory, distances, first = access
        if first is None or str(memory.dtype) != dtype:
            return None
        memories.append(memory)
        steps.append([itemsize(memory) * step for step in (first, *distances)])
    left, right, result = memories
    if problem.n > 1 and steps[2][-1] != itemsize(result):
        return None
    if left.same_as(result) or right.same_as(result):
        return None
    return Plain(left, right, result, steps[0], steps[1], steps[2][:-1])


def is_for_routine(problem: Contraction, machine: Machine, batch: int) -> bool:
    """Whether tiles, and the matrices of a batch, are work enough for the routine."""
    if batch > 1 and problem.m * problem.n * problem.k < _LEAST_OF_BATCH:
        return False
    tile = tile_sizes(problem.m, problem.n, problem.arithmetic, machine)[0]
    return problem.k * tile.cycles >= _LEAST_CYCLES


def product(
    problem: Contraction, found: Plain, plan: TiledPlan, batch: int, sharers: int
) -> Work | None:
    """The product by the plan; ``sharers`` threads share the batch, unless that is 0.

    None if the routine would be slower than a kernel for this product alone.
    """
    tile, arithmetic = plan.tile, problem.arithmetic
    if plan.ranges > 1 or min(plan.depth, problem.k) * tile.cycles < _LEAST_CYCLES:
        return None
    if batch > 1 and problem.m * problem.n * problem.k < _LEAST_OF_BATCH:
        return None
    if not plan.pack_right and found.right_steps[-1] != arithmetic.itemsize:
        return None
    copies = max(sharers, 1)
    packed_right = arithmetic.scratch(
        "packed_right", (copies, plan.panels, problem.k, tile.columns)
    )
    packed_left = arithmetic.scratch(
        "packed_left", (copies * plan.workers, plan.block_rows, plan.depth, tile.rows)
    )
    numbers = _numbers(problem, found, plan, batch, sharers)
    scratch = [
        memory
        for memory, is_used in ((packed_right, plan.pack_right), (packed_left, plan.pack_left))
        if is_used
    ]
    arrays = [found.left, found.right, found.result]
    used = [*arrays, packed_right if plan.pack_right else None]
    used.append(packed_left if plan.pack_left else None)
    tails = plan.pack_right and problem.n % tile.columns
    moved = problem.m % tile.rows or problem.n % tile.columns
    edges = bool(tails or (plan.blocks > 1 and moved))
    variant = Variant(arithmetic.dtype, tile, edges, plan.pack_left or plan.pack_right)
    routine = product_routine(variant)
    needed = [found.left if memory is None else memory for memory in used]
    statement = _statement(routine.name, needed, numbers, plan, batch, sharers)
    text = product_parts(variant)
    return Work(
        tirx.AttrStmt(0, "pragma_import_llvm", text, statement),
        tuple(scratch),
        "",
        RoutineCall(routine, used, numbers),
    )


def _groups(plan: TiledPlan) -> int:
    return ceil_div(plan.column_tiles, plan.panels) if plan.pack_right else 1


def _numbers(
    problem: Contraction, found: Plain, plan: TiledPlan, batch: int, sharers: int
) -> list[int]:
    """The values of the routine's `FIELDS`."""
    tile, size, k = plan.tile, problem.arithmetic.itemsize, problem.k
    row_bytes = tile.columns * size
    left_bytes = plan.depth * tile.rows * size
    panels = plan.panels if plan.pack_right else plan.column_tiles
    most_rows = ceil_div(plan.row_tiles, plan.shares[0])
    last_column = problem.n if plan.pack_right else problem.n - tile.columns
    left_0, left_b, left_i, left_q = found.left_steps
    right_0, right_b, right_q, right_j = found.right_steps
    result_0, result_b, result_i = found.result_steps
    chunk = min(_PACKED_STEPS, k)
    told = {
        **{"n": problem.n, "k": k, "batch": batch},
        **{"left_0": left_0, "left_b": left_b, "left_i": left_i, "left_q": left_q},
        **{"right_0": right_0, "right_b": right_b, "right_q": right_q, "right_j": right_j},
        **{"result_0": result_0, "result_b": result_b, "result_i": result_i},
        **{"pack_left": plan.pack_left, "pack_right": plan.pack_right, "depth": plan.depth},
        **{"blocks": plan.blocks, "block_rows": plan.block_rows, "panels": panels},
        **{"groups": _groups(plan), "row_tiles": plan.row_tiles},
        **{"column_tiles": plan.column_tiles, "by_columns": plan.shares[1]},
        **{"workers": plan.workers, "sharers": sharers, "most_rows": most_rows},
        "most_columns": ceil_div(panels, plan.shares[1]),
        "row_blocks": ceil_div(most_rows, plan.block_rows),
        **{"last_row": problem.m - tile.rows, "last_column": last_column},
        **{"parts_rows": plan.blocks > 1, "parts_columns": plan.pack_right or plan.blocks > 1},
        "left_tile": left_bytes if plan.pack_left else 0,
        "left_first": 0 if plan.pack_left else left_i,
        "left_row": size if plan.pack_left else left_i,
        "left_step": tile.rows * size if plan.pack_left else left_q,
        "right_tile": k * row_bytes if plan.pack_right else row_bytes,
        "right_step": row_bytes if plan.pack_right else right_q,
        "left_bytes": plan.block_rows * left_bytes,
        **{"right_bytes": panels * k * row_bytes, "panel": k * row_bytes},
        **{"chunk": chunk, "chunks": ceil_div(k, chunk)},
        "beside": _RUN_TILES if right_j == size else 1,
        "full": problem.n // tile.columns,
    }
    return [int(told[field]) for field in FIELDS]


def _statement(
    name: str,
    memories: Sequence[Buffer],
    numbers: Sequence[int],
    plan: TiledPlan,
    batch: int,
    sharers: int,
) -> Stmt:
    """The routine's outer loops as TIR, over the linked functions ``pack`` and ``work``."""
    told = buffer("numbers", (len(FIELDS),), "int64")
    filled = [store(told, i32(n), i64(number)) for n, number in enumerate(numbers)]
    data = [memory.data for memory in memories]

    def part(which: str, b: Expr, g: Expr, copy: Expr, w: Expr) -> Stmt:
        place = [tirx.Cast("int64", number) for number in (b, i32(1), g, copy, w)]
        return Evaluate(tirx.call_extern("int32", f"{name}_{which}", *data, told.data, *place))

    def matrix(b: Expr, copy: Expr) -> Stmt:
        def group(g: Expr) -> Stmt:
            packs = on_workers(plan.workers, lambda w: part("pack", b, g, copy, w))
            works = on_workers(plan.workers, lambda w: part("work", b, g, copy, w))
            return seq(packs if plan.pack_right else [], works)

        return loop(_groups(plan), group)

    def sharer(w: Expr) -> Stmt:
        first, count = share(w, batch, sharers)
        return loop(count, lambda b: matrix(first + b, w))

    every = on_workers(sharers, sharer) if sharers else loop(batch, lambda b: matrix(b, i32(0)))
    return seq(AllocBuffer(told), filled, every)
