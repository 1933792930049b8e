"""Matrix products of anything that can be indexed: picks the schedule for the shape and layout."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterator

from tracejit.backends.tvm.codegen.kernel_body import KernelBody, nothing
from tracejit.backends.tvm.cpu.kernels.gemm.contraction import Contraction, Load, Store
from tracejit.backends.tvm.cpu.kernels.gemm.matvec import Axpy, Dot
from tracejit.backends.tvm.cpu.kernels.gemm.tiled import TiledProduct
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers, share
from tracejit.backends.tvm.cpu.kernels.tile import vector_loop
from tracejit.backends.tvm.cpu.kernels.tiling import (
    axpy_cycles,
    dot_cycles,
    range_count,
    tiled_cycles,
    tiled_plan,
    worth_sharing,
)
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import Expr, Stmt, i32, loop
from tracejit.backends.tvm.tune.knobs import MODEL, Knobs, ranked

_NAMES = {TiledProduct: "tiled product", Dot: "dot products", Axpy: "sums of rows"}

Schedule = Callable[[Contraction, Machine, int, int, int, Knobs], "TiledProduct | Dot | Axpy"]


def gemm(
    m: int,
    n: int,
    k: int,
    lhs: Load,
    rhs: Load,
    store: Store,
    *,
    accumulate_dtype: str,
    machine: Machine,
    batch: int = 1,
    index_dtype: str = "int32",
    choices: Knobs = MODEL,
) -> KernelBody:
    """``store(b, i, j, sum of lhs(b, i, q) * rhs(b, q, j) over q < k)`` for every b, i and j.

    ``lhs`` and ``rhs`` return expressions, or pairs (real, imaginary) of them; they may be called
    for any indices inside batch x m x k and batch x k x n, more than once, and not beyond. Each
    result is stored once; its value has ``accumulate_dtype``, which operands are converted to.
    Integers wrap around. ``index_dtype`` is the type of the indices that accessors are given,
    ``choices`` decides between alternative implementations.
    """
    if batch == 0 or m == 0 or n == 0:
        return nothing()
    problem = Contraction.of(m, n, k, lhs, rhs, store, accumulate_dtype, index_dtype)
    if k == 0:
        return _zeros(problem, batch, machine)
    cycles, problem, schedule = choices.of("product", _ways(problem, machine))
    ways = schedule is _dot, schedule is _axpy
    ranges = range_count(problem, machine, choices, *ways) if batch == 1 else 1
    sharing = choices.of("threads", _sharings(cycles, batch, machine))
    if sharing is Sharing.BATCH:
        return _batches_at_once(problem, schedule, batch, machine, choices)
    threads = machine.threads if sharing is Sharing.MATRIX else 1
    made = schedule(problem, machine, ranges, threads, 1, choices)
    if batch == 1:
        return KernelBody(made.statement(i32(0), i32(0)), made.scratch, _NAMES[type(made)])
    every = loop(batch, lambda b: made.statement(b, i32(0)))
    return KernelBody(every, made.scratch, f"batch of {_NAMES[type(made)]}")


class Sharing(enum.Enum):
    """What the threads divide among themselves."""

    BATCH = "share the batch"
    MATRIX = "share each matrix"
    NOTHING = "1"


def _sharings(cycles: float, batch: int, machine: Machine) -> Iterator[tuple[str, Sharing]]:
    """Ways to divide matrices of ``cycles`` cycles each among threads, the best first."""
    alone = worth_sharing(cycles, machine)
    pick = Sharing.MATRIX if alone else Sharing.NOTHING
    if batch > 1 and worth_sharing(cycles, machine, batch):
        uneven = batch % machine.threads and batch < 4 * machine.threads
        if not (alone and uneven):
            pick = Sharing.BATCH
    yield pick.value, pick
    if machine.threads > 1:
        for other in Sharing:
            if other is not Sharing.BATCH or batch > 1:
                yield other.value, other


def _tiled(
    problem: Contraction,
    machine: Machine,
    ranges: int,
    threads: int,
    copies: int,
    choices: Knobs,
) -> TiledProduct:
    return TiledProduct(
        problem, tiled_plan(problem, machine, ranges, threads, choices), machine, copies
    )


def _dot(
    problem: Contraction, machine: Machine, ranges: int, threads: int, copies: int, _: Knobs
) -> Dot:
    return Dot(problem, machine, ranges, threads, copies)


def _axpy(
    problem: Contraction, machine: Machine, ranges: int, threads: int, copies: int, _: Knobs
) -> Axpy:
    return Axpy(problem, machine, ranges, threads, copies)


_SCHEDULES: list[tuple[str, Schedule, Callable[[Contraction, Machine], float]]] = [
    ("tiles", _tiled, tiled_cycles),
    ("dot products", _dot, dot_cycles),
    ("sums of rows", _axpy, axpy_cycles),
]


def _ways(
    problem: Contraction, machine: Machine
) -> Iterator[tuple[str, tuple[float, Contraction, Schedule]]]:
    """The problem or its transpose, and a schedule with its cost, the cheapest first."""
    ways = [
        (cost(side, machine), order, f"{name}{' of the transpose' * order}", side, schedule)
        for order, side in enumerate((problem, problem.transposed()))
        for name, schedule, cost in _SCHEDULES
    ]
    for name, (cycles, _, _, side, schedule) in ranked(ways, lambda w: w[:2], lambda w: w[2]):
        if cycles < math.inf:
            yield name, (cycles, side, schedule)


def _batches_at_once(
    problem: Contraction, schedule: Schedule, batch: int, machine: Machine, choices: Knobs
) -> KernelBody:
    """Threads share the batch; each matrix is computed by one of them."""
    workers = min(machine.threads, batch)
    made = schedule(problem, machine, 1, 1, workers, choices)

    def worker(w: Expr) -> Stmt:
        first, count = share(w, batch, workers)
        return loop(count, lambda b: made.statement(first + b, w))

    return KernelBody(on_workers(workers, worker), made.scratch, f"batch of {_NAMES[type(made)]}")


def _zeros(problem: Contraction, batch: int, machine: Machine) -> KernelBody:
    lanes = machine.lanes(problem.arithmetic.dtype)
    return KernelBody(
        loop(
            batch,
            lambda b: loop(
                problem.m,
                lambda i: vector_loop(
                    problem.n,
                    lanes,
                    lambda j: problem.store(b, i, j, problem.arithmetic.zero),
                ),
            ),
        )
    )
