"""A program as machine code for a CUDA device, and the plan of its launches.

build(program, "sm_90a")            # an artifact's bytes, to keep and to load without TVM
source_of(program, "f0_")           # the CUDA C alone, and what is launched
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any

from tvm import DataType

from tracejit.backends.artifact import Artifact, pack
from tracejit.backends.explanation import Explanation
from tracejit.backends.launch_plan import (
    CONSTANT,
    INPUT,
    OUTPUT,
    WORKSPACE,
    Choose,
    DeviceAddress,
    LaunchPlan,
    Repeat,
)
from tracejit.backends.launch_plan import HostCall as PlannedHostCall
from tracejit.backends.launch_plan import Launch as PlannedLaunch
from tracejit.backends.launch_plan import LibraryCall as PlannedLibraryCall
from tracejit.backends.launch_plan import Node as PlannedNode
from tracejit.backends.tvm.cpu.llvm.kinds import MOVED
from tracejit.backends.tvm.cpu.mathematics.operations import llvm_text
from tracejit.backends.tvm.cpu.objects.report import explanation
from tracejit.backends.tvm.cuda.device_functions import device_function
from tracejit.backends.tvm.cuda.launches import Launch, launches
from tracejit.backends.tvm.cuda.source import kernel_text
from tracejit.backends.tvm.ir.intrinsics import intrinsic_of
from tracejit.backends.tvm.ir.tir import Buffer, nbytes
from tracejit.backends.tvm.program.program import (
    Argument,
    Call,
    Kernel,
    Loop,
    Memory,
    Node,
    Program,
)
from tracejit.backends.tvm.target.host_calls import HostCall, host_call_of
from tracejit.cuda.nvrtc import Binary, compiler

ALIGNMENT = 256
"""Where what kernels allocate begins in the workspace."""
_SAME = frozenset({"once", "kept", "opaque"})
_MEMORY = {
    Memory.INPUT: INPUT,
    Memory.OUTPUT: OUTPUT,
    Memory.CONSTANT: CONSTANT,
    Memory.WORKSPACE: WORKSPACE,
}


@dataclass
class Source:
    """The CUDA C of a program: device functions by name, kernels by name, and their launches.

    ``launched`` has the launches of each of the program's kernels, each with its function's name,
    ``after_library`` those that remain where a library does the kernel's work; ``host_calls`` are
    the kernels that the host evaluates.
    """

    functions: dict[str, str] = field(default_factory=dict)
    kernels: dict[str, str] = field(default_factory=dict)
    launched: dict[str, list[tuple[str, Launch]]] = field(default_factory=dict)
    after_library: dict[str, list[tuple[str, Launch]]] = field(default_factory=dict)
    allocated: dict[str, list[Buffer]] = field(default_factory=dict)
    host_calls: dict[str, HostCall] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """All of it, as NVRTC takes it."""
        return joined([self])


def joined(sources: Sequence[Source]) -> str:
    """One text of several programs' sources, whose kernels have different names."""
    functions: dict[str, str] = {}
    kernels: dict[str, str] = {}
    for source in sources:
        functions |= source.functions
        kernels |= source.kernels
    return "\n".join([prelude(), *functions.values(), *kernels.values()])


@cache
def prelude() -> str:
    """What the kernels of every program call."""
    return resources.files(__package__).joinpath("prelude.cuh").read_text(encoding="utf-8")


def source_of(program: Program, prefix: str = "") -> Source:
    """The CUDA C of a program; its functions' names begin with ``prefix``.

    Kernels of one text are one function. Raises `CompilationError` for what has no CUDA C.
    """
    made = Source()
    names: dict[str, str] = {}

    def written(parts: Sequence[Launch], name: str) -> list[tuple[str, Launch]]:
        own = []
        for number, part in enumerate(parts):
            text = kernel_text("KERNEL", part, _Functions(made.functions))
            suffix = f"_{number}" if len(parts) > 1 else ""
            called = names.setdefault(text, f"{prefix}{name}{suffix}")
            made.kernels[called] = text.replace("KERNEL", called, -1 if part.source else 1)
            own.append((called, part))
        return own

    for kernel in program.kernels:
        host_call = host_call_of(kernel)
        if host_call is not None:
            made.host_calls[kernel.name], made.launched[kernel.name] = host_call, []
            continue
        parts, made.allocated[kernel.name] = launches(kernel)
        made.launched[kernel.name] = written(parts, kernel.name)
        if kernel.library is not None and kernel.library.after is not None:
            rest, _ = launches(replace(kernel, body=kernel.library.after))
            made.after_library[kernel.name] = written(rest, f"{kernel.name}_after")
    return made


class _Functions:
    """Collects the device functions that kernels call."""

    def __init__(self, known: dict[str, str]) -> None:
        self._known = known

    def __call__(self, call: Any) -> str:
        intrinsic = intrinsic_of(call)
        assert intrinsic is not None
        if intrinsic.name in _SAME:
            return ""
        element = str(DataType(str(call.args[0].ty)).with_lanes(1))
        name = f"tracejit_{intrinsic.name}_{element}"
        if name not in self._known:
            text = llvm_text(intrinsic.name, name, MOVED[element])
            self._known[name] = device_function(text)
        return name


def build(program: Program, arch: str) -> bytes:
    """The artifact of a program for an architecture such as ``sm_90a``.

    Raises `CompilationError` if the program contradicts itself, where NVRTC is missing, and for
    what has no CUDA C.
    """
    program.check()
    source = source_of(program)
    return packed(program, source, compiler().compile(source.text, arch), arch)


def packed(program: Program, source: Source, binary: Binary, arch: str) -> bytes:
    """The artifact of a program whose functions are in ``binary``."""
    plan = _Plan(program, source)
    nodes = plan.nodes(program.calls)
    uses = {
        name: (use.registers, use.shared_bytes, use.spilled_bytes)
        for name, use in binary.kernels.items()
        if name in source.kernels
    }
    launched = {
        kernel: [(name, part.blocks, part.threads, part.shared_bytes) for name, part in parts]
        for kernel, parts in source.launched.items()
    }
    artifact = Artifact(
        program.inputs,
        program.outputs,
        program.constants,
        plan.workspace_bytes,
        [],
        _explained(program, launched).to_json(),
        program.aliases,
        arch,
        (),
        LaunchPlan(nodes, len(binary.cubin), uses, launched).to_json(),
    )
    return pack(binary.cubin, artifact)


def _explained(
    program: Program, launched: Mapping[str, Sequence[tuple[str, int, int, int]]]
) -> Explanation:
    """What the program does, with the threads of each kernel's largest launch."""
    told = explanation(program, {}, 1)
    kernels = []
    for facts in told.kernels:
        most = max((blocks * threads for _, blocks, threads, _ in launched[facts.name]), default=0)
        kernels.append(replace(facts, threads=most, loops=()))
    return Explanation(kernels, told.steps)


def launch_plan(program: Program, source: Source) -> tuple[list[PlannedNode], int]:
    """The launches of a program, and the bytes of its workspace."""
    plan = _Plan(program, source)
    return plan.nodes(program.calls), plan.workspace_bytes


class _Plan:
    """The launches of a program's calls; what bodies allocate lies behind its workspace."""

    def __init__(self, program: Program, source: Source) -> None:
        self._kernels: Mapping[str, Kernel] = {k.name: k for k in program.kernels}
        self._source = source
        self.workspace_bytes = -(-program.workspace_bytes // ALIGNMENT) * ALIGNMENT
        self._own: dict[int, DeviceAddress] = {}
        for buffers in source.allocated.values():
            for buffer in buffers:
                self._own[hash(buffer)] = DeviceAddress(WORKSPACE, 0, self.workspace_bytes)
                self.workspace_bytes += -(-nbytes(buffer) // ALIGNMENT) * ALIGNMENT

    def nodes(self, given: Sequence[Node]) -> list[PlannedNode]:
        made: list[PlannedNode] = []
        for node in given:
            if isinstance(node, Call):
                made += self._launches(node)
            elif isinstance(node, Loop):
                condition, body = self.nodes(node.condition), self.nodes(node.body)
                made.append(Repeat(condition, _place(node.predicate), body))
            else:
                branches = [self.nodes(branch) for branch in node.branches]
                made.append(Choose(_place(node.selector), branches))
        return made

    def _launches(self, call: Call) -> list[PlannedNode]:
        kernel = self._kernels[call.kernel]
        host_call = self._source.host_calls.get(call.kernel)
        if host_call is not None:
            arguments = [_place(call.arguments[number]) for number in host_call.parameters]
            source = str(kernel.stats.source or "")
            return [PlannedHostCall(host_call.text, arguments, source, kernel.name)]
        places = dict(self._own)
        for buffer, argument in zip(kernel.parameters, call.arguments, strict=True):
            places[hash(buffer)] = _place(argument)
        line = str(kernel.stats.source or "")

        def planned(launched: Sequence[tuple[str, Launch]]) -> list[PlannedLaunch]:
            return [
                PlannedLaunch(
                    name,
                    [places[hash(buffer)] for buffer in part.parameters],
                    part.blocks,
                    part.threads,
                    part.shared_bytes,
                    line,
                    kernel.name,
                )
                for name, part in launched
            ]

        own = planned(self._source.launched[call.kernel])
        if kernel.library is None:
            return [*own]
        after = planned(self._source.after_library.get(call.kernel, []))
        arguments = [places[hash(buffer)] for buffer in kernel.library.buffers]
        text = kernel.library.text
        return [PlannedLibraryCall(text, arguments, after, own, line, kernel.name)]


def _place(argument: Argument) -> DeviceAddress:
    return DeviceAddress(_MEMORY[argument.memory], argument.index, argument.offset)
