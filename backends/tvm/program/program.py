"""A program as data: kernels, and the order in which they are called on which memory.

    add = Kernel("add", (x, y, z), body)          # TIR over buffers from `ir.tir.buffer`
    Program(
        kernels=[add],
        calls=[Call("add", [Argument.input(0), Argument.input(1), Argument.output(0)])],
        inputs=[spec, spec],
        outputs=[spec],
    )

Rules for a kernel; `verification` proves the first, and looks for races and for reads of
uninitialised memory:

    - Every index stays inside its buffer, for every value that the data may hold: an index that is
      loaded from memory is clamped, or its access is guarded by an `IfThenElse` (a select computes
      both sides). A vector access counts with all its lanes; a remainder gets a loop of its own.
    - A buffer promises alignment to its item only; NumPy arrays begin anywhere.
    - A written parameter overlaps no other parameter of the same call. To work in place, a kernel
      reads and writes one and the same parameter.
    - The iterations of a parallel loop write to disjoint memory, and call nothing back.
    - Zero-size arrays have no kernels, or kernels whose loops run zero times.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from tvm import DataType

from tracejit.backends.abi import ArraySpec
from tracejit.backends.tvm.analysis.kernel_stats import NOTHING, KernelStats
from tracejit.backends.tvm.ir.tir import Buffer, Stmt, nbytes
from tracejit.errors import CompilationError


@dataclass(frozen=True)
class LibraryCall:
    """A call of a library that computes a kernel's results where the library is installed.

    ``text`` describes it to the target's runtime; the ``buffers`` that it is given are parameters
    of the kernel. ``after`` is what remains for a kernel then, on the same parameters.
    """

    text: str
    buffers: Sequence[Buffer]
    after: Stmt | None = None


@dataclass(frozen=True)
class Kernel:
    """One function: ``body`` loads from and stores to ``parameters``, and allocates little memory.

    ``name`` is a C identifier. Buffers that the body allocates are on the stack. The first
    ``reads`` parameters are never written, and may be passed the same memory. ``stats`` describe
    it to users and to the build. An ``is_thorough`` kernel is compiled with all optimisations,
    however long that takes. The last ``scratch`` parameters are uninitialised temporaries.
    A ``library`` may do the kernel's work in its place.
    """

    name: str
    parameters: Sequence[Buffer]
    body: Stmt
    reads: int = 0
    stats: KernelStats = NOTHING
    is_thorough: bool = False
    scratch: int = 0
    library: LibraryCall | None = None


Code = tuple[int, ...]
"""The identities of a kernel's body and parameters."""


def code_of(kernel: Kernel) -> Code:
    """Equal for kernels of a program that share body and parameters.

    Kernels of equal structure share both; kernels without accesses share their empty body alone.
    """
    return id(kernel.body), *map(hash, kernel.parameters)


class Memory(enum.Enum):
    """The kind of memory of a kernel's argument."""

    INPUT = "input"
    OUTPUT = "output"
    CONSTANT = "constant"
    WORKSPACE = "workspace"


@dataclass(frozen=True)
class Argument:
    """``offset`` bytes into an input, output or constant, or into the workspace."""

    memory: Memory
    index: int = 0
    offset: int = 0

    @staticmethod
    def input(index: int, offset: int = 0) -> Argument:
        return Argument(Memory.INPUT, index, offset)

    @staticmethod
    def output(index: int, offset: int = 0) -> Argument:
        return Argument(Memory.OUTPUT, index, offset)

    @staticmethod
    def constant(index: int, offset: int = 0) -> Argument:
        return Argument(Memory.CONSTANT, index, offset)

    @staticmethod
    def workspace(offset: int) -> Argument:
        return Argument(Memory.WORKSPACE, 0, offset)

    def __str__(self) -> str:
        where = "" if self.memory is Memory.WORKSPACE else f" {self.index}"
        return f"{self.memory.value}{where} at byte {self.offset}"


@dataclass(frozen=True)
class Call:
    """Call a kernel, with one argument for each of its parameters."""

    kernel: str
    arguments: Sequence[Argument]


@dataclass(frozen=True)
class Loop:
    """Run ``condition``; while the pred (one byte) at ``predicate`` is true, ``body`` and again.

    The body runs ``steps`` times, if that is known.
    """

    condition: Sequence[Node]
    predicate: Argument
    body: Sequence[Node]
    steps: int | None = None


@dataclass(frozen=True)
class Branch:
    """Run the branch whose number is the s32 at ``selector``; the last one if it is
    out of range.
    """

    selector: Argument
    branches: Sequence[Sequence[Node]]


Node = Call | Loop | Branch


@dataclass(frozen=True)
class Program:
    """Kernels, and the calls that turn inputs, constants and a workspace into outputs.

    The calls write every element of every output; they never write constants, nor inputs except
    those in ``aliases``: it maps outputs to the inputs whose memory they share, both by number.
    The workspace starts at a multiple of `abi.ALIGNMENT` and is uninitialised. ``native_calls``
    has, by the numbers of constants, the calls whose records these are, as HLO text. Where signals
    may end it, ``state`` is the memory that `cpu.objects.interrupts` uses, and ``polled`` names the
    kernels after which the program looks at it. Where it ``runs_apart``, it may take long
    without a poll.
    """

    kernels: Sequence[Kernel]
    calls: Sequence[Node]
    inputs: Sequence[ArraySpec]
    outputs: Sequence[ArraySpec]
    constants: Sequence[np.ndarray] = ()
    workspace_bytes: int = 0
    aliases: Mapping[int, int] = field(default_factory=dict)
    native_calls: Mapping[int, str] = field(default_factory=dict)
    state: Argument | None = None
    polled: frozenset[str] = frozenset()
    runs_apart: bool = False
    _sizes: dict[Memory, Sequence[int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sizes = {
            Memory.INPUT: [spec.nbytes for spec in self.inputs],
            Memory.OUTPUT: [spec.nbytes for spec in self.outputs],
            Memory.CONSTANT: [array.nbytes for array in self.constants],
            Memory.WORKSPACE: [self.workspace_bytes],
        }
        object.__setattr__(self, "_sizes", sizes)

    def check(self) -> None:
        """Raise `CompilationError` for calls that do not match the kernels or leave
        their memory.
        """
        kernels = {kernel.name: kernel for kernel in self.kernels}
        if len(kernels) != len(self.kernels):
            raise CompilationError("a program's kernels must have different names")
        for name in kernels:
            if not name.isidentifier() or not name.isascii():
                raise CompilationError(f"kernel name {name!r} is no C identifier")
        for array in self.constants:
            if not array.flags.c_contiguous or not array.dtype.isnative:
                raise CompilationError("constants must be C-contiguous, in native byte order")
        widths = {name: [(*_extent(b),) for b in k.parameters] for name, k in kernels.items()}
        for node in walk(self.calls):
            if isinstance(node, Call):
                self._check_call(node, widths, kernels)
            elif isinstance(node, Loop):
                self._check_argument(node.predicate, 1, 1, "a loop's predicate")
            elif not node.branches:
                raise CompilationError("a branch needs at least one branch")
            else:
                self._check_argument(node.selector, 4, 4, "a branch's selector")

    def _check_call(
        self, call: Call, widths: dict[str, list[tuple[int, int]]], kernels: dict[str, Kernel]
    ) -> None:
        if call.kernel not in widths:
            raise CompilationError(f"call of a kernel that does not exist: {call.kernel}")
        extents = widths[call.kernel]
        if len(extents) != len(call.arguments):
            raise CompilationError(
                f"kernel {call.kernel} has {len(extents)} parameters, "
                f"the call gives {len(call.arguments)} arguments"
            )
        spans: list[tuple[tuple[str, int, int], int]] = []
        shared: set[tuple[tuple[str, int, int], int]] = set()
        reads = kernels[call.kernel].reads
        pairs = zip(call.arguments, extents, strict=True)
        for number, (argument, (size, item)) in enumerate(pairs):
            self._check_argument(argument, size, item, f"{call.kernel}, argument {number}")
            if argument.memory in (Memory.OUTPUT, Memory.WORKSPACE) and size:
                at = (argument.memory.value, argument.index, argument.offset)
                if number < reads:
                    shared.add((at, argument.offset + size))
                else:
                    spans.append((at, argument.offset + size))
        for (first, end), (second, _) in pairwise(sorted([*spans, *shared])):
            if first[:2] == second[:2] and second[2] < end:
                raise CompilationError(f"{call.kernel}: two arguments overlap in the {first[0]}")

    def _check_argument(self, argument: Argument, size: int, item: int, where: str) -> None:
        sizes = self._sizes[argument.memory]
        if not 0 <= argument.index < len(sizes):
            raise CompilationError(f"{where}: there is no {argument}")
        if argument.offset < 0 or argument.offset + size > sizes[argument.index]:
            raise CompilationError(
                f"{where}: {size} bytes do not fit into {argument}, "
                f"which holds {sizes[argument.index]}"
            )
        if argument.offset % item:
            raise CompilationError(f"{where}: {argument} is not aligned to {item} bytes")


def walk(nodes: Sequence[Node]) -> Iterator[Node]:
    """Every node, those inside loops and branches included."""
    for node in nodes:
        yield node
        if isinstance(node, Loop):
            yield from walk(node.condition)
            yield from walk(node.body)
        elif isinstance(node, Branch):
            for branch in node.branches:
                yield from walk(branch)


def _extent(buffer: Buffer) -> tuple[int, int]:
    """A buffer's size and its item's, in bytes."""
    return nbytes(buffer), int(DataType(str(buffer.dtype)).itemsize)
