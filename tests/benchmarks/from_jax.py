"""JAX functions compiled by JAX and by `tj.from_jax`: first calls and calls, side by side.

python -m tests.benchmarks.from_jax             prints the table of docs/interoperability.md

First calls are those of a warm process with an empty disk cache: tracing, compiling and one run.
Calls are medians, taken in turns.
"""

from __future__ import annotations

import logging
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import tracejit as tj
from tests.interop.test_jax_models import MODELS

ROUNDS, SECONDS = 7, 0.02

M = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
S = M @ M.T + 64 * np.eye(64, dtype=np.float32)
V = M[0]

FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "linalg.solve": (jnp.linalg.solve, (S, V)),
    "linalg.inv": (jnp.linalg.inv, (S,)),
    "linalg.det": (jnp.linalg.det, (S,)),
    "linalg.cholesky": (jnp.linalg.cholesky, (S,)),
    "linalg.qr": (jnp.linalg.qr, (M,)),
    "linalg.eigh": (jnp.linalg.eigh, (S,)),
    "linalg.svd": (jnp.linalg.svd, (M,)),
    "linalg.lstsq": (lambda a, b: jnp.linalg.lstsq(a, b)[0], (M, V)),
    "random.normal": (
        lambda k: jax.random.normal(k, (64, 64)),
        (jax.random.key_data(jax.random.key(0)),),
    ),
    "lax.top_k": (lambda x: jax.lax.top_k(x, 5), (M,)),
    "sort": (lambda x: jnp.sort(x, axis=1), (M,)),
    "scipy.special.erf": (jax.scipy.special.erf, (M,)),
    "fft.rfft": (jnp.fft.rfft, (M,)),
}


def cases() -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    yield from ((name, f, given) for name, (f, given) in FUNCTIONS.items())
    for name, (loss, parameters, inputs) in MODELS.items():
        yield f"{name}, step", jax.value_and_grad(loss), (parameters, *inputs)


def _first(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def median_times(*calls: Callable[[], Any]) -> list[float]:
    counts = [max(1, int(SECONDS / max(_first(call), 1e-7))) for call in calls]
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(ROUNDS):
        for own, call, count in zip(times, calls, counts, strict=True):
            start = time.perf_counter()
            for _ in range(count):
                call()
            own.append((time.perf_counter() - start) / count)
    return [statistics.median(each) for each in times]


def main() -> None:
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRACEJIT_CACHE_DIR"] = folder
        jax.jit(lambda x: x + 1)(V)
        tj.from_jax(lambda x: x + 1)(V)
        print("| | first call, ms: ours | JAX's | ratio | call, µs: ours | JAX's | ratio |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        ratios: list[tuple[float, float]] = []
        for name, function, given in cases():
            ours, theirs = tj.jit(tj.from_jax(function)), jax.jit(function)
            on_device = jax.device_put(given)

            def our_call(f: Any = ours, x: Any = given) -> Any:
                return f(*x)

            def their_call(f: Any = theirs, x: Any = on_device) -> Any:
                return jax.block_until_ready(f(*x))

            firsts = [_first(their_call), _first(our_call)][::-1]
            calls = median_times(our_call, their_call)
            ratios.append((firsts[0] / firsts[1], calls[0] / calls[1]))
            cells = [
                *(f"{1e3 * t:.0f}" for t in firsts), f"{ratios[-1][0]:.2f}",
                *(f"{1e6 * t:.1f}" for t in calls), f"{ratios[-1][1]:.2f}",
            ]  # fmt: skip
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
        means = [statistics.geometric_mean(each) for each in zip(*ratios, strict=True)]
        print(f"| geometric mean | | | {means[0]:.2f} | | | {means[1]:.2f} |")


if __name__ == "__main__":
    main()
