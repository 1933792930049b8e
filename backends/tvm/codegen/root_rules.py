"""The types of the rules of ops with schedules of their own; each target has a table of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.ir.tir import Buffer, Stmt
from tracejit.graph import Instruction
from tracejit.ops.constants import GET_TUPLE_ELEMENT, get_tuple_element
from tracejit.shapes import TupleShape

Results = Sequence[tuple[Instruction, Buffer]]
"""A kernel's results and their buffers: the anchor itself, or the ends of its epilogue.

For a tuple-shaped anchor there is a GetTupleElement for each element.
"""

RootRule = Callable[[Frame, Instruction, Results], Stmt]
"""``rule(frame, instruction, results) -> statement``: the kernel's whole body."""


def anchors_of(instruction: Instruction, results: Results) -> tuple[Instruction, ...]:
    """The instruction for each result of a reduction: itself, or one GetTupleElement
    per element.
    """
    if isinstance(instruction.shape, TupleShape):
        own = [r for r, _ in results if r.operands[:1] == (instruction,)]
        known = {r.attributes["index"]: r for r in own if r.op is GET_TUPLE_ELEMENT}
        count = len(instruction.shape.elements)
        return tuple(known.get(i) or get_tuple_element(instruction, i) for i in range(count))
    return (instruction,)
