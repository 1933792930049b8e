"""Elements one after the other: the plainest way to write a pointwise kernel."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.loop_nest import Space, nest
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.codegen.stores import Store, identity, settled_stores
from tracejit.backends.tvm.ir.affine import Index, LoopVariable
from tracejit.backends.tvm.ir.tir import Expr, Stmt


def pointwise(frame: Frame, dimensions: Sequence[int], stores: Sequence[Store], cost: int) -> Stmt:
    """A serial nest over ``dimensions`` that makes all ``stores``."""
    frame.schedule = frame.schedule or "elementwise"
    space = Space(dimensions)
    visible = frame.inputs.without({store.value for store in stores if store.compute})
    _, axes = settled_stores(space, stores, visible)
    positions: dict[LoopVariable, Expr] = {}

    def element() -> list[Stmt]:
        emitter = Emitter(visible, positions, uses=frame.uses, index_dtype=frame.index_dtype)
        written: list[Stmt] = []
        for store in stores:
            # An earlier store may write to the memory that this one reads.
            binds = not dimensions and not store.compute
            written += store.write(emitter, space.indices, binds=binds)
        return [*emitter.allocations, *emitter.statements, *written]

    return nest([axis.count(positions) for axis in axes], element, dtype=frame.index_dtype)


def store_results(
    emitter: Emitter, results: Results, kept: Sequence[int], indices: Sequence[Index]
) -> list[Stmt]:
    """Stores the ends of an epilogue at the element of ``indices``; anchors are given already."""
    address = emitter.expression(identity(kept)(indices))
    written: list[Stmt] = []
    for root, target in results:
        known = emitter.given.get(root)
        value = emitter.result(root, indices) if known is None else known
        made = emitter.store(target, address, value, root.array_shape.element_type)
        written += made if isinstance(made, list) else [made]
    return written
