"""The emulated device runs right kernels silently in every order, and names planted faults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
import pytest

from tests.cuda.emulation import Emulator
from tests.cuda.raw_kernels import load, source_of
from tracejit.cuda import DeviceArray, device_of, to_device
from tracejit.cuda.memory import allocate
from tracejit.cuda.nvrtc import Compiler
from tracejit.errors import DeviceError

TREE = """
extern "C" __global__ void __launch_bounds__(128) KERNEL(const float* x, float* y) {
  DYNAMIC_SHARED(room);
  float* s = (float*)room;
  int t = threadIdx.x;
  float a = 0;
  for (int i = t; i < 1000; i += 128) a += x[i];
  s[t] = a;
  __syncthreads();
  if (t < 64) s[t] += s[t + 64];
  __syncthreads();
  if (t < 32) {
    a = s[t] + s[t + 32];
    for (int d = 16; d > 0; d /= 2) a += __shfl_down_sync(0xffffffffu, a, d);
    if (t == 0) y[0] = a;
  }
}
"""
MATMUL = """
extern "C" __global__ void __launch_bounds__(256) KERNEL(const float* a, const float* b, float* c) {
  DYNAMIC_SHARED(room);
  float* p = (float*)room;
  float* q = p + 256;
  int x = threadIdx.x % 16, y = threadIdx.x / 16;
  int row = blockIdx.x / 2 * 16 + y, column = blockIdx.x % 2 * 16 + x;
  float total = 0;
  for (int k = 0; k < 32; k += 16) {
    p[y * 16 + x] = a[row * 32 + k + x];
    q[y * 16 + x] = b[(k + y) * 32 + column];
    __syncthreads();
    for (int i = 0; i < 16; i++) total += p[y * 16 + i] * q[i * 16 + x];
    __syncthreads();
  }
  c[row * 32 + column] = total;
}
"""
HISTOGRAM = """
extern "C" __global__ void __launch_bounds__(128) KERNEL(const int* x, int* h) {
  int bin = x[blockIdx.x * 128 + threadIdx.x];
  atomicAdd(&h[bin], 1);
}
"""
SCAN = """
extern "C" __global__ void __launch_bounds__(128) KERNEL(
    const int* x, int* y, unsigned* ticket, volatile unsigned long long* state, int n) {
  __shared__ unsigned number;
  __shared__ int sums[4];
  __shared__ int before;
  int t = threadIdx.x, lane = t & 31, warp = t >> 5;
  if (t == 0) number = atomicAdd(ticket, 1u);
  __syncthreads();
  int at = number * 128 + t, v = at < n ? x[at] : 0;
  for (int d = 1; d < 32; d *= 2) {
    int o = __shfl_up_sync(0xffffffffu, v, d);
    if (lane >= d) v += o;
  }
  if (lane == 31) sums[warp] = v;
  __syncthreads();
  for (int w = 0; w < warp; w++) v += sums[w];
  if (t == 127) {
    if (number) state[number] = (1ull << 32) | (unsigned)v;
    int total = 0;
    for (int p = (int)number - 1; p >= 0; p--) {
      unsigned long long s;
      do s = state[p]; while (s >> 32 == 0);
      total += (int)(unsigned)s;
      if (s >> 32 == 2) break;
    }
    state[number] = (2ull << 32) | (unsigned)(v + total);
    before = total;
  }
  __syncthreads();
  if (at < n) y[at] = v + before;
}
"""
LAST = """
extern "C" __global__ void __launch_bounds__(64) KERNEL(
    const int* x, int* y, unsigned* done, int* out) {
  __shared__ unsigned number;
  if (threadIdx.x == 0) {
    y[blockIdx.x] = x[blockIdx.x] * 2;
    __threadfence();
    number = atomicAdd(done, 1u);
  }
  __syncthreads();
  if (number == gridDim.x - 1 && threadIdx.x < gridDim.x) out[threadIdx.x] = y[threadIdx.x] + 1;
}
"""
BARRIER = "  __syncthreads();\n"

rng = np.random.default_rng(0)
X = rng.normal(size=1000).astype(np.float32)
A, B = rng.normal(size=(2, 32, 32)).astype(np.float32)
BINS = rng.integers(0, 64, 1024).astype(np.int32)
N = rng.integers(-9, 9, 1000).astype(np.int32)
NUMBERS = np.arange(8, dtype=np.int32)

Run = Callable[[Callable[..., None]], np.ndarray]


def put(array: np.ndarray) -> DeviceArray:
    return to_device(array, device_of())


def fresh(count: int, dtype: str) -> DeviceArray:
    """An array that holds anything."""
    made = np.dtype(dtype)
    memory = allocate(device_of(), count * made.itemsize, "a result")
    return DeviceArray.over(memory, made, (count,))


def run_tree(kernel: Callable[..., None]) -> np.ndarray:
    y = fresh(1, "float32")
    kernel(1, 128, put(X), y, dynamic=512)
    return np.asarray(y)


def run_matmul(kernel: Callable[..., None]) -> np.ndarray:
    c = fresh(1024, "float32")
    kernel(4, 256, put(A), put(B), c, dynamic=2048)
    return np.asarray(c).reshape(32, 32)


def run_histogram(kernel: Callable[..., None]) -> np.ndarray:
    h = put(np.zeros(64, np.int32))
    kernel(8, 128, put(BINS), h)
    return np.asarray(h)


def run_scan(kernel: Callable[..., None]) -> np.ndarray:
    y = fresh(1000, "int32")
    ticket, state = put(np.zeros(1, np.uint32)), put(np.zeros(8, np.uint64))
    kernel(8, 128, put(N), y, ticket, state, 1000)
    return np.asarray(y)


def run_last(kernel: Callable[..., None]) -> np.ndarray:
    y, out = fresh(8, "int32"), fresh(8, "int32")
    kernel(8, 64, put(NUMBERS), y, put(np.zeros(1, np.uint32)), out)
    return np.asarray(out)


RIGHT: dict[str, tuple[str, Run, np.ndarray]] = {
    "tree": (TREE, run_tree, X.sum(keepdims=True)),
    "matmul": (MATMUL, run_matmul, A @ B),
    "histogram": (HISTOGRAM, run_histogram, np.bincount(BINS, minlength=64)),
    "scan": (SCAN, run_scan, np.cumsum(N)),
    "last": (LAST, run_last, 2 * NUMBERS + 1),
}


def without(text: str, part: str, number: int) -> str:
    """The text without one of the places where ``part`` stands."""
    pieces = text.split(part)
    return part.join(pieces[: number + 1]) + part.join(["", *pieces[number + 1 :]])[len(part) :]


FAULTS: dict[str, tuple[str, str, Sequence[str]]] = {
    "barrier_left_out": ("tree", without(TREE, BARRIER, 0), ["race", "nobody has written"]),
    "barrier_in_a_branch": (
        "tree",
        TREE.replace(BARRIER, "  if (t < 64) __syncthreads();\n", 1),
        ["barrier that not all threads reach"],
    ),
    "mask_of_absent_lanes": (
        "tree",
        TREE.replace("if (t < 32)", "if (t < 16)"),
        ["warp operation that not all lanes of its mask reach"],
    ),
    "one_element_too_many": ("tree", TREE.replace("< 1000", "< 1001"), ["out of bounds"]),
    "beyond_shared_memory": ("tree", TREE.replace("s[t + 64]", "s[t + 65]"), ["out of bounds"]),
    "beyond_dynamic_memory": (
        "matmul",
        MATMUL.replace("q[i * 16 + x]", "q[i * 16 + x + 1]"),
        ["out of bounds"],
    ),
    "barrier_of_a_step": ("matmul", without(MATMUL, "  " + BARRIER, 1), ["race"]),
    "element_of_a_tile": (
        "matmul",
        MATMUL.replace("    q[y", "    if (threadIdx.x != 7) q[y"),
        ["nobody has written"],
    ),
    "addition_not_atomic": (
        "histogram",
        HISTOGRAM.replace("atomicAdd(&h[bin], 1)", "h[bin] += 1"),
        ["race"],
    ),
    "first_barrier_of_a_scan": ("scan", without(SCAN, BARRIER, 0), ["nobody has written"]),
    "last_barrier_of_a_scan": ("scan", without(SCAN, BARRIER, 2), ["race"]),
    "fence_left_out": ("last", LAST.replace("    __threadfence();\n", ""), ["race"]),
}


@pytest.fixture
def kernels(emulated: Emulator) -> dict[str, Callable[..., None]]:
    texts = {name: text for name, (text, _, _) in RIGHT.items()}
    texts |= {name: text for name, (_, text, _) in FAULTS.items()}
    return load(texts, device_of())


def test_right_kernels_and_planted_faults(
    emulated: Emulator, kernels: dict[str, Callable[..., None]]
) -> None:
    for order in range(4):
        emulated.order = order
        for name, (_, run, expected) in RIGHT.items():
            assert np.allclose(run(kernels[name]), expected, rtol=1e-4, atol=1e-4), name
            assert emulated.reports() == []
    unnamed = {}
    for name, (right, text, expected_words) in FAULTS.items():
        assert text != RIGHT[right][0], name
        found: list[str] = []
        for order in range(4):
            emulated.order = order
            with suppress(DeviceError):  # that the launch failed
                RIGHT[right][1](kernels[name])
            device_of().reset()
            found += emulated.reports()
        missing = [words for words in expected_words if not any(words in each for each in found)]
        if missing:
            unnamed[name] = missing, found
    assert not unnamed


def test_source_is_what_nvrtc_takes(nvrtc_of_the_wheel: Compiler) -> None:
    """The text that the emulated device runs is CUDA C for the real compiler, too."""
    texts = {name: text for name, (text, _, _) in RIGHT.items()}
    binary = nvrtc_of_the_wheel.compile(source_of(texts), "sm_90a")
    assert {*binary.kernels} == {*RIGHT}
    assert all(0 < use.registers < 128 for use in binary.kernels.values())
    assert all(use.spilled_bytes == 0 for use in binary.kernels.values())
