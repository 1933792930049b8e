"""Proofs that a program reads only initialised memory: written by the kernel or an earlier call.

    for fault in initialisation(program, footprints): ...     # reads that were not proven

Interprets the calls in order, with a boolean for each byte of the outputs and of the workspace. A
loop's body may never run, and only one branch does. A byte counts as initialised from the first
store on, even if another array uses it later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracejit.backends.tvm.ir.tir import nbytes
from tracejit.backends.tvm.program.program import (
    Argument,
    Branch,
    Call,
    Code,
    Kernel,
    Loop,
    Memory,
    Node,
    Program,
    code_of,
)
from tracejit.backends.tvm.verification.accesses import Access
from tracejit.backends.tvm.verification.analysis import Analysis
from tracejit.backends.tvm.verification.enumeration import UnknownNumbersError, is_enumerable
from tracejit.backends.tvm.verification.footprints import Footprint, Read, footprint
from tracejit.backends.tvm.verification.induction import Induction
from tracejit.backends.tvm.verification.linear import Linear
from tracejit.backends.tvm.verification.order import ordered

_MOST_BYTES = 1 << 28
_NEVER_WRITTEN = "never written"
_UNPROVEN = "not proven to have been written"


@dataclass(frozen=True)
class Fault:
    """A read of memory that may be, or certainly is, uninitialised. Programs end in one too."""

    kernel: Kernel | None
    text: str
    is_certain: bool = False


@dataclass(frozen=True)
class Footprints:
    """The footprints of a kernel on its parameters, and the faults inside it.

    None for a parameter whose footprint is unknown.
    """

    parameters: Sequence[Footprint | None]
    faults: Sequence[tuple[str, bool]]


def footprints_of(kernel: Kernel, analysis: Analysis) -> Footprints:
    faults: list[tuple[str, bool]] = []
    moments = ordered(analysis.accesses)
    memories = {id(m): m for m in map(analysis.memory, kernel.parameters)}
    touched: dict[int, list[tuple[Access, Linear]]] = {}
    if not analysis.calls:
        # A parameter that a kernel makes no access to is one that it does not write.
        touched = {key: [] for key in memories}
    known: dict[int, bool] = {}

    def is_known(fact: Linear) -> bool:
        if id(fact) not in known:
            known[id(fact)] = is_enumerable([fact])
        return known[id(fact)]

    for access, moment in zip(analysis.accesses, moments, strict=True):
        touched.setdefault(id(access.memory), []).append((access, moment))
    given = [id(analysis.memory(parameter)) for parameter in kernel.parameters]
    made: dict[int, Footprint | None] = {}
    if analysis.calls:
        called = ", ".join(sorted({name for name, _ in analysis.calls}))
        faults.append((f"{called} may read and write anything", False))
    for key, own in touched.items():
        memory = memories.get(key) or own[0][0].memory
        if analysis.calls and (key not in given or given.index(key) >= kernel.reads):
            made[key] = None
            continue
        try:
            made[key] = footprint(memory, own, is_known)
        except UnknownNumbersError:
            made[key] = None
            faults.append((f"{memory.name} is too large to be followed", False))
            continue
        if key not in given:
            faults += _faults(made[key], memory.name)
    return Footprints([made.get(key) for key in given], faults)


def _faults(footprint: Footprint | None, name: str) -> Iterator[tuple[str, bool]]:
    """Reads of uninitialised local memory."""
    for read in [] if footprint is None else footprint.reads:
        if read.elements().any():
            yield _told(read, name, ~np.zeros(read.footprint.size, bool), is_certain=True)
            return


def _told(read: Read, name: str, unwritten: Any, is_certain: bool) -> tuple[str, bool]:
    """The fault of a load of ``unwritten`` elements."""
    certain = read.certain() & unwritten
    is_certain = is_certain and bool(certain.any())
    found = certain if is_certain else read.elements() & unwritten
    element = int(np.argmax(found)) % max(read.footprint.memory.size, 1)
    place = tuple(map(int, np.unravel_index(element, read.footprint.memory.shape)))
    rule = _NEVER_WRITTEN if is_certain else _UNPROVEN
    return f"a load from {name} has element {place}, {rule}", is_certain


class _State:
    """For each memory, the bytes that are certainly written, and those that may be."""

    def __init__(self, sizes: Mapping[tuple[Memory, int], int]) -> None:
        self.written = {key: np.zeros(size, bool) for key, size in sizes.items()}
        self.touched = {key: np.zeros(size, bool) for key, size in sizes.items()}
        # Ranges with some further bytes that may be written, and their number.
        self.elsewhere: dict[tuple[Any, int, int], int] = {}

    def copied(self) -> _State:
        made = _State({})
        made.written = {key: each.copy() for key, each in self.written.items()}
        made.touched = {key: each.copy() for key, each in self.touched.items()}
        made.elsewhere = dict(self.elsewhere)
        return made

    def join(self, other: _State) -> None:
        for key, each in self.written.items():
            each &= other.written[key]
            self.touched[key] |= other.touched[key]
        for place, count in other.elsewhere.items():
            self.elsewhere[place] = max(self.elsewhere.get(place, 0), count)

    def most_elsewhere(self, key: Any, place: slice) -> int:
        """The number of bytes of a range that may be written besides those that are ``touched``."""
        return sum(
            count
            for (memory, start, stop), count in self.elsewhere.items()
            if memory == key and start < place.stop and place.start < stop
        )


class _Walk:
    def __init__(self, program: Program, footprints: Mapping[Code, Footprints]) -> None:
        self._footprints = footprints
        self._kernels = {kernel.name: kernel for kernel in program.kernels}
        self.faults: dict[Any, Fault] = {}
        self._loops = 0
        self._induction = Induction(
            program, {code: each.parameters for code, each in footprints.items()}
        )
        sizes = {
            (Memory.OUTPUT, number): spec.nbytes
            for number, spec in enumerate(program.outputs)
            # Inputs are initialised, and so is memory that outputs share with them.
            if number not in program.aliases
        }
        if program.workspace_bytes:
            sizes[Memory.WORKSPACE, 0] = program.workspace_bytes
        if sum(sizes.values()) > _MOST_BYTES:
            self._add(None, "a program's memory is too large to be followed")
            return
        self._state = _State(sizes)
        self._run(program.calls, is_certain=True)
        for (memory, number), written in self._state.written.items():
            if memory is Memory.OUTPUT and not written.all():
                left = int(np.sum(~self._state.touched[memory, number]))
                every = slice(0, len(written))
                certain = left > self._state.most_elsewhere((memory, number), every)
                missing = self._state.touched[memory, number] if certain else written
                rule = _NEVER_WRITTEN if certain else _UNPROVEN
                byte = int(np.argmin(missing))
                self._add(None, f"output {number} has byte {byte}, {rule}", certain)

    def _add(self, kernel: Kernel | None, text: str, is_certain: bool = False) -> None:
        self.faults.setdefault((id(kernel), text), Fault(kernel, text, is_certain))

    def _run(self, nodes: Sequence[Node], is_certain: bool) -> None:
        for node in nodes:
            if isinstance(node, Call):
                self._call(node, is_certain)
            elif isinstance(node, Loop):
                self._loop(node, is_certain)
            else:
                self._branch(node, is_certain)

    def _loop(self, loop: Loop, is_certain: bool) -> None:
        runs = self._induction.runs(loop)
        miscounted = self._induction.miscounted(loop)
        if miscounted is not None:
            text = f"a loop's body runs {miscounted} times, not {loop.steps} as the program states"
            self._add(None, text, is_certain=True)
        elif loop.steps and not runs:
            self._add(None, f"a loop's body is not proven to run {loop.steps} times")
            runs = True
        self._run(loop.condition, is_certain)
        self._need(loop.predicate, 1, "a loop's predicate", is_certain)
        before = self._state.copied()
        self._loops += 1
        self._run([*loop.body, *loop.condition], is_certain and runs)
        self._loops -= 1
        if not runs:
            self._state.join(before)
        for stored in self._induction.stores(loop):
            kernel = self._kernels[stored.call.kernel]
            for number, elements in stored.elements.items():
                key, place = self._at(kernel, number, stored.call.arguments[number])
                if key in self._state.written:
                    written, touched = (
                        self._state.written[key][place],
                        self._state.touched[key][place],
                    )
                    made = np.repeat(elements, len(written) // max(len(elements), 1))
                    written |= made
                    touched |= made

    def _branch(self, branch: Branch, is_certain: bool) -> None:
        self._need(branch.selector, 4, "a branch's selector", is_certain)
        before, ends = self._state, []
        for case in branch.branches:
            self._state = before.copied()
            self._run(case, is_certain=False)
            ends.append(self._state)
        self._state = ends[0]
        for end in ends[1:]:
            self._state.join(end)

    def _need(self, argument: Argument, size: int, what: str, is_certain: bool) -> None:
        key = argument.memory, argument.index
        if key not in self._state.written:
            return
        place = slice(argument.offset, argument.offset + size)
        if not self._state.written[key][place].all():
            certain = is_certain and not self._state.touched[key][place].any()
            self._add(None, f"{what}, {_NEVER_WRITTEN if certain else _UNPROVEN}", certain)

    def _call(self, call: Call, is_certain: bool) -> None:
        kernel = self._kernels[call.kernel]
        known = self._footprints.get(code_of(kernel))
        followed = [
            (number, argument, None if known is None else known.parameters[number])
            for number, argument in enumerate(call.arguments)
            if (argument.memory, argument.index) in self._state.written
        ]
        for number, argument, made in followed:
            if made is None and number < kernel.reads:
                self._handed_on(kernel, number, argument, is_certain)
            elif made is not None:
                self._reads(kernel, number, argument, made, is_certain)
        for number, argument, made in followed:
            key, place = self._at(kernel, number, argument)
            written, touched = self._state.written[key][place], self._state.touched[key][place]
            if made is not None:
                item = len(written) // max(made.size, 1)
                written |= np.repeat(made.written, item)
                touched |= np.repeat(made.touched, item)
                if made.elsewhere:
                    counts = self._state.elsewhere
                    region = key, place.start, place.stop
                    more = len(written) if self._loops else made.elsewhere * item
                    counts[region] = counts.get(region, 0) + more
            elif number >= kernel.reads:
                # The unknown footprint has been reported.
                written[:] = touched[:] = True

    @staticmethod
    def _at(kernel: Kernel, number: int, argument: Argument) -> tuple[tuple[Memory, int], slice]:
        end = argument.offset + nbytes(kernel.parameters[number])
        return (argument.memory, argument.index), slice(argument.offset, end)

    def _handed_on(self, kernel: Kernel, number: int, argument: Argument, is_certain: bool) -> None:
        """An opaque routine is assumed to read all of an array."""
        key, place = self._at(kernel, number, argument)
        if not self._state.written[key][place].all():
            missing = int(np.sum(~self._state.touched[key][place]))
            certain = is_certain and missing > self._state.most_elsewhere(key, place)
            rule = _NEVER_WRITTEN if certain else _UNPROVEN
            name = kernel.parameters[number].name
            self._add(kernel, f"a routine reads elements of {name}, {rule}", certain)

    def _reads(
        self, kernel: Kernel, number: int, argument: Argument, made: Footprint, is_certain: bool
    ) -> None:
        key, place = self._at(kernel, number, argument)
        written, touched = self._state.written[key][place], self._state.touched[key][place]
        if not made.reads or written.all():
            return
        item = max(len(written) // made.size, 1)
        elsewhere = -(-self._state.most_elsewhere(key, place) // item)
        unproven: Any = ~written.reshape(made.size, -1).all(1)
        untouched: Any = ~touched.reshape(made.size, -1).any(1)
        for read in made.reads:
            if not unproven[read.span()].any() or not (read.elements() & unproven).any():
                continue
            name = str(kernel.parameters[number].name)
            missing = is_certain and int(np.sum(read.certain() & untouched)) > elsewhere
            self._add(kernel, *_told(read, name, untouched if missing else unproven, missing))


def initialisation(program: Program, footprints: Mapping[Code, Footprints]) -> Iterator[Fault]:
    """Reads of possibly uninitialised memory."""
    told: set[Code] = set()
    for kernel in program.kernels:
        code = code_of(kernel)
        known = footprints.get(code)
        if known is not None and code not in told:
            told.add(code)
            yield from (Fault(kernel, text, is_certain) for text, is_certain in known.faults)
    yield from _Walk(program, footprints).faults.values()
