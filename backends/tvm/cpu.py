"""The CPU as the code generator sees it: LLVM's name and features, threads, vector width."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import tvm

from tracejit.backends.machine import host, thread_count
from tracejit.backends.tvm.kernels.machine import Machine


@dataclass(frozen=True)
class CpuTarget:
    """What a build may assume of the processor.

    ``attributes`` are LLVM's, each with its sign (``+avx2``, ``-pku``); ``vector_bytes`` is the
    width of one vector register. ``converts_halves`` says that f16 becomes f32, and back, by an
    instruction, and not by a function. With ``fast_math`` arithmetic may be reordered and
    functions may be less exact. ``l2`` is what a core has of the second cache.
    """

    triple: str
    cpu: str
    attributes: tuple[str, ...]
    threads: int
    vector_bytes: int
    converts_halves: bool = False
    fast_math: bool = False
    l2: int = Machine.l2

    @property
    def machine(self) -> Machine:
        """What kernels are scheduled for."""
        return Machine(self.vector_bytes, self.threads, l2=self.l2)

    @property
    def tvm(self) -> Any:
        """TVM's own description, with itself as the host."""
        return self._described(3)

    @property
    def tvm_quick(self) -> Any:
        """The same for code that need not be the fastest: LLVM leaves out its slowest passes."""
        return self._described(1)

    @property
    def tvm_unoptimised(self) -> Any:
        """The same for code that is built in a fifth of the time, and not made fast."""
        return self._described(0)

    def _described(self, level: int) -> Any:
        return _target(self.triple, self.cpu, self.attributes, self.threads, level, self.fast_math)


def host_target() -> CpuTarget:
    """The processor this process runs on, and as many threads as it may use."""
    triple, cpu, attributes, vector_bytes, converts_halves = _host()
    threads, l2 = thread_count(), host().l2
    return CpuTarget(triple, cpu, attributes, threads, vector_bytes, converts_halves, l2=l2)


@functools.cache
def _host() -> tuple[str, str, tuple[str, ...], int, bool]:
    triple = str(_llvm("GetDefaultTargetTriple"))
    cpu = str(_llvm("GetHostCPUName"))
    attributes = _differences(triple, cpu)
    features = _features(_target(triple, cpu, attributes, 1))
    return triple, cpu, attributes, _vector_bytes(features), not _HALVES.isdisjoint(features)


def _vector_bytes(features: set[str]) -> int:
    """The width of one vector register, by the features of the processor.

    TVM 0.27's ``llvm_get_vector_width`` answers 64 bytes for every x86 processor.
    """
    if "avx512f" in features:
        return 64
    return 32 if "avx" in features else 16


# What x86, ARM and RISC-V call the instructions between f16 and f32.
_HALVES = frozenset({"f16c", "neon", "zfhmin"})


def _features(target: Any) -> set[str]:
    return {str(name) for name in tvm.target.codegen.llvm_get_cpu_features(target)}


def _differences(triple: str, cpu: str) -> tuple[str, ...]:
    """How this processor differs from others of its name.

    A virtual machine may hide features that the name promises, and code that used them would die
    of an illegal instruction.
    """
    promised = _features(_target(triple, cpu, (), 1))
    present = {str(name): bool(has) for name, has in _llvm("GetHostCPUFeatures").items()}
    hidden = {f"-{name}" for name in promised if not present.get(name, True)}
    extra = {f"+{name}" for name, has in present.items() if has and name not in promised}
    return tuple(sorted(hidden | extra))


def _llvm(question: str) -> Any:
    return tvm.get_global_func(f"tvm.codegen.llvm.{question}")()


# What LLVM may do to arithmetic under fast mathematics: everything but to forget NaN and infinity.
_FREEDOMS = ("fast-math-reassoc", "fast-math-contract", "fast-math-nsz", "fast-math-arcp")


@functools.cache
def _target(
    triple: str,
    cpu: str,
    attributes: tuple[str, ...],
    threads: int,
    level: int = 3,
    fast_math: bool = False,
) -> Any:
    description: dict[str, Any] = {
        "kind": "llvm",
        "mtriple": triple,
        "mcpu": cpu,
        "num-cores": threads,
        "opt-level": level,
    }
    if fast_math:
        description |= dict.fromkeys(_FREEDOMS, True)
    if attributes:
        description["mattr"] = list(attributes)
    target = tvm.target.Target(description)
    return target.with_host(target)
