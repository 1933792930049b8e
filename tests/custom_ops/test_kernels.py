"""Kernels of every form, what is chosen when, and what they may do."""

from __future__ import annotations

import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tracejit as tj
from tests.judge import parse_xla
from tests.transforms.test_callbacks import plain
from tracejit import lax
from tracejit.custom_ops import (
    InferenceContext,
    Op,
    Operation,
    OpKernelContext,
    batching,
    get_op,
    gradient,
    kernel,
    merged_shape,
    register_op,
    require,
    shard,
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
    from tracejit.backends.tvm.tir import loop, store, tirx

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


@both
def test_several_outputs_and_lists(way: Any) -> None:
    op = register_op("Split").attr("n: int >= 0").input("x: float")
    op.output("parts: n * float").output("rest: float")

    def shapes(c: InferenceContext) -> None:
        c.set_output("parts", [c.scalar()] * c.get_attr("n"))
        c.set_output("rest", c.vector(c.subtract(c.dim(c.input("x"), 0), c.get_attr("n"))))

    op.set_shape_fn(shapes)
    kernel(op)(lambda x, n: ([x[i] for i in range(n)], x[n:]))

    @gradient(op)
    def of_split(op: Operation, grads: list[Any]) -> Any:
        assert len(op.output("parts")) == op.get_attr("n") == 2
        return np.concatenate([np.stack(grads[:-1]), grads[-1]])

    made = way(lambda x: op(x, 2))(X)
    assert [float(part) for part in made.parts] == [1, 2]
    assert made.rest.tolist() == [3]
    assert way(lambda x: op(x, 0).rest)(X).tolist() == [1, 2, 3]
    slopes = way(tj.grad(lambda x: op(x, 2).parts[1] * 5 + op(x, 2).rest.sum()))(X)
    assert slopes.tolist() == [0, 5, 1]


def test_gradients_are_checked() -> None:
    op = elementwise()
    kernel(op)(lambda x: x)
    gradient(op)(lambda op, grad: [grad, grad])
    with pytest.raises(
        DerivativeError, match=r"Elementwise: .* one cotangent .* of 1 inputs, not 2"
    ):
        tj.grad(lambda x: op(x).sum())(X)
    with pytest.raises(ArgumentError, match="Elementwise has a gradient already"):
        gradient(op)(lambda op, grad: grad)
    with pytest.raises(ArgumentError, match="is no function"):
        gradient(elementwise("Other"))(3)  # type: ignore[arg-type]


def test_gradient_sees_results_and_names() -> None:
    op = register_op("Exponential").input("x: double").output("y: double")
    op.set_shape_fn(unchanged_shape)
    kernel(op)(lambda x: np.exp(x))
    gradient(op)(lambda op, grad: grad * op.output("y") + 0 * op.input("x"))
    third = tj.grad(tj.grad(tj.grad(lambda x: op(x))))
    for way in (third, tj.jit(third)):
        np.testing.assert_allclose(way(0.5), np.exp(0.5))
    np.testing.assert_allclose(tj.jvp(op, (0.5,), (2.0,))[1], 2 * np.exp(0.5))


def test_stateful_ops_happen_each_time() -> None:
    op = register_op("Count").input("x: float").output("y: float").set_is_stateful()
    op.set_shape_fn(unchanged_shape)
    seen: list[float] = []

    @kernel(op)
    def counted(x: np.ndarray) -> np.ndarray:
        seen.append(float(x.sum()))
        return x

    @tj.jit
    def f(x: Any) -> Any:
        op(x)
        op(x)
        return x

    f(X)
    assert seen == [6, 6]
    with pytest.raises(ArgumentError, match="Count is stateful"):
        kernel(op, form="tracejit")(lambda x: x)


def test_registration_is_checked() -> None:
    op = elementwise(types="{float, double}")
    for wrong, error, sentence in (
        ({"device": "TPU"}, AttributeValueError, "device must be CPU or GPU, not 'TPU'"),
        ({"form": "c++"}, AttributeValueError, "form must be one of numpy, tracejit, tir"),
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


def test_shards() -> None:
    for total in (0, 1, 2, 7, 100):
        seen = np.zeros(total, int)

        def work(start: int, stop: int, seen: np.ndarray = seen) -> None:
            seen[start:stop] += 1

        shard(work, total)
        assert seen.tolist() == [1] * total
    pieces: list[tuple[int, int]] = []
    shard(lambda *piece: pieces.append(piece), 10, minimum=6)
    shard(lambda *piece: pieces.append(piece), 10, max_parallelism=1)
    assert pieces == [(0, 10), (0, 10)]


def test_shards_inside_shards_and_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_NUM_THREADS", "3")
    inner: list[tuple[int, int]] = []
    threads: set[int] = set()

    def outer(start: int, stop: int) -> None:
        threads.add(threading.get_ident())
        shard(lambda *piece: inner.append(piece), stop - start)

    shard(outer, 9)
    assert inner == [(0, 3)] * 3
    assert len(threads) >= 2
    with pytest.raises(InvalidArgumentError, match="bad piece 3"):
        shard(lambda start, stop: require(start != 3, "bad piece ", start), 9)


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


def test_shape_functions_compute() -> None:
    found: dict[str, Any] = {}

    def shapes(c: InferenceContext) -> Any:
        x = c.input(0)
        found["rank"] = c.rank(x)
        found["divided"] = c.divide(6, 4, evenly=False)
        found["joined"] = c.concatenate(c.subshape(x, 1), (c.multiply(2, 3), c.unknown_dim()))
        found["merged"] = c.merge((None, 3), (2, None))
        found["replaced"] = c.replace_dim(x, -1, 9)
        found["count"] = c.num_elements(x)
        for refused in (
            lambda: c.divide(5, 2),
            lambda: c.with_rank_at_least(x, 4),
            lambda: c.with_rank_at_most(x, 1),
            lambda: c.with_value(3, 4),
            lambda: c.dim(x, 2),
            lambda: c.merge((1,), (1, 2)),
            lambda: c.make_shape([-1]),
            lambda: c.input(5),
            lambda: c.set_output("z", x),
        ):
            with pytest.raises(ShapeError, match="Shapes: "):
                refused()
        return [c.make_shape([2]), c.vector(1)]

    op = register_op("Shapes").input("x: float").output("y: float").output("z_: float")
    op.set_shape_fn(shapes)
    lowered = tj.jit(op).lower(np.zeros((2, 3), np.float32))
    assert [str(s) for s in lowered.module.entry.root.element_shapes] == ["f32[2]", "f32[1]"]
    assert found == {
        "rank": 2,
        "divided": 1,
        "joined": (3, 6, None),
        "merged": (2, 3),
        "replaced": (2, 9),
        "count": 6,
    }
    wrong = register_op("Few").input("x: float").output("y: float").output("z: float")
    wrong.set_shape_fn(lambda c: [c.scalar()])
    with pytest.raises(ShapeError, match="Few: the shape function must return 2 shapes, not 1"):
        tj.jit(wrong).lower(X)


def test_the_device_decides() -> None:
    op = elementwise()
    kernel(op, device="GPU", T=np.float32, host_memory=["x"])(lambda x: x)
    kernel(op, device="CPU")(lambda x: x)
    attrs = {"T": np.dtype(np.float32), "by": 2.0}
    chosen = select(op.definition, op.kernels, attrs, FORMS, "GPU")
    assert (chosen.device, chosen.host_memory) == ("GPU", ("x",))
    with pytest.raises(UnsupportedError, match="Elementwise: has no kernel on GPU for T=float64"):
        select(op.definition, op.kernels, {**attrs, "T": np.dtype(float)}, FORMS, "GPU")


@both
def test_calls_in_loops_and_branches(way: Any) -> None:
    op = elementwise()
    kernel(op)(lambda x, by: x * x.dtype.type(by))
    gradient(op)(lambda op, grad: grad * op.get_attr("by"))

    def f(x: Any) -> Any:
        x = lax.fori_loop(0, 3, lambda i, x: op(x), x)
        return lax.cond(x.sum() > 0, lambda x: op(x, 3.0), lambda x: x, x)

    assert way(f)(X).tolist() == [24, 48, 72]
    assert way(tj.grad(lambda x: f(x).sum()))(X).tolist() == [24, 24, 24]


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


def test_batching_rules() -> None:
    op = register_op("RowSum").attr("by: float = 1.0")
    op.input("x: double").input("s: double").output("total: double").output("x_again: double")

    def shapes(c: InferenceContext) -> None:
        c.set_output(0, c.subshape(c.input(0), 0, -1))
        c.set_output(1, c.input(0))

    op.set_shape_fn(shapes)
    calls: list[tuple[int, ...]] = []

    @kernel(op)
    def summed(x: np.ndarray, s: np.ndarray, by: float) -> tuple[np.ndarray, np.ndarray]:
        calls.append(x.shape)
        return np.asarray(x.sum(-1) * by), x

    gradient(op)(lambda op, grads: [grads[0][..., None] * op.get_attr("by") + grads[1], None])

    @batching(op)
    def batch(operation: Operation, size: int) -> Any:
        x, s = operation.inputs
        assert s.shape == (size,)
        return op(x, s[0], by=operation.get_attr("by"))

    x = np.arange(6.0).reshape(2, 3)
    for way in (plain, tj.jit):
        calls.clear()
        made = way(tj.vmap(lambda x: op(x, 1.0, by=2.0)))(x)
        assert made.total.tolist() == [6, 24]
        np.testing.assert_array_equal(made.x_again, x)
        assert calls == [(2, 3)]
    slopes = tj.jit(tj.grad(lambda x: tj.vmap(lambda x: op(x, 1.0).total ** 2)(x).sum()))(x)
    assert slopes.tolist() == [[6] * 3, [24] * 3]
    each = tj.vmap(tj.grad(lambda x: op(x, 1.0).total ** 2))
    assert each(x).tolist() == [[6] * 3, [24] * 3]
    with pytest.raises(ArgumentError, match="RowSum has a rule already"):
        batching(op)(batch)


def test_batching_rules_are_checked() -> None:
    op = elementwise()
    kernel(op)(lambda x: x)
    batching(op)(lambda op, size: op.inputs[0][0])
    with pytest.raises(ShapeError, match=r"must return f32\[2,3\], not f32\[3\] \(.*py:\d+\)"):
        tj.vmap(op)(np.stack([X, X]))


def test_traced_attributes_are_refused() -> None:
    op = register_op("Attribute").attr("n: int").input("x: float").output("y: float")
    op.set_shape_fn(unchanged_shape)
    with pytest.raises(ConcretizationError, match=r"Attribute: attribute 'n': .* argument n of"):
        tj.jit(lambda x, n: op(x, n))(X, 1)
