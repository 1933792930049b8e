"""What answers before there is machine code: `jit(f, tiered=True)`.

The first calls are interpreted while another process compiles. A call that the interpreter is at
when the code arrives is begun anew by the code, unless it may have done something that must not be
done twice.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.backends.numpy.interpreter import evaluate_instruction, stepping
from tracejit.graph import Instruction, Module
from tracejit.ops.custom import CUSTOM_CALL, LINEAR_ALGEBRA
from tracejit.runtime.donation import are_donatable
from tracejit.transforms.interpreted import Interpreted
from tracejit.transforms.jit.hooks import Pending
from tracejit.traversal import called_computations, instructions

_LOOK_SECONDS = 0.005
"""A call that is interpreted looks for the code no more often than that."""


class Interim(Interpreted):
    """An executable that interprets until its program is there.

    ``donated`` arguments are written over, and handed out, as by compiled code.
    """

    def __init__(self, module: Module, pending: Pending) -> None:
        super().__init__(module)
        self.pending = pending
        # A result that is not in a tuple has no number.
        self._aliases = [
            (sum(alias.output_index), alias.operand) for alias in module.input_output_alias
        ]
        self.donated = tuple(operand for _, operand in self._aliases)
        self._is_repeatable = not module.entry.has_effect and not any(
            _is_users(instruction)
            for computation in called_computations(module)
            for instruction in instructions(computation)
        )

    def __call__(self, arguments: Sequence[object]) -> list[np.ndarray]:
        """The results for arrays of any layout and either byte order.

        Raises the errors of the interpreter and of the compiler.
        """
        try:
            results = super().__call__(arguments)
        except _Overtaken:
            executable = self.pending.poll()
            if executable is not None:
                return executable(arguments)
            # Another thread compiles what the disk has lost.
            self._is_repeatable = False
            results = super().__call__(arguments)
        if self._aliases and are_donatable(arguments, self.donated):
            self._write_over(arguments, results)
        return results

    def _write_over(self, arguments: Sequence[object], results: list[np.ndarray]) -> None:
        for output, operand in self._aliases:
            array, result = arguments[operand], results[output]
            assert isinstance(array, np.ndarray)
            # Others are copied before they are written over.
            if array.dtype is result.dtype and array.flags.c_contiguous and array.flags.aligned:
                array[...] = result
                results[output] = array

    def _evaluate(self, arrays: Sequence[np.ndarray]) -> Any:
        if not self._is_repeatable:
            return super()._evaluate(arrays)
        with stepping(_Steps(self.pending)):
            return super()._evaluate(arrays)


class _Steps:
    """One call: works out instruction after instruction, until the code is there."""

    def __init__(self, pending: Pending) -> None:
        self._pending = pending
        self._look = time.monotonic() + _LOOK_SECONDS

    def __call__(self, instruction: Instruction, operands: Sequence[Any]) -> Any:
        now = time.monotonic()
        if now > self._look:
            if self._pending.is_built():
                raise _Overtaken
            self._look = now + _LOOK_SECONDS
        return evaluate_instruction(instruction, operands)


class _Overtaken(Exception):
    """The code that the interpreter stands in for is there."""


def _is_users(instruction: Instruction) -> bool:
    """Whether an instruction calls a function of the user's, which may do anything."""
    if instruction.op is not CUSTOM_CALL:
        return False
    target: str = instruction.attributes["custom_call_target"]
    return not target.startswith(LINEAR_ALGEBRA)
