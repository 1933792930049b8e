"""Scatter: copies the operands, then combines one window of updates after the other into them.

Nothing is copied if the results are in the operands' buffers. Windows run in the order of the
indices, so that updates of one element are combined in that order; a window that is not inside the
operand is skipped entirely. Threads share the columns of wide windows. Many updates of few
elements, in any order, are also shared: each thread combines its own into a private copy.
"""

from __future__ import annotations

from typing import Any

from tracejit.backends.tvm.analysis.monoids import identities
from tracejit.backends.tvm.codegen.emitter import Emitter, literal
from tracejit.backends.tvm.codegen.kernel_frame import Frame, memory_buffer
from tracejit.backends.tvm.codegen.stores import Store
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers, share
from tracejit.backends.tvm.cpu.kernels.tile import vector_loop
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.schedule.lanes import as_index
from tracejit.backends.tvm.cpu.schedule.pointwise import pointwise
from tracejit.backends.tvm.cpu.schedule.reduce.combining import held
from tracejit.backends.tvm.cpu.schedule.scatter.updates import ScatterBuffer, Scattering, Updates
from tracejit.backends.tvm.ir.tir import Expr, Stmt, const, i32, loop, seq
from tracejit.backends.tvm.tune.knobs import either
from tracejit.ops.computations import monoid
from tracejit.ops.constants import constant
from tracejit.ops.elementwise import ADD
from tracejit.shapes import Shape

# Consecutive updates of one element wait eight cycles for each other, so neighbours go to
# different copies if these fit in the first-level cache; the most bytes of these copies.
COPIES = 8
COPIED_BYTES = 16 << 10
# Parts of the updates that run concurrently, each with its own copies.
PARTS = 8
# The least updates per element of all copies, which have to be cleared and added up.
AMORTISED = 4


def scattering(frame: Frame, work: Scattering) -> Stmt:
    """The statement of the whole kernel."""
    copied = []
    frame.schedule = "scatter in place" if frame.in_place else "scatter"
    if not frame.in_place:
        pairs = zip(work.operands, work.targets, strict=True)
        stores = [Store(operand, target, compute=False) for operand, target in pairs]
        copied.append(pointwise(frame, work.sizes, stores, 1))
    if work.updates[0].array_shape.size == 0:
        return seq(*copied)
    parts, copies = _copies(frame, work)
    if parts * copies > 1:
        return seq(*copied, _in_copies(frame, work, parts, copies))
    targets = [ScatterBuffer(target) for target in work.targets]
    return seq(*copied, Updates(frame, work, targets).in_order())


def _copies(frame: Frame, work: Scattering) -> tuple[int, int]:
    """The number of parts of the updates, and the number of copies of each part.

    Depends on shapes only, so that results never depend on the number of threads.
    """
    size, count = work.operands[0].array_shape.size, work.updates[0].array_shape.size
    element_type = work.operands[0].array_shape.element_type
    if (
        len(work.operands) > 1
        or identities(work.combine) is None
        or held(element_type) is not element_type
        or element_type.is_complex
        or element_type.bits < 8
        or work.has_wide_windows
    ):
        return 1, 1
    fit = count // (AMORTISED * max(size, 1))
    copies = parts = 1
    nbytes = size * element_type.dtype.itemsize
    while 2 * copies <= min(fit, COPIES, COPIED_BYTES // max(nbytes, 1)) and work.is_single:
        copies *= 2
    if count * max(frame.cost, 4) >= frame.limits.parallel_work:
        while 2 * parts <= min(fit // copies, PARTS, work.update_sizes[work.outer[0]]):
            parts *= 2
    pick = parts * copies > 1
    if pick and frame.choices.of("updates", either(True, "in parts", "in order")):
        return parts, copies
    return 1, 1


def _identity(work: Scattering) -> Any:
    """The identity of the combiner in the operand's type."""
    values = identities(work.combine)
    assert values is not None
    is_sum = monoid(work.combine) is ADD
    # -0 + 0 -> 0
    return -0.0 if is_sum and work.operands[0].array_shape.element_type.is_floating else values[0]


def _in_copies(frame: Frame, work: Scattering, parts: int, copies: int) -> Stmt:
    """Each part of the updates into its own copies; then all copies into the target."""
    frame.schedule += " in parts"
    (target,), (operand,) = work.targets, work.operands
    shape = operand.array_shape
    size, element_type = shape.size, shape.element_type
    identity = literal(constant(_identity(work), element_type))
    made = memory_buffer(Shape(element_type, (parts * copies * size,)), "copies")
    lanes = frame.lanes(element_type, size)
    dtype = frame.index_dtype

    def emitter() -> Emitter:
        return Emitter({}, {}, index_dtype=dtype, holding=False)

    def number(value: Expr) -> Expr:
        return as_index(value, dtype)

    def part(p: Expr) -> Stmt:
        first = number(p) * const(copies * size, dtype)

        def clear(i: Expr) -> Stmt:
            return emitter().store(made, first + number(i), identity, element_type)

        begin, count = share(p, work.update_sizes[work.outer[0]], parts)
        updates = Updates(frame, work, [ScatterBuffer(made, first, copies, size)])
        return seq(vector_loop(copies * size, lanes, clear), updates.in_order((begin, count)))

    def combine(i: Expr) -> Stmt:
        scope = emitter()
        total = scope.load(target, number(i), element_type)
        for which in range(parts * copies):
            more = scope.load(made, const(which * size, dtype) + number(i), element_type)
            total = scope.apply(work.combine, [total, more])
        return scope.store(target, number(i), total, element_type)

    blocks = size // lanes
    workers = frame.pieces(parts * copies * size)

    def worker(w: Expr) -> Stmt:
        first, count = share(w, blocks, workers)
        return loop(
            count, lambda q: vector_loop(lanes, lanes, lambda i: combine((first + q) * lanes + i))
        )

    rest = vector_loop(size % lanes, lanes, lambda i: combine(i32(blocks * lanes) + i))
    return seq(
        *frame.allocate([made]),
        on_workers(parts, part) if machine_of(frame).threads > 1 else loop(parts, part),
        on_workers(workers, worker),
        rest if size % lanes else [],
    )
