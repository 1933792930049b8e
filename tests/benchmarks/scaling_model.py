"""A data-parallel training step: measured on one rank and two, and predicted for many.

    python -m tests.benchmarks.scaling_model [--batch 256] [--width 512]

The model has three numbers. ``compute`` is what `explain` says that the kernels of one rank take
while all compute; ``latency`` and ``bandwidth`` are fitted to AllReduces of two ranks. A step is
predicted as

    compute + for each bucket of gradients: latency + bytes / bandwidth

and on p ranks of a network, whose ranks reduce in a ring of halves (Rabenseifner), a bucket takes
2 log2(p) latencies and 2 (p - 1) / p times its bytes. Read out for many ranks it is a prediction.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import tracejit as tj
from tests.benchmarks import collectives
from tracejit import P, lax

LAYERS = 4
BUCKET = lax.parallel.BUCKET_BYTES
STEPS = 15


@dataclass(frozen=True)
class Network:
    """``latency`` of a message in seconds, ``bandwidth`` of a rank in bytes a second."""

    name: str
    latency: float
    bandwidth: float


NETWORKS = (
    Network("Ethernet, 10 Gbit/s", 30e-6, 1.25e9),
    Network("Ethernet, 100 Gbit/s (RoCE)", 5e-6, 12.5e9),
    Network("InfiniBand NDR, 400 Gbit/s", 1.5e-6, 50e9),
)
"""By their rated bandwidths, with latencies of MPI messages as vendors state them."""


def example(batch: int, width: int) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((width, width)).astype(np.float32) for _ in range(LAYERS)]
    scale = np.float32(width**-0.5)
    return [w * scale for w in weights], rng.standard_normal((batch, width)).astype(np.float32)


def step(weights: list[Any], x: Any, axis: str | None = None) -> Any:
    """One step of gradient descent of a perceptron that is to make zeros."""

    def loss(weights: list[Any]) -> Any:
        hidden = x
        for weight in weights:
            hidden = np.tanh(hidden @ weight)
        return (hidden**2).mean()

    value, gradients = tj.value_and_grad(loss)(weights)
    if axis is not None:
        value, gradients = lax.pmean((value, gradients), axis)
    return [w - np.float32(0.1) * g for w, g in zip(weights, gradients, strict=True)], value


def median(task: Callable[[], object], count: int = STEPS) -> float:
    task()
    times = []
    for _ in range(count):
        start = perf_counter()
        task()
        times.append(perf_counter() - start)
    return statistics.median(times)


def alone(batch: int, width: int) -> dict[str, float]:
    """Measured and explained, on one rank."""
    arguments = example(batch, width)
    compiled = tj.jit(step).lower(*arguments).compile()
    reports = [compiled.explain(*arguments, measure=True) for _ in range(5)]
    explained = statistics.median(sum(k.seconds or 0.0 for k in r.kernels) for r in reports)
    return {"measured": median(partial(compiled, *arguments)), "explained": explained}


def on_ranks(batch: int, width: int, output: Path) -> None:
    """On one of two ranks: the step, and AllReduces to which latency and bandwidth are fitted."""
    tj.distributed.initialize()
    count = tj.distributed.process_count()
    mesh = tj.make_mesh((count,), ("batch",))
    weights, x = example(batch, width)

    @tj.jit
    def whole(weights: Any, x: Any) -> Any:
        mapped = tj.shard_map(
            partial(step, axis="batch"), mesh=mesh, in_specs=(P(), P()), out_specs=(P(), P())
        )
        return mapped(weights, x)

    part = x[: batch // count]
    found: dict[str, Any] = {"measured": median(partial(whole, weights, part)), "reduced": []}
    tj.distributed.barrier()  # ranks that compute at once share caches and memory
    found["explained"] = alone(batch // count, width)["explained"]
    for nbytes in (1 << 10, 1 << 16, 1 << 18, 1 << 20, 1 << 22):
        program = collectives.program(nbytes // 4, collectives.CHAIN, count)
        given = np.zeros(nbytes // 4, np.float32)
        found["reduced"].append((nbytes, median(partial(program, given)) / collectives.CHAIN))
    with tj.distributed.timeline() as drawn:
        whole(weights, part)
    if tj.distributed.process_index() == 0:
        found["timeline"] = str(drawn)
        output.write_text(json.dumps(found))


def fitted(pairs: list[tuple[int, float]]) -> tuple[float, float]:
    """Latency and bandwidth, by least squares of relative errors."""
    sizes, times = (np.array(column, float) for column in zip(*pairs, strict=True))
    rows = np.stack([1 / times, sizes / times], 1)
    (latency, inverse), *_ = np.linalg.lstsq(rows, np.ones(len(times)), rcond=None)
    return max(float(latency), 0.0), 1 / float(inverse)


def buckets(width: int) -> list[int]:
    """The bytes of each AllReduce of the gradients."""
    each = 4 * width * width
    together = max(1, BUCKET // each)
    return [each * len(range(n, min(n + together, LAYERS))) for n in range(0, LAYERS, together)]


def predicted(compute: float, width: int, ranks: int, network: Network) -> float:
    """The seconds of a step on many ranks, each with its own part of the batch."""
    rounds, share = 2 * math.log2(ranks), 2 * (ranks - 1) / ranks
    return compute + sum(
        rounds * network.latency + share * nbytes / network.bandwidth for nbytes in buckets(width)
    )


def run(*arguments: str, ranks: int = 1, threads: int = 1) -> None:
    mpiexec = [str(Path(sysconfig.get_path("scripts")) / "mpiexec"), "-n", str(ranks)]
    command = [sys.executable, "-m", "tests.benchmarks.scaling_model", *arguments]
    environment = {**os.environ, "TVM_NUM_THREADS": str(threads)}
    subprocess.run(mpiexec * (ranks > 1) + command, check=True, env=environment)


def main() -> None:
    parser = argparse.ArgumentParser("python -m tests.benchmarks.scaling_model")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--output", type=Path, default=Path("out"))
    parser.add_argument("--on", choices=["ranks", "one"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    batch, width = options.batch, options.width
    if options.on == "ranks":
        on_ranks(batch, width, options.output)
        return
    if options.on == "one":
        options.output.write_text(json.dumps(alone(batch, width)))
        return
    options.output.mkdir(parents=True, exist_ok=True)
    file = options.output / "scaling.json"

    def ask(on: str, size: int, ranks: int = 1, threads: int = 1) -> Any:
        given = ["--on", on, "--batch", str(size), "--width", str(width), "--output", str(file)]
        run(*given, ranks=ranks, threads=threads)
        return json.loads(file.read_text())

    one, two_threads = ask("one", batch), ask("one", batch, 1, 2)
    two = ask("ranks", batch, 2)
    latency, bandwidth = fitted(two["reduced"])
    sums = sum(latency + nbytes / bandwidth for nbytes in buckets(width))
    print(f"perceptron of {LAYERS} layers of {width}, batch {batch}, float32")
    print(f"AllReduce of two ranks: {latency * 1e6:.1f} us + bytes / {bandwidth / 1e9:.2f} GB/s")
    print(
        "\n| | measured, ms | predicted, ms | predicted / measured |\n| --- | ---: | ---: | ---: |"
    )
    for name, measured, expected in (
        ("1 rank, 1 thread", one["measured"], one["explained"]),
        ("1 rank, 2 threads", two_threads["measured"], two_threads["explained"]),
        ("2 ranks, 1 thread each", two["measured"], two["explained"] + sums),
    ):
        cells = f"{measured * 1e3:.2f} | {expected * 1e3:.2f} | {expected / measured:.2f}"
        print(f"| {name} | {cells} |")
    print(f"\n{two['timeline']}\n")
    print(f"Prediction: ms a step, each rank with a batch of {batch // 2} on one core like these\n")
    print("| network | 8 ranks | 64 ranks | 1,024 ranks |\n| --- | ---: | ---: | ---: |")
    for network in NETWORKS:
        times = [predicted(two["explained"], width, n, network) * 1e3 for n in (8, 64, 1024)]
        print(f"| {network.name} | {' | '.join(f'{t:.2f}' for t in times)} |")


if __name__ == "__main__":
    main()
