"""One thread for each element: loops over arrays whose steps the threads of a grid share.

pointwise(frame, dimensions, stores, cost)
Elements(frame, dimensions, inner, anchors, results, ask).kernel(thread)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.loop_nest import Axis, Space, merge, settle
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.codegen.stores import Store, identity, settled_stores
from tracejit.backends.tvm.ir.affine import Affine, Index, LoopVariable
from tracejit.backends.tvm.ir.tir import PARALLEL, Buffer, Expr, Stmt, const, loop, seq, tirx
from tracejit.graph import Instruction

Positions = dict[LoopVariable, Expr]


def place(number: Expr, axes: Sequence[Axis], positions: Positions, dtype: str) -> None:
    """Sets the positions of axes, outermost first, to where a flat ``number`` stands."""
    for axis in reversed(axes[1:]):
        positions[axis.last] = tirx.truncmod(number, const(axis.extent, dtype))
        number = tirx.truncdiv(number, const(axis.extent, dtype))
    if axes:
        positions[axes[0].last] = number


def shared_loop(extent: int, body: Callable[[Expr], Sequence[Stmt]], dtype: str) -> Stmt:
    """A loop whose steps the threads of a grid share; each step may run on any of them."""
    return loop(extent, lambda i: seq(*body(i)), PARALLEL, dtype=dtype)


def nested(
    axes: Sequence[Axis], positions: Positions, body: Callable[[], Sequence[Stmt]], dtype: str
) -> Stmt:
    """Loops of one thread, outermost first."""
    if not axes:
        return seq(*body())
    first, *rest = axes

    def inside(number: Expr) -> Stmt:
        positions[first.last] = number
        return nested(rest, positions, body, dtype)

    return loop(first.extent, inside, dtype=dtype)


def pointwise(frame: Frame, dimensions: Sequence[int], stores: Sequence[Store], cost: int) -> Stmt:
    """All ``stores`` for each element of ``dimensions``, by a thread for each."""
    frame.schedule = frame.schedule or "elementwise"
    space = Space(dimensions)
    visible = frame.inputs.without({store.value for store in stores if store.compute})
    _, axes = settled_stores(space, stores, visible)
    positions: Positions = {}

    def element(number: Expr) -> list[Stmt]:
        place(number, axes, positions, frame.index_dtype)
        emitter = Emitter(visible, positions, uses=frame.uses, index_dtype=frame.index_dtype)
        written: list[Stmt] = []
        for each in stores:
            # An earlier store may write to the memory that this one reads.
            written += each.write(emitter, space.indices, binds=len(stores) > 1)
        return [*emitter.allocations, *emitter.statements, *written]

    return shared_loop(math.prod(axis.extent for axis in axes), element, frame.index_dtype)


class Elements:
    """The results of an anchor, one thread for each element of ``dimensions``.

    ``inner`` are dimensions of loops inside a thread, and ``where`` maps the indices of both to the
    indices of the results. A thread computes the ``anchors``, and its epilogue the ``results``.
    """

    def __init__(
        self,
        frame: Frame,
        dimensions: Sequence[int],
        inner: Sequence[int],
        anchors: Sequence[Instruction],
        results: Results,
        ask: Callable[[Accesses, Sequence[Index], Sequence[Index]], None],
        where: Callable[[Sequence[Index], Sequence[Index]], Sequence[Index]] = lambda at, _: at,
    ) -> None:
        self.frame, self.results, self.anchors = frame, results, anchors
        self._where = where
        self.dtype = frame.index_dtype
        self.outer_space, self.inner_space = Space(dimensions), Space(inner)
        self.positions: Positions = {}
        hidden = {*anchors, *(root for root, _ in results)}
        self.visible: Mapping[Instruction, Buffer] = frame.inputs.without(hidden)

        def wishes(scope: Accesses) -> None:
            ask(scope, self.outer_space.indices, self.inner_space.indices)
            scope.known.update(anchors)
            for root, _ in results:
                if root not in anchors:
                    scope.result(root, self.place)

        spaces = [self.outer_space, self.inner_space]
        accesses = settle(spaces, wishes, self.visible.__contains__)
        loads = [load.address for load in accesses.loads]
        own = [self.address()]
        self.outer_axes = merge(self.outer_space.variables, [*loads, *own], accesses.opaque)
        self.inner_axes = merge(self.inner_space.variables, [*loads, *own], accesses.opaque)

    @property
    def at(self) -> Sequence[Index]:
        """The indices of a thread's element."""
        return self.outer_space.indices

    @property
    def over(self) -> Sequence[Index]:
        """The indices of a step of the thread's own loops."""
        return self.inner_space.indices

    @property
    def place(self) -> Sequence[Index]:
        """The indices of the results' element that a thread is at."""
        return self._where(self.at, self.over)

    def emitter(self) -> Emitter:
        """A scope at the current positions."""
        return Emitter(self.visible, self.positions, uses=self.frame.uses, index_dtype=self.dtype)

    def kernel(self, body: Callable[[], Sequence[Stmt]]) -> Stmt:
        """The grid; ``body`` writes one thread's work."""

        def element(number: Expr) -> Sequence[Stmt]:
            place(number, self.outer_axes, self.positions, self.dtype)
            return body()

        extent = math.prod(axis.extent for axis in self.outer_axes)
        return shared_loop(extent, element, self.dtype)

    def steps(self, body: Callable[[], Sequence[Stmt]]) -> Stmt:
        """The thread's own loops."""
        return nested(self.inner_axes, self.positions, body, self.dtype)

    def finish(self, values: Sequence[object]) -> list[Stmt]:
        """What stores the results, when ``values`` are those of the anchors."""
        emitter = self.emitter()
        for anchor, value in zip(self.anchors, values, strict=True):
            emitter.given[anchor] = value
        address = emitter.expression(self.address())
        written: list[Stmt] = []
        for root, target in self.results:
            made = (
                emitter.given[root] if root in emitter.given else emitter.result(root, self.place)
            )
            stored = emitter.store(target, address, made, root.array_shape.element_type)
            written += stored if isinstance(stored, list) else [stored]
        return [*emitter.allocations, *emitter.statements, *written]

    def address(self) -> Affine:
        """Where the results' element lies."""
        sizes = [int(s) for s in self.results[0][0].array_shape.dimensions]
        return identity(sizes)(self.place)
