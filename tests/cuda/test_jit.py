"""Functions compiled for CUDA devices, from Python to launches, on the emulated device."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.cuda.emulation import Emulator, environment
from tracejit.cuda import DeviceArray, Stream, device_of, using_stream
from tracejit.errors import (
    ArgumentError,
    AttributeValueError,
    DeviceError,
    DeviceMemoryError,
    NotFiniteError,
    UnsupportedError,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(16, 4))
Y = X.sum(1, keepdims=True)
W = {"a": RNG.normal(size=(4, 8)), "b": np.zeros(8), "c": RNG.normal(size=(8, 1))}


def loss(w: Any, x: Any, y: Any) -> Any:
    hidden = np.tanh(x @ w["a"] + w["b"])
    return np.mean((hidden @ w["c"] - y) ** 2)


def test_gradients_and_training(emulated: Emulator) -> None:
    """A few steps on the device alone; the same numbers as on the CPU."""

    def train(w: Any, x: Any, y: Any) -> Any:
        value, g = tj.value_and_grad(loss)(w, x, y)
        return value, {name: w[name] - 0.1 * g[name] for name in w}

    step, on_cpu = tj.jit(train, target="cuda"), tj.jit(train)
    w, x, y = (tj.device_put(each, "cuda") for each in (W, X, Y))
    expected = W
    for _ in range(3):
        value, w = step(w, x, y)
        theirs, expected = on_cpu(expected, X, Y)
        assert isinstance(value, DeviceArray)
        assert np.allclose(float(value), theirs, rtol=1e-12)
    assert all(np.allclose(np.asarray(w[name]), expected[name], rtol=1e-12) for name in W)
    assert all(array.device is device_of() for array in w.values())


def test_numpy_arguments_and_scalars(emulated: Emulator) -> None:
    f = tj.jit(lambda x, s: (x * s, x.sum()), target="cuda")
    scaled, total = f(np.arange(3.0), 2.0)
    assert scaled.tolist() == [0, 2, 4]
    assert isinstance(total, DeviceArray)
    assert (total.shape, float(total)) == ((), 3)


def test_control_flow_that_the_host_reads(emulated: Emulator) -> None:
    doubled = tj.jit(
        lambda n: tj.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2.0), (0, 1.0)),
        target="cuda",
    )
    assert float(doubled(5)[1]) == 32
    chosen = tj.jit(
        lambda x: tj.lax.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, x), target="cuda"
    )
    assert chosen(np.ones(2)).tolist() == [2, 2]
    assert chosen(-np.ones(2)).tolist() == [-2, -2]


def test_random_bits_are_the_cpus(emulated: Emulator) -> None:
    def draw(key: Any) -> Any:
        return tj.random.bits(key, (50,))

    key = tj.random.key(3)
    ours, theirs = tj.jit(draw, target="cuda")(key), tj.jit(draw)(key)
    assert np.asarray(ours).tobytes() == theirs.tobytes()


def test_donation_and_streams(emulated: Emulator) -> None:
    f = tj.jit(lambda x: x + 1, target="cuda", donate_argnums=0)
    x = tj.device_put(np.arange(40_000.0), "cuda")
    with device_of().context() as call:
        other = call.handle("cuStreamCreate", 1)
    with using_stream(other):
        y = f(x)
        assert y[:3].tolist() == [1, 2, 3]
    assert x.is_deleted
    with pytest.raises(DeviceError, match="was donated to a call and cannot be read"):
        np.asarray(x)
    assert Stream.current(device_of()).handle != other


def test_modules_and_architectures(emulated: Emulator) -> None:
    module = tj.jit(lambda x: x * 2).lower(np.arange(3.0)).module
    compiled = tj.compile(module, target="cuda:sm_90a")
    assert compiled(np.arange(3.0)).tolist() == [0, 2, 4]
    older = tj.compile(module, target="cuda:sm_80")
    with pytest.raises(DeviceError, match="compiled for sm_80, and device 0 is sm_90"):
        older(np.arange(3.0))
    with pytest.raises(AttributeValueError, match="'cuda:sm_90a', not 'cuda:90'"):
        tj.compile(module, target="cuda:90")


def test_arguments_that_do_not_fit(emulated: Emulator) -> None:
    f = tj.jit(lambda x, y: x + y, target="cuda")
    checked = tj.jit(lambda x, y: x + y, target="cuda", check=True)
    x = tj.device_put(np.arange(3.0), "cuda")
    for each in (f, checked):
        with pytest.raises(ArgumentError, match="arguments lie on CUDA devices 0 and 1"):
            each(x, tj.device_put(np.arange(3.0), "cuda:1"))
    both = [tj.device_put(np.arange(3.0), "cuda:1") for _ in range(2)]
    assert f(*both).device is device_of("cuda:1")
    module = tj.jit(lambda x: x * 2).lower(np.arange(3.0)).module
    with pytest.raises(ArgumentError, match=r"must be float64\[3\]; it is float64\[4\]"):
        tj.compile(module, target="cuda")(tj.device_put(np.arange(4.0), "cuda"))


PROGRAM = """
import sys, numpy, tracejit as tj
print(tj.jit(lambda x: numpy.tanh(x) + 1, target="cuda")(numpy.arange(3.0)).tolist())
print("tvm" in sys.modules)
"""


def test_a_cached_program_runs_without_tvm(emulated: Emulator, tmp_path: Any) -> None:
    variables = {**os.environ, **environment(), "TRACEJIT_CACHE_DIR": str(tmp_path / "cache")}

    def printed() -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=variables,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split("\n")

    first, second = printed(), printed()
    assert first[0] == second[0] == str((np.tanh(np.arange(3.0)) + 1).tolist())
    assert second[1] == "False"


def test_explained_by_the_data_sheet(emulated: Emulator) -> None:
    f = tj.jit(lambda x: tj.nn.softmax(x).sum(), target="cuda:sm_90a")
    compiled = f.lower(np.zeros((300, 64), np.float32)).compile()
    report = compiled.explain()
    rows = report.kernels[0]
    assert rows.schedule == "team a row, in phases"
    assert rows.bytes_read == 300 * 64 * 4
    (launch,) = rows.launches
    assert (launch.blocks, launch.threads) == (75, 128)
    assert rows.threads == 75 * 128
    assert 0 < launch.occupancy <= 1
    assert "launches k0_rows: 75 x 128 threads" in str(report)
    assert "sm_90a as H100 SXM: 66900 Gflop/s in f32" in str(report)
    timed = compiled.explain(np.zeros((300, 64), np.float32), measure=True)
    # The emulated device says of every launch that it takes a millisecond.
    assert [kernel.calls for kernel in timed.kernels] == [1] * len(timed.kernels)
    launches = sum(len(kernel.launches) for kernel in timed.kernels)
    assert timed.seconds == pytest.approx(1e-3 * launches)
    assert timed.call_seconds is not None


def test_checks_return_arrays_on_the_device(emulated: Emulator) -> None:
    f = tj.jit(lambda x: np.log(x), target="cuda", check=True)
    assert isinstance(f(tj.device_put(np.ones(3), "cuda")), DeviceArray)
    assert isinstance(f(np.ones(3)), DeviceArray)
    with pytest.raises(NotFiniteError, match="makes NaN"):
        f(tj.device_put(-np.ones(3), "cuda"))


def test_a_kernel_that_fails_names_the_users_line(emulated: Emulator) -> None:
    tj.jit(lambda x: x * 2, target="cuda")(np.arange(3.0))
    assert re.search(r"kernel \w+ \(test_jit.py:\d+\)", Stream.current(device_of()).last)


ASTRAY = "__global__ void astray(const double* x, double* y) { y[threadIdx.x + 1000] = x[0]; }"


def test_a_program_whose_kernel_fails(emulated: Emulator) -> None:
    """The call that waits names the kernel and the line; later calls fail until a reset."""

    def kernel(operands: Any, results: Any) -> Any:
        return tj.cuda.CudaKernel(ASTRAY, "astray", blocks=1, threads=3)

    tj.register_custom_call("tests.astray", lambda x: x, gpu_kernel=kernel)
    f = tj.jit(lambda x: tj.lax.custom_call("tests.astray", x, x), target="cuda")
    x = tj.device_put(np.arange(3.0), "cuda")
    y = f(x)
    with pytest.raises(DeviceError, match=r"kernel \w+ \(test_jit.py:\d+\): .*LAUNCH_FAILED"):
        np.asarray(y)
    with pytest.raises(
        DeviceError, match=r"24 bytes after kernel \w+ \(test_jit.py:\d+\): .*LAUNCH"
    ):
        f(x)
    assert any("out of bounds" in each for each in emulated.reports())
    device_of().reset()
    with pytest.raises(DeviceError, match="was reset"):
        np.asarray(x)
    assert tj.jit(lambda x: x * 2, target="cuda")(np.arange(3.0)).tolist() == [0, 2, 4]


def test_results_that_do_not_fit(emulated: Emulator) -> None:
    """What needed the memory is named, with its size and what was free."""
    f = tj.jit(lambda x: np.broadcast_to(x, (300_000_000,)) + 1, target="cuda")
    with pytest.raises(
        DeviceMemoryError,
        match=r"result 0, float64\[300000000\], needs 2400000000 bytes, and device 0 has \d+ free",
    ):
        f(tj.device_put(np.ones(()), "cuda"))
    assert f.lower(np.ones(())).compile() is not None


def test_threads_share_a_program(emulated: Emulator) -> None:
    f = tj.jit(lambda x: np.tanh(x).sum(), target="cuda")
    made: dict[int, list[float]] = {}

    def work(number: int) -> None:
        x = tj.device_put(np.full(50, number / 10), "cuda")
        made[number] = [float(f(x)) for _ in range(5)]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        np.testing.assert_allclose(made[number], 50 * np.tanh(number / 10), rtol=1e-12)


def added(x: Any, i: Any, v: Any) -> Any:
    return x.at[i].add(v)


def test_reproducible_sums_of_a_scatter(
    emulated: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads in any order give the same bits; atomic operations do not."""
    places = RNG.integers(0, 3, 90)
    values = (RNG.normal(size=90) * 10.0 ** RNG.integers(-6, 6, 90)).astype("float32")

    def in_orders() -> set[bytes]:
        f = tj.jit(added, target="cuda")
        made = set()
        for order in range(6):
            emulated.order = order
            made.add(np.asarray(f(np.zeros(3, "float32"), places, values)).tobytes())
        emulated.order = 0
        return made

    assert len(in_orders()) > 1
    monkeypatch.setenv("TRACEJIT_REPRODUCIBLE", "1")
    (alone,) = in_orders()
    expected = np.zeros(3, "float32")
    np.add.at(expected, places, values)  # in order, too
    assert alone == expected.tobytes()
    whole = tj.jit(added, target="cuda")(np.zeros(3, "int32"), places, np.ones(90, "int32"))
    assert whole.tolist() == np.bincount(places, minlength=3).tolist()


def test_programs_of_several_devices_are_refused(emulated: Emulator) -> None:
    mesh = tj.Mesh(tj.devices("cpu", 2), ("a",))

    def total(x: Any) -> Any:
        return tj.lax.psum(x, "a")

    sharded = tj.shard_map(total, mesh=mesh, in_specs=tj.P("a"), out_specs=tj.P())
    assert tj.jit(sharded)(np.ones(4)).tolist() == [2.0, 2.0]
    with pytest.raises(UnsupportedError, match="target cuda: total runs on 2 devices"):
        tj.jit(sharded, target="cuda")(np.ones(4))
