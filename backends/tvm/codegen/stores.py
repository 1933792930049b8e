"""What a nest of loops over elements stores, and where."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.ir.affine import Affine, Index, linear, row_major_strides
from tracejit.backends.tvm.ir.tir import Buffer, Expr
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
