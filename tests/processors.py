"""A part of the tests as if on a lesser processor: `pytest --processor=x86-64-v2`.

The compiler is told so by TRACEJIT_CPU; NumPy keeps the instructions of the machine.
"""

from __future__ import annotations

import functools
import zlib
from pathlib import Path
from typing import Any

from tracejit.backends.target import CPU, NATIVE, Target
from tracejit.loading import load
from tracejit.runtime import importing_tvm

ONE_IN = 8
"""The share of the tests that are run for a processor that is not this machine's."""

COMPILING = (
    "autodiff",
    "backends_tvm",
    "batching",
    "custom_ops",
    "numpy_api",
    "runtime",
    "specification",
    "transforms",
)
"""The folders of the tests that run compiled code."""

_TESTS = Path(__file__).parent


def concerns(path: Path) -> bool:
    """Whether a file or a folder may have tests that run compiled code."""
    if not path.is_relative_to(_TESTS) or path == _TESTS:
        return True
    return path.relative_to(_TESTS).parts[0] in COMPILING


def is_sampled(name: str, processor: str) -> bool:
    """Whether a test is one of the sample: always the same ones, others for other processors."""
    return is_lesser(processor) and zlib.crc32(f"{processor} {name}".encode()) % ONE_IN == 0


@functools.cache
def is_lesser(processor: str) -> bool:
    """Whether this machine runs the code of a processor that has other vectors, or no FMA."""
    other, own = (_target(Target(f"cpu:{name}")) for name in (processor, NATIVE))
    return not other.lacking and _level(other) != _level(own)


def _target(target: Target) -> Any:
    """The compiler's description, which needs TVM."""
    with importing_tvm():
        return load("tracejit.backends.tvm.cpu.processor").processor_of(target)


def _level(target: Any) -> tuple[int, bool, int]:
    return target.vector_bytes, target.has_fma, target.registers


def described() -> str:
    """What the tests run on, in one line."""
    target, name = _target(CPU), CPU.resolved().name
    if name != f"cpu:{NATIVE}" and not is_lesser(CPU.resolved().processor):
        return f"compiled code: nothing for {name}, no lesser processor than this machine's"
    fused = "with FMA" if target.has_fma else "without FMA"
    return (
        f"compiled code: {name} ({target.cpu}), vectors of {target.vector_bytes} bytes, "
        f"{target.registers} registers, {fused}"
    )
