"""Kernels of every form, what is chosen when, and what they may do."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tracejit as tj
from tests.judge import parse_xla
from tests.transforms.test_callbacks import plain
from tracejit.custom_ops import (
    Op,
    OpKernelContext,
    batching,
    get_op,
    gradient,
    kernel,
    kernel_labels,
    merged_shape,
    register_op,
    unchanged_shape,
    unregister_op,
)
from tracejit.custom_ops.kernels import FORMS, select
from tracejit.errors import (
    ArgumentError,
    AttributeValueError,
    ConcretizationError,
    DerivativeError,
    ElementTypeError,
    InvalidArgumentError,
    ShapeError,
    TracejitError,
    UnknownTargetError,
    UnsupportedError,
    ValueRangeError,
)
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tracejit.backends.tvm.ir.tir import loop, store, tirx

pytestmark = pytest.mark.usefixtures("own_targets")
both = pytest.mark.parametrize("way", [plain, tj.jit], ids=["eager", "jit"])
X = np.array([1, 2, 3], np.float32)


def elementwise(name: str = "Elementwise", types: str = "numbertype") -> Op:
    op = register_op(name).attr(f"T: {types}").attr("by: float = 2.0").input("x: T").output("y: T")
    return op.set_shape_fn(unchanged_shape)


def scaling(inputs: list[Any], outputs: list[Any], by: float) -> Any:
    """y = x * by, as TVM code."""
    size = inputs[0].size
    x, y = (tirx.decl_buffer((size,), "float32", name=name) for name in ("x", "y"))
    return tirx.PrimFunc(
        [x, y], loop(size, lambda i: store(y, i, x[i] * tirx.const(by, "float32")))
    )


def test_tensor_code_alone() -> None:
    op = elementwise()
    kernel(op, form="tir", T=np.float32)(scaling)
    assert op(X).tolist() == [2, 4, 6]
    assert tj.jit(lambda x: op(x + 1, 3.0))(X).tolist() == [6, 9, 12]
    assert tj.vmap(op)(np.stack([X, -X])).tolist() == [[2, 4, 6], [-2, -4, -6]]
    with pytest.raises(DerivativeError, match="'Elementwise' was registered without a gradient"):
        tj.grad(lambda x: op(x).sum())(X)


def test_every_form_has_its_place() -> None:
    """Compiled code takes TVM's, then the traced one; outside it NumPy's comes first."""
    op = elementwise()
    called: list[str] = []

    @kernel(op)
    def of_numpy(x: np.ndarray, by: float) -> np.ndarray:
        called.append("numpy")
        return np.asarray(x * by, x.dtype)

    assert tj.jit(op)(X).tolist() == [2, 4, 6]
    assert called == ["numpy"]

    @kernel(op, form="tracejit", T=(np.float32, np.float64))
    def traced(x: Any, by: float) -> Any:
        called.append("tracejit")
        return x * by

    assert tj.jit(lambda x: op(x))(X).tolist() == [2, 4, 6]
    assert op(X).tolist() == [2, 4, 6]
    assert called == ["numpy", "tracejit", "numpy"]
    kernel(op, form="tir", T=np.float32)(scaling)
    assert tj.jit(lambda x: op(x) + 1)(X).tolist() == [3, 5, 7]
    assert called == ["numpy", "tracejit", "numpy"]
    assert tj.grad(lambda x: op(x).sum())(X).tolist() == [2, 2, 2]


def test_traced_kernel_fuses_and_is_recorded_once() -> None:
    op = elementwise()
    calls: list[int] = []

    @kernel(op, form="tracejit")
    def traced(x: Any, by: float) -> Any:
        calls.append(1)
        made = np.zeros(x.shape, x.dtype)
        for i in range(3):
            made[i] = x[i] * by
        return made

    def f(x: Any) -> Any:
        return op(op(x)) + 1

    assert tj.jit(f)(X).tolist() == [5, 9, 13]
    assert tj.jit(lambda x: f(x) * 2)(X).tolist() == [10, 18, 26]
    assert len(calls) == 1
    hessian = tj.hessian(lambda x: (op(x) ** 2).sum())
    np.testing.assert_allclose(hessian(X.astype(float)), 8 * np.eye(3))
    batch = np.stack([X, -X])
    for way in (plain, tj.jit):
        np.testing.assert_allclose(way(tj.vmap(tj.grad(lambda x: op(x).sum())))(batch), 2)


def test_a_new_definition_is_another_program() -> None:
    for by in (2, 3):
        op = register_op("Changing", replace=True).input("x: float").output("y: float")
        op.set_shape_fn(unchanged_shape)
        kernel(op, form="tracejit")(lambda x, by=by: x * by)
        assert tj.jit(op)(X).tolist() == [by, 2 * by, 3 * by]


@pytest.mark.parametrize(
    "dtype",
    [np.int8, np.uint64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, np.complex128],
)
def test_arrays_of_many_types(dtype: Any) -> None:
    op = elementwise()
    kernel(op)(lambda x: (x + x).astype(x.dtype))
    x = np.array([1, 2, 3]).astype(dtype)
    for way in (op, tj.jit(op)):
        np.testing.assert_array_equal(way(x), x + x)
        assert way(x).dtype == x.dtype


def test_python_numbers_take_the_type_they_meet() -> None:
    op = register_op("Add").attr("T: {int32, float, double}").input("x: T").input("y: T")
    op.output("z: T").set_shape_fn(merged_shape)
    kernel(op)(lambda x, y: np.add(x, y))
    assert op(1, 2).dtype == np.int32
    assert op(1, 2.5).dtype == np.float64
    assert op(np.float32(1), 2).dtype == np.float32
    assert tj.jit(lambda x: op(x, 2))(np.float32(1)) == 3
    assert tj.jit(lambda x, n: op(x, n * 2))(np.float64(1), 2) == 5
    with pytest.raises(
        ElementTypeError, match=r"'y' must have the type of .*'T', float32, not float"
    ):
        op(np.float32(1), np.float64(2))
    with pytest.raises(ElementTypeError, match="Add: input 'y' must have type int32, not float64"):
        op(np.int32(1), 2.5)
    with pytest.raises(ValueRangeError, match="Add: input 'x': 4294967296 does not fit into int32"):
        op(2**32, np.int32(1))
    with pytest.raises(ArgumentError, match="Add: input 'x': a NoneType is no array"):
        op(None, 1)


@both
def test_kernels_return_what_they_must(way: Any) -> None:
    for returned, error, sentence in (
        (lambda x: x.astype(float), ElementTypeError, "of type float64, not float32"),
        (lambda x: x[:2], ShapeError, r"of dimensions \[2\]; the shape function says \[3\]"),
        (lambda x: None, ArgumentError, "made nothing for output 'y'"),
    ):
        op = register_op("Wrong", replace=True).input("x: float").output("y: float")
        op.set_shape_fn(unchanged_shape)
        kernel(op)(returned)
        with pytest.raises(
            error, match=f"Wrong: the kernel for CPU made .*{sentence}|made nothing"
        ):
            way(op)(X)


def test_registration_is_checked() -> None:
    op = elementwise(types="{float, double}")
    for wrong, error, sentence in (
        ({"device": "TPU"}, AttributeValueError, "device must be CPU or GPU, not 'TPU'"),
        ({"form": "c++"}, AttributeValueError, "form must be one of numpy, tracejit, native, tir"),
        ({"T": np.int32}, AttributeValueError, r"'T' is never int32, it is \{float32, float64\}"),
        ({"by": np.int32}, AttributeValueError, "'by' is no type attribute"),
    ):
        with pytest.raises(error, match=f"kernel: Elementwise: {sentence}"):
            kernel(op, **wrong)(lambda x: x)
    functions: list[tuple[Any, str]] = [
        (lambda: 1, "the function must take 1 arguments and then attributes; it takes 0"),
        (lambda x, other: x, "the op has no attribute 'other'"),
        (3, "3 is no function"),
        (type("Empty", (), {}), r"with a method compute\(context\)"),
    ]
    for function, sentence in functions:
        with pytest.raises(ArgumentError, match=sentence):
            kernel(op)(function)
    kernel(op, T=np.float32)(lambda x: x)
    kernel(op, T=np.float64)(lambda x, by: x)
    with pytest.raises(ArgumentError, match=r"already; a call may want that one"):
        kernel(op)(lambda x: x)
    with pytest.raises(UnknownTargetError, match="there is no op 'Nowhere'"):
        kernel("Nowhere")(lambda x: x)


def test_ops_are_found_and_forgotten() -> None:
    op = elementwise()
    assert get_op("Elementwise") is op
    assert repr(op) == "<op Elementwise>"
    unregister_op("Elementwise")
    with pytest.raises(UnknownTargetError, match="there is no op 'Elementwise'"):
        get_op("Elementwise")
    tj.register_custom_call("Function", lambda x: x)
    with pytest.raises(UnknownTargetError, match="there is no op 'Function'"):
        get_op("Function")


def test_context_of_kernel_classes() -> None:
    op = register_op("Pairs").attr("N: int").input("xs: N * float").input("s: float")
    op.output("ys: N * float").output("t: float")

    @kernel(op)
    class Pairs:
        def __init__(self, context: Any) -> None:
            with pytest.raises(ArgumentError, match="Pairs: has no attribute 'M'"):
                context.get_attr("M")

        def compute(self, context: OpKernelContext) -> None:
            assert (context.num_inputs, context.num_outputs) == (3, 3)
            for number, x in enumerate(context.inputs("xs")):
                context.set_output(number, x * context.input("s"))
            with pytest.raises(ArgumentError, match="shape of output 't' is unknown"):
                context.allocate_output("t")
            context.allocate_output("t", (2,))[1] = 7

    made = op([X, X[:1]], 2.0)
    assert [y.tolist() for y in made.ys] == [[2, 4, 6], [2]]
    assert made.t.tolist() == [0, 7]


def test_traced_kernels_are_checked() -> None:
    op = register_op("Traced").input("x: float").output("y: float")
    kernel(op, form="tracejit")(lambda x: np.concatenate([x, x]))
    assert tj.jit(op)(X).shape == (6,)
    other = register_op("Other").input("x: float").output("y: float")
    other.set_shape_fn(unchanged_shape)
    kernel(other, form="tracejit")(lambda x: np.concatenate([x, x]))
    with pytest.raises(
        ShapeError, match=r"Other: the kernel on CPU must return f32\[3\], not f32\[6"
    ):
        other(X)
    third = register_op("Third").input("x: float").output("y: float")

    @kernel(third, form="tracejit")
    def printing(x: Any) -> Any:
        tj.debug.print("{}", x)
        return x

    with pytest.raises(ArgumentError, match="Third: the kernel on CPU has side effects"):
        tj.jit(third)(X)


def test_errors_of_kernels_are_the_users() -> None:
    op = elementwise()

    @kernel(op)
    def failing(x: np.ndarray) -> np.ndarray:
        raise ZeroDivisionError("my own")

    for way in (op, tj.jit(op)):
        with pytest.raises(ZeroDivisionError, match="my own"):
            way(X)
    assert issubclass(InvalidArgumentError, TracejitError)
    assert issubclass(InvalidArgumentError, ValueError)


def test_the_device_decides() -> None:
    op = elementwise()
    kernel(op, device="GPU", T=np.float32, host_memory=["x"])(lambda x: x)
    kernel(op, device="CPU")(lambda x: x)
    attrs = {"T": np.dtype(np.float32), "by": 2.0}
    chosen = select(op.definition, op.kernels, attrs, FORMS, "GPU")
    assert (chosen.device, chosen.host_memory) == ("GPU", ("x",))
    with pytest.raises(UnsupportedError, match="Elementwise: has no kernel on GPU for T=float64"):
        select(op.definition, op.kernels, {**attrs, "T": np.dtype(float)}, FORMS, "GPU")


@pytest.mark.parametrize("text", ['"', "}", "{a", "\\", "é\n", "/*", "a, b=c"])
def test_texts_of_all_sorts_are_kept(text: str) -> None:
    op = register_op("Says").attr("what: string").input("x: float").output("y: float")
    op.set_shape_fn(unchanged_shape)
    heard: list[str] = []

    @kernel(op)
    def listening(x: np.ndarray, what: str) -> np.ndarray:
        heard.append(what)
        return x

    lowered = tj.jit(lambda x: op(x, text)).lower(X)
    written = lowered.as_text("hlo")
    parse_xla(written)
    tj.compile(tj.hlo.parse(written))(X)
    assert heard == [text]
    assert '"Says"' in lowered.as_text("stablehlo") or "@Says" in lowered.as_text("stablehlo")


def test_traced_attributes_are_refused() -> None:
    op = register_op("Attribute").attr("n: int").input("x: float").output("y: float")
    op.set_shape_fn(unchanged_shape)
    with pytest.raises(ConcretizationError, match=r"Attribute: attribute 'n': .* argument n of"):
        tj.jit(lambda x, n: op(x, n))(X, 1)


def _squaring(name: str) -> Op:
    op = register_op(name).input("x: double").output("y: double")
    return op.set_shape_fn(unchanged_shape)


def test_results_are_written_in_place() -> None:
    op, seen = _squaring("InPlace"), []

    @kernel(op, borrows_inputs=True)
    def in_place(x: Any, *, out: Any) -> None:
        seen.append((x.__array_interface__["data"], out.flags.owndata))
        np.multiply(x, x, out=out)

    x = np.arange(4.0)
    assert op(x).tolist() == tj.jit(op)(x).tolist() == [0, 1, 4, 9]
    assert op(x).tolist() == [0, 1, 4, 9]
    address, is_read_only = seen[1][0]
    assert is_read_only
    assert address == x.ctypes.data
    assert not seen[1][1]


def test_lent_inputs_are_not_kept_or_written() -> None:
    kept: list[Any] = []
    op, other = _squaring("Keeping"), _squaring("Writing")

    @kernel(op, borrows_inputs=True)
    def keeping(x: Any) -> Any:
        kept.append(x[1:])
        return x * x

    @kernel(other, borrows_inputs=True)
    def writing(x: Any) -> Any:
        x *= x
        return x

    with pytest.raises(ArgumentError, match="Keeping: the kernel for CPU keeps input 0"):
        tj.jit(op)(np.arange(4.0))
    with pytest.raises(ValueError, match="read-only"):
        tj.jit(other)(np.arange(4.0))


def test_inputs_that_are_copied_may_be_kept_and_written() -> None:
    kept: list[Any] = []
    op = _squaring("Greedy")

    @kernel(op)
    def greedy(x: Any) -> Any:
        kept.append(x)
        x *= x
        return x

    x = np.arange(4.0)
    for call in (op, op, tj.jit(op)):
        assert call(x).tolist() == [0, 1, 4, 9]
        kept[-1][...] = 7
    assert x.tolist() == [0, 1, 2, 3]


def test_priorities_and_labels() -> None:
    op = _squaring("Ranked")
    for number, options in enumerate([{}, {"priority": 2}, {"label": "slow"}]):
        kernel(op, **options)(lambda x, n=number: x + n)  # type: ignore[arg-type]
    kernel(op, form="tracejit")(lambda x: x + 10)
    x = np.zeros(1)
    assert (op(x), tj.jit(op)(x)) == (1, 1)
    with kernel_labels({"Ranked": "slow"}):
        labelled = tj.jit(lambda x: op(x) + 0)
        assert (op(x), labelled(x)) == (2, 2)
    assert (op(x), labelled(x)) == (1, 2)
    with kernel_labels({"Ranked": "slow"}):
        text = tj.jit(lambda x: op(x)).lower(x).as_text()
    assert tj.compile(tj.hlo.parse(text))(x) == 2
    with (
        kernel_labels({"Ranked": "none"}),
        pytest.raises(UnsupportedError, match="no kernel on CPU for label='none'"),
    ):
        op(x)


def test_replacing() -> None:
    op = _squaring("Replaced")
    kernel(op)(lambda x: x)
    x = np.ones(2)
    compiled = tj.jit(op)
    assert (op(x) == compiled(x)).all()
    with pytest.raises(ArgumentError, match="has a kernel"):
        kernel(op)(lambda x: 2 * x)
    kernel(op, replace=True)(lambda x: 3 * x)
    assert op(x).tolist() == compiled(x).tolist() == [3, 3]
    for register in (gradient, batching):
        given: Any = register
        given(op)(lambda *args: [args[-1]])
        with pytest.raises(ArgumentError, match="already"):
            given(op)(lambda *args: None)
        given(op, replace=True)(lambda *args: None)
