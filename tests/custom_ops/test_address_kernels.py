"""Kernels that are C functions at an address: of ctypes, of a library, of other compilers."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.custom_ops import Op, gradient, kernel, opcheck, register_op, unchanged_shape
from tracejit.errors import ArgumentError, AttributeValueError, UnsupportedError

pytestmark = [
    pytest.mark.usefixtures("own_targets"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler"),
]
X = np.array([[0.5, -1.5, 2.0], [1.0, 3.0, -4.0]])
SOURCE = """
void scale_6(void **outputs, void **inputs) {
  const double *x = inputs[0], *y = inputs[1];
  double *sum = outputs[0], *product = outputs[1];
  for (int i = 0; i < 6; i++) sum[i] = x[i] + y[i], product[i] = x[i] * y[i];
}
void scale_2(void **outputs, void **inputs) {
  const double *x = inputs[0], *y = inputs[1];
  double *sum = outputs[0], *product = outputs[1];
  for (int i = 0; i < 2; i++) sum[i] = 10 * (x[i] + y[i]), product[i] = x[i] * y[i];
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("address_kernels")
    (folder / "scale.c").write_text(SOURCE)
    command = ["cc", "-O1", "-shared", "-fPIC", str(folder / "scale.c"), "-o", str(folder / "s.so")]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "s.so"))


def both(library: ctypes.CDLL, name: str = "Both") -> Op:
    op = register_op(name).attr("times: int = 1").input("x: double").input("y: double")
    op.output("sum: double").output("product: double")

    def shapes(c: Any) -> None:
        for number in range(2):
            c.set_output(number, c.input(0))

    op.set_shape_fn(shapes)

    @kernel(op, form="native")
    def functions(inputs: Any, outputs: Any, times: int) -> Any:
        assert [x.dimensions for x in inputs] == [y.dimensions for y in outputs]
        assert times == 1
        return getattr(library, f"scale_{np.prod(inputs[0].dimensions)}")

    return op


def test_a_function_is_chosen_by_shapes(library: ctypes.CDLL) -> None:
    op = both(library)
    for x, factor in ((X, 1), (X[0, :2], 10)):
        for call in (op, tj.jit(lambda a, b: op(a * 1, b))):
            total, product = call(x, x + 1)
            np.testing.assert_array_equal(total, factor * (2 * x + 1))
            np.testing.assert_array_equal(product, x * (x + 1))


def test_all_that_opcheck_tests(library: ctypes.CDLL) -> None:
    op = both(library)

    def derivative(call: Any, grads: Any) -> Any:
        of_sum, of_product = grads
        x, y = call.inputs
        return [of_sum + of_product * y, of_sum + of_product * x]

    gradient(op)(derivative)
    kernel(op)(lambda x, y: (x + y, x * y))
    found = opcheck(op, X, X + 1)
    assert {*found.values()} == {"passed"}


def test_what_cannot_be(library: ctypes.CDLL, tmp_path: Path) -> None:
    compiled = tj.jit(both(library)).lower(X, X).compile()
    with pytest.raises(UnsupportedError, match="at an address of this process, which a linker"):
        compiled.export(tmp_path / "model.so", libraries=[library._name])
    op = register_op("Nothing").input("x: double").output("y: double")
    op.set_shape_fn(unchanged_shape)
    with pytest.raises(AttributeValueError, match="form 'native' is for device='CPU'"):
        kernel(op, form="native", device="GPU")(lambda inputs, outputs: 1)
    with pytest.raises(ArgumentError, match=r"must take 2 arguments \(shapes of inputs, shapes of"):
        kernel(op, form="native")(lambda inputs: 1)
    kernel(op, form="native")(lambda inputs, outputs: None)
    with pytest.raises(ArgumentError, match=r"kernel: Nothing.* None is no function of a library"):
        tj.jit(op)(X)
