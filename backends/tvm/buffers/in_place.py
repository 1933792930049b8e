"""In-place updates: results that reuse the buffer of an operand that nobody reads later.

A DynamicUpdateSlice or a Scatter that is the last reader of its operand copies nothing: its result
takes over the operand's buffer, and only the update is stored. A loop updates its state in place
if nothing else reads the initial state. Branches write their results over arguments in the same
way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.analysis.in_place_safety import reads_elsewhere
from tracejit.backends.tvm.fusion.kernel import (
    Fusion,
    is_given,
    loaded_inputs,
    reads_at_own_element,
)
from tracejit.backends.tvm.fusion.row_fusion import RowKernel, inputs_of_all
from tracejit.backends.tvm.ir.reshapes import stored_as
from tracejit.graph import Instruction
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.convolution import CONV_GENERAL_DILATED
from tracejit.ops.indexing import SCATTER
from tracejit.ops.layout import DYNAMIC_UPDATE_SLICE
from tracejit.shapes import Shape


def updated(kernel: Fusion, memory: set[Instruction]) -> Instruction | None:
    """The operand whose buffer the kernel's only result could take over."""
    anchor = kernel.anchor
    if anchor is None or kernel.results != [anchor] or not isinstance(anchor.shape, Shape):
        return None
    if anchor.op not in (DYNAMIC_UPDATE_SLICE, SCATTER) or not anchor.shape.size:
        return None
    return stored_as(anchor.operands[0], memory.__contains__)


def order_updates_last(kernels: Sequence[Fusion], memory: set[Instruction]) -> list[Fusion]:
    """The kernels reordered so that updates that no other kernel reads come last."""
    read = {i for kernel in kernels for i in inputs_of_all(kernel, memory)}
    late = [k for k in kernels if updated(k, memory) is not None and k.results[0] not in read]
    moved = set(map(id, late))
    return [*(k for k in kernels if id(k) not in moved), *late]


@dataclass(frozen=True)
class LoopState:
    """One array of a loop's state: its initial value and its final value.

    ``changes`` says whether the body ever writes it.
    """

    init: Instruction
    result: Instruction
    changes: bool


class BufferReuse:
    """The reuse of buffers; ``root_buffers`` maps a result to the array that its buffer was
    allocated for.

    ``outputs`` are results with their own memory, by number; ``replaced`` are parameters that may
    be overwritten, each with the output that replaces it; ``kept`` is read after all kernels.
    ``shared`` maps results to operands that the same kernel reads while it overwrites them.
    """

    def __init__(
        self,
        kernels: Sequence[Fusion],
        memory: set[Instruction],
        outputs: Mapping[Instruction, int],
        replaced: Mapping[Instruction, int],
        kept: Iterable[Instruction],
    ) -> None:
        self.root_buffers: dict[Instruction, Instruction] = {}
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

    def add_kernel(self, number: int, kernel: Fusion) -> None:
        """Lets an update take over its operand's buffer, if that is safe."""
        operand = updated(kernel, self._memory)
        if operand is None:
            return
        root_buffer = self.root_buffers.get(operand, operand)
        read = loaded_inputs(kernel.results[0].operands[1:], self._memory)
        if any(o is not operand and self.root_buffers.get(o, o) is root_buffer for o in read):
            return
        if reads_elsewhere(kernel.results[0], self._memory.__contains__):
            return
        if self._may_write(operand, kernel.results[0], number):
            self._take_over(operand, kernel.results[0])
            if operand in read:
                self.shared[kernel.results[0]] = operand

    def add_native_call(
        self, number: int, call: Instruction, results: Sequence[Instruction]
    ) -> None:
        """Lets results that begin as operands, as the call's aliasing says, take their buffers."""
        roots = [self._root_buffer(operand) for operand in call.operands]
        for alias in call.attributes["output_to_operand_aliasing"]:
            operand = call.operands[alias.operand]
            result = results[alias.output_index[0] if alias.output_index else 0]
            is_alone = roots.count(self._root_buffer(operand)) == 1
            if is_alone and result.array_shape.size and self._may_write(operand, result, number):
                self._take_over(operand, result)
                self.shared[result] = operand

    def add_results(self, number: int, kernel: Fusion) -> None:
        """Lets results overwrite parameters that are read before, or element by element."""
        for result in kernel.results:
            place = self._outputs.get(result)
            given = [p for p, output in self._replaced.items() if output == place]
            if result in self.root_buffers or not given:
                continue
            (parameter,) = given
            if parameter in self._guests or not self._may_write(parameter, result, number):
                continue
            if self._last.get(parameter, -1) == number:
                if not _stores_after_loading(kernel, parameter, self._memory):
                    continue
                self.shared[result] = parameter
            self._take_over(parameter, result)

    def add_loop(self, number: int, states: Sequence[LoopState]) -> None:
        """Lets a loop update its state in place, and share the state that it never changes."""
        inits = [self._stored_as(state.init) for state in states]
        root_buffers = list(map(self._root_buffer, inits))
        for state, init, root in zip(states, inits, root_buffers, strict=True):
            if init not in self._memory or not init.array_shape.size:
                continue
            if not state.changes:
                if state.result not in self._outputs:
                    self._take_over(init, state.result)
            elif root_buffers.count(root) == 1 and self._may_write(init, state.result, number):
                self._take_over(init, state.result)

    def add_branches(
        self, number: int, results: Iterable[tuple[Instruction, Sequence[Instruction]]]
    ) -> None:
        """Lets a Conditional write results over its arguments.

        ``results`` come with the arguments that they could overwrite.
        """
        used: list[Instruction] = []
        for result, candidates in results:
            for array in map(self._stored_as, candidates):
                root_buffer = self._root_buffer(array)
                if root_buffer in used or not array.array_shape.size or result in self.root_buffers:
                    continue
                if self._may_write(array, result, number):
                    self._take_over(array, result)
                    used.append(root_buffer)

    def _root_buffer(self, array: Instruction) -> Instruction:
        array = self._stored_as(array)
        return self.root_buffers.get(array, array)

    def _stored_as(self, array: Instruction) -> Instruction:
        return stored_as(array, self._memory.__contains__)

    def _may_write(self, operand: Instruction, result: Instruction, number: int) -> bool:
        """Whether nothing reads ``operand`` after kernel ``number``, which would overwrite it."""
        if operand not in self._memory:
            return False
        root_buffer = self.root_buffers.get(operand, operand)
        guests = [root_buffer, *self._guests.get(root_buffer, ())]
        if any(guest in self._outputs or self._last.get(guest, -1) > number for guest in guests):
            return False
        if not is_given(root_buffer):
            return True
        # An output has its own memory; it may share a parameter's only if it replaces that.
        place = self._replaced.get(root_buffer)
        return place is not None and self._outputs.get(result, place) == place

    def _take_over(self, operand: Instruction, result: Instruction) -> None:
        root_buffer = self.root_buffers.get(operand, operand)
        self.root_buffers[result] = root_buffer
        self._guests.setdefault(root_buffer, []).append(result)


def _stores_after_loading(kernel: Fusion, operand: Instruction, memory: set[Instruction]) -> bool:
    """Whether a kernel loads each element of ``operand`` before it stores that element.

    Pointwise kernels compute all results before they store one; products and convolutions store
    each element once, the two parts of complex numbers one after the other.
    """
    if isinstance(kernel, RowKernel):
        return False
    if kernel.anchor is None and not kernel.dimensions:
        # There is one element, and all its operands are in registers.
        return True
    if kernel.anchor is not None:
        if kernel.anchor.op not in (DOT_GENERAL, CONV_GENERAL_DILATED) or len(kernel.results) > 1:
            return False
        if operand.array_shape.element_type.is_complex:
            return False
    return reads_at_own_element(kernel, {operand}, memory)
