"""A kernel's body as launches: parallel loops on grids of threads, the rest on one thread.

    launches(kernel)        # what the host launches, one after the other

A body's statements run in order, and so do the launches of a stream. Loops of kind PARALLEL at the
top become grids of threads, which stride over their steps; nests of thread axes are grids as they
stand; what comes between them is one thread's work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm.ir import Call, TensorLoad
from tvm_ffi import structural_walk

from tracejit.backends.tvm.ir.tir import (
    PARALLEL,
    AllocBuffer,
    Buffer,
    BufferStore,
    Evaluate,
    For,
    SeqStmt,
    Stmt,
    const,
    seq,
    tirx,
)
from tracejit.backends.tvm.program.program import Kernel
from tracejit.backends.tvm.verification.routines import pointed
from tracejit.cuda.kernels import CudaKernel

THREADS = 256
"""Threads of a block, for loops over elements."""
MOST_BLOCKS = 1 << 16
"""Blocks of a grid, whose threads stride over longer loops."""
LOADS = "tj_load<"
"""What functions of the prelude begin with that load from their second argument."""
SOURCE = "tracejit.cuda_source"
"""The function whose call is a launch of CUDA C of the user's."""
BLOCK = "tracejit.grid"
"""The annotation of a loop whose steps the threads of a grid share."""
_AXES = {
    "blockIdx.x": "blockIdx.x",
    "blockIdx.y": "blockIdx.y",
    "threadIdx.x": "threadIdx.x",
    "threadIdx.y": "threadIdx.y",
}


@dataclass
class Launch:
    """One launch: each of ``blocks`` times ``threads`` threads runs ``body``.

    The body uses ``parameters``, and writes none of the first ``reads``.
    """

    body: Stmt
    parameters: Sequence[Buffer]
    reads: int
    blocks: int
    threads: int
    shared_bytes: int = 0
    source: CudaKernel | None = None
    """A kernel of the user's, which is launched in place of the body."""


def thread_axis(statement: Any) -> str | None:
    """The axis of threads or blocks that an AttrStmt binds a variable to."""
    if statement.attr_key != "thread_extent":
        return None
    return _AXES[str(statement.node.thread_tag)]


def launches(kernel: Kernel) -> tuple[list[Launch], list[Buffer]]:
    """A kernel's launches, and the buffers that several of them use and the body allocates."""
    statements = _flattened(kernel.body)
    allocated = [s.buffer for s in statements if isinstance(s, AllocBuffer)]
    work = [s for s in statements if not isinstance(s, AllocBuffer)]
    if not any(_is_grid(s) or _is_source(s) for s in work):
        return [_launch(kernel, kernel.body, [], 1, 1)], []
    made: list[Launch] = []
    waiting: list[Stmt] = []

    def flush() -> None:
        if waiting:
            made.append(_launch(kernel, seq(*waiting), allocated, 1, 1))
            waiting.clear()

    for statement in work:
        if _is_source(statement):
            flush()
            made.append(_of_source(kernel, statement, allocated))
        elif _is_grid(statement):
            flush()
            made.append(_grid(kernel, statement, allocated))
        else:
            waiting.append(statement)
    flush()
    return made, allocated


def _flattened(body: Stmt) -> list[Stmt]:
    if isinstance(body, SeqStmt):
        return [each for statement in body for each in _flattened(statement)]
    return [body]


def _is_grid(statement: Any) -> bool:
    if isinstance(statement, For):
        return int(statement.kind) == int(PARALLEL)
    return isinstance(statement, tirx.AttrStmt) and statement.attr_key == "thread_extent"


def _is_source(statement: Any) -> bool:
    call = statement.value if isinstance(statement, Evaluate) else None
    return isinstance(call, Call) and str(call.args[0]).strip('"') == SOURCE


def _of_source(kernel: Kernel, statement: Any, allocated: Sequence[Buffer]) -> Launch:
    _, script, *pointers = statement.value.args
    source = CudaKernel.from_script(str(script.value))
    known = {hash(buffer): buffer for buffer in (*kernel.parameters, *allocated)}
    parameters = [known[hash(pointed(pointer)[0])] for pointer in pointers]
    sizes = source.blocks, source.threads, source.shared_bytes
    return Launch(statement, parameters, 0, *sizes, source)


def _grid(kernel: Kernel, statement: Any, allocated: Sequence[Buffer]) -> Launch:
    if isinstance(statement, For):
        extent = int(statement.extent)
        threads = min(THREADS, max(32, -(-extent // 32) * 32))
        blocks = min(MOST_BLOCKS, max(1, -(-extent // threads)))
        loop = For(
            statement.loop_var,
            statement.min,
            statement.extent,
            statement.kind,
            statement.body,
            annotations={BLOCK: const(1, "int32")},
        )
        return _launch(kernel, loop, allocated, blocks, threads)
    sizes = {"blockIdx.x": 1, "threadIdx.x": 1}
    inner = statement
    while isinstance(inner, tirx.AttrStmt) and inner.attr_key == "thread_extent":
        sizes[str(inner.node.thread_tag)] = int(inner.value)
        inner = inner.body
    return _launch(kernel, statement, allocated, sizes["blockIdx.x"], sizes["threadIdx.x"])


def _launch(
    kernel: Kernel, body: Stmt, allocated: Sequence[Buffer], blocks: int, threads: int
) -> Launch:
    used: set[int] = set()
    written: set[int] = set()

    def load(node: Any) -> None:
        used.add(hash(node.source))

    def store(node: Any) -> None:
        used.add(hash(node.buffer))
        written.add(hash(node.buffer))

    pointers: list[tuple[int, int]] = []
    reading: set[int] = set()

    def pointed(node: Any) -> None:
        # The address of an element is for functions that write there, but for one that loads.
        name = str(getattr(node.op, "name", ""))
        if name == "tirx.address_of":
            pointers.append((hash(node), hash(node.args[0].source)))
            used.add(hash(node.args[0].source))
        elif name == "tirx.call_extern" and node.args[0].value.startswith(LOADS):
            reading.add(hash(node.args[2]))
        elif name == "tirx.buffer_data":
            written.add(hash(node.args[0]))
            used.add(hash(node.args[0]))

    structural_walk(body, [(TensorLoad, load), (BufferStore, store), (Call, pointed)])
    written |= {memory for pointer, memory in pointers if pointer not in reading}
    parameters = [b for b in (*kernel.parameters, *allocated) if hash(b) in used]
    read = [b for b in parameters if hash(b) not in written]
    ordered = [*read, *(b for b in parameters if hash(b) in written)]
    return Launch(body, ordered, len(read), blocks, threads)
