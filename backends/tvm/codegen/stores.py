"""What a nest of loops over elements stores, and where."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from tracejit.affine import Affine
from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.loop_nest import Axis, Space, merge, settle
from tracejit.backends.tvm.ir.affine import Index, linear, row_major_strides
from tracejit.backends.tvm.ir.tir import Buffer, Expr, Stmt
from tracejit.graph import Instruction

Address = Callable[[Sequence[Index]], Affine]
"""Maps an element's indices to its offset in the output."""


def identity(dimensions: Sequence[int]) -> Address:
    """The row-major offset in an array of ``dimensions``."""
    return lambda indices: linear(indices, dimensions)[0]


def strided(dimensions: Sequence[int], factors: Sequence[int], offsets: Sequence[int]) -> Address:
    """``index * factor + offset`` in each dimension of an array of ``dimensions``."""
    strides = row_major_strides(dimensions)

    def address(indices: Sequence[Index]) -> Affine:
        total = Affine()
        for index, factor, offset, stride in zip(indices, factors, offsets, strides, strict=True):
            assert isinstance(index, Affine)
            total = total + (index * factor + offset) * stride
        return total

    return address


class Store:
    """One result of a nest: the value, its buffer, and the address function."""

    def __init__(
        self,
        value: Instruction,
        target: Buffer,
        address: Address | None = None,
        offset: Callable[[Emitter], Expr] | None = None,
        *,
        compute: bool = True,
    ) -> None:
        self.value = value
        self.target = target
        self.address = address or identity(value.array_shape.dimensions)
        self.offset = offset
        self.compute = compute

    def ask(self, scope: Accesses | Emitter, indices: Sequence[Index]) -> object:
        """The element: computed if the kernel defines it, loaded if it is in memory already."""
        ask = scope.result if self.compute else scope.value
        return ask(self.value, indices)

    def write(self, emitter: Emitter, indices: Sequence[Index], *, binds: bool) -> list[Stmt]:
        """Stores the element. With ``binds`` it is read before earlier stores of the nest."""
        value = self.read(emitter, indices, binds=binds)
        return self.put(emitter, self.target, self.place(emitter, indices), value)

    def read(self, emitter: Emitter, indices: Sequence[Index], *, binds: bool) -> Any:
        """The element's value; with ``binds`` it is in a register."""
        value: Any = self.ask(emitter, indices)
        return emitter.bind(value, self.value) if binds else value

    def place(self, emitter: Emitter, indices: Sequence[Index]) -> Expr:
        """Where the element is stored in the target."""
        address = emitter.expression(self.address(indices))
        return address if self.offset is None else address + self.offset(emitter)

    def put(self, emitter: Emitter, target: Buffer, at: Expr, value: Any) -> list[Stmt]:
        """The statements that store a value of the element's type."""
        made = emitter.store(target, at, value, self.value.array_shape.element_type)
        return made if isinstance(made, list) else [made]


def settled_stores(
    space: Space, stores: Sequence[Store], visible: Container[Instruction]
) -> tuple[Accesses, list[Axis]]:
    """The accesses of a nest over ``space`` that makes all ``stores``, and its merged axes."""

    def ask(scope: Accesses) -> None:
        for store in stores:
            store.ask(scope, space.indices)

    accesses = settle([space], ask, visible.__contains__)
    addresses = [load.address for load in accesses.loads]
    addresses += [store.address(space.indices) for store in stores]
    return accesses, merge(space.variables, addresses, accesses.opaque)
