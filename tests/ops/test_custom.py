"""Custom calls: registration, what a function must return, kernels, text, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.judge import parse_xla
from tests.transforms.test_callbacks import plain
from tracejit import lax, ops
from tracejit.attributes import OutputAlias
from tracejit.equality import same_graph
from tracejit.errors import (
    ArgumentError,
    AttributeValueError,
    CompilationError,
    DerivativeError,
    ElementTypeError,
    ShapeError,
    UnknownTargetError,
)
from tracejit.graph import Computation, Module
from tracejit.ops.base import make
from tracejit.ops.custom import CUSTOM_CALL
from tracejit.runtime import importing_tvm
from tracejit.shapes import TOKEN, ElementType, Shape, TupleShape
from tracejit.targets import Target, find_target
from tracejit.verifier import verify

with importing_tvm():
    from tracejit.backends.tvm.ir.tir import loop, store, tirx

ROW = Shape(ElementType.F32, (3,))
X = np.array([1, 2, 3], np.float32)
both = pytest.mark.parametrize("way", [plain, tj.jit], ids=["eager", "jit"])


@pytest.fixture
def name() -> Iterator[str]:
    """A target's name that is free, and forgotten afterwards."""
    yield "tests.custom"
    try:
        tj.unregister_custom_call("tests.custom")
    except UnknownTargetError:
        pass


def module_of(*results: Any) -> Module:
    x = next(o for r in results for o in r.operands if o.op.name == "Parameter")
    return verify(Module("m", Computation("entry", (x,), ops.tuple_(results))))


@both
def test_function_with_configuration(way: Any, name: str) -> None:
    @tj.register_custom_call(name)
    def scaled(x: np.ndarray, backend_config: str = "1") -> np.ndarray:
        x *= float(backend_config)  # its own copy
        return x

    def f(x: Any) -> Any:
        return lax.custom_call(name, ROW, x, backend_config="4") + lax.custom_call(name, ROW, x)

    assert way(f)(X).tolist() == [5, 10, 15]
    assert X.tolist() == [1, 2, 3]


@both
def test_gradient(way: Any, name: str) -> None:
    tj.register_custom_call(
        name, lambda x, y: (x * y, x.sum()), gradient=lambda x, y, of_xy, of_sum: (of_xy * y, None)
    )
    like = (ROW, Shape(ElementType.F32))

    def f(x: Any, y: Any) -> Any:
        product, _ = lax.custom_call(name, like, x, y)
        return (product * x).sum()

    of_x, of_y = way(tj.grad(f, argnums=(0, 1)))(X, 2 * X)
    assert of_x.tolist() == (4 * X * X).tolist()
    assert of_y.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("gradient", "message"),
    [
        (None, "was registered without a gradient"),
        (lambda x, g: (g, g), "must return 1 cotangents, not 2"),
        (lambda x, g: g.sum(), r"must return f32\[3\].* not f32\[\]"),
    ],
)
def test_wrong_gradients(name: str, gradient: Any, message: str) -> None:
    tj.register_custom_call(name, lambda x: x, gradient=gradient)
    with pytest.raises(DerivativeError, match=message):
        tj.grad(lambda x: lax.custom_call(name, ROW, x).sum())(X)


@both
@pytest.mark.parametrize(
    ("result", "error", "message"),
    [
        (X[:2], ShapeError, r"must return an array f32\[3\].*dimensions \[2\]"),
        (X.astype(np.float64), ElementTypeError, "must return.* it returned one of dtype float64"),
        (None, ArgumentError, r"must return an array f32\[3\], not None"),
        ((X, X), ArgumentError, "must return.* not an object of type tuple"),
    ],
)
def test_wrong_results(
    way: Any, name: str, result: Any, error: type[Exception], message: str
) -> None:
    tj.register_custom_call(name, lambda x: result)
    with pytest.raises(error, match=f"custom_call: '{name}' {message}"):
        way(lambda x: lax.custom_call(name, ROW, x))(X)
    with pytest.raises(ArgumentError, match="must return 3 values"):
        way(lambda x: lax.custom_call(name, [ROW, ROW, ROW], x))(X)


@both
def test_unknown_target(way: Any, name: str) -> None:
    with pytest.raises(UnknownTargetError, match=r"'tests.custom' is not registered .*test_custom"):
        way(lambda x: lax.custom_call(name, ROW, x))(X)


def test_a_compiled_program_asks_for_its_target_when_it_runs(name: str) -> None:
    x = ops.parameter(0, ROW)
    module = module_of(ops.custom_call(name, [x], ROW))
    program = tj.compile(module)
    with pytest.raises(UnknownTargetError, match="is not registered in this process"):
        program(X)
    tj.register_custom_call(name, lambda x: x + 1)
    assert program(X)[0].tolist() == [2, 3, 4]
    tj.register_custom_call(name, lambda x: x + 2, replace=True)
    assert tj.compile(module)(X)[0].tolist() == [3, 4, 5]


def test_registration_refuses(name: str) -> None:
    tj.register_custom_call(name, np.sin)
    with pytest.raises(ArgumentError, match="is registered already"):
        tj.register_custom_call(name, np.cos)
    with pytest.raises(ArgumentError, match="is no function"):
        tj.register_custom_call("other", 3)  # type: ignore[call-overload]
    with pytest.raises(ArgumentError, match="is no name"):
        tj.register_custom_call("tracejit.infeed", np.sin)
    assert find_target(name) == Target(name, np.sin)


def scaled_by() -> Any:
    """out[i] = x[i] * by, as a PrimFunc on buffers that promise much alignment."""
    x, out = (tirx.decl_buffer((3,), "float32", name=word) for word in ("x", "out"))
    by = tirx.decl_buffer((), "float32", name="by")
    body = loop(3, lambda i: store(out, i, x[i] * by[()]))
    return tirx.PrimFunc([x, by, out], body)


def test_kernel_runs_in_the_program(name: str) -> None:
    def never(*arrays: np.ndarray) -> np.ndarray:
        raise AssertionError("compiled code has the kernel")

    tj.register_custom_call(name, never, kernel=scaled_by())

    def f(x: Any) -> Any:
        return lax.custom_call(name, ROW, x + 1, np.float32(3)) - x.sum()

    unaligned = np.frombuffer(b"...." + X.tobytes() + b".", np.float32, 3, 4)
    assert tj.jit(f)(unaligned).tolist() == [0, 3, 6]
    tj.register_custom_call(name, never, kernel=lambda given, made: scaled_by(), replace=True)
    assert tj.jit(f)(X).tolist() == [0, 3, 6]
    with pytest.raises(CompilationError, match=r"takes float32\[3\] for f32\[4\]"):
        tj.jit(f)(np.zeros(4, np.float32))
    with pytest.raises(CompilationError, match="has 3 parameters, not 2"):
        tj.jit(lambda x: lax.custom_call(name, ROW, x))(X)


def test_text_of_everything() -> None:
    x = ops.parameter(0, ROW)
    inner = ops.parameter(0, ROW)
    called = Computation("called", (inner,), ops.neg(inner))
    common = {"custom_call_target": "f", "shape": ROW}
    calls = [
        ops.custom_call("f", [x], ROW, 'text with "quotes" and \\ and {'),
        ops.custom_call("f", [x], ROW, "{a = 1 : i32}", api_version="API_VERSION_TYPED_FFI"),
        ops.custom_call("f", [x], ROW, '{"json": {"of": "}"}}', has_side_effect=True),
        ops.custom_call("f", [x, ops.after_all([])], TupleShape((ROW, TOKEN))),
        ops.custom_call("f", [x], ROW, called_computations=[called]),
        ops.custom_call("f", [x], ROW, output_operand_aliasing=[OutputAlias((), 0)]),
        make(
            CUSTOM_CALL,
            x,
            **common,
            operand_layout_constraints=(ROW,),
            schedule="SCHEDULE_EARLIEST",
            padding_type="PADDING_SAME",
            operand_precision=("high", "default"),
            feature_group_count=2,
        ),
    ]
    module = module_of(*calls)
    text = str(module)
    assert same_graph(tj.hlo.parse(text), module)
    assert same_graph(tj.hlo.parse(parse_xla(text)), module)
    assert 'backend_config={"json": {"of": "}"}}' in text
    assert "output_to_operand_aliasing={{}: (0, {})}" in text


@pytest.mark.parametrize(
    ("attributes", "error", "message"),
    [
        ({"custom_call_target": ""}, AttributeValueError, "must not be empty"),
        ({"api_version": "API_VERSION_9"}, AttributeValueError, "api_version must be one of"),
        (
            {"operand_layout_constraints": (Shape(ElementType.F32, (4,)),)},
            ShapeError,
            r"must be the operands' shapes, f32\[3\]; they are f32\[4\]",
        ),
        (
            {"output_to_operand_aliasing": (OutputAlias((), 1),)},
            AttributeValueError,
            "names operand 1 of 1",
        ),
    ],
)
def test_refusals(attributes: dict[str, Any], error: type[Exception], message: str) -> None:
    x = ops.parameter(0, ROW)
    complete = {"custom_call_target": "f", "shape": ROW, **attributes}
    with pytest.raises(error, match=message):
        make(CUSTOM_CALL, x, **complete)
