"""Ops of dumps, tokens and dynamic sizes: what they refuse, and text as XLA prints it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tracejit as tj
from tests.building import computation
from tests.judge import parse_xla
from tracejit import hlo, ops
from tracejit.equality import same_graph
from tracejit.errors import (
    AttributeValueError,
    DimensionError,
    ElementTypeError,
    HloParseError,
    ShapeError,
    TracejitError,
    UnsupportedError,
)
from tracejit.graph import Computation, Instruction, Module
from tracejit.layouts import from_buffer, to_buffer
from tracejit.shapes import TOKEN, ElementType, Layout, Shape, TupleShape
from tracejit.verifier import verify

F32, S32 = ElementType.F32, ElementType.S32
ROW = Shape(F32, (4,))
X = np.arange(4, dtype=np.float32)

ASYNC = """HloModule m

%both (p0: f32[4], p1: f32[4]) -> (f32[4], f32[4]) {
  p0 = f32[4] parameter(0)
  p1 = f32[4] parameter(1)
  n = f32[4] add(p0, p1)
  m = f32[4] negate(n)
  ROOT t = (f32[4], f32[4]) tuple(n, m)
}, execution_thread="other"

%add (a: f32[], b: f32[]) -> f32[] {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY e {
  x = f32[4] parameter(0)
  zero = f32[] constant(0)
  as = ((f32[4], f32[4]), (f32[4], f32[4]), s32[]) async-start(x, x), calls=%both,
    async_execution_thread="other"
  au = ((f32[4], f32[4]), (f32[4], f32[4]), s32[]) async-update(as)
  ad = (f32[4], f32[4]) async-done(au)
  n0 = f32[4] get-tuple-element(ad), index=1
  ns = ((f32[4]), f32[4], s32[]) negate-start(n0), metadata={source_file="model.py" source_line=7}
  nu = ((f32[4]), f32[4], s32[]) negate-update(ns)
  nd = f32[4] negate-done(nu)
  rs = ((f32[4], f32[]), f32[], s32[]) reduce-start(nd, zero), dimensions={0}, to_apply=%add
  rd = f32[] reduce-done(rs)
  cs = (f32[4], f32[4], u32[]) copy-start(x), cross_program_prefetch_index=0
  cd = f32[4] copy-done(cs)
  d = f32[4] domain(cd), domain={kind="sharding", entry={maximal device=0}, exit={maximal device=1}}
  ROOT all = (f32[], f32[4]) tuple(rd, d)
}
"""


def test_async_ops_in_both_spellings() -> None:
    module = verify(hlo.parse(ASYNC))
    assert same_graph(hlo.parse(str(module)), module)
    short = parse_xla(str(module))
    assert "negate-start(" in short
    assert same_graph(hlo.parse(short), module)
    for total, copied in (tj.interpret(module, X), tj.compile(module)(X)):
        assert total == 12
        assert copied.tolist() == X.tolist()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("b = f32[4] nothing-start(x)", "opcode nothing-start is not known"),
        ("b = f32[4] negate-begin(x)", "opcode negate-begin is not known"),
        ("b = f32[4] negate-start(x)", "negate-start makes a bundle"),
        ("b = ((f32[4]), f32[3], s32[]) negate-start(x)", r"negate makes f32\[4\]"),
        ("b = f32[?] negate(x)", "without a bound"),
    ],
)
def test_refused_text(line: str, message: str) -> None:
    text = f"HloModule m\nENTRY e {{\n  x = f32[4] parameter(0)\n  ROOT {line}\n}}"
    with pytest.raises(HloParseError, match=message):
        hlo.parse(text)


def test_composite_call_is_what_xla_prints() -> None:
    x = ops.parameter(0, ROW)
    body = computation("decomposition", ops.neg, ROW)
    attributes = "{n = 1 : i32, tensor = dense<1> : tensor<i32>}"
    made = ops.composite_call(body, [x], "foo.bar", attributes, 1)
    module = verify(Module("m", Computation("entry", (x,), made)))
    wanted = (
        "is_composite=true, frontend_attributes={composite.attributes={n = 1 : i32, "
        'tensor = dense<1> : tensor<i32>},composite.name="foo.bar",composite.version="1"}'
    )
    assert wanted in str(module)
    assert wanted in parse_xla(str(module))
    assert same_graph(hlo.parse(parse_xla(str(module))), module)


@pytest.mark.parametrize("minor_to_major", [(0, 1), (1, 0)])
@pytest.mark.parametrize("result", [Shape(F32, (3, 2)), Shape(F32, (6,)), Shape(S32, (6, 1))])
def test_bitcast_reads_memory_under_layouts(minor_to_major: tuple[int, ...], result: Shape) -> None:
    given = Shape(F32, (2, 3), Layout(minor_to_major))
    layout = Layout(minor_to_major) if result.rank == 2 else None
    result = result.with_layout(layout)
    x = ops.parameter(0, given)
    copied = Computation("entry", (x,), ops.bitcast(x, result))
    module = verify(Module("m", copied))
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    buffer = to_buffer(array, given.explicit_layout).view(result.dtype)
    expected = from_buffer(buffer, result.dimensions, result.explicit_layout)
    assert tj.interpret(module, array).tolist() == expected.tolist()
    assert tj.compile(module)(array).tolist() == expected.tolist()
    again = hlo.parse(str(module))
    assert same_graph(again, module)
    assert tj.interpret(again, array).tolist() == expected.tolist()


def test_bitcast_between_widths() -> None:
    x = ops.parameter(0, Shape(F32, (2, 3)))
    narrow = ops.bitcast(x, Shape(ElementType.S16, (3, 4)))
    wide = ops.bitcast(narrow, Shape(ElementType.S64, (3,)))
    module = verify(Module("m", Computation("entry", (x,), ops.tuple_([narrow, wide]))))
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    for halves, doubles in (tj.interpret(module, array), tj.compile(module)(array)):
        assert halves.tobytes() == doubles.tobytes() == array.tobytes()


def x_() -> Instruction:
    return ops.parameter(0, ROW)


def scalar() -> Instruction:
    return ops.parameter(1, Shape(S32))


def cut() -> Instruction:
    return ops.set_dimension_size(x_(), scalar(), 0)


body = computation("body", ops.neg, ROW)
wide = computation("wide", ops.neg, Shape(F32, (5,)))


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: ops.after_all([x_()]), ShapeError, r"operand 0 must be a token, not f32\[4\]"),
        (lambda: ops.add_dependency(x_(), x_()), ShapeError, "token must be a token"),
        (lambda: ops.infeed(x_(), ROW), ShapeError, "infeed: token must be a token"),
        (lambda: ops.infeed(ops.after_all([]), TOKEN), ShapeError, "must be an array or a tuple"),
        (
            lambda: ops.infeed(ops.after_all([]), TupleShape((TupleShape(()),))),
            ShapeError,
            r"must be an array or a tuple of arrays, not \(\(\)\)",
        ),
        (lambda: ops.outfeed(x_(), x_()), ShapeError, "outfeed: token must be a token"),
        (
            lambda: ops.outfeed(x_(), ops.after_all([]), Shape(F32, (3,))),
            ShapeError,
            r"outfeed_shape f32\[3\] must be the operand's shape f32\[4\]",
        ),
        (lambda: ops.bitcast(x_(), Shape(F32, (3,))), ShapeError, "takes 128 bits.* takes 96"),
        (lambda: ops.copy_done(x_()), ShapeError, "must be a copy_start's result"),
        (lambda: ops.fusion(body, [x_()], "kBig"), AttributeValueError, "kLoop, kInput.* not kBig"),
        (lambda: ops.fusion(wide, [x_()]), ShapeError, r"calls must be a computation \(f32\[4\]\)"),
        (lambda: ops.async_start(wide, [x_()]), ShapeError, "calls must be a computation"),
        (lambda: ops.async_done(x_()), ShapeError, "operand: must be a bundle"),
        (lambda: ops.composite_call(body, [x_()], ""), AttributeValueError, "must have a name"),
        (
            lambda: ops.composite_call(body, [x_()], "n", version=-1),
            AttributeValueError,
            "version must be a number",
        ),
        (lambda: ops.get_dimension_size(x_(), 1), DimensionError, "out of range for rank 1"),
        (lambda: ops.set_dimension_size(x_(), x_(), 0), ElementTypeError, r"val must be s32\[\]"),
        (
            lambda: ops.dynamic_reshape(x_(), [scalar()], [5], [True]),
            ShapeError,
            r"operand f32\[4\] cannot become f32\[<=5\]",
        ),
        (lambda: ops.dynamic_reshape(x_(), [scalar()], [2, 2], [True]), ShapeError, "as many of"),
        (
            lambda: ops.iota(Shape(F32, (4,), None, (True,)), 0),
            ShapeError,
            r"iota: shape must be static, not f32\[<=4\]",
        ),
        (lambda: ops.cholesky(dynamic_matrix(), True), UnsupportedError, "dynamic dimensions"),
        (lambda: Shape(F32, (4,), None, (True, False)), DimensionError, "2 dynamic dimensions"),
    ],
)
def test_refusals(build: Callable[[], object], error: type[TracejitError], message: str) -> None:
    with pytest.raises(error, match=message):
        build()


def dynamic_matrix() -> Instruction:
    return ops.set_dimension_size(ops.parameter(0, Shape(F32, (4, 4))), scalar(), 0)


def test_shapes_with_dynamic_dimensions() -> None:
    made = cut()
    assert str(made.shape) == "f32[<=4]"
    assert made.shape != ROW
    assert made.array_shape.with_dynamic(()) == ROW
    assert str(ops.add(made, x_()).shape) == "f32[<=4]"
    assert str(ops.broadcast_in_dim(made, (2, 4), (1,)).shape) == "f32[2,<=4]"
    assert str(ops.reduce_sum(made, [0]).shape) == "f32[]"
    assert str(ops.reshape(made, (2, 2)).shape) == "f32[<=2,2]"
    whole = ops.set_dimension_size(made, ops.constant(4, S32), 0)
    assert whole.shape == ROW
