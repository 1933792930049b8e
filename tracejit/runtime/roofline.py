"""What this machine can do at most: flops, and bytes a second from each of its memories.

    limits = machine_limits()
    limits.seconds(flops, nbytes, wide=False)      # no kernel is faster

Measured once, in about one second, and kept in the folder of the disk cache.
"""

from __future__ import annotations

import bisect
import functools
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tracejit.backends.machine import thread_count
from tracejit.backends.target import CPU
from tracejit.runtime.cache import DiskCache, cache_key
from tracejit.runtime.code_generator import generate
from tracejit.runtime.executable import Executable

# Bytes read by all threads together: within the first caches, the second, the last, and beyond.
SIZES = (32 << 10, 512 << 10, 8 << 20, 24 << 20, 64 << 20, 128 << 20)
# The last cache holds more than that: what is larger may still lie in it.
SHARED = 8 << 20
# Up to here a core has a cache of its own.
OWN = 1 << 20
# What a transcendental function counts in flops: the least that a polynomial takes.
TRANSCENDENTAL_FLOPS = 16

_TURNS = 100_000
_READ_BYTES = 64 << 20
_SECONDS = 0.05


@dataclass(frozen=True)
class Limits:
    """Flops a second in 32- and 64-bit floats; for sizes in bytes, the bytes a second."""

    flops32: float
    flops64: float
    sizes: tuple[int, ...]
    bandwidths: tuple[float, ...]

    def bandwidth(self, nbytes: int) -> float:
        """Bytes a second of the fastest memory that ``nbytes`` fit into."""
        number = bisect.bisect_left(self.sizes, nbytes)
        if nbytes > SHARED and 0 < number < len(self.sizes) and nbytes < self.sizes[number]:
            number -= 1
        return self.bandwidths[min(number, len(self.bandwidths) - 1)]

    def arithmetic_seconds(self, flops: int, transcendentals: int, wide: bool) -> float:
        peak = self.flops64 if wide else self.flops32
        return (flops + TRANSCENDENTAL_FLOPS * transcendentals) / peak

    def memory_seconds(self, nbytes: int) -> float:
        return nbytes / self.bandwidth(nbytes)


@functools.cache
def machine_limits() -> Limits:
    """This machine's limits, for as many threads as compiled code uses here."""
    cache, key = _place()
    found = _read(cache.recall(key))
    if found is None:
        found = _measured()
        cache.remember(key, asdict(found))
    return found


@functools.cache
def limits_measured_again(known: Limits) -> Limits:
    """Limits no lower than the known ones, which a machine that was busy may not have shown."""
    found = _measured()
    found = Limits(
        max(known.flops32, found.flops32),
        max(known.flops64, found.flops64),
        SIZES,
        tuple(
            max(known.bandwidth(size), new)
            for size, new in zip(SIZES, found.bandwidths, strict=True)
        ),
    )
    cache, key = _place()
    cache.remember(key, asdict(found))
    return found


def _place() -> tuple[DiskCache, str]:
    """Where limits are kept."""
    return DiskCache.default(), f"limits-{cache_key('limits', repr(CPU.resolved()))}"


def _read(noted: Any) -> Limits | None:
    try:
        sizes, bandwidths = tuple(noted["sizes"]), tuple(map(float, noted["bandwidths"]))
        return Limits(float(noted["flops32"]), float(noted["flops64"]), sizes, bandwidths)
    except (ValueError, KeyError, TypeError):  # missing, or not what was remembered
        return None


def _measured() -> Limits:
    cores = thread_count()
    rates = []
    for dtype in ("float32", "float64"):
        program = _program("arithmetic", dtype, _TURNS)
        flops = 2 * _TURNS * program.outputs[0].shape[0]
        rates.append(cores * flops / _fastest(program, [np.array([0.5, 0.25], dtype)]))
    bandwidths: list[float] = []
    for size in SIZES:
        # Caches that each core has for itself are measured on one, so that a second one that is
        # busy does not count; what cores share, on all of them.
        own = cores if size <= OWN else 1
        times = max(_READ_BYTES // size, 1)
        program = _program("reading", size // own, times, cores // own)
        given = np.zeros(program.inputs[0].shape, np.float32)
        seconds = _fastest(program, [given], _SECONDS if own > 1 else 4 * _SECONDS)
        bandwidths.append(own * times * given.nbytes / seconds)
    # A larger memory is never the faster one.
    best = [max(bandwidths[n:]) for n in range(len(bandwidths))]
    return Limits(rates[0], rates[1], SIZES, tuple(best))


def _program(function: str, *arguments: object) -> Executable:
    built = generate(f"cpu.roofline.{function}", *arguments, title="machine_limits")
    return DiskCache(None).add("", built)


def _fastest(program: Executable, arrays: list[np.ndarray], seconds: float = _SECONDS) -> float:
    """Seconds of the fastest of several runs."""
    program(arrays)
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        program(arrays)
        best = min(best, time.perf_counter() - begin)
    return best
