"""`Processor`: the processor that code is generated for: LLVM's name and features, registers,
threads.

    processor_of()                       # this machine's, or the one that TRACEJIT_CPU names
    processor_of(Target("cpu:znver3"))   # another one, by LLVM's name
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import tvm
from tvm.target import codegen

from tracejit.backends.machine import host, thread_count
from tracejit.backends.target import CPU, NATIVE, Target
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.errors import AttributeValueError


@dataclass(frozen=True)
class Processor:
    """The properties of the processor that a build may rely on.

    ``attributes`` are LLVM's, each with its sign (``+avx2``, ``-pku``), and describe how the
    processor differs from others named ``cpu``; ``features`` are all features that it has, by
    LLVM's names. ``lacking`` are those that the current machine does not have: code that may use
    them is not run here. With ``fast_math`` arithmetic may be reordered and functions may be less
    exact. ``l2`` is a core's share of the second-level cache.
    """

    triple: str
    cpu: str
    attributes: tuple[str, ...]
    features: frozenset[str]
    lacking: tuple[str, ...]
    threads: int
    fast_math: bool = False
    l2: int = Machine.l2

    @property
    def architecture(self) -> str:
        """LLVM's name: x86_64, aarch64, riscv64."""
        return _architecture(self.triple)

    @property
    def vector_bytes(self) -> int:
        """The width of one vector register.

        TVM 0.27's ``llvm_get_vector_width`` answers 64 bytes for every x86 processor.
        """
        if self.features >= _AVX512:
            return 64
        return 32 if "avx" in self.features else 16

    @property
    def registers(self) -> int:
        """The number of vector registers."""
        return self.machine.registers

    @property
    def has_fma(self) -> bool:
        """Whether a product and a sum are one instruction, rounded once."""
        return not _FMA.isdisjoint(self.features)

    @property
    def converts_halves(self) -> bool:
        """Whether f16 and f32 are converted by an instruction, not by a function."""
        return not _HALVES.isdisjoint(self.features)

    @property
    def machine(self) -> Machine:
        """The limits that kernels are scheduled for."""
        return Machine(
            self.vector_bytes,
            self.threads,
            l2=self.l2,
            architecture=self.architecture,
            has_avx2="avx2" in self.features,
        )

    @property
    def tvm(self) -> Any:
        """TVM's own description, with itself as the host."""
        return self._described(3)

    @property
    def tvm_quick(self) -> Any:
        """TVM's description with LLVM's slowest passes left out."""
        return self._described(1)

    @property
    def tvm_unoptimised(self) -> Any:
        """TVM's description without optimisation: built in a fifth of the time."""
        return self._described(0)

    def _described(self, level: int) -> Any:
        return _target(self.triple, self.cpu, self.attributes, self.threads, level, self.fast_math)


# The parts of AVX-512 that x86-64-v4 has: every 64-byte vector has all of its instructions.
_AVX512 = frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})

# What x86, ARM and RISC-V call the instructions between f16 and f32.
_HALVES = frozenset({"f16c", "neon", "zfhmin"})
_FMA = frozenset({"fma", "fma4", "neon", "f"})


def processor_of(target: Target = CPU) -> Processor:
    """The processor of a target, and as many threads as this process may use.

    Raises `AttributeValueError` for a name that LLVM does not know.
    """
    target = target.resolved()
    known = _processor(target.processor)
    return Processor(*known, thread_count(), target.fast_math, host().l2)


class _Processor(NamedTuple):
    triple: str
    cpu: str
    attributes: tuple[str, ...]
    features: frozenset[str]
    lacking: tuple[str, ...]


@functools.cache
def _processor(name: str) -> _Processor:
    if name == NATIVE:
        return _native()
    for family in _FAMILIES:
        cpu = family.aliases.get(name, name)
        triple = family.triple_of(cpu)
        if cpu not in _names(family.triple) and not codegen.llvm_is_valid_cpu(cpu, triple):
            continue
        attributes = family.attributes if cpu in family.aliases.values() else ()
        features = _features(_target(triple, cpu, attributes, 1))
        if family.required in features:
            lacking = _lacking(triple, features)
            return _Processor(triple, cpu, attributes, features, lacking)
    known = sorted({each for family in _FAMILIES for each in _known(family)} | {NATIVE})
    near = difflib.get_close_matches(name, known, 4, 0.5)
    hint = f"; near it are {', '.join(near)}" if near else ""
    raise AttributeValueError(f"target 'cpu:{name}': LLVM knows no such processor{hint}")


@functools.cache
def _native() -> _Processor:
    triple = str(_llvm("GetDefaultTargetTriple"))
    cpu = str(_llvm("GetHostCPUName"))
    attributes = _differences(triple, cpu)
    features = _features(_target(triple, cpu, attributes, 1))
    return _Processor(triple, cpu, attributes, features, ())


class _Family(NamedTuple):
    """The processors of one architecture; ``aliases`` are names of its generic processor.

    The generic one has ``attributes`` besides. ``required`` is a feature that only 64-bit
    processors have.
    """

    triple: str
    aliases: dict[str, str]
    attributes: tuple[str, ...]
    required: str

    def triple_of(self, cpu: str) -> str:
        is_apple = self.triple.startswith("aarch64") and cpu.startswith("apple-")
        return "arm64-apple-macosx" if is_apple else self.triple


_FAMILIES = (
    _Family("x86_64-unknown-linux-gnu", {"x86_64": "x86-64"}, (), "64bit"),
    _Family("aarch64-unknown-linux-gnu", {"aarch64": "generic", "arm64": "generic"}, (), "neon"),
    # Linux needs RV64GC.
    _Family(
        "riscv64-unknown-linux-gnu",
        {"riscv64": "generic-rv64"},
        ("+m", "+a", "+f", "+d", "+c"),
        "64bit",
    ),
)


@functools.cache
def _names(triple: str) -> frozenset[str]:
    described = tvm.target.Target({"kind": "llvm", "mtriple": triple})
    return frozenset(str(name) for name in codegen.llvm_get_cpu_archlist(described))


def _known(family: _Family) -> Iterator[str]:
    yield from family.aliases
    yield from _names(family.triple)


def _features(target: Any) -> frozenset[str]:
    return frozenset(str(name) for name in codegen.llvm_get_cpu_features(target))


def _architecture(triple: str) -> str:
    name = triple.partition("-")[0]
    return {"arm64": "aarch64", "amd64": "x86_64"}.get(name, name)


def _lacking(triple: str, features: frozenset[str]) -> tuple[str, ...]:
    """The features of a processor that code may use and this machine does not have.

    Another architecture, or another executable format, counts as a feature.
    """
    native = _native()
    architecture = _architecture(triple)
    if architecture != _architecture(native.triple):
        return (architecture,)
    if ("apple" in triple) != ("apple" in native.triple):
        return ("macosx" if "apple" in triple else "linux",)
    more = features - native.features
    if architecture == "x86_64":
        more &= _present().keys()
    return tuple(sorted(name for name in more if not _UNUSED.match(name)))


# Features that LLVM uses only on request, and tuning hints: code for a processor that has them
# runs on processors without them.
_UNUSED = re.compile(
    "(adx|aes|cldemote|clflushopt|clwb|clzero|crc32|enqcmd|fsgsbase|fxsr|hreset|invpcid|kl|widekl"
    "|lwp|movdir.*|mwaitx|pclmul|pconfig|pku|prefetchi|prfchw|ptwrite|rdpid|rdpru|rdrnd|rdseed"
    "|rtm|serialize|sgx|sha|sha512|shstk|sm3|sm4|tsxldtrk|uintr|usermsr|vaes|vpclmulqdq"
    "|waitpkg|wbnoinvd|xsave.*|amx-.*"
    "|fast-.*|slow-.*|fuse-.*|no-.*|use-.*|enable-.*|disable-.*|prefer-.*|.*-tuning|tune-.*)$"
)


def _differences(triple: str, cpu: str) -> tuple[str, ...]:
    """The attributes in which this processor differs from others of its name.

    A virtual machine may hide features that the name promises, and code that used them would be an
    illegal instruction.
    """
    promised = _features(_target(triple, cpu, (), 1))
    present = _present()
    hidden = {f"-{name}" for name in promised if not present.get(name, True)}
    extra = {f"+{name}" for name, has in present.items() if has and name not in promised}
    return tuple(sorted(hidden | extra))


@functools.cache
def _present() -> dict[str, bool]:
    """The features that LLVM detected on this processor."""
    return {str(name): bool(has) for name, has in _llvm("GetHostCPUFeatures").items()}


def _llvm(question: str) -> Any:
    return tvm.get_global_func(f"tvm.codegen.llvm.{question}")()


# LLVM's fast-math flags except those that assume no NaN and no infinity.
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
    if "+d" in attributes:
        description["mabi"] = "lp64d"
    target = tvm.target.Target(description)
    return target.with_host(target)
