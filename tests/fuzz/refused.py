"""What XLA is not asked, because it refuses, or dies of it.

is_deadly(module), is_long(module)        before it is asked
reason(error)                             why it refuses; '' for an error that is not known
"""

from __future__ import annotations

import numpy as np
from jax.errors import JaxRuntimeError

from tracejit.backends.numpy import evaluate
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.constants import PARAMETER
from tracejit.traversal import called_computations, in_order, instructions

# What XLA says when it refuses to compile something well-typed, and the reason.
KNOWN = {
    "mixed precision is disallowed": "its pass for bf16 and fp8 leaves Map half converted",
    "custom element sizes on non-sub-byte types": "its pass for s4 leaves Conv half converted",
    "Expected instruction to have shape equal to s4": "it simplifies bit casts to s4 wrongly",
    "Expected instruction to have shape equal to u4": "it simplifies bit casts to u4 wrongly",
    "Unsupported element type for DotThunk": "it has no code for some products of two types",
    "Failed after simplification": "it makes one of two bit casts of several widths, wrongly",
}

# XLA's CPU backend fuses long chains of steps so that each computes the ones before it again; the
# code may run for years. It is asked about the ops of longer graphs only.
_MOST = 400
LONG = "it is too long"
FATAL = "the process dies of the whole, and of none of its ops one by one"
DEADLY = "it divides integers by zero, or dies of complex numbers or cut windows of few bits"


def is_long(module: Module) -> bool:
    """Whether XLA is asked about the module's ops only, not about the whole."""
    return len(instructions(module.entry)) > _MOST


def reason(error: JaxRuntimeError) -> str:
    """Why XLA refuses; '' where that is not known."""
    return next((why for what, why in KNOWN.items() if what in str(error)), "")


def is_deadly(module: Module) -> bool:
    """Whether compiling the module ends the process that XLA runs in.

    It divides by zero when it folds constants, it takes a complex iota for its absolute values, and
    windows with negative padding lose the bits of elements of fewer than eight.
    """
    for computation in called_computations(module):
        for instruction in instructions(computation):
            if instruction.op.name == "ReduceWindow" and _is_cut(instruction):
                return True
            if instruction.op.name == "Abs" and instruction.operands[0].op.name == "Iota":
                if instruction.operands[0].array_shape.element_type.is_complex:
                    return True
            if instruction.op.name not in ("Div", "Rem") or not _is_fixed(instruction):
                continue
            if not instruction.array_shape.element_type.is_integral:
                continue
            if any(i.op is PARAMETER for i in in_order(instruction.operands[1:])):
                return True  # a divisor that is some array's size, which may be 0
            divisor = evaluate(Computation("divisor", (), instruction.operands[1]), [])
            if np.isin(divisor.astype(np.int64), (0, -1)).any():
                return True
    return False


def _is_cut(instruction: Instruction) -> bool:
    """Whether a window of elements of fewer than eight bits has negative padding."""
    narrow = any(o.array_shape.element_type.bits < 8 for o in instruction.operands)
    window = instruction.attributes["window"]
    return narrow and any(min(w.padding_low, w.padding_high) < 0 for w in window)


def _is_fixed(instruction: Instruction) -> bool:
    """Whether XLA can compute it while it compiles: constants and the sizes of dimensions."""
    seen: set[Instruction] = set()
    stack = [instruction]
    while stack:
        found = stack.pop()
        if found.op is PARAMETER:
            return False
        if found.op.name != "GetDimensionSize" and found not in seen:
            seen.add(found)
            stack.extend(found.operands)
    return True
