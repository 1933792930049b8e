"""Ops that compiled code leaves to the interpreter: LAPACK, FFT, a function of the user's.

    rooted.attach(CHOLESKY)(library_call)

The kernel is one call back into Python, with the op as HLO text (so that a program from the disk
cache needs nothing else) and the addresses of the operands and the results. Fusion gives every
operand memory of its own; scalar constants, which have none, are written into the text.
"""

from __future__ import annotations

from tracejit.backends.abi import EVALUATE
from tracejit.backends.tvm.roots import Results, rooted
from tracejit.backends.tvm.schedule.frame import Frame
from tracejit.backends.tvm.tir import Evaluate, Stmt, tirx
from tracejit.graph import Computation, Instruction, Module, Op
from tracejit.hlo import to_text
from tracejit.ops.constants import parameter
from tracejit.traversal import rebuild


def library_call(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """A kernel's whole body: the interpreter evaluates ``instruction``, an op on arrays."""
    parameters: list[Instruction] = []
    operands: list[Instruction] = []
    addresses = []
    for operand in instruction.operands:
        if operand not in frame.inputs:
            operands.append(operand)
            continue
        parameters.append(parameter(len(parameters), operand.shape))
        operands.append(parameters[-1])
        addresses.append(frame.inputs[operand].data)
    called = Computation("call", tuple(parameters), rebuild(instruction, operands))
    text = to_text(Module(instruction.op.function, called))
    addresses += [target.data for _, target in results]
    return Evaluate(tirx.call_packed(EVALUATE, text, *addresses))


def is_library_call(op: Op) -> bool:
    """Whether compiled code leaves an op to the interpreter."""
    return rooted.get(op) is library_call
