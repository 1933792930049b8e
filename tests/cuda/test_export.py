"""Exported libraries for CUDA devices, called where there is neither TVM nor this package."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.cuda.emulation import Emulator, environment
from tracejit.cuda import device_of
from tracejit.cuda.memory import allocate
from tracejit.errors import UnsupportedError

X = np.random.default_rng(0).normal(size=(20, 30)).astype(np.float32)
TABLE = np.arange(30, dtype=np.float32)


def model(x: Any, n: Any) -> Any:
    """Constants, several kernels, and a loop that the host decides on."""
    shares = tj.nn.softmax(x + TABLE)
    _, total = tj.lax.while_loop(
        lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2.0), (np.int32(0), shares)
    )
    return total, shares.sum(0)


@pytest.fixture
def library(emulated: Emulator, tmp_path: Path) -> Path:
    path = tmp_path / "model.so"
    compiled = tj.jit(model, target="cuda:sm_90a").lower(X, np.int32(3)).compile()
    compiled.export(path, header=tmp_path / "model.h", python=tmp_path / "run_model.py")
    return path


PROGRAM = """
import sys, numpy, run_model
x, n = numpy.load(sys.argv[1]), numpy.int32(3)
total, sums = run_model.model(x, n)
numpy.save(sys.argv[2], total)
assert not {"tvm", "tracejit"} & {*sys.modules}
try:
    run_model.model(x.astype("float64"), n)
except TypeError as error:
    print(error)
"""


def test_a_folder_of_files_runs_with_numpy_and_the_driver_alone(library: Path) -> None:
    folder = library.parent
    np.save(folder / "x.npy", X)
    variables = {**os.environ, **environment(), "PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", PROGRAM, str(folder / "x.npy"), str(folder / "total.npy")]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "x must be float32[20, 30], not float64[20, 30]\n"
    expected, _ = tj.jit(model)(X, np.int32(3))
    np.testing.assert_allclose(np.load(folder / "total.npy"), expected, rtol=1e-5)


def test_device_pointers_on_a_stream(emulated: Emulator, library: Path) -> None:
    functions = ctypes.CDLL(str(library))
    x, n = tj.device_put(X, "cuda"), tj.device_put(np.int32(3), "cuda")
    total, sums = (allocate(device_of(), size, "a result") for size in (X.nbytes, 120))
    pointers = [x.address, n.address, total.address, sums.address]
    with device_of().context() as call:
        stream = call.handle("cuStreamCreate", 1)
        assert functions.model(*map(ctypes.c_void_p, [stream, *pointers])) == 0
        assert functions.model(*map(ctypes.c_void_p, [stream, 0, *pointers[1:]])) == 1
    found = tj.cuda.DeviceArray.over(sums, np.dtype("float32"), (30,))
    np.testing.assert_allclose(np.asarray(found), tj.jit(model)(X, np.int32(3))[1], rtol=1e-5)
    functions.model_message.restype = ctypes.c_char_p
    assert functions.model_message(2) == b"there is no NVIDIA driver, or no device"


def test_without_a_driver(library: Path) -> None:
    variables = {**os.environ, "TRACEJIT_LIBCUDA": "none.so", "PYTHONPATH": str(library.parent)}
    text = "import numpy, run_model; run_model.model(numpy.ones((20, 30), 'f'), numpy.int32(3))"
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert "RuntimeError: there is no NVIDIA driver, or no device" in done.stderr


def test_the_header_is_c(library: Path) -> None:
    header = library.with_suffix(".h")
    text = header.read_text(encoding="utf-8")
    assert "int model(void *stream, const float *x, const int32_t *n" in text
    assert "int model_on_host(const float *x, const int32_t *n" in text
    subprocess.run(["gcc", "-fsyntax-only", "-Wall", "-Werror", str(header)], check=True)


def test_static_libraries_are_refused(emulated: Emulator, tmp_path: Path) -> None:
    compiled = tj.jit(lambda x: x + 1, target="cuda:sm_90a").lower(X).compile()
    with pytest.raises(UnsupportedError, match="a library for CUDA devices is a shared one"):
        compiled.export(tmp_path / "model.a")
