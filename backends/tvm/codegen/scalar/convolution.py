"""ConvGeneralDilated: the products of each window's elements, added one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tracejit.attributes import ConvDimensionNumbers, Window
from tracejit.backends.tvm.analysis.element_rules import Value
from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.codegen.emitter import Emitter, literal
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.codegen.scalar.accumulators import ScalarAccumulators
from tracejit.backends.tvm.codegen.scalar.elements import ElementLoops
from tracejit.backends.tvm.codegen.scalar.table import scalar
from tracejit.backends.tvm.ir.affine import Index, Opaque, index_variables
from tracejit.backends.tvm.ir.tir import Expr, IfThenElse, Stmt, const, seq, tirx
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import constant, parameter
from tracejit.ops.convolution import CONV_GENERAL_DILATED
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import add, mul
from tracejit.shapes import ElementType, Shape


class SumOfProducts(Protocol):
    """A sum in registers; targets may add products with one rounding."""

    def begin(self) -> list[Stmt]:
        """Sets the sum to zero."""

    def add(self, emitter: Emitter, a: Value, b: Value) -> list[Stmt]:
        """Adds a product."""

    def value(self) -> Value:
        """The sum so far."""


class Products:
    """A sum of products, each rounded before it is added."""

    def __init__(self, element_type: ElementType) -> None:
        self._total = ScalarAccumulators([element_type])
        total, a, b = (parameter(n, Shape(element_type, ())) for n in range(3))
        self._combine = Computation("products", (total, a, b), add(total, mul(a, b)))

    def begin(self) -> list[Stmt]:
        (element_type,) = self._total.types
        zero = literal(constant(0, element_type))
        return [*self._total.allocations, *self._total.write(Emitter({}, {}), [zero])]

    def add(self, emitter: Emitter, a: Value, b: Value) -> list[Stmt]:
        new = emitter.accumulate(self._combine, [*self._total.read(emitter), a, b])
        return self._total.write(emitter, [new])

    def value(self) -> Value:
        (value,) = self._total.read(Emitter({}, {}))
        return value


@scalar.attach(CONV_GENERAL_DILATED)
def conv_general_dilated(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """A convolution by scalar operations."""
    products = Products(instruction.array_shape.element_type)
    return convolution(frame, instruction, results, products)


def convolution(
    frame: Frame, instruction: Instruction, results: Results, total: SumOfProducts
) -> Stmt:
    """The sum of the products of each window's elements that lie inside the operand."""
    frame.schedule = "scalar convolution"
    kind = instruction.array_shape.element_type
    lhs, rhs = (convert_element_type(operand, kind) for operand in instruction.operands)
    lhs_sizes, rhs_sizes = lhs.array_shape.dimensions, rhs.array_shape.dimensions
    shape = instruction.array_shape
    attributes = instruction.attributes
    numbers: ConvDimensionNumbers = attributes["dim_labels"]
    window: Window = attributes["window"]
    groups, batch_groups = attributes["feature_group_count"], attributes["batch_group_count"]
    depth = rhs_sizes[numbers.kernel_input_feature_dimension]
    out_features = rhs_sizes[numbers.kernel_output_feature_dimension]
    batches = lhs_sizes[numbers.input_batch_dimension] // batch_groups
    dtype = frame.index_dtype
    inner = [depth, *(w.size for w in window)]

    def everywhere(scope: Accesses, at: Sequence[Index], over: Sequence[Index]) -> None:
        variables = index_variables([*at, *over])
        for operand in (lhs, rhs):
            scope.value(operand, [Opaque(None, variables) for _ in operand.array_shape.dimensions])

    elements = ElementLoops(frame, shape.dimensions, inner, [instruction], results, everywhere)

    def c(number: int) -> Expr:
        return const(number, dtype)

    def step() -> list[Stmt]:
        emitter = elements.emitter()
        at = [emitter.expression(index) for index in elements.at]
        feature, *offsets = (emitter.expression(index) for index in elements.over)
        out = at[numbers.output_feature_dimension]
        group = tirx.truncdiv(out, c(out_features // groups))
        batch_group = tirx.truncdiv(out, c(out_features // batch_groups))
        where = {
            numbers.input_feature_dimension: group * c(depth) + feature,
            numbers.input_batch_dimension: batch_group * c(batches)
            + at[numbers.output_batch_dimension],
        }
        kernel = {
            numbers.kernel_input_feature_dimension: feature,
            numbers.kernel_output_feature_dimension: out,
        }
        inside: Expr = const(True, "bool")
        for n, (w, offset) in enumerate(zip(window, offsets, strict=True)):
            dimension = numbers.input_spatial_dimensions[n]
            position = at[numbers.output_spatial_dimensions[n]] * c(w.stride)
            position = position + offset * c(w.window_dilation) - c(w.padding_low)
            inside = tirx.And(inside, position >= c(0))
            if w.base_dilation > 1:
                even = tirx.truncmod(position, c(w.base_dilation)).equal(c(0))
                inside = tirx.And(inside, even)
                position = tirx.truncdiv(position, c(w.base_dilation))
            inside = tirx.And(inside, position < c(lhs_sizes[dimension]))
            where[dimension] = position
            turned = c(w.size - 1) - offset if w.reversal else offset
            kernel[numbers.kernel_spatial_dimensions[n]] = turned
        scope = elements.emitter()
        a = scope.value(lhs, _opaque(where))
        b = scope.value(rhs, _opaque(kernel))
        return [IfThenElse(inside, seq(*total.add(scope, a, b)), None)]

    def element() -> list[Stmt]:
        begin = total.begin()
        steps = elements.steps(step)
        emitter: Emitter = elements.emitter()
        value = emitter.settled(total.value(), shape.element_type)
        return [*begin, steps, *elements.finish([value])]

    return elements.kernel(element)


def _opaque(where: dict[int, Expr]) -> list[Opaque]:
    return [Opaque(where[d], frozenset()) for d in range(len(where))]
