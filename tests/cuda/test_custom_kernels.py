"""Kernels that users write for GPUs: CUDA C, TIR, functions of device arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.cuda.emulation import Emulator
from tracejit.cuda import CudaKernel, DeviceArray, device_of
from tracejit.custom_ops import kernel, register_op, unchanged_shape
from tracejit.errors import ArgumentError, AttributeValueError, ShapeError
from tracejit.runtime import importing_tvm
from tracejit.shapes import Shape

with importing_tvm():
    from tracejit.backends.tvm.ir.tir import PARALLEL, loop, store, tirx

pytestmark = pytest.mark.usefixtures("own_targets")
X = np.array([5, 4, 3, 2], np.float32)

ZERO_OUT = """
#include <cstdint>
__device__ float kept(float x, uint32_t i) { return i ? 0 : x; }

__global__ void zero_out(const float* x, float* y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < SIZE) y[i] = kept(x[i], i);
}
"""
REVERSED = """
__device__ float kept(float x) { return x; }
__global__ void __launch_bounds__(64) turn(const float* x, const float* s, float* y, float* total) {
  DYNAMIC_SHARED(room);
  float* own = (float*)room;
  int i = threadIdx.x;
  if (i < SIZE) own[i] = kept(x[i]) * s[0];
  __syncthreads();
  if (i < SIZE) y[i] = own[SIZE - 1 - i];
  if (i == 0) { float sum = 0; for (int k = 0; k < SIZE; k++) sum += own[k]; *total = sum; }
}
"""


def zero_out(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> CudaKernel:
    size = inputs[0].size
    return CudaKernel(ZERO_OUT.replace("SIZE", str(size)), "zero_out", -(-size // 2), 2)


def turned(operands: Sequence[Shape], results: Sequence[Shape]) -> CudaKernel:
    size = operands[0].size
    return CudaKernel(REVERSED.replace("SIZE", str(size)), "turn", 1, 64, 4 * size)


def twice(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> Any:
    x, y = (tirx.decl_buffer([4], "float32", name) for name in "xy")
    body = loop(4, lambda i: store(y, i, x[i] * tirx.FloatImm("float32", 2)), PARALLEL)
    return tirx.PrimFunc([x, y], body)


def test_kernels_for_the_device(emulated: Emulator) -> None:
    """CUDA C, TIR and functions of device arrays in one program, beside kernels of ours."""
    op = register_op("ZeroOut").input("x: float").output("y: float")
    op.set_shape_fn(unchanged_shape)
    kernel(op, device="GPU", form="cuda")(zero_out)
    kernel(op)(lambda x: np.concatenate([x[:1], 0 * x[1:]]))
    tj.register_custom_call("tests.turned", lambda x, s: (s * x[::-1], x.sum()), gpu_kernel=turned)
    in_tir = register_op("Twice").input("x: float").output("y: float")
    in_tir.set_shape_fn(unchanged_shape)
    kernel(in_tir, device="GPU", form="tir")(twice)
    pad = register_op("Pad").input("x: float").input("paddings: int32").output("y: float")
    pad.set_shape_fn(lambda c: c.set_output(0, c.make_shape([7])))
    seen = []

    @kernel(pad, device="GPU", form="device", host_memory=["paddings"])
    def padded(x: DeviceArray, paddings: np.ndarray) -> Any:
        seen.append((type(x), type(paddings)))
        return tj.device_put(np.pad(np.asarray(x), tuple(paddings)), "cuda")

    only_cpu = register_op("Negated").input("x: float").output("y: float")
    only_cpu.set_shape_fn(unchanged_shape)
    kernel(only_cpu)(lambda x: -x)

    def f(x: Any) -> Any:
        y, total = tj.lax.custom_call("tests.turned", (X, X[0]), x + 1, np.float32(2))
        return op(x * 2), y, total, in_tir(x), pad(x, np.array([1, 2], np.int32)), only_cpu(x)

    made = [np.asarray(each).tolist() for each in tj.jit(f, target="cuda")(X)]
    assert made == [
        [10, 0, 0, 0],
        [6, 8, 10, 12],
        36,
        [10, 8, 6, 4],
        [0, 5, 4, 3, 2, 0, 0],
        [-5, -4, -3, -2],
    ]
    assert seen == [(DeviceArray, np.ndarray)]
    assert device_of().number == 0


def test_a_kernel_on_the_device_of_the_wrong_shape(emulated: Emulator) -> None:
    op = register_op("Wrong").input("x: float").output("y: float").set_shape_fn(unchanged_shape)
    kernel(op, device="GPU", form="device")(lambda x: np.zeros(3, np.float32))
    with pytest.raises(ShapeError, match=r"must return f32\[4\], not float32\[3\] \(.*py:\d+\)"):
        tj.jit(op, target="cuda")(X)


def test_refusals() -> None:
    op = register_op("Refused").input("x: float").output("y: float").set_shape_fn(unchanged_shape)
    with pytest.raises(AttributeValueError, match="form 'cuda' is for device='GPU', not 'CPU'"):
        kernel(op, form="cuda")(zero_out)
    with pytest.raises(AttributeValueError, match="which does not read the host's memory"):
        kernel(op, device="GPU", form="cuda", host_memory=["x"])(zero_out)
    with pytest.raises(AttributeValueError, match=r"has no kernel 'f'; it has zero_out"):
        CudaKernel(ZERO_OUT, "f", 1, 1)
    with pytest.raises(AttributeValueError, match="threads must be from 1 to 1024, not 2048"):
        CudaKernel(ZERO_OUT, "zero_out", 1, 2048)
    kernel(op, device="GPU", form="cuda")(lambda inputs, outputs: ZERO_OUT)
    with pytest.raises(ArgumentError, match="must return a CudaKernel, not str"):
        tj.jit(op, target="cuda:sm_90a").lower(X).compile()
