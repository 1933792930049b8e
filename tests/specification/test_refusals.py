"""What the page "Operation semantics" rules out, refused with the op, the shapes and the rule.

One row for each constraint; `test_broadcasting` has those of broadcasting.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.specification.running import F32, PRED, S32, computation, scalars
from tracejit.attributes import ConvDimensionNumbers
from tracejit.builder import XlaBuilder
from tracejit.errors import TracejitError
from tracejit.graph import Instruction
from tracejit.hlo.shapes import parse_shape
from tracejit.ops import DotDimensionNumbers, GatherDimensionNumbers, ScatterDimensionNumbers
from tracejit.shapes import Shape, TupleShape


@dataclass
class Maker:
    """A builder that makes parameters on the way: ``m("f32[2,3]")``."""

    b: XlaBuilder = field(default_factory=lambda: XlaBuilder("refused"))
    count: int = 0

    def __call__(self, text: str) -> Instruction:
        self.count += 1
        return self.b.parameter(self.count - 1, parse_shape(text))


ADD = scalars(lambda b, x, y: b.add(x, y), F32, F32)
LESS = scalars(lambda b, x, y: b.lt(x, y), F32, F32)
ADD_S32 = scalars(lambda b, x, y: b.add(x, y), S32, S32)
DOUBLE = scalars(lambda b, x: b.add(x, x), F32)
WIDE = computation(lambda b, x: b.add(x, x), Shape(F32, (2,)))
PAIR = scalars(lambda b, x, y: b.tuple([x, y]), F32, F32)
TRUE = computation(lambda b, x: b.constant(True), Shape(F32, (2,)))

ROWS = GatherDimensionNumbers((1,), (0,), (0,), 1)
INTO_ROWS = ScatterDimensionNumbers((1,), (0,), (0,), 1)
MATMUL = DotDimensionNumbers((1,), (0,))


def gather(numbers: GatherDimensionNumbers, sizes: tuple[int, ...]) -> Callable[[Maker], object]:
    return lambda m: m.b.gather(m("f32[5,3]"), m("s32[4,1]"), numbers, sizes)


def scatter(
    numbers: ScatterDimensionNumbers, updates: str = "f32[4,3]", indices: str = "s32[4,1]"
) -> Callable[[Maker], object]:
    return lambda m: m.b.scatter(m("f32[5,3]"), m(indices), m(updates), ADD, numbers)


def conv(
    lhs: str = "f32[2,4,5,5]", rhs: str = "f32[6,4,3,3]", **options: Any
) -> Callable[[Maker], object]:
    return lambda m: m.b.conv_general_dilated(m(lhs), m(rhs), (1, 1), "VALID", **options)


def norm(name: str, feature_index: int, *shapes: str) -> Callable[[Maker], object]:
    return lambda m: getattr(m.b, name)(*map(m, shapes), 0.1, feature_index)


Refusal = tuple[str, Callable[[Maker], object], str]

ELEMENTS: list[Refusal] = [
    ("element types", lambda m: m.b.add(m("f32[2]"), m("s32[2]")),
     "add: element types must be equal; lhs f32[2], rhs s32[2]"),
    ("tuples", lambda m: m.b.add(m("(f32[2])"), m("f32[2]")), "add: lhs must be an array"),
    ("bits of floating point", lambda m: m.b.and_(m("f32[2]"), m("f32[2]")),
     "and: lhs f32[2] has element type f32; allowed are pred, s4"),
    ("shifts of pred", lambda m: m.b.shift_left(m("pred[2]"), m("pred[2]")),
     "shift_left: lhs pred[2] has element type pred"),
    ("angles of integers", lambda m: m.b.atan2(m("s32[2]"), m("s32[2]")),
     "atan2: lhs s32[2] has element type s32"),
    ("remainders of complex", lambda m: m.b.rem(m("c64[2]"), m("c64[2]")),
     "rem: lhs c64[2] has element type c64"),
    ("complex of halves", lambda m: m.b.complex(m("f16[2]"), m("f16[2]")),
     "complex: lhs f16[2] has element type f16; allowed are f32, f64"),
    ("order of complex", lambda m: m.b.lt(m("c64[2]"), m("c64[2]")),
     "compare: complex numbers have no order"),
    ("absolute unsigned", lambda m: m.b.abs(m("u8[2]")), "abs: operand u8[2] has element type u8"),
    ("not of floating point", lambda m: m.b.not_(m("f32[2]")),
     "not: operand f32[2] has element type f32"),
    ("ceil of integers", lambda m: m.b.ceil(m("s32[2]")),
     "ceil: operand s32[2] has element type s32"),
    ("exp of integers", lambda m: m.b.exp(m("s32[2]")), "exp: operand s32[2] has element type s32"),
    ("finite integers", lambda m: m.b.is_finite(m("s32[2]")),
     "is_finite: operand s32[2] has element type s32"),
    ("imaginary integers", lambda m: m.b.imag(m("s32[2]")),
     "imag: operand s32[2] has element type s32"),
    ("clamp between shapes", lambda m: m.b.clamp(m("f32[2]"), m("f32[3]"), m("f32[3]")),
     "clamp: min must be a scalar or have operand's dimensions; min f32[2], operand f32[3]"),
    ("clamp between types", lambda m: m.b.clamp(m("s32[]"), m("f32[3]"), m("f32[]")),
     "clamp: element types must be equal; min s32"),
    ("select by numbers", lambda m: m.b.select(m("s32[2]"), m("f32[2]"), m("f32[2]")),
     "select: pred s32[2] has element type s32; allowed are pred"),
    ("select between shapes", lambda m: m.b.select(m("pred[2]"), m("f32[2]"), m("f32[3]")),
     "select: shapes must be equal; on_true f32[2], on_false f32[3]"),
    ("select by another shape", lambda m: m.b.select(m("pred[3]"), m("f32[2]"), m("f32[2]")),
     "select: pred must be a scalar or have the dimensions of on_true; pred pred[3]"),
    ("select tuples by an array",
     lambda m: m.b.select(m("pred[2]"), m("(f32[2])"), m("(f32[2])")),
     "select: between tuples pred must be a scalar; pred pred[2]"),
    ("select other tuples", lambda m: m.b.select(m("pred[]"), m("(f32[2])"), m("(f32[3])")),
     "select: tuples must have one shape; on_true (f32[2]), on_false (f32[3])"),
    ("convert a tuple", lambda m: m.b.convert_element_type(m("(f32[2])"), S32),
     "convert_element_type: operand must be an array, not (f32[2])"),
    ("convert complex to real", lambda m: m.b.convert_element_type(m("c64[2]"), F32),
     "convert_element_type: a complex operand has no f32 value"),
    ("convert to no type", lambda m: m.b.convert_element_type(m("f32[2]"), "s32x"),  # type: ignore[arg-type]
     "'s32x' names no element type"),
    ("bitcast a tuple", lambda m: m.b.bitcast_convert_type(m("(f32[2])"), S32),
     "bitcast_convert_type: operand must be an array"),
    ("bitcast to wider elements", lambda m: m.b.bitcast_convert_type(m("f16[10,3]"), F32),
     "bitcast_convert_type: from f16 to f32 the last dimension must be 2; operand f16[10,3]"),
    ("bitcast a scalar to wider", lambda m: m.b.bitcast_convert_type(m("f16[]"), F32),
     "the last dimension must be 2; operand f16[]"),
    ("bitcast complex", lambda m: m.b.bitcast_convert_type(m("c64[2]"), F32),
     "bitcast_convert_type: complex bits cannot be read as another type; c64[2]"),
    ("no exponent", lambda m: m.b.reduce_precision(m("f32[2]"), 0, 5),
     "reduce_precision: exponent_bits must be at least 1, not 0"),
    ("negative mantissa", lambda m: m.b.reduce_precision(m("f32[2]"), 5, -1),
     "reduce_precision: mantissa_bits must not be negative, not -1"),
    ("precision of integers", lambda m: m.b.reduce_precision(m("s32[2]"), 5, 5),
     "reduce_precision: operand s32[2] has element type s32"),
]  # fmt: skip

SHAPES: list[Refusal] = [
    ("negative size", lambda m: m.b.broadcast(m("f32[2]"), (-1,)),
     "broadcast_in_dim: dimensions (-1, 2) must not be negative"),
    ("no increasing dimensions", lambda m: m.b.broadcast_in_dim(m("f32[2,3]"), (3, 2), (1, 0)),
     "broadcast_in_dim: broadcast_dimensions (1, 0) must be strictly increasing"),
    ("too few dimensions", lambda m: m.b.broadcast_in_dim(m("f32[2,3]"), (2, 3), (0,)),
     "must name one result dimension for each dimension of operand f32[2,3]"),
    ("dimension beyond the result", lambda m: m.b.broadcast_in_dim(m("f32[2]"), (2, 3), (2,)),
     "broadcast_dimensions (2,) must be below the result's rank"),
    ("another size", lambda m: m.b.broadcast_in_dim(m("f32[2]"), (2, 3), (1,)),
     "operand f32[2] dimension 0 is 2, result f32[2,3] dimension 1 is 3"),
    ("collapse outside", lambda m: m.b.collapse(m("f32[2,3]"), (1, 2)),
     "collapse: dimensions must be distinct dimension numbers below rank 2, not (1, 2)"),
    ("collapse apart", lambda m: m.b.collapse(m("f32[2,3,4]"), (0, 2)),
     "collapse: dimensions (0, 2) must be consecutive and increasing"),
    ("concatenate nothing", lambda m: m.b.concatenate([], 0),
     "concatenate: needs at least one operand"),
    ("concatenate scalars", lambda m: m.b.concatenate([m("f32[]"), m("f32[]")], 0),
     "concatenate: dimension 0 is out of range for rank 0"),
    ("concatenate outside", lambda m: m.b.concatenate([m("f32[2]")], 1),
     "concatenate: dimension 1 is out of range for rank 1"),
    ("concatenate types", lambda m: m.b.concatenate([m("f32[2]"), m("s32[2]")], 0),
     "concatenate: element types must be equal; operand 0 f32[2], operand 1 s32[2]"),
    ("concatenate sizes", lambda m: m.b.concatenate([m("f32[2,3]"), m("f32[2,4]")], 0),
     "must agree in every dimension but 0; operand 0 f32[2,3], operand 1 f32[2,4]"),
    ("concatenate ranks", lambda m: m.b.concatenate([m("f32[2,3]"), m("f32[3]")], 0),
     "must agree in every dimension but 0; operand 0 f32[2,3], operand 1 f32[3]"),
    ("slice below zero", lambda m: m.b.slice(m("f32[5]"), (-1,), (3,)),
     "slice: start -1 and limit 3 must satisfy 0 <= start <= limit <= 5 in dimension 0"),
    ("slice backwards", lambda m: m.b.slice(m("f32[5]"), (3,), (2,)),
     "slice: start 3 and limit 2 must satisfy"),
    ("slice too far", lambda m: m.b.slice(m("f32[5]"), (3,), (6,)),
     "slice: start 3 and limit 6 must satisfy"),
    ("slice without step", lambda m: m.b.slice(m("f32[5]"), (0,), (5,), (0,)),
     "slice: stride 0 of dimension 0 must be positive"),
    ("slice of too few dimensions", lambda m: m.b.slice(m("f32[5,5]"), (0,), (5,)),
     "slice: start, limit and stride are for 1 dimensions, operand f32[5,5] has 2"),
    ("slice by lists of two lengths", lambda m: m.b.slice(m("f32[5]"), (0,), (5, 5)),
     "slice: start_indices (0,), limit_indices (5, 5) and strides (1,) must be equally long"),
    ("too few starts", lambda m: m.b.dynamic_slice(m("f32[5,5]"), [m("s32[]")], (1, 1)),
     "dynamic_slice: needs one start index for each dimension of operand f32[5,5], not 1"),
    ("starts of another length", lambda m: m.b.dynamic_slice(m("f32[5]"), m("s32[2]"), (1,)),
     "dynamic_slice: needs one start index for each dimension of operand f32[5], not 2"),
    ("starts in a matrix", lambda m: m.b.dynamic_slice(m("f32[5]"), m("s32[1,1]"), (1,)),
     "dynamic_slice: start_indices s32[1,1] must have rank 1"),
    ("floating starts", lambda m: m.b.dynamic_slice(m("f32[5]"), [m("f32[]")], (1,)),
     "dynamic_slice: start index 0 f32[] has element type f32"),
    ("starts of two types",
     lambda m: m.b.dynamic_slice(m("f32[5,5]"), [m("s32[]"), m("s64[]")], (1, 1)),
     "dynamic_slice: start indices must have one element type; index 0 is s32[], index 1 is s64"),
    ("slice larger than all", lambda m: m.b.dynamic_slice(m("f32[5]"), m("s32[1]"), (6,)),
     "dynamic_slice: slice size 6 of dimension 0 must be between 0 and 5"),
    ("negative slice", lambda m: m.b.dynamic_slice(m("f32[5]"), m("s32[1]"), (-1,)),
     "dynamic_slice: slice size -1 of dimension 0 must be between 0 and 5"),
    ("sizes of another length", lambda m: m.b.dynamic_slice(m("f32[5]"), m("s32[1]"), (1, 1)),
     "dynamic_slice: slice_sizes (1, 1) must have one size for each dimension"),
    ("update larger than all",
     lambda m: m.b.dynamic_update_slice(m("f32[5]"), m("f32[6]"), m("s32[1]")),
     "update must fit into operand; operand f32[5] dimension 0 is 5, update f32[6]"),
    ("update of another rank",
     lambda m: m.b.dynamic_update_slice(m("f32[5]"), m("f32[1,1]"), m("s32[1]")),
     "dynamic_update_slice: ranks must be equal; operand f32[5], update f32[1,1]"),
    ("update of another type",
     lambda m: m.b.dynamic_update_slice(m("f32[5]"), m("s32[2]"), m("s32[1]")),
     "dynamic_update_slice: element types must be equal; operand f32[5], update s32[2]"),
    ("iota outside", lambda m: m.b.iota(Shape(S32, (4, 8)), 2),
     "iota: dimension 2 is out of range for rank 2"),
    ("iota of a scalar", lambda m: m.b.iota(Shape(S32), 0),
     "iota: dimension 0 is out of range for rank 0"),
    ("iota of truth values", lambda m: m.b.iota(Shape(PRED, (4,)), 0),
     "iota: shape pred[4] has element type pred"),
    ("iota of a tuple", lambda m: m.b.iota(TupleShape(()), 0),  # type: ignore[arg-type]
     "iota: shape must be an array, not ()"),
    ("iota of negative size", lambda m: m.b.iota(Shape(S32, (-4,)), 0),
     "iota: sizes of shape s32[-4] must not be negative"),
    ("parameter of negative size", lambda m: m.b.parameter(9, Shape(S32, (-4,))),
     "parameter: sizes of shape s32[-4] must not be negative"),
    ("padding of too few dimensions",
     lambda m: m.b.pad(m("f32[5,5]"), m("f32[]"), [(0, 0, 0)]),
     "pad: padding_config has 1 dimensions, operand f32[5,5] has 2"),
    ("negative interior", lambda m: m.b.pad(m("f32[5]"), m("f32[]"), [(0, 0, -1)]),
     "pad: interior padding of dimension 0 is -1; it must not be negative"),
    ("padding by an array", lambda m: m.b.pad(m("f32[5]"), m("f32[1]"), [(0, 0, 0)]),
     "pad: padding_value f32[1] must have rank 0"),
    ("padding by another type", lambda m: m.b.pad(m("f32[5]"), m("s32[]"), [(0, 0, 0)]),
     "pad: element types must be equal; operand f32[5], padding_value s32[]"),
    ("removing more than there is", lambda m: m.b.pad(m("f32[5]"), m("f32[]"), [(-3, -3, 0)]),
     "pad: low -3 and high -3 crop more than operand f32[5] has in dimension 0, 5"),
    ("other number of elements", lambda m: m.b.reshape(m("f32[2,3]"), (5,)),
     "reshape: operand f32[2,3] has 6 elements, [5] has 5"),
    ("reshape to another type", lambda m: m.b.reshape(Shape(S32, (6,)), m("f32[2,3]")),
     "reshape: element types must be equal; operand f32[2,3], result s32[6]"),
    ("reverse twice", lambda m: m.b.rev(m("f32[2,3]"), (0, 0)),
     "rev: dimensions must be distinct dimension numbers below rank 2, not (0, 0)"),
    ("reverse outside", lambda m: m.b.rev(m("f32[2,3]"), (2,)),
     "rev: dimensions must be distinct dimension numbers below rank 2, not (2,)"),
    ("no permutation", lambda m: m.b.transpose(m("f32[2,3]"), (0, 0)),
     "transpose: permutation (0, 0) must hold each dimension of operand f32[2,3] once"),
    ("element outside", lambda m: m.b.get_tuple_element(m("(f32[2])"), 1),
     "get_tuple_element: index 1 is out of range for (f32[2])"),
    ("element of an array", lambda m: m.b.get_tuple_element(m("f32[2]"), 0),
     "get_tuple_element: operand must be a tuple, not f32[2]"),
]  # fmt: skip

INDEXING: list[Refusal] = [
    ("floating indices",
     lambda m: m.b.gather(m("f32[5,3]"), m("f32[4,1]"), ROWS, (1, 3)),
     "gather: start_indices f32[4,1] has element type f32"),
    ("vector dimension outside", gather(GatherDimensionNumbers((1,), (0,), (0,), 3), (1, 3)),
     "gather: index_vector_dim 3 must be between 0 and the rank of start_indices s32[4,1]"),
    ("map of another length", gather(GatherDimensionNumbers((1,), (0,), (0, 1), 1), (1, 3)),
     "gather: start_index_map (0, 1) must have one dimension for each of 1 numbers"),
    ("map outside", gather(GatherDimensionNumbers((1,), (0,), (2,), 1), (1, 3)),
     "gather: start_index_map must be distinct dimension numbers below rank 2, not (2,)"),
    ("too few sizes", gather(ROWS, (1,)),
     "gather: slice_sizes (1,) must have one size for each dimension of operand f32[5,3]"),
    ("gathered slice larger than all", gather(ROWS, (1, 4)),
     "gather: slice size 4 of dimension 1 must be between 0 and 3"),
    ("collapsed slice", gather(ROWS, (2, 3)),
     "gather: slice size 2 of dimension 0 must be 1, because it is collapsed or batching"),
    ("too few offset dimensions", gather(GatherDimensionNumbers((), (0,), (0,), 1), (1, 3)),
     "gather: offset_dims () must name one result dimension for each of 1 slice dimensions"),
    ("unsorted offset dimensions", gather(GatherDimensionNumbers((2, 1), (), (0,), 1), (1, 3)),
     "gather: offset_dims (2, 1) must be strictly increasing and below rank 3"),
    ("unsorted collapsed dimensions", gather(GatherDimensionNumbers((), (1, 0), (0,), 1), (1, 1)),
     "gather: collapsed_slice_dims (1, 0) must be strictly increasing and below rank 2"),
    ("scattered updates of another rank", scatter(INTO_ROWS, "f32[4]"),
     "scatter: update_window_dims (1,) must be strictly increasing and below rank 1"),
    ("updates larger than the operand", scatter(INTO_ROWS, "f32[4,4]"),
     "scatter: updates f32[4,4] dimension 1 is 4; the window must fit into operand f32[5,3]"),
    ("updates unlike the indices", scatter(INTO_ROWS, "f32[3,3]"),
     "scatter: updates f32[3,3] dimensions (0,) must be those of scatter_indices s32[4,1]"),
    ("unsorted window dimensions", scatter(ScatterDimensionNumbers((1, 0), (), (0,), 1)),
     "scatter: update_window_dims (1, 0) must be strictly increasing"),
    ("window dimensions twice", scatter(ScatterDimensionNumbers((1, 1), (), (0,), 1)),
     "scatter: update_window_dims (1, 1) must be strictly increasing"),
    ("inserted dimension outside", scatter(ScatterDimensionNumbers((1,), (2,), (0,), 1)),
     "scatter: inserted_window_dims (2,) must be strictly increasing and below rank 2"),
    ("too few window dimensions", scatter(ScatterDimensionNumbers((1,), (), (0,), 1)),
     "scatter: update_window_dims (1,) must name one update dimension for each of 2 operand"),
    ("scattered dimension outside", scatter(ScatterDimensionNumbers((1,), (0,), (2,), 1)),
     "scatter: scatter_dims_to_operand_dims must be distinct dimension numbers below rank 2"),
    ("scattered dimensions of another number",
     scatter(INTO_ROWS, indices="s32[4,2]"),
     "scatter: scatter_dims_to_operand_dims (0,) must have one dimension for each of 2 numbers"),
    ("scatter by another computation",
     lambda m: m.b.scatter(m("f32[5,3]"), m("s32[4,1]"), m("f32[4,3]"), ADD_S32, INTO_ROWS),
     "scatter: computation must be a computation (f32[], f32[]) -> f32[]; scalars is (s32[]"),
    ("fewer updates than operands",
     lambda m: m.b.scatter([m("f32[5]"), m("f32[5]")], m("s32[4,1]"), m("f32[4]"), ADD, INTO_ROWS),
     "scatter: 2 operands need as many updates, not 1"),
    ("scattered updates of another type",
     lambda m: m.b.scatter(m("f32[5,3]"), m("s32[4,1]"), m("s32[4,3]"), ADD, INTO_ROWS),
     "scatter: element types must be equal; operand 0 f32[5,3], update 0 s32[4,3]"),
]  # fmt: skip

CONTRACTIONS: list[Refusal] = [
    ("sizes", lambda m: m.b.dot(m("f32[2,3]"), m("f32[4,5]")),
     "contracting dimensions must have equal sizes; lhs f32[2,3] dimension 1 is 3, rhs f32[4,5]"),
    ("ranks", lambda m: m.b.dot(m("f32[2,3,4]"), m("f32[4]")),
     "dot: operands must have rank 1 or 2; lhs f32[2,3,4], rhs f32[4]"),
    ("types", lambda m: m.b.dot(m("f32[3]"), m("f64[3]")),
     "dot_general: element types must be equal; lhs f32[3], rhs f64[3]"),
    ("batches", lambda m: m.b.dot_general(
        m("f32[2,3]"), m("f32[4,3]"), DotDimensionNumbers((1,), (1,), (0,), (0,))),
     "dot_general: batch dimensions must have equal sizes; lhs f32[2,3] dimension 0 is 2, rhs"),
    ("other numbers of dimensions", lambda m: m.b.dot_general(
        m("f32[2,3]"), m("f32[3,2]"), DotDimensionNumbers((0, 1), (0,))),
     "dot_general: lhs and rhs must have equally many contracting dimensions; lhs (0, 1)"),
    ("contracted batch", lambda m: m.b.dot_general(
        m("f32[2,3]"), m("f32[2,3]"), DotDimensionNumbers((0,), (0,), (0,), (0,))),
     "lhs_batch_dimensions and lhs_contracting_dimensions of f32[2,3] must be distinct"),
    ("precision", lambda m: m.b.dot_general(
        m("f32[2,3]"), m("f32[3,2]"), MATMUL, precision_config="exact"),
     "dot_general: precision_config must be two of default, high, highest, not ('exact', 'exact')"),
    ("ranks of a convolution", conv("f32[2,4,5]"),
     "conv_general_dilated: lhs and rhs must have equal ranks, at least 2"),
    ("input features", conv(rhs="f32[6,3,3,3]"),
     "the kernel's input features times feature_group_count 1 must be the input's features"),
    ("feature groups", conv(rhs="f32[5,2,3,3]", feature_group_count=2),
     "output features must be a multiple of feature_group_count 2"),
    ("batch groups", conv("f32[3,4,5,5]", batch_group_count=2),
     "the input's batch must be a multiple of batch_group_count 2; lhs f32[3,4,5,5]"),
    ("both groups", conv(rhs="f32[6,2,3,3]", feature_group_count=2, batch_group_count=2),
     "only one of feature_group_count and batch_group_count may exceed 1; they are 2 and 2"),
    ("no groups", conv(feature_group_count=0),
     "feature_group_count and batch_group_count must be positive, not 0 and 1"),
    ("dilation", conv(lhs_dilation=(0, 1)),
     "conv_general_dilated: base_dilations must be 2 positive numbers, not (0, 1)"),
    ("types of a convolution", conv(rhs="f64[6,4,3,3]"),
     "conv_general_dilated: element types must be equal; lhs f32[2,4,5,5], rhs f64[6,4,3,3]"),
    ("dimension numbers", conv(dimension_numbers=ConvDimensionNumbers(
        0, 0, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))),
     "conv_general_dilated: "),
    ("preferred type", conv(preferred_element_type=S32),
     "preferred_element_type s32 does not fit operands of element type f32"),
    ("padding word", lambda m: m.b.conv(m("f32[2,4,5]"), m("f32[6,4,3]"), (1,), "FULL"),
     "padding must be SAME, VALID or pairs, not 'FULL'"),
]  # fmt: skip

REDUCTIONS: list[Refusal] = [
    ("nothing", lambda m: m.b.reduce([], [], ADD, (0,)), "reduce: needs at least one operand"),
    ("dimensions outside", lambda m: m.b.reduce(m("f32[2,3]"), m("f32[]"), ADD, (2,)),
     "reduce: dimension 2 is out of range for rank 2"),
    ("dimensions twice", lambda m: m.b.reduce(m("f32[2,3]"), m("f32[]"), ADD, (1, 1)),
     "reduce: dimensions_to_reduce must be distinct dimension numbers below rank 2, not (1, 1)"),
    ("arrays to start from", lambda m: m.b.reduce(m("f32[2]"), m("f32[2]"), ADD, (0,)),
     "reduce: init_value 0 f32[2] must be a scalar"),
    ("start of another type", lambda m: m.b.reduce(m("f32[2]"), m("s32[]"), ADD, (0,)),
     "reduce: init_value 0 s32[] must have the element type of operand f32[2]"),
    ("operands of two sizes", lambda m: m.b.reduce(
        [m("f32[2]"), m("f32[3]")], [m("f32[]"), m("f32[]")], ADD, (0,)),
     "reduce: all operands must have the same dimensions; operand 0 is f32[2], operand 1"),
    ("computation of another type", lambda m: m.b.reduce(m("s32[2]"), m("s32[]"), ADD, (0,)),
     "reduce: computation must be a computation (s32[], s32[]) -> s32[]; scalars is (f32[], f32"),
    ("computation of one argument", lambda m: m.b.reduce(m("f32[2]"), m("f32[]"), DOUBLE, (0,)),
     "reduce: computation must be a computation (f32[], f32[]) -> f32[]; scalars is (f32[])"),
    ("computation with another result", lambda m: m.b.reduce(m("f32[2]"), m("f32[]"), PAIR, (0,)),
     "reduce: computation must be a computation (f32[], f32[]) -> f32[]; scalars is (f32[], f32[])"
     " -> (f32[], f32[])"),
    ("window of another rank", lambda m: m.b.reduce_window(m("f32[4]"), m("f32[]"), ADD, (2, 2)),
     "reduce_window: window_dimensions must be 1 positive numbers, not (2, 2)"),
    ("empty window", lambda m: m.b.reduce_window(m("f32[4]"), m("f32[]"), ADD, (0,)),
     "reduce_window: window_dimensions must be 1 positive numbers, not (0,)"),
    ("stride of zero", lambda m: m.b.reduce_window(m("f32[4]"), m("f32[]"), ADD, (2,), (0,)),
     "reduce_window: window_strides must be 1 positive numbers, not (0,)"),
    ("padding for another rank", lambda m: m.b.reduce_window(
        m("f32[4]"), m("f32[]"), ADD, (2,), (1,), [(0, 0), (0, 0)]),
     "reduce_window: padding must be 1 pairs (low, high)"),
    ("dilation of zero", lambda m: m.b.reduce_window(
        m("f32[4]"), m("f32[]"), ADD, (2,), (1,), "VALID", (0,)),
     "reduce_window: base_dilations must be 1 positive numbers, not (0,)"),
    ("source of another size", lambda m: m.b.select_and_scatter(
        m("f32[4]"), LESS, (2,), (2,), "VALID", m("f32[3]"), m("f32[]"), ADD),
     "select_and_scatter: source f32[3] must have the dimensions [2]"),
    ("select that selects nothing", lambda m: m.b.select_and_scatter(
        m("f32[4]"), ADD, (2,), (2,), "VALID", m("f32[2]"), m("f32[]"), ADD),
     "select_and_scatter: select must be a computation (f32[], f32[]) -> pred[]"),
    ("scatter that combines nothing", lambda m: m.b.select_and_scatter(
        m("f32[4]"), LESS, (2,), (2,), "VALID", m("f32[2]"), m("f32[]"), LESS),
     "select_and_scatter: scatter must be a computation (f32[], f32[]) -> f32[]"),
    ("sort of nothing", lambda m: m.b.sort([], LESS), "sort: needs at least one operand"),
    ("sort of two sizes", lambda m: m.b.sort([m("f32[2]"), m("f32[3]")], LESS),
     "sort: all operands must have the same dimensions"),
    ("sort outside", lambda m: m.b.sort(m("f32[2]"), LESS, 1),
     "sort: dimension 1 is out of range for rank 1"),
    ("comparator for another number", lambda m: m.b.sort([m("f32[2]"), m("f32[2]")], LESS),
     "sort: comparator must be a computation (f32[], f32[], f32[], f32[]) -> pred[]"),
    ("comparator that compares nothing", lambda m: m.b.sort(m("f32[2]"), ADD),
     "sort: comparator must be a computation (f32[], f32[]) -> pred[]; scalars is"),
    ("more than there are", lambda m: m.b.top_k(m("f32[2,3]"), 4),
     "top_k: k is 4, the last dimension of operand f32[2,3] has 3"),
    ("top of a scalar", lambda m: m.b.top_k(m("f32[]"), 1),
     "top_k: operand f32[] must have at least one dimension"),
    ("map of two sizes", lambda m: m.b.map([m("f32[2]"), m("f32[3]")], ADD),
     "map: all operands must have the same dimensions"),
    ("map over some dimensions", lambda m: m.b.map(m("f32[2,3]"), DOUBLE, (0,)),
     "map: dimensions must be all of operand 0 f32[2,3] in order, not (0,)"),
    ("map of arrays", lambda m: m.b.map(m("f32[2]"), WIDE),
     "map: the computation's result f32[2] must be a scalar"),
    ("map by another number", lambda m: m.b.map(m("f32[2]"), ADD),
     "map: computation must be a computation (f32[]) -> f32[]; scalars is (f32[], f32[])"),
]  # fmt: skip

CONTROL: list[Refusal] = [
    ("call with too few", lambda m: m.b.call(ADD, [m("f32[]")]),
     "call: computation must be a computation (f32[]) -> f32[]; scalars is (f32[], f32[])"),
    ("call with another shape", lambda m: m.b.call(DOUBLE, [m("f32[2]")]),
     "call: computation must be a computation (f32[2]) -> f32[]; scalars is (f32[])"),
    ("predicate of numbers", lambda m: m.b.conditional(
        m("f32[]"), m("f32[]"), DOUBLE, m("f32[]"), DOUBLE),
     "conditional: predicate must be pred[] or branch_index s32[], not f32[]"),
    ("predicate of an array", lambda m: m.b.conditional(
        m("pred[2]"), m("f32[]"), DOUBLE, m("f32[]"), DOUBLE),
     "conditional: predicate must be pred[] or branch_index s32[], not pred[2]"),
    ("branch for another operand", lambda m: m.b.conditional(
        m("pred[]"), m("f32[2]"), DOUBLE, m("f32[]"), DOUBLE),
     "conditional: branch 0 must be a computation (f32[2]) -> f32[]"),
    ("branches with two results", lambda m: m.b.conditional(
        m("pred[]"), m("f32[]"), DOUBLE, m("f32[2]"), WIDE),
     "conditional: branch 1 must be a computation (f32[2]) -> f32[]; function is (f32[2])"),
    ("wide index", lambda m: m.b.conditional(m("s64[]"), [DOUBLE], [m("f32[]")]),
     "conditional: predicate must be pred[] or branch_index s32[], not s64[]"),
    ("no branches", lambda m: m.b.conditional(m("s32[]"), [], []),
     "conditional: a branch_index goes with one or more branch_computations"),
    ("fewer operands than branches",
     lambda m: m.b.conditional(m("s32[]"), [DOUBLE, DOUBLE], [m("f32[]")]),
     "conditional: 2 branches need as many operands, not 1"),
    ("condition of numbers", lambda m: m.b.while_(WIDE, WIDE, m("f32[2]")),
     "while: condition must be a computation (f32[2]) -> pred[]; function is (f32[2]) -> f32[2]"),
    ("body with another result", lambda m: m.b.while_(TRUE, TRUE, m("f32[2]")),
     "while: body must be a computation (f32[2]) -> f32[2]; function is (f32[2]) -> pred[]"),
    ("start of another shape", lambda m: m.b.while_(TRUE, WIDE, m("f32[3]")),
     "while: condition must be a computation (f32[3]) -> pred[]"),
    ("feature outside", norm("batch_norm_training", 2, "f32[2,3]", "f32[3]", "f32[3]"),
     "batch_norm_training: dimension 2 is out of range for rank 2"),
    ("scale of another size", norm("batch_norm_training", 1, "f32[2,3]", "f32[2]", "f32[3]"),
     "batch_norm_training: scale f32[2] must have one element for each of the 3 features"),
    ("mean of another rank", norm(
        "batch_norm_inference", 1, "f32[2,3]", "f32[3]", "f32[3]", "f32[1,3]", "f32[3]"),
     "batch_norm_inference: mean f32[1,3] must have one element for each of the 3 features"),
    ("integers", norm("batch_norm_training", 1, "s32[2,3]", "s32[3]", "s32[3]"),
     "batch_norm_training: operand s32[2,3] has element type s32"),
    ("gradient of another shape", norm(
        "batch_norm_grad", 1, "f32[2,3]", "f32[3]", "f32[3]", "f32[3]", "f32[3,2]"),
     "batch_norm_grad: grad_output f32[3,2] must have the dimensions of operand f32[2,3]"),
]  # fmt: skip

ALL = [*ELEMENTS, *SHAPES, *INDEXING, *CONTRACTIONS, *REDUCTIONS, *CONTROL]


@pytest.mark.parametrize(
    ("build", "message"), [row[1:] for row in ALL], ids=[row[0] for row in ALL]
)
def test_is_refused(build: Callable[[Maker], object], message: str) -> None:
    with pytest.raises(TracejitError, match=re.escape(message)) as caught:
        build(Maker())
    assert str(caught.value).endswith(")"), "the user's line is missing"
    assert "test_refusals.py:" in str(caught.value)


def test_every_constraint_has_a_name_of_its_own() -> None:
    names = [row[0] for row in ALL]
    assert sorted(names) == sorted({*names})


def test_empty_parts_are_slices_as_well() -> None:
    """XLA takes slices and updates of no elements, and so do arrays of NumPy's."""
    m = Maker()
    assert m.b.dynamic_slice(m("f32[5]"), m("s32[1]"), (0,)).shape == Shape(F32, (0,))
    updated = m.b.dynamic_update_slice(m("f32[5]"), m("f32[0]"), m("s32[1]"))
    assert updated.shape == Shape(F32, (5,))
