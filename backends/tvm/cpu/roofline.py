"""Benchmark programs for this machine's peak arithmetic and memory bandwidth.

`tracejit.runtime.roofline` runs them; their rates bound those of any kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tracejit.backends.abi import ArraySpec
from tracejit.backends.artifact import InProcess
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers
from tracejit.backends.tvm.cpu.objects.build import build
from tracejit.backends.tvm.cpu.processor import Processor, processor_of
from tracejit.backends.tvm.ir.tir import (
    UNROLLED,
    VECTORIZED,
    AllocBuffer,
    Expr,
    Stmt,
    buffer,
    const,
    i32,
    loop,
    seq,
    store,
)
from tracejit.backends.tvm.program.program import Argument, Call, Kernel, Program

# Independent chains of multiply-adds: two start in each cycle, and take four cycles each.
CHAINS = 12
# Vectors of sums in a thread that reads.
SUMS = 8


def arithmetic(dtype: str, turns: int) -> bytes | InProcess:
    """A program that computes in the registers of one core.

    It takes one array of 2 numbers, x and y, and computes z = z * x + y ``turns`` times for each
    number of its result.
    """
    target = processor_of()
    lanes = target.vector_bytes // np.dtype(dtype).itemsize
    width = CHAINS * lanes
    given, made = (buffer(name, (n,), dtype) for name, n in (("given", 2), ("made", width)))
    z = buffer("z", (width,), dtype, scope="local")

    def vectors(body: Callable[[Expr], Stmt]) -> Stmt:
        return _vectors(CHAINS, lanes, body)

    body = seq(
        AllocBuffer(z),
        vectors(lambda at: store(z, at, given[1])),
        loop(turns, lambda _: vectors(lambda at: store(z, at, z[at] * given[0] + given[1]))),
        vectors(lambda at: store(made, at, z[at])),
    )
    specs = [ArraySpec(np.dtype(dtype), (n,)) for n in (2, width)]
    return _of_one_kernel("arithmetic", (given, made), body, specs, target)


def reading(nbytes: int, times: int, threads: int) -> bytes | InProcess:
    """A program that reads ``nbytes`` of float32, ``times`` times; each thread reads a part.

    It takes the array and returns the sums, which depend on all of it.
    """
    target = processor_of()
    lanes = target.vector_bytes // 4
    width = SUMS * lanes
    blocks = max(nbytes // 4 // (threads * width), 1)
    size = blocks * width * threads
    given, made = (buffer(n, (s,), "float32") for n, s in (("given", size), ("made", width * 64)))

    def work(worker: Expr) -> Stmt:
        total = buffer("total", (width,), "float32", scope="local")

        def vectors(body: Callable[[Expr], Stmt]) -> Stmt:
            return _vectors(SUMS, lanes, body)

        def block(number: Expr) -> Stmt:
            first = (worker * i32(blocks) + number) * i32(width)
            return vectors(lambda at: store(total, at, total[at] + given[first + at]))

        first = (worker % i32(64)) * i32(width)
        return seq(
            AllocBuffer(total),
            vectors(lambda at: store(total, at, const(0.5, "float32"))),
            loop(times, lambda _: loop(blocks, block)),
            vectors(lambda at: store(made, first + at, total[at])),
        )

    body = on_workers(threads, work)
    specs = [ArraySpec(np.dtype(np.float32), (n,)) for n in (size, width * 64)]
    return _of_one_kernel("reading", (given, made), body, specs, target)


def _vectors(count: int, lanes: int, body: Callable[[Expr], Stmt]) -> Stmt:
    """``body`` for the elements of ``count`` adjacent vectors."""

    def vector(number: Expr) -> Stmt:
        return loop(lanes, lambda lane: body(number * i32(lanes) + lane), VECTORIZED)

    return loop(count, vector, UNROLLED)


def _of_one_kernel(
    name: str,
    buffers: tuple[Expr, Expr],
    body: Stmt,
    specs: Sequence[ArraySpec],
    target: Processor,
) -> bytes | InProcess:
    kernel = Kernel(name, buffers, body)
    calls = [Call(name, [Argument.input(0), Argument.output(0)])]
    return build(Program([kernel], calls, specs[:1], specs[1:]), target)
