"""Kernels without a reduction: every element of the results is computed independently.

The innermost axis runs in vectors. When it does not divide evenly the last vector overlaps the one
before and computes some elements twice, which costs less code than a scalar tail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tvm.ir import TensorLoad

from tracejit.affine import Affine
from tracejit.backends.tvm.codegen.access_analysis import Load
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.loop_nest import Axis, Count, Space, nest
from tracejit.backends.tvm.codegen.stores import Store, settled_stores
from tracejit.backends.tvm.cpu.kernels.tile import pieces
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.schedule.lanes import as_index
from tracejit.backends.tvm.cpu.schedule.transpose.register_blocks import transpose_kernel
from tracejit.backends.tvm.cpu.schedule.transpose.tiled import StridedLoads, in_tiles, strided_loads
from tracejit.backends.tvm.ir.affine import LoopVariable
from tracejit.backends.tvm.ir.tir import VECTORIZED, Buffer, Expr, Stmt, const, loop, seq, tirx
from tracejit.backends.tvm.tune.knobs import either
from tracejit.graph import Instruction

# Whether loads with a large stride along vectors go through register transposes, tile by tile.
TURNING = either(True, "in tiles", "number by number")

# Whether the loop order follows the operands' memory order if it differs from the results'.
LOADED = either(True, "of operands", "of results")

# The longest last axis, and the least cost of its elements together, for vectors to run along the
# axis before it, which is at least `LONG`.
MOST_GROUPED = 4
GROUPED_COST = 128
LONG = 64

# Bytes along the last axis from which most lines are written at once, in any loop order.
WRITTEN_WHOLE = 256


def pointwise(frame: Frame, dimensions: Sequence[int], stores: Sequence[Store], cost: int) -> Stmt:
    """A nest over ``dimensions`` that makes all ``stores``, parallel where the work is worth it."""
    frame.schedule = frame.schedule or "elementwise"
    space = Space(dimensions)
    visible = frame.inputs.without({store.value for store in stores if store.compute})
    accesses, axes = settled_stores(space, stores, visible)

    positions: dict[LoopVariable, Expr] = {}
    work = cost
    for axis in axes:
        work *= axis.extent
    parallel = frame.pieces(work)
    widest = max((s.value.array_shape.element_type for s in stores), key=lambda t: t.dtype.itemsize)
    inner = axes[-1] if axes else None
    lanes = frame.lanes(widest, inner.extent) if inner else 1
    counts = [axis.count(positions) for axis in axes[:-1]]

    group: Axis | None = None

    def one(
        lane: Expr | None, lanes: int, tiles: Mapping[Instruction, tuple[Buffer, Expr]] | None
    ) -> tuple[Emitter, list[list[Stmt]]]:
        emitter = Emitter(
            visible,
            positions,
            lanes=lanes,
            lane=lane,
            uses=frame.uses,
            index_dtype=frame.index_dtype,
            along=inner.members if inner else (),
        )
        for each, (tile, place) in (tiles or {}).items():
            emitter.given[each] = emitter.load(tile, place, each.array_shape.element_type)
        written: list[list[Stmt]] = []
        for s in stores:
            # An earlier store may write to the memory that this one reads.
            binds = not dimensions and not s.compute
            written.append(s.write(emitter, space.indices, binds=binds))
        return emitter, written

    def element(
        lane: Expr | None,
        lanes: int,
        tiles: Mapping[Instruction, tuple[Buffer, Expr]] | None = None,
    ) -> tuple[list[Stmt], list[Stmt]]:
        """Allocations; then the statements that compute and store an element, or a short group."""
        allocations: list[Stmt] = []
        statements: list[Stmt] = []
        results: list[list[Stmt]] = [[] for _ in stores]
        for number in range(group.extent if group else 1):
            if group:
                positions[group.last] = const(number, frame.index_dtype)
            emitter, written = one(lane, lanes, tiles)
            allocations += emitter.allocations
            statements += emitter.statements
            for result, more in zip(results, written, strict=True):
                result += more
        return allocations, [*statements, *(each for result in results for each in result)]

    tile = strided_loads(accesses.loads, axes, work // max(cost, 1))
    if tile is not None and not frame.choices.of("transposition", TURNING):
        tile = None

    def scalar() -> list[Stmt]:
        allocations, statements = element(None, 1)
        return [*allocations, *statements]

    if tile is not None and len(stores) == len(accesses.loads) == 1:
        source = _copied(stores[0], visible, axes, space, frame.index_dtype)
        if source is not None:
            made = stores[0].target, stores[0].address(space.indices)
            workers = machine_of(frame).threads if parallel > 1 else 1
            copy = transpose_kernel(
                frame, tile, axes, (source, accesses.loads[0].address), made, workers
            )
            if copy is not None:
                return copy
    if tile is not None:
        main = in_tiles(
            frame,
            tile,
            axes,
            positions,
            parallel,
            lambda count, lane, places: element(lane, count, places),
        )
        if not frame.apart:
            return main
        return seq(main, *_strips(frame, tile, axes, positions, scalar))

    places = [store.address(space.indices) for store in stores]
    if inner is not None and frame.choices.of("order", LOADED):
        axes = _as_loaded(axes, accesses.loads, places)
        counts = [axis.count(positions) for axis in axes[:-1]]
    if inner is not None and _is_group(frame, axes, places, stores, cost):
        group = inner
        axes, counts = axes[:-1], counts[:-1]
        inner = axes[-1]
        lanes = frame.lanes(widest, inner.extent)

    if inner is None or lanes == 1:
        if inner is not None:
            counts.append(inner.count(positions))
        return nest(counts, scalar, parallel=parallel, dtype=frame.index_dtype)

    start: list[Expr] = [const(0, frame.index_dtype)]

    def vector(width: int = lanes) -> list[Stmt]:
        allocations: list[Stmt] = []

        def lanes_body(lane: Expr) -> Stmt:
            index = as_index(lane, frame.index_dtype)
            positions[inner.last] = start[0] + index
            needed, statements = element(lane, width)
            allocations.extend(needed)
            return seq(*statements)

        body = loop(width, lanes_body, VECTORIZED)
        return [*allocations, body]

    rest: list[Stmt] = []
    blocks = -(-inner.extent // lanes)
    if frame.apart and inner.extent % lanes:
        # The remainder in narrower vectors: an overlapping vector would compute some elements
        # twice.
        blocks = inner.extent // lanes

        def ends() -> list[Stmt]:
            written: list[Stmt] = []
            for first, width in pieces(inner.extent - blocks * lanes, lanes // 2):
                start[0] = const(blocks * lanes + first, frame.index_dtype)
                positions[inner.last] = start[0]
                written += vector(width) if width > 1 else scalar()
            return written

        rest = [nest(counts, ends, dtype=frame.index_dtype)]

    def place(number: Expr) -> None:
        first = number * const(lanes, frame.index_dtype)
        if inner.extent % lanes and not rest:
            first = tirx.min(first, const(inner.extent - lanes, frame.index_dtype))
        start[0] = first

    outer = 1
    for count in counts:
        outer *= count.extent
    chunks = min(blocks, -(-parallel // outer)) if parallel > outer else 1
    if chunks > 1:
        main = _chunked(counts, blocks, chunks, place, vector, parallel, frame.index_dtype)
        return seq(main, *rest)
    counts.append(Count(blocks, place))
    outermost = parallel if outer > 1 else 1
    return seq(nest(counts, vector, parallel=outermost, dtype=frame.index_dtype), *rest)


def _as_loaded(axes: list[Axis], loads: Sequence[Load], places: Sequence[Affine]) -> list[Axis]:
    """The axes in the memory order of the operands, if all have the same one.

    Hardware prefetches what is read line after line, and stores can wait. Lines that are written
    in parts keep their order: they would be evicted before the second part.
    """
    *others, inner = axes
    orders = set()
    for load in loads:
        steps = [load.address.coefficient(axis.last) for axis in axes]
        itemsize = load.instruction.array_shape.element_type.dtype.itemsize
        if not load.known or steps[-1] != 1 or inner.extent * itemsize < WRITTEN_WHOLE:
            return axes
        if all(steps):
            orders.add(tuple(sorted(range(len(others)), key=lambda n: -abs(steps[n]))))
    if len(orders) != 1 or any(place.coefficient(inner.last) != 1 for place in places):
        return axes
    (order,) = orders
    return [*(others[n] for n in order), inner]


def _copied(
    store: Store,
    visible: Mapping[Instruction, Buffer],
    axes: Sequence[Axis],
    space: Space,
    dtype: str,
) -> Buffer | None:
    """The source buffer of a store that only copies; None for any other.

    Not for stores of subclasses, whose value differs from their instruction.
    """
    if type(store) is not Store or not store.compute or store.offset is not None:
        return None
    start = {axis.last: const(0, dtype) for axis in axes}
    emitter = Emitter(visible, start, index_dtype=dtype, holding=False)
    value = emitter.compute(store.value, space.indices)
    return value.source if isinstance(value, TensorLoad) else None


def _is_group(
    frame: Frame,
    axes: Sequence[Axis],
    places: Sequence[Affine],
    stores: Sequence[Store],
    cost: int,
) -> bool:
    """Whether the last axis is so short, as for points, that vectors run along the one before."""
    if len(axes) < 2 or axes[-1].extent > MOST_GROUPED or cost * axes[-1].extent > GROUPED_COST:
        return False
    *_, outer, inner = axes
    is_whole = all(
        not store.value.array_shape.element_type.is_complex
        and place.coefficient(inner.last) == 1
        and place.coefficient(outer.last) == inner.extent
        for store, place in zip(stores, places, strict=True)
    )
    ways = either(True, "many short ones", "one")
    return is_whole and outer.extent >= LONG and frame.choices.of("vector over", ways)


def _strips(
    frame: Frame,
    tile: StridedLoads,
    axes: Sequence[Axis],
    positions: dict[LoopVariable, Expr],
    body: Callable[[], list[Stmt]],
) -> list[Stmt]:
    """The remainder after whole tiles, element by element: the last lines, and the
    ends of others.
    """
    across, along = tile.covered(frame)

    def between(axis: Axis, begin: int, end: int) -> Count:
        def place(number: Expr) -> None:
            positions[axis.last] = number + const(begin, frame.index_dtype) if begin else number

        return Count(end - begin, place)

    made = []
    for begins, ends in (
        ({tile.across: across}, {}),
        ({tile.inner: along}, {tile.across: across}),
    ):
        counts = [between(a, begins.get(a, 0), ends.get(a, a.extent)) for a in axes]
        if all(count.extent for count in counts):
            made.append(nest(counts, body, dtype=frame.index_dtype))
    return made


def _chunked(
    counts: list[Count],
    blocks: int,
    chunks: int,
    place: Callable[[Expr], None],
    body: Callable[[], list[Stmt]],
    parallel: int,
    dtype: str,
) -> Stmt:
    """The block loop cut into ``chunks`` that run in parallel together with the outer loops."""
    size = -(-blocks // chunks)
    first: list[Expr] = []

    def place_chunk(number: Expr) -> None:
        first[:] = [number * const(size, dtype)]

    def chunk() -> Stmt:
        begin = first[0]
        extent = tirx.max(
            tirx.min(const(size, dtype), const(blocks, dtype) - begin), const(0, dtype)
        )

        def inside(number: Expr) -> list[Stmt]:
            place(begin + number)
            return body()

        return loop(extent, inside, dtype=dtype)

    return nest([*counts, Count(chunks, place_chunk)], chunk, parallel=parallel, dtype=dtype)
