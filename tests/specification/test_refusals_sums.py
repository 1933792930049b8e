"""What the page "Operation semantics" rules out: indexing, contraction, reduction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.specification.refusing import (
    ADD,
    ADD_S32,
    DOUBLE,
    LESS,
    MATMUL,
    PAIR,
    WIDE,
    Maker,
    Refusal,
    check,
    each,
)
from tests.specification.running import F32, S32
from tracejit.attributes import ConvDimensionNumbers
from tracejit.ops import DotDimensionNumbers, GatherDimensionNumbers, ScatterDimensionNumbers

ROWS = GatherDimensionNumbers((1,), (0,), (0,), 1)
INTO_ROWS = ScatterDimensionNumbers((1,), (0,), (0,), 1)


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
    ("preferred type of two types", lambda m: m.b.dot(
        m("f32[3]"), m("c64[3]"), preferred_element_type=F32),
     "dot_general: preferred_element_type f32 does not fit operands of element type c64"),
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
    ("preferred type of a convolution of two types",
     conv(rhs="f64[6,4,3,3]", preferred_element_type=S32),
     "preferred_element_type s32 does not fit operands of element type f64"),
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


@each(INDEXING, CONTRACTIONS, REDUCTIONS)
def test_is_refused(build: Callable[[Maker], object], message: str) -> None:
    check(build, message, "test_refusals_sums.py")
