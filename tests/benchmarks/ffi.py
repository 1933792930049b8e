"""Handlers of XLA's FFI called by JAX and by `tj.ffi`, side by side.

python -m tests.benchmarks.ffi          prints the table of docs/native_functions.md

Both call the same library, tests/ffi/handlers.cc, which a C++ compiler makes first. The cost of one
call is taken from programs of 1 and of 101 calls, each on the result of the one before. Times are
medians, taken in turns.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

import tracejit as tj
from tests.benchmarks.from_jax import median_times
from tests.ffi.test_handlers import COMPILER, SOURCE

CALLS = 100

Call = Callable[[Any], Any]
X = np.arange(1, 9, dtype=np.float32).reshape(2, 4)


def normalised(ffi: Any, described: Any) -> Call:
    """A handler with an attribute, a buffer and a result."""
    call = ffi.ffi_call("RmsNorm", described(X.shape, X.dtype))
    return lambda x: call(x, eps=np.float32(1e-5))


def summed(ffi: Any, described: Any) -> Call:
    """A handler that has a task run in the pool of threads, and returns a future."""
    call = ffi.ffi_call("SumInPool", described((), np.float64))
    return lambda x: x + call(x)


CASES: dict[str, tuple[Callable[[Any, Any], Call], Any]] = {
    "RmsNorm": (normalised, X),
    "SumInPool": (summed, np.ones(5)),
}


def repeated(call: Call, times: int) -> Call:
    def program(x: Any) -> Any:
        for _ in range(times):
            x = call(x)
        return x

    return program


def library(folder: Path) -> ctypes.CDLL:
    path = folder / "handlers.so"
    command = [str(COMPILER), *tj.ffi.cflags(), "-w", str(SOURCE), "-o", str(path)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(path))


def measured(name: str) -> tuple[list[float], list[float]]:
    """Seconds of programs of one and of 101 calls: ours, then JAX's."""
    make, x = CASES[name]
    on_device = jax.device_put(x)
    ours, theirs = make(tj.ffi, tj.ShapeDtypeStruct), make(jax.ffi, jax.ShapeDtypeStruct)
    run: list[Callable[[], Any]] = []
    for times in (1, 1 + CALLS):
        f, g = tj.jit(repeated(ours, times)), jax.jit(repeated(theirs, times))
        np.testing.assert_allclose(f(x), np.asarray(g(on_device)), rtol=1e-6)
        run.append(lambda f=f: f(x))  # type: ignore[misc]
        run.append(lambda g=g: jax.block_until_ready(g(on_device)))  # type: ignore[misc]
    times_of = median_times(*run)
    return times_of[::2], times_of[1::2]


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    with tempfile.TemporaryDirectory() as folder:
        handlers = library(Path(folder))
        for name in CASES:
            capsule = jax.ffi.pycapsule(getattr(handlers, name))
            jax.ffi.register_ffi_target(name, capsule, platform="cpu")
            tj.ffi.register_ffi_target(name, capsule)
        print("| | one program, µs: ours | JAX's | one call in it, µs: ours | JAX's | ratio |")
        print("| --- | ---: | ---: | ---: | ---: | ---: |")
        for name in CASES:
            ours, theirs = measured(name)
            per_call = [(many - one) / CALLS for one, many in (ours, theirs)]
            cells = [1e6 * ours[0], 1e6 * theirs[0], 1e6 * per_call[0], 1e6 * per_call[1]]
            ratio = per_call[0] / per_call[1]
            print(f"| {name} | " + " | ".join(f"{c:.2f}" for c in cells) + f" | {ratio:.2f} |")


if __name__ == "__main__":
    main()
