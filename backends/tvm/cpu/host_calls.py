"""Callbacks to the interpreter on the host: LAPACK, FFT, users' functions.

    HostLibraries().call(FFT)        # what writes the call

The kernel is one callback into Python, with the op as HLO text (so that a program from the disk
cache needs nothing else) and the addresses of the operands and the results. Fusion materialises
every operand; scalar constants, which have no memory, are part of the text.
"""

from __future__ import annotations

from tracejit.backends.abi import EVALUATE
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results, RootRule
from tracejit.backends.tvm.ir.tir import Evaluate, Stmt, tirx
from tracejit.graph import Computation, Instruction, Module, Op
from tracejit.hlo import to_text
from tracejit.ops.constants import TUPLE, parameter
from tracejit.ops.grouped import RAGGED_DOT
from tracejit.ops.random import RNG_GET_AND_UPDATE_STATE
from tracejit.ops.spectra import FFT
from tracejit.traversal import rebuild

# Ops without a kernel of ours; others go to the library for their sizes or element types.
_LIBRARY = frozenset({FFT, RAGGED_DOT, RNG_GET_AND_UPDATE_STATE})


class HostLibraries:
    """NumPy's and SciPy's libraries, called on the addresses of arrays in the host's memory."""

    def call(self, op: Op) -> RootRule | None:
        return library_call if op in _LIBRARY else None


def library_call(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """A kernel's whole body: the interpreter evaluates ``instruction``, an op on arrays.

    Operands that are tuples must be Tuple instructions.
    """
    frame.schedule = "library call"
    parameters: list[Instruction] = []
    addresses = []

    def stand_in(operand: Instruction) -> Instruction:
        if operand.op is TUPLE:
            return rebuild(operand, [stand_in(element) for element in operand.operands])
        if operand not in frame.inputs:
            return operand
        parameters.append(parameter(len(parameters), operand.shape))
        addresses.append(frame.inputs[operand].data)
        return parameters[-1]

    operands = [stand_in(operand) for operand in instruction.operands]
    called = Computation("call", tuple(parameters), rebuild(instruction, operands))
    text = to_text(Module(instruction.op.function, called))
    addresses += [target.data for _, target in results]
    return Evaluate(tirx.call_packed(EVALUATE, text, *addresses))
