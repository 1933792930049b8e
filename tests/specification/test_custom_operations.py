"""The page on custom operations: each definition on it, run outside traces, traced and compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.specification.registering import expect
from tracejit.custom_ops import (
    InferenceContext,
    InvalidArgumentError,
    Op,
    Operation,
    OpKernelConstruction,
    OpKernelContext,
    gradient,
    kernel,
    load_op_library,
    not_differentiable,
    register_op,
    require,
    scalar_shape,
    shard,
    unchanged_shape,
)
from tracejit.errors import (
    ArgumentError,
    AttributeValueError,
    CompilationError,
    DerivativeError,
    DeviceNotFoundError,
    ElementTypeError,
    ShapeError,
    UnsupportedError,
)

pytestmark = pytest.mark.usefixtures("own_targets")


def first_kept(to_zero: np.ndarray) -> np.ndarray:
    """Set all but the first element of the output to 0."""
    output = np.zeros_like(to_zero)
    output.flat[:1] = to_zero.flat[:1]
    return output


def zero_out_of_int32() -> Op:
    op = (
        register_op("ZeroOut")
        .input("to_zero: int32")
        .output("zeroed: int32")
        .set_shape_fn(lambda c: c.set_output(0, c.input(0)))
    )
    kernel("ZeroOut", device="CPU")(first_kept)
    return op


def test_zero_out_of_int32() -> None:
    zero_out = zero_out_of_int32()
    made = zero_out([[1, 2], [3, 4]])
    assert made.tolist() == [[1, 0], [0, 0]]
    assert made.dtype == np.int32
    assert zero_out([5, 4, 3, 2, 1]).tolist() == [5, 0, 0, 0, 0]
    assert zero_out.__name__ == "zero_out"
    expect(zero_out, [np.array([[1, 2], [3, 4]], np.int32)], np.array([[1, 0], [0, 0]], np.int32))
    with pytest.raises(ElementTypeError, match=r"'to_zero' must have type int32, not float32"):
        zero_out(np.ones(3, np.float32))


def test_shape_function_says_the_shape() -> None:
    zero_out = zero_out_of_int32()
    lowered = tj.jit(zero_out).lower(np.zeros((10, 20), np.int32))
    assert str(lowered.module.entry.root.shape) == "s32[10,20]"


def test_op_library_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "zero_out.py"
    file.write_text(
        "import numpy as np\n"
        "from tracejit.custom_ops import kernel, register_op, unchanged_shape\n"
        "register_op('ZeroOut').input('to_zero: int32').output('zeroed: int32')"
        ".set_shape_fn(unchanged_shape)\n"
        "@kernel('ZeroOut', device='CPU')\n"
        "def compute(to_zero):\n"
        "    zeroed = np.zeros_like(to_zero)\n"
        "    zeroed.flat[:1] = to_zero.flat[:1]\n"
        "    return zeroed\n"
    )
    zero_out_module = load_op_library(file)
    assert zero_out_module.zero_out([[1, 2], [3, 4]]).tolist() == [[1, 0], [0, 0]]
    file.write_text("x = 1\n")
    with pytest.raises(ArgumentError, match="registers no op"):
        load_op_library(file)


def test_kernel_class_with_a_context() -> None:
    zero_out = register_op("ZeroOut").input("to_zero: int32").output("zeroed: int32")
    zero_out.set_shape_fn(unchanged_shape)

    @kernel("ZeroOut", device="CPU")
    class ZeroOutOp:
        def __init__(self, context: OpKernelConstruction) -> None:
            self.device = context.device

        def compute(self, context: OpKernelContext) -> None:
            given = context.input(0)
            output = context.allocate_output(0, given.shape)
            output.flat[:1] = given.flat[:1]

    expect(zero_out, [np.array([5, 4, 3], np.int32)], np.array([5, 0, 0], np.int32))


def test_multi_threaded_kernel() -> None:
    square = register_op("Square").input("x: double").output("y: double")
    square.set_shape_fn(unchanged_shape)

    @kernel("Square", device="CPU")
    def compute(x: np.ndarray) -> np.ndarray:
        y = np.empty_like(x)
        shard(lambda start, stop: np.multiply(x[start:stop], x[start:stop], y[start:stop]), len(x))
        return y

    x = np.arange(1001.0)
    expect(square, [x], x * x)


def times_two(limit: int = 2**31 - 1) -> Op:
    op = (
        register_op("Example")
        .attr("T: numbertype")
        .input("input: T")
        .output("input_times_two: T")
        .set_shape_fn(unchanged_shape)
    )

    def compute(given: np.ndarray) -> np.ndarray:
        require(given.size <= limit, "Too many elements in tensor")
        return 2 * given

    for dtype in (np.float32, np.int32):
        kernel("Example", device="CPU", T=dtype)(compute)
        kernel("Example", device="GPU", T=dtype)(compute)
    return op


def test_times_two_on_cpu_and_gpu() -> None:
    example = times_two()
    expect(example, [np.array([1.5, 2], np.float32)], np.array([3, 4], np.float32))
    expect(example, [np.array([1, 2], np.int32)], np.array([2, 4], np.int32))
    assert [str(k) for k in example.kernels if k.device == "GPU"] == [
        "GPU for T in {float32}",
        "GPU for T in {int32}",
    ]
    with pytest.raises(UnsupportedError, match=r"Example: has no kernel on CPU for T=float64; .*"):
        example(np.zeros(2))
    with pytest.raises(UnsupportedError, match="no kernel on CPU for T=float64"):
        tj.jit(example)(np.zeros(2))
    # A function of Python's is no code for a device, whether or not there is one.
    with pytest.raises((DeviceNotFoundError, CompilationError)):
        tj.jit(example, target="cuda")(np.zeros(2, np.float32))


def test_gpu_kernel_alone_runs_nowhere() -> None:
    op = register_op("OnlyThere").input("x: float").output("y: float").set_shape_fn(unchanged_shape)
    kernel("OnlyThere", device="GPU")(lambda x: x)
    with pytest.raises(UnsupportedError, match=r"OnlyThere: has no kernel on CPU; .* are: GPU"):
        op(1.0)


def test_times_two_refuses_too_many_elements() -> None:
    example = times_two(limit=3)
    for way in (example, tj.jit(example)):
        with pytest.raises(InvalidArgumentError, match="Example: Too many elements in tensor"):
            way(np.zeros(4, np.float32))


def test_times_two_as_tensor_code_and_as_traced_functions() -> None:
    op = register_op("Twice").attr("T: realnumbertype").input("x: T").output("y: T")
    op.set_shape_fn(unchanged_shape)
    kernel(op, form="tracejit")(lambda x: x + x)
    expect(op, [np.array([1.5, 2])], np.array([3.0, 4]))
    assert tj.grad(lambda x: op(x) * x)(3.0) == 12


def test_vectors_alone() -> None:
    zero_out = register_op("ZeroOut").input("to_zero: int32").output("zeroed: int32")
    zero_out.set_shape_fn(unchanged_shape)

    @kernel("ZeroOut", device="CPU")
    def compute(to_zero: np.ndarray) -> np.ndarray:
        require(to_zero.ndim == 1, "ZeroOut expects a 1-D vector.")
        return first_kept(to_zero)

    assert zero_out([1, 2]).tolist() == [1, 0]
    for way in (zero_out, tj.jit(zero_out)):
        with pytest.raises(InvalidArgumentError, match=r"expects a 1-D vector\..*\(.*py:\d+\)"):
            way(np.zeros((2, 2), np.int32))


def test_preserve_index() -> None:
    zero_out = (
        register_op("ZeroOut")
        .attr("preserve_index: int")
        .input("to_zero: int32")
        .output("zeroed: int32")
        .set_shape_fn(unchanged_shape)
    )

    @kernel("ZeroOut", device="CPU")
    class ZeroOutOp:
        def __init__(self, context: OpKernelConstruction) -> None:
            self.index = context.get_attr("preserve_index")
            require(self.index >= 0, "Need preserve_index >= 0, got ", self.index)

        def compute(self, context: OpKernelContext) -> None:
            given = context.input("to_zero")
            require(self.index < given.shape[0], "preserve_index out of range")
            output = context.allocate_output("zeroed")
            output.flat[self.index] = given.flat[self.index]

    x = np.array([5, 4, 3], np.int32)
    expect(lambda x: zero_out(x, preserve_index=1), [x], np.array([0, 4, 0], np.int32))
    for wrapped in (lambda f: f, tj.jit):
        with pytest.raises(InvalidArgumentError, match="Need preserve_index >= 0, got -1"):
            wrapped(lambda x: zero_out(x, -1))(x)
        with pytest.raises(InvalidArgumentError, match="ZeroOut: preserve_index out of range"):
            wrapped(lambda x: zero_out(x, 3))(x)
    with pytest.raises(ArgumentError, match="missing a required argument: 'preserve_index'"):
        zero_out(x)
    with pytest.raises(AttributeValueError, match=r"ZeroOut: .*'preserve_index' .*int, not 1\.5"):
        zero_out(x, 1.5)


def polymorphic(*types: str) -> Op:
    return (
        register_op("ZeroOut")
        .attr(f"T: {{{', '.join(types)}}}")
        .input("to_zero: T")
        .output("zeroed: T")
        .set_shape_fn(unchanged_shape)
    )


def test_zero_out_of_two_types() -> None:
    zero_out = polymorphic("float", "int32")
    kernel("ZeroOut", device="CPU", T=np.int32)(lambda to_zero: first_kept(to_zero))
    kernel("ZeroOut", device="CPU", T=np.float32)(first_kept)
    expect(zero_out, [np.array([5, 4], np.int32)], np.array([5, 0], np.int32))
    expect(zero_out, [np.array([5, 4], np.float32)], np.array([5, 0], np.float32))
    assert zero_out([1.5, 2]).dtype == np.float32
    with pytest.raises(ElementTypeError, match=r"'to_zero' .*'T', one of float32, int32, not bool"):
        zero_out(np.array([True]))


def test_zero_out_of_more_types() -> None:
    zero_out = polymorphic("float", "double", "int32")
    kernel("ZeroOut", device="CPU", T=(np.int32, np.float32, np.float64))(first_kept)
    expect(zero_out, [np.array([5.5, 4])], np.array([5.5, 0]))


def test_zero_out_of_real_numbers() -> None:
    zero_out = register_op("ZeroOut").attr("T: realnumbertype").input("to_zero: T")
    zero_out.output("zeroed: T").set_shape_fn(unchanged_shape)
    kernel("ZeroOut", device="CPU")(first_kept)
    for dtype in (np.int8, np.uint64, np.float16, np.float64):
        expect(zero_out, [np.array([5, 4], dtype)], np.array([5, 0], dtype))
    with pytest.raises(ElementTypeError, match="not complex64"):
        zero_out(np.ones(2, np.complex64))


def test_docstring_of_zero_out() -> None:
    zero_out = polymorphic("float", "int32")
    assert str(zero_out.signature) == "(to_zero, name=None)"
    assert zero_out.__doc__ == (
        "The op ZeroOut.\n\n"
        "Args:\n"
        "    to_zero: An array. Must be one of the following types: `float32`, `int32`.\n"
        "    name: A name for the operation (optional).\n\n"
        "Returns:\n"
        "    An array. Has the same type as `to_zero`.\n"
    )


def test_graph_of_an_old_definition_runs_with_the_new_one() -> None:
    zero_out = zero_out_of_int32()
    x = np.array([5, 4], np.int32)
    text = tj.jit(zero_out).lower(x).as_text("hlo")
    new = register_op("ZeroOut", replace=True).attr("T: {float, int32} = DT_INT32")
    new.input("to_zero: T").output("zeroed: T").set_shape_fn(unchanged_shape)
    kernel(new)(first_kept)
    assert tj.compile(tj.hlo.parse(text))(x).tolist() == [5, 0]


def test_pad_keeps_its_paddings_on_the_host() -> None:
    pad = register_op("Pad").attr("T: type").input("input: T").input("paddings: int32")
    pad.output("output: T")
    kernel("Pad", device="GPU", T=np.float32, host_memory=["paddings"])(np.pad)
    assert pad.kernels[0].host_memory == ("paddings",)
    with pytest.raises(AttributeValueError, match="host_memory names 'padding', no input"):
        kernel("Pad", device="GPU", T=np.int32, host_memory=["padding"])(np.pad)


def differentiable_zero_out() -> Op:
    op = polymorphic("double", "int32")
    kernel(op)(first_kept)

    @gradient("ZeroOut")
    def zero_out_gradient(op: Operation, grad: Any) -> list[Any]:
        """The first element of the output's gradient, where the first one of the input is."""
        to_zero = op.inputs[0]
        flat = np.zeros(to_zero.size, grad.dtype)
        flat[0] = grad.reshape(-1)[0]
        return [flat.reshape(to_zero.shape)]

    return op


def test_gradient_of_zero_out() -> None:
    zero_out = differentiable_zero_out()
    x = np.array([[2.0, 3], [4, 5]])

    def loss(x: Any) -> Any:
        return (zero_out(x * x) ** 2).sum()

    for way in (tj.grad(loss), tj.jit(tj.grad(loss))):
        np.testing.assert_allclose(way(x), np.array([[32, 0], [0, 0]]))
    second = tj.grad(lambda x: tj.grad(loss)(x).sum())
    for way in (second, tj.jit(second)):
        np.testing.assert_allclose(way(x), np.array([[48, 0], [0, 0]]))


def test_gradient_of_a_batch() -> None:
    zero_out = differentiable_zero_out()
    rows = np.array([[2.0, 3], [4, 5]])
    gradients = tj.vmap(tj.grad(lambda x: (zero_out(x) ** 2).sum()))
    for way in (gradients, tj.jit(gradients)):
        np.testing.assert_allclose(way(rows), [[4, 0], [8, 0]])
    whole = tj.grad(lambda x: (tj.vmap(zero_out)(x) ** 2).sum())
    np.testing.assert_allclose(whole(rows), [[4, 0], [8, 0]])


def test_gradient_of_several_outputs_and_an_index() -> None:
    op = register_op("TakeAndSum").input("x: double").input("i: int32")
    op.output("taken: double").output("total: double").set_shape_fn(scalar_shape)
    kernel(op)(lambda x, i: (x[i], x.sum()))

    @gradient(op)
    def of_both(op: Operation, grads: list[Any]) -> list[Any]:
        x, i = op.inputs
        x_grad = np.zeros(x.shape) + grads[1]
        x_grad[i] += grads[0]
        return [x_grad, None]

    def loss(x: Any) -> Any:
        made = op(x, 1)
        return 3 * made.taken + made.total

    for way in (tj.grad(loss), tj.jit(tj.grad(loss))):
        assert way(np.arange(3.0)).tolist() == [1, 4, 1]


def test_without_a_gradient() -> None:
    zero_out = polymorphic("double")
    kernel(zero_out)(first_kept)

    def loss(x: Any) -> Any:
        return (zero_out(x) * x).sum()

    x = np.array([2.0, 3])
    with pytest.raises(DerivativeError, match="'ZeroOut' was registered without a gradient"):
        tj.grad(loss)(x)
    not_differentiable("ZeroOut")
    assert tj.grad(loss)(x).tolist() == [2, 0]


def shapes_of(op: Op, *arrays: np.ndarray) -> list[str]:
    root = tj.jit(op).lower(*arrays).module.entry.root
    return [str(shape) for shape in root.element_shapes]


def test_shape_functions() -> None:
    unchanged = register_op("A").input("to_zero: int32").output("zeroed: int32")
    unchanged.set_shape_fn(unchanged_shape)
    assert shapes_of(unchanged, np.zeros((2, 3), np.int32)) == ["s32[2,3]"]

    def of_vector(c: InferenceContext) -> None:
        c.set_output(0, c.with_rank(c.input(0), 1))

    vector = register_op("B").input("to_zero: int32").output("zeroed: int32")
    vector.set_shape_fn(of_vector)
    assert shapes_of(vector, np.zeros(3, np.int32)) == ["s32[3]"]
    with pytest.raises(ShapeError, match=r"B: shape \[2, 3\] must have rank 1, it has 2"):
        shapes_of(vector, np.zeros((2, 3), np.int32))

    def matrix_of_three(c: InferenceContext) -> None:
        c.set_output(0, c.matrix(c.dim(c.input(0), 0), 3))

    three = register_op("C").input("x: float").output("y: float").set_shape_fn(matrix_of_three)
    assert shapes_of(three, np.zeros((5, 2, 2), np.float32)) == ["f32[5,3]"]


def test_shape_function_merges_inputs() -> None:
    def merged(c: InferenceContext) -> None:
        output = c.unknown_shape()
        for number in range(c.num_inputs):
            output = c.merge(output, c.with_rank(c.input(number), 2))
        c.set_output(0, output)

    op = register_op("Merged").attr("N: int").input("x: N * float").output("y: float")
    op.set_shape_fn(merged)
    a, b = np.zeros((2, 3), np.float32), np.zeros((2, 4), np.float32)
    lowered = tj.jit(lambda *xs: op(list(xs))).lower(a, a)
    assert str(lowered.module.entry.root.shape) == "f32[2,3]"
    with pytest.raises(ShapeError, match=r"Merged: shapes \[2, 3\] and \[2, 4\] must be equal"):
        tj.jit(lambda *xs: op(list(xs))).lower(a, b)


def test_without_a_shape_function() -> None:
    op = register_op("Grows").input("x: float").output("y: float")
    kernel(op)(lambda x: np.concatenate([x, x]))
    assert op([1.0, 2]).tolist() == [1, 2, 1, 2]
    with pytest.raises(ShapeError, match=r"Grows: the shape of output 'y' is not known .*shape"):
        tj.jit(op)(np.ones(2, np.float32))


def median_pooling() -> Op:
    def pooled(c: InferenceContext) -> None:
        size = c.get_attr("ksize")
        image = c.with_rank(c.input("value"), 2)
        sizes = [c.add(c.subtract(c.dim(image, axis), size), 1) for axis in (0, 1)]
        c.set_output("output", c.matrix(*sizes))

    return (
        register_op("MedianPool")
        .attr("T: {float, double}")
        .attr("ksize: int >= 1 = 3")
        .input("value: T")
        .output("output: T")
        .set_shape_fn(pooled)
        .doc("The median of each window, as MaxPool has the maximum.\n\nksize: The window's sides.")
    )


def windows(value: np.ndarray, ksize: int) -> np.ndarray:
    return np.lib.stride_tricks.sliding_window_view(value, (ksize, ksize))


def test_median_pooling() -> None:
    op = median_pooling()

    @kernel("MedianPool", device="CPU")
    def compute(value: np.ndarray, ksize: int) -> np.ndarray:
        output = np.empty(windows(value, ksize).shape[:2], value.dtype)

        def rows(start: int, stop: int) -> None:
            output[start:stop] = np.median(windows(value, ksize)[start:stop], axis=(2, 3))

        shard(rows, len(output))
        return output

    value = np.random.default_rng(0).standard_normal((7, 9))
    expect(op, [value], np.median(windows(value, 3), axis=(2, 3)))
    expect(lambda x: op(x, 5), [value], np.median(windows(value, 5), axis=(2, 3)))
    with pytest.raises(ShapeError, match="MedianPool: size 2 is less than 3"):
        tj.jit(op)(value[:2])


def test_median_pooling_of_existing_ops() -> None:
    """Patches and a sort, as the page suggests first; they fuse, and have derivatives."""
    op = median_pooling()

    @kernel("MedianPool", device="CPU", form="tracejit")
    def compute(value: Any, ksize: int) -> Any:
        rows, columns = (size - ksize + 1 for size in value.shape)
        patches = [value[i : i + rows, j : j + columns] for i in range(ksize) for j in range(ksize)]
        return np.median(np.stack(patches), axis=0)

    value = np.random.default_rng(0).standard_normal((5, 6))
    expect(op, [value], np.median(windows(value, 3), axis=(2, 3)))
    slopes = tj.jit(tj.grad(lambda x: op(x).sum()))(value)
    assert slopes.sum() == 12
    assert set(slopes.ravel()) <= set(range(10))
    batch = np.stack([value, -value])
    np.testing.assert_array_equal(tj.jit(tj.vmap(op))(batch)[1], -op(value))
