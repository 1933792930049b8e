"""Buffer reuse: which updates are written straight into the memory of the array they update.

A DynamicUpdateSlice or a Scatter that is the last to need its operand copies nothing: its result
takes over the operand's memory, and only the update is stored. A loop works on its state where that
lies, if nobody else needs it, and its body writes the new state over the old one. Branches work on
what they are given where that lies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.analysis.in_place_safety import reads_elsewhere
from tracejit.backends.tvm.fusion.kernel import Kernel, is_given, loaded, reads_at_own_element
from tracejit.backends.tvm.fusion.row_fusion import RowKernel, inputs_of_all
from tracejit.backends.tvm.ir.reshapes import stored_as
from tracejit.graph import Instruction
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.convolution import CONV_GENERAL_DILATED
from tracejit.ops.indexing import SCATTER
from tracejit.ops.layout import DYNAMIC_UPDATE_SLICE
from tracejit.shapes import Shape


def updated(kernel: Kernel, memory: set[Instruction]) -> Instruction | None:
    """The array whose memory the kernel's only result could take over."""
    anchor = kernel.anchor
    if anchor is None or kernel.results != [anchor] or not isinstance(anchor.shape, Shape):
        return None
    if anchor.op not in (DYNAMIC_UPDATE_SLICE, SCATTER) or not anchor.shape.size:
        return None
    return stored_as(anchor.operands[0], memory.__contains__)


def order_updates_last(kernels: Sequence[Kernel], memory: set[Instruction]) -> list[Kernel]:
    """The kernels in an order in which updates that no other kernel reads come last."""
    read = {i for kernel in kernels for i in inputs_of_all(kernel, memory)}
    late = [k for k in kernels if updated(k, memory) is not None and k.results[0] not in read]
    moved = set(map(id, late))
    return [*(k for k in kernels if id(k) not in moved), *late]


@dataclass(frozen=True)
class State:
    """One array of a loop's state: what it is at first, what the loop makes of it.

    ``changes`` says whether the body ever writes it.
    """

    init: Instruction
    result: Instruction
    changes: bool


class BufferReuse:
    """Which result takes over whose memory; ``homes`` has what the memory was made for at first.

    ``outputs`` are results with memory of their own, by number; ``replaced`` parameters whose
    memory may be overwritten, each with the output that comes in its place; ``kept`` is read when
    all kernels have run. ``shared`` has what is read by the results that are written over it by the
    kernel that reads it.
    """

    def __init__(
        self,
        kernels: Sequence[Kernel],
        memory: set[Instruction],
        outputs: Mapping[Instruction, int],
        replaced: Mapping[Instruction, int],
        kept: Iterable[Instruction],
    ) -> None:
        self.homes: dict[Instruction, Instruction] = {}
        self._memory = memory
        self._outputs = outputs
        self._replaced = replaced
        self._last: dict[Instruction, float] = {}
        self._guests: dict[Instruction, list[Instruction]] = {}
        self.shared: dict[Instruction, Instruction] = {}
        for number, kernel in enumerate(kernels):
            for instruction in inputs_of_all(kernel, memory):
                self._last[instruction] = number
        self._last.update(dict.fromkeys(kept, math.inf))

    def add_kernel(self, number: int, kernel: Kernel) -> None:
        """Lets an update write into its operand's memory, where that is right."""
        operand = updated(kernel, self._memory)
        if operand is None:
            return
        home = self.homes.get(operand, operand)
        read = loaded(kernel.results[0].operands[1:], self._memory)
        if any(o is not operand and self.homes.get(o, o) is home for o in read):
            return
        if reads_elsewhere(kernel.results[0], self._memory.__contains__):
            return
        if self._may_write(operand, kernel.results[0], number):
            self._move_in(operand, kernel.results[0])
            if operand in read:
                self.shared[kernel.results[0]] = operand

    def add_results(self, number: int, kernel: Kernel) -> None:
        """Lets results be written over parameters that are read before, or element by element."""
        for result in kernel.results:
            place = self._outputs.get(result)
            given = [p for p, output in self._replaced.items() if output == place]
            if result in self.homes or not given:
                continue
            (parameter,) = given
            if parameter in self._guests or not self._may_write(parameter, result, number):
                continue
            if self._last.get(parameter, -1) == number:
                if not _stores_after_loading(kernel, parameter, self._memory):
                    continue
                self.shared[result] = parameter
            self._move_in(parameter, result)

    def add_loop(self, number: int, states: Sequence[State]) -> None:
        """Lets a loop work on its state where that lies, and read there what it never changes."""
        inits = [self._stored_as(state.init) for state in states]
        homes = list(map(self._home, inits))
        for state, init, home in zip(states, inits, homes, strict=True):
            if init not in self._memory or not init.array_shape.size:
                continue
            if not state.changes:
                if state.result not in self._outputs:
                    self._move_in(init, state.result)
            elif homes.count(home) == 1 and self._may_write(init, state.result, number):
                self._move_in(init, state.result)

    def add_branches(
        self, number: int, results: Iterable[tuple[Instruction, Sequence[Instruction]]]
    ) -> None:
        """Lets a Conditional make results where arrays lie that it is given.

        ``results`` come with the arrays that they could be written over.
        """
        used: list[Instruction] = []
        for result, candidates in results:
            for array in map(self._stored_as, candidates):
                home = self._home(array)
                if home in used or not array.array_shape.size or result in self.homes:
                    continue
                if self._may_write(array, result, number):
                    self._move_in(array, result)
                    used.append(home)

    def _home(self, array: Instruction) -> Instruction:
        array = self._stored_as(array)
        return self.homes.get(array, array)

    def _stored_as(self, array: Instruction) -> Instruction:
        return stored_as(array, self._memory.__contains__)

    def _may_write(self, operand: Instruction, result: Instruction, number: int) -> bool:
        """Whether nobody needs ``operand`` after kernel ``number``, which would overwrite it."""
        if operand not in self._memory:
            return False
        home = self.homes.get(operand, operand)
        guests = [home, *self._guests.get(home, ())]
        if any(guest in self._outputs or self._last.get(guest, -1) > number for guest in guests):
            return False
        if not is_given(home):
            return True
        # An output has a place of its own; only that which replaces a parameter has the same one.
        place = self._replaced.get(home)
        return place is not None and self._outputs.get(result, place) == place

    def _move_in(self, operand: Instruction, result: Instruction) -> None:
        home = self.homes.get(operand, operand)
        self.homes[result] = home
        self._guests.setdefault(home, []).append(result)


def _stores_after_loading(kernel: Kernel, operand: Instruction, memory: set[Instruction]) -> bool:
    """Whether a kernel has read ``operand`` wherever it has stored, so that both may be one array.

    Pointwise kernels hold all results before they store one; products and convolutions store each
    element once, of complex numbers the two parts one after the other.
    """
    if isinstance(kernel, RowKernel):
        return False
    if kernel.anchor is None and not kernel.dimensions:
        # There is one element, and all that it is made of is held.
        return True
    if kernel.anchor is not None:
        if kernel.anchor.op not in (DOT_GENERAL, CONV_GENERAL_DILATED) or len(kernel.results) > 1:
            return False
        if operand.array_shape.element_type.is_complex:
            return False
    return reads_at_own_element(kernel, {operand}, memory)
