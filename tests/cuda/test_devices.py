"""Devices, their arrays, and what is said when something is wrong, on emulated devices."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm_ffi

import tracejit as tj
from tests.cuda.emulation import Emulator, environment
from tests.cuda.raw_kernels import load
from tracejit.cuda import DeviceArray, Stream, device_of, using_stream
from tracejit.cuda.memory import STAGING_BYTES
from tracejit.errors import (
    ArgumentError,
    AttributeValueError,
    DeviceError,
    DeviceMemoryError,
    DeviceNotFoundError,
)

pytestmark = pytest.mark.usefixtures("emulated")


class Foreign:
    """An array of another library, which speaks one protocol."""

    def __init__(self, array: DeviceArray, **changes: object) -> None:
        self.array = array
        self.changes = changes


class ByDLPack(Foreign):
    def __dlpack__(self, **how: Any) -> object:
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class ByInterface(Foreign):
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.array.__cuda_array_interface__, **self.changes}


def test_devices_are_listed() -> None:
    first, second = tj.devices()
    assert (first.name, first.arch, first.multiprocessors) == ("emulated", "sm_90", 132)
    assert repr(second) == "<CUDA device 1: emulated, sm_90>"
    assert device_of("cuda") is first
    assert device_of("cuda:1") is second
    assert pickle.loads(pickle.dumps(second)) is second
    with pytest.raises(DeviceNotFoundError, match="there is no device 2; the driver sees 2"):
        device_of("cuda:2")
    with pytest.raises(AttributeValueError, match="device must be"):
        device_of("cuda:one")


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex128", ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (4, 5)])
def test_arrays_come_back(dtype: Any, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    x = tj.device_put(array, "cuda")
    assert isinstance(x, DeviceArray)
    assert (x.shape, x.dtype, x.size, x.nbytes) == (shape, array.dtype, array.size, array.nbytes)
    back = np.asarray(tj.device_get(x))
    assert back.dtype == array.dtype
    assert back.tobytes() == array.tobytes()
    assert pickle.loads(pickle.dumps(x)).__array__().tobytes() == array.tobytes()


def test_large_and_strided_arrays() -> None:
    large = np.arange(STAGING_BYTES // 4 + 5)
    assert np.array_equal(np.asarray(tj.device_put(large, "cuda")), large)
    turned = np.arange(6.0).reshape(2, 3).T
    assert np.array_equal(np.asarray(tj.device_put(turned, "cuda")), turned)
    swapped = np.arange(3, dtype=">f4")
    assert np.array_equal(np.asarray(tj.device_put(swapped, "cuda")), swapped)


def test_arrays_display_themselves_and_give_numbers() -> None:
    x = tj.device_put(np.arange(3.0), "cuda")
    assert repr(x) == "DeviceArray([0., 1., 2.], dtype=float64, device='cuda:0')"
    assert (x.tolist(), len(x), x[1], list(x)) == ([0, 1, 2], 3, 1, [0, 1, 2])
    number = tj.device_put(2.5, "cuda")
    assert (float(number), int(number), bool(number), number.item()) == (2.5, 2, True, 2.5)
    with pytest.raises(TypeError):
        len(number)
    with pytest.raises(ArgumentError, match=r"float64\[3\] on CUDA device 0 is no operand"):
        np.add(x, 1)
    with pytest.raises(ArgumentError, match="without a copy"):
        np.asarray(x, copy=False)


@pytest.mark.parametrize("library", [ByDLPack, ByInterface])
def test_other_libraries_share_memory(library: type[Foreign]) -> None:
    x = tj.device_put(np.arange(6, dtype=np.float32).reshape(2, 3), "cuda")
    given = library(x)
    y = tj.device_put(given, "cuda")
    assert (y.address, y.shape, y.dtype) == (x.address, x.shape, x.dtype)
    del x, given
    assert y.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ArgumentError, match="lies on CUDA device 0, not on 1"):
        tj.device_put(library(y), "cuda:1")


def test_dlpack_is_what_other_readers_expect() -> None:
    x = tj.device_put(np.arange(6, dtype=np.float32).reshape(2, 3), "cuda:1")
    tensor = tvm_ffi.from_dlpack(x)
    assert (tuple(tensor.shape), str(tensor.dtype), str(tensor.device)) == (
        (2, 3),
        "float32",
        "cuda:1",
    )
    half = tj.device_put(np.ones(2, ml_dtypes.bfloat16), "cuda")
    assert str(tvm_ffi.from_dlpack(half).dtype) == "bfloat16"
    with pytest.raises(BufferError, match="float8_e5m2"):
        tj.device_put(np.ones(2, ml_dtypes.float8_e5m2), "cuda").__dlpack__()


def test_arrays_that_cannot_be_shared() -> None:
    x = tj.device_put(np.arange(6, dtype=np.float32).reshape(2, 3), "cuda")
    with pytest.raises(ArgumentError, match="not row-major"):
        tj.device_put(ByInterface(x, shape=(3, 2), strides=(4, 12)), "cuda")
    with pytest.raises(ArgumentError, match="masked"):
        tj.device_put(ByInterface(x, mask=x), "cuda")
    with pytest.raises(ArgumentError, match="no array of numbers"):
        tj.device_put("text", "cuda")
    with pytest.raises(ArgumentError, match="device must be"):
        tj.device_put(x, 3)  # type: ignore[arg-type]


def test_memory_is_freed_and_runs_out() -> None:
    device = device_of()
    tj.device_put(1.0, device)  # makes the context and the memory for copies
    before = device.free_memory
    x = tj.device_put(np.zeros(1000), "cuda")
    capsule = x.__dlpack__()
    assert device.free_memory == before - 8000
    del x
    assert device.free_memory == before - 8000
    del capsule
    assert device.free_memory == before
    with pytest.raises(
        DeviceMemoryError,
        match=r"an array uint8\[1100000000\] needs 1100000000 bytes, and device 0 has \d+ free",
    ):
        tj.device_put(np.empty(1_100_000_000, np.uint8), "cuda")


def test_an_array_outlives_its_context() -> None:
    x = tj.device_put(np.arange(3.0), "cuda")
    y = tj.device_put(np.arange(3.0), "cuda:1")
    device_of().reset()
    assert x.is_deleted
    assert repr(x) == "<deleted the array float64[3] on CUDA device 0>"
    with pytest.raises(DeviceError, match="is gone: device 0 was reset after it was made"):
        np.asarray(x)
    assert y.tolist() == [0, 1, 2]
    assert tj.device_put(np.arange(3.0), "cuda").tolist() == [0, 1, 2]


def test_a_failed_kernel_is_named_and_the_device_recovers(emulated: Emulator) -> None:
    text = 'extern "C" __global__ void KERNEL(int* x) { x[threadIdx.x + 100] = 1; }'
    x = tj.device_put(np.zeros(4, np.int32), "cuda")
    load({"astray": text}, device_of())["astray"](1, 4, x)
    Stream.current(device_of()).last = "the kernel astray (model.py:3)"
    with pytest.raises(DeviceError, match=r"after the kernel astray \(model.py:3\): .*LAUNCH_FAIL"):
        np.asarray(x)
    assert "astray: out of bounds" in emulated.reports()[0]
    device_of().reset()
    assert tj.device_put(np.arange(2), "cuda").tolist() == [0, 1]


def test_streams_of_the_caller() -> None:
    device = device_of()
    own = Stream.current(device)
    assert own is Stream.current(device)
    with device.context() as call:
        other = call.handle("cuStreamCreate", 1)
    with using_stream(other):
        assert Stream.current(device).handle == other
        tj.block_until_ready(tj.device_put(np.arange(3), "cuda"))
    with using_stream(own):
        assert Stream.current(device).handle == own.handle
    with pytest.raises(ArgumentError, match="stream must be an integer"), using_stream("main"):
        pass


def test_threads_share_a_device() -> None:
    results: dict[int, Any] = {}

    def work(number: int) -> None:
        for _ in range(20):
            array = np.full(1000, number)
            results[number] = np.array_equal(np.asarray(tj.device_put(array, "cuda")), array)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(4), True)


def said(program: str, **changes: str) -> str:
    """The last line that a process prints, which works on emulated devices."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment(), **changes},
        capture_output=True,
        text=True,
        check=False,
    )
    return (done.stdout + done.stderr).strip().splitlines()[-1]


def test_machines_without_devices() -> None:
    """One process for each of the machines: what it says when a device is asked for."""
    ask = "import tracejit as tj; print(tj.devices()); tj.device_put(1, 'cuda')"
    assert "the driver sees no device" in said(ask, EMULATED_DEVICES="0")
    assert "supports CUDA 11.4; at least 12.0 is needed" in said(ask, EMULATED_VERSION="11040")
    assert "the driver's library cannot be loaded" in said(ask, TRACEJIT_LIBCUDA="none.so")


def test_a_forked_process_is_refused() -> None:
    program = """
import os, numpy, tracejit as tj
x = tj.device_put(numpy.arange(3), "cuda")
if os.fork() == 0:
    try:
        numpy.asarray(x)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
    os._exit(0)
os.wait()
"""
    assert "DeviceError cuda: device 0 was used before this process was forked" in said(program)
