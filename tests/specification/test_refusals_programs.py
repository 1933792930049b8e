"""What the page "Operation semantics" rules out: control, linear algebra, effects, replicas."""

from __future__ import annotations

from collections.abc import Callable

from tests.specification.refusing import ADD, DOUBLE, TRUE, WIDE, Maker, Refusal, check, each
from tests.specification.running import F32, S32
from tracejit.hlo.shapes import parse_shape
from tracejit.shapes import TOKEN, ElementType, Shape


def norm(name: str, feature_index: int, *shapes: str) -> Callable[[Maker], object]:
    return lambda m: getattr(m.b, name)(*map(m, shapes), 0.1, feature_index)


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

LINALG: list[Refusal] = [
    ("factors of integers", lambda m: m.b.cholesky(m("s32[2,2]"), True),
     "cholesky: a s32[2,2] has element type s32"),
    ("factors of a vector", lambda m: m.b.cholesky(m("f32[2]"), True),
     "cholesky: a must have rank 2 or more, not f32[2]"),
    ("factors of no square", lambda m: m.b.cholesky(m("f32[2,3]"), True),
     "cholesky: the last two dimensions of a must be equal; a f32[2,3]"),
    ("right side of another size", lambda m: m.b.triangular_solve(m("f32[2,2]"), m("f32[3,1]")),
     "dimension 0 of b must be the size of a; a f32[2,2], b f32[3,1] dimension 0 is 3"),
    ("other batches", lambda m: m.b.triangular_solve(m("f32[4,2,2]"), m("f32[5,2,1]")),
     "triangular_solve: a and b must have the same batch dimensions; a f32[4,2,2], b f32[5,2,1]"),
    ("other types", lambda m: m.b.triangular_solve(m("f32[2,2]"), m("f64[2,1]")),
     "triangular_solve: element types must be equal; a f32[2,2], b f64[2,1]"),
    ("no transposition",
     lambda m: m.b.triangular_solve(m("f32[2,2]"), m("f32[2,1]"), transpose_a="YES"),
     "triangular_solve: transpose_a must be one of NO_TRANSPOSE, TRANSPOSE, ADJOINT, not 'YES'"),
    ("four axes", lambda m: m.b.fft(m("c64[2,2,2,2]"), "FFT", (2, 2, 2, 2)),
     "fft: fft_length must have 1 to 3 numbers, not (2, 2, 2, 2)"),
    ("transform of real numbers", lambda m: m.b.fft(m("f32[4]"), "FFT", (4,)),
     "fft: operand f32[4] has element type f32; allowed are c64, c128"),
    ("real transform of complex numbers", lambda m: m.b.fft(m("c64[4]"), "RFFT", (4,)),
     "fft: operand c64[4] has element type c64; allowed are f32, f64"),
    ("another length", lambda m: m.b.fft(m("c64[4]"), "FFT", (5,)),
     "fft: FFT of fft_length (5,) needs [5] for the last sizes of operand, which is c64[4]"),
    ("another length back", lambda m: m.b.fft(m("c64[4]"), "IRFFT", (9,)),
     "fft: IRFFT of fft_length (9,) needs [5] for the last sizes of operand, which is c64[4]"),
    ("another transform", lambda m: m.b.fft(m("c64[4]"), "DCT", (4,)),
     "fft: fft_type must be one of FFT, IFFT, RFFT, IRFFT, not 'DCT'"),
]  # fmt: skip

EFFECTS: list[Refusal] = [
    ("nested infeed", lambda m: m.b.infeed(parse_shape("(f32[2], (f32[2]))")),
     "infeed: shape must be an array or a tuple of arrays, not (f32[2], (f32[2]))"),
    ("infeed of a token", lambda m: m.b.infeed(TOKEN),
     "infeed: shape must be an array or a tuple of arrays, not token[]"),
    ("outfeed of another shape", lambda m: m.b.outfeed(m("f32[2]"), parse_shape("f32[3]")),
     "f32[3] must be the operand's shape f32[2]"),
    ("arrays for tokens", lambda m: m.b.after_all([m("f32[2]")]),
     "after_all: operand 0 must be a token, not f32[2]"),
    ("bounds that are arrays",
     lambda m: m.b.rng_uniform(m("f32[2]"), m("f32[]"), Shape(F32, (2,))),
     "rng_uniform: a f32[2] must be a scalar"),
    ("bounds of another type",
     lambda m: m.b.rng_uniform(m("f32[]"), m("f32[]"), Shape(S32, (2,))),
     "rng_uniform: element types must be equal; a f32[], b f32[], shape s32[2]"),
    ("uniform complex numbers",
     lambda m: m.b.rng_uniform(m("c64[]"), m("c64[]"), Shape(ElementType.C64, (2,))),
     "rng_uniform: shape c64[2] has element type c64"),
    ("normal integers", lambda m: m.b.rng_normal(m("s32[]"), m("s32[]"), Shape(S32, (2,))),
     "rng_normal: shape s32[2] has element type s32"),
    ("state of ThreeFry",
     lambda m: m.b.rng_bit_generator("rng_three_fry", m("u64[3]"), Shape(S32, (2,))),
     "rng_bit_generator: initial_state of rng_three_fry must be u64[2], not u64[3]"),
    ("state of Philox",
     lambda m: m.b.rng_bit_generator("rng_philox", m("u32[3]"), Shape(S32, (2,))),
     "rng_bit_generator: initial_state of rng_philox must be u64[2] or u64[3], not u32[3]"),
    ("another algorithm",
     lambda m: m.b.rng_bit_generator("mersenne", m("u64[2]"), Shape(S32, (2,))),
     "algorithm must be one of rng_three_fry, rng_philox, rng_default, not 'mersenne'"),
    ("size of another dimension", lambda m: m.b.set_dimension_size(m("f32[4]"), m("s32[]"), 1),
     "set_dimension_size: dimension 1 is out of range for rank 1"),
    ("wide size", lambda m: m.b.set_dimension_size(m("f32[4]"), m("s64[]"), 0),
     "set_dimension_size: val must be s32[], not s64[]"),
    ("several sizes", lambda m: m.b.set_dimension_size(m("f32[4]"), m("s32[1]"), 0),
     "set_dimension_size: val must be s32[], not s32[1]"),
    ("size of a tuple", lambda m: m.b.get_dimension_size(m("(f32[4])"), 0),
     "get_dimension_size: operand must be an array, not (f32[4])"),
    ("size outside", lambda m: m.b.get_dimension_size(m("f32[4]"), 1),
     "get_dimension_size: dimension 1 is out of range for rank 1"),
    ("too few sizes",
     lambda m: m.b.dynamic_reshape(m("f32[4]"), [m("s32[]")], (2, 2), (True, False)),
     "1 dim_sizes, 2 new_size_bounds and 2 dims_are_dynamic; there must be as many of each"),
    ("larger bound", lambda m: m.b.dynamic_reshape(m("f32[4]"), [m("s32[]")], (5,), (True,)),
     "dynamic_reshape: operand f32[4] cannot become f32[<=5]"),
    ("composite without name", lambda m: m.b.composite_call(DOUBLE, [m("f32[]")], ""),
     "composite_call: the composite must have a name"),
    ("custom call without name", lambda m: m.b.custom_call("", [m("f32[]")], Shape(F32)),
     "custom_call: custom_call_target must not be empty"),
]  # fmt: skip

REPLICAS: list[Refusal] = [
    ("parts that do not divide", lambda m: m.b.all_to_all(m("f32[4,6]"), 1, 0, 4),
     "all_to_all: dimension 1 of operand f32[4,6] must be divisible by split_count 4"),
    ("parts of a tuple", lambda m: m.b.all_to_all(m("(f32[4,8])"), 1, 0, 4),
     "all_to_all: operand must be an array, not (f32[4,8])"),
    ("split outside", lambda m: m.b.all_to_all(m("f32[4,8]"), 2, 0, 4),
     "all_to_all: dimension 2 is out of range for rank 2"),
    ("count of another group", lambda m: m.b.all_to_all(m("f32[4,8]"), 1, 0, 4, [(0, 1)]),
     "all_to_all: split_count must be the size of a group of replica_groups, 2, not 4"),
    ("one source twice", lambda m: m.b.collective_permute(m("f32[4]"), [(0, 1), (0, 2)]),
     "collective_permute: 0 is the source of more than one of the source_target_pairs"),
    ("one target twice", lambda m: m.b.collective_permute(m("f32[4]"), [(0, 1), (2, 1)]),
     "collective_permute: 1 is the target of more than one of the source_target_pairs"),
    ("gathered dimension", lambda m: m.b.all_gather(m("f32[4]"), 1, 2),
     "all_gather: dimension 1 is out of range for rank 1"),
    ("shards that do not divide", lambda m: m.b.reduce_scatter(m("f32[3]"), ADD, 0, 2),
     "reduce_scatter: dimension 0 of operand f32[3] must be divisible by shard_count 2"),
    ("shards of another group",
     lambda m: m.b.reduce_scatter(m("f32[4]"), ADD, 0, 2, [(0, 1, 2, 3)]),
     "reduce_scatter: shard_count must be the size of a group of replica_groups, 4, not 2"),
    ("groups of two sizes", lambda m: m.b.reduce_scatter(m("f32[4]"), ADD, 0, 2, [(0, 1), (2,)]),
     "reduce_scatter: replica_groups must all be of one size; {{0,1},{2}} has groups of"),
    ("reduction by one argument", lambda m: m.b.all_reduce(m("f32[4]"), DOUBLE),
     "all_reduce: computation must be a computation (f32[], f32[]) -> f32[]"),
    ("one replica in two groups", lambda m: m.b.all_reduce(m("f32[4]"), ADD, [(0, 1), (1, 2)]),
     "all_reduce: 1 is in replica_groups more than once"),
    ("an empty tuple", lambda m: m.b.all_reduce([], ADD), "all_reduce: needs at least one operand"),
]  # fmt: skip


@each(CONTROL, LINALG, EFFECTS, REPLICAS)
def test_is_refused(build: Callable[[Maker], object], message: str) -> None:
    check(build, message, "test_refusals_programs.py")
