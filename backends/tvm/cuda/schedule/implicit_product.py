"""A convolution as a matrix product whose operand is never written: the implicit GEMM.

    ConvolutionParts(instruction)           # what `schedule.product` asks of a product

Rows are the positions of the result, columns its features, and what is summed are the features and
positions of a window. Blocks fetch the window's elements where they lie; those beyond the operand
are zeros. Groups are a batch of products.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.affine import Affine
from tracejit.attributes import ConvDimensionNumbers, Window, WindowDimension
from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.ir.affine import Index, LoopVariable, Opaque, index_variables
from tracejit.backends.tvm.ir.tir import Expr, const, tirx
from tracejit.graph import Instruction
from tracejit.ops.element_types import convert_element_type


class ConvolutionParts:
    """The parts of a convolution; the result's last dimension runs along its columns.

    The sides are the positions and the features, or the other way where features come before
    positions in the result's memory.
    """

    def __init__(self, instruction: Instruction) -> None:
        kind = instruction.array_shape.element_type
        self._input, self._kernel = (convert_element_type(o, kind) for o in instruction.operands)
        given = instruction.attributes
        self._numbers: ConvDimensionNumbers = given["dim_labels"]
        self._window: Window = given["window"]
        numbers, out = self._numbers, instruction.array_shape.dimensions
        kernel = self._kernel.array_shape.dimensions
        self._by_features = given["feature_group_count"] > 1
        groups = given["feature_group_count"] * given["batch_group_count"]
        self._depth = kernel[numbers.kernel_input_feature_dimension]
        self._features = kernel[numbers.kernel_output_feature_dimension] // groups
        self._batches = out[numbers.output_batch_dimension]
        self._spatial = numbers.output_spatial_dimensions
        last = max(numbers.output_feature_dimension, numbers.output_batch_dimension, *self._spatial)
        self._positions = 1 if last != numbers.output_feature_dimension else 0
        self.lhs, self.rhs = self._input, self._kernel
        positions, features = [self._batches, *(out[d] for d in self._spatial)], [self._features]
        self.free_sizes = (positions, features)
        if self._positions:
            self.lhs, self.rhs = self.rhs, self.lhs
            self.free_sizes = (features, positions)
        self.batch_sizes = [groups]
        self.summed_sizes = [*(w.size for w in self._window), self._depth]

    def arranged(
        self, batch: Sequence[Index], rows: Sequence[Index], columns: Sequence[Index]
    ) -> list[Index]:
        """The indices of the result's element."""
        positions, features = (columns, rows) if self._positions else (rows, columns)
        numbers = self._numbers
        where: dict[int, Index] = dict(zip(self._spatial, positions[1:], strict=True))
        where[numbers.output_batch_dimension] = positions[0]
        where[numbers.output_feature_dimension] = self._feature(batch, features)
        return [where[d] for d in range(len(where))]

    def _feature(self, batch: Sequence[Index], features: Sequence[Index]) -> Place:
        first: Place = _affine(batch[0]) * self._features
        return first + _affine(features[0])

    def locate(
        self,
        side: int,
        batch: Sequence[Index],
        free: Sequence[Index],
        over: Sequence[Index],
        scope: Accesses | Emitter,
    ) -> list[Index]:
        """The indices of an operand's element; where `inside` holds, if it is the input's."""
        numbers, (*offsets, feature) = self._numbers, over
        where: dict[int, Index] = {}
        if side != self._positions:
            where[numbers.kernel_input_feature_dimension] = feature
            where[numbers.kernel_output_feature_dimension] = self._feature(batch, free)
            for d, w, offset in zip(
                numbers.kernel_spatial_dimensions, self._window, offsets, strict=True
            ):
                turned: Place = -_affine(offset) + (w.size - 1)
                where[d] = turned if w.reversal else offset
            return [where[d] for d in range(len(where))]
        group, image = _affine(batch[0]), _affine(free[0])
        deep = _affine(feature)
        where[numbers.input_feature_dimension] = (
            group * self._depth + deep if self._by_features else deep
        )
        where[numbers.input_batch_dimension] = (
            image if self._by_features else group * self._batches + image
        )
        for d, w, at, offset in zip(
            numbers.input_spatial_dimensions, self._window, free[1:], offsets, strict=True
        ):
            position = _position(w, at, offset)
            where[d] = position if w.base_dilation == 1 else _undilated(w, position, scope)
        return [where[d] for d in range(len(where))]

    def inside(
        self, side: int, free: Sequence[Index], over: Sequence[Index], scope: Emitter
    ) -> Expr | None:
        """Whether an operand has the element."""
        if side != self._positions:
            return None
        sizes, made = self._input.array_shape.dimensions, None
        for d, w, at, offset in zip(
            self._numbers.input_spatial_dimensions, self._window, free[1:], over[:-1], strict=True
        ):
            position = _position(w, at, offset)
            low, high = position.bounds()
            where, dilation = scope.expression(position), w.base_dilation
            zero = const(0, scope.index_dtype)
            tests = [where >= zero] if low < 0 else []
            if high > (sizes[d] - 1) * dilation:
                tests.append(where < const((sizes[d] - 1) * dilation + 1, scope.index_dtype))
            if dilation > 1:
                rest = tirx.truncmod(where, const(dilation, scope.index_dtype))
                tests.append(rest.equal(zero))
            for test in tests:
                made = test if made is None else tirx.And(made, test)
        return made

    def apart(
        self, free: Sequence[Sequence[Index]], over: Sequence[Index]
    ) -> frozenset[LoopVariable]:
        """The loop variables that `inside` asks for, which cannot be merged with others."""
        return index_variables([*free[self._positions], *over])


Place = Affine[LoopVariable]


def _affine(index: Index) -> Place:
    assert isinstance(index, Affine)
    return index


def _position(w: WindowDimension, at: Index, offset: Index) -> Place:
    """Where a window's element lies in the operand, with its padding and dilation."""
    return _affine(at) * w.stride + _affine(offset) * w.window_dilation + -w.padding_low


def _undilated(w: WindowDimension, position: Affine, scope: Accesses | Emitter) -> Opaque:
    if isinstance(scope, Accesses):
        return Opaque(None, position.variables)
    dilation = const(w.base_dilation, scope.index_dtype)
    return Opaque(tirx.truncdiv(scope.expression(position), dilation), position.variables)
