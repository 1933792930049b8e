"""Loops over the elements of a result, whose steps a target may share among threads.

    Elements(frame, dimensions, inner, anchors, results, ask).kernel(element)

The outer loop is a `shared_loop`: its steps are independent of each other. A target without threads
runs them one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from tracejit.affine import Affine
from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.loop_nest import Axis, Space, merge, settle
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.codegen.stores import identity
from tracejit.backends.tvm.ir.affine import Index, LoopVariable
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
    """A loop whose steps are independent: each may run on any thread."""
    return loop(extent, lambda i: seq(*body(i)), PARALLEL, dtype=dtype)


SharedLoop = Callable[[int, Callable[[Expr], Sequence[Stmt]], str], Stmt]
"""`shared_loop`, or another function that writes such a loop."""


def nested(
    axes: Sequence[Axis], positions: Positions, body: Callable[[], Sequence[Stmt]], dtype: str
) -> Stmt:
    """Loops that run in order, outermost first."""
    if not axes:
        return seq(*body())
    first, *rest = axes

    def inside(number: Expr) -> Stmt:
        positions[first.last] = number
        return nested(rest, positions, body, dtype)

    return loop(first.extent, inside, dtype=dtype)


class ElementLoops:
    """The results of an anchor, one step of a shared loop for each element of ``dimensions``.

    ``inner`` are the dimensions of loops inside a step, and ``where`` maps the indices of both to
    the indices of the results. A step computes the ``anchors``, and its epilogue the ``results``.
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
        """The indices of a step's element."""
        return self.outer_space.indices

    @property
    def over(self) -> Sequence[Index]:
        """The indices in the loops inside a step."""
        return self.inner_space.indices

    @property
    def place(self) -> Sequence[Index]:
        """The indices of the results' element that is computed."""
        return self._where(self.at, self.over)

    def emitter(self) -> Emitter:
        """A scope at the current positions."""
        return Emitter(self.visible, self.positions, uses=self.frame.uses, index_dtype=self.dtype)

    def kernel(self, body: Callable[[], Sequence[Stmt]]) -> Stmt:
        """The shared loop; ``body`` writes one step."""

        def element(number: Expr) -> Sequence[Stmt]:
            place(number, self.outer_axes, self.positions, self.dtype)
            return body()

        extent = math.prod(axis.extent for axis in self.outer_axes)
        return shared_loop(extent, element, self.dtype)

    def steps(self, body: Callable[[], Sequence[Stmt]]) -> Stmt:
        """The loops inside a step."""
        return nested(self.inner_axes, self.positions, body, self.dtype)

    def finish(self, values: Sequence[object]) -> list[Stmt]:
        """Stores the results, given the ``values`` of the anchors."""
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
