"""Callbacks to the interpreter on the host: LAPACK, FFT, users' functions.

    HostLibraries().call(FFT)        # the rule that writes the call
    host_call_of(kernel)             # for a target whose kernels cannot call Python

The kernel is one callback into Python, with the op as HLO text (so that a program from the disk
cache needs nothing else) and the addresses of the operands and the results. Fusion materialises
every operand; scalar constants, which have no memory, are part of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tvm.ir import Call

from tracejit.backends.abi import EVALUATE
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results, RootRule
from tracejit.backends.tvm.ir.tir import Evaluate, Stmt, tirx
from tracejit.backends.tvm.program.program import Kernel
from tracejit.backends.tvm.verification.routines import pointed
from tracejit.graph import Computation, Instruction, Module, Op
from tracejit.hlo import to_text
from tracejit.ops.constants import TUPLE, parameter
from tracejit.ops.custom import CUSTOM_CALL
from tracejit.ops.grouped import RAGGED_DOT
from tracejit.ops.random import RNG_GET_AND_UPDATE_STATE
from tracejit.ops.spectra import FFT
from tracejit.traversal import rebuild

# Ops without a kernel of ours; others go to the library for their sizes or element types.
_LIBRARY = frozenset({FFT, RAGGED_DOT, RNG_GET_AND_UPDATE_STATE})
ONLY_ON_HOSTS = frozenset({CUSTOM_CALL, RNG_GET_AND_UPDATE_STATE})
"""Ops that need the host: functions of the user's, queues, and the state of random numbers."""


class HostLibraries:
    """NumPy's and SciPy's libraries, called on the addresses of arrays in the host's memory."""

    def __init__(self, ops: AbstractSet[Op] = _LIBRARY) -> None:
        self._ops = ops

    def call(self, op: Op) -> RootRule | None:
        return library_call if op in self._ops else None


@dataclass(frozen=True)
class HostCall:
    """A call of the interpreter: the HLO ``text`` of a computation of arrays.

    ``parameters`` are those of the kernel, by number: the operands, then the results.
    """

    text: str
    parameters: Sequence[int]


def host_call_of(kernel: Kernel) -> HostCall | None:
    """The call that is a kernel's whole body, if it is one."""
    call = kernel.body.value if isinstance(kernel.body, Evaluate) else None
    if not isinstance(call, Call) or str(call.args[0]).strip('"') != EVALUATE:
        return None
    text, *pointers = call.args[1:]
    numbers = {hash(memory): n for n, memory in enumerate(kernel.parameters)}
    memories = [memory for memory, _ in map(pointed, pointers)]
    return HostCall(str(text.value), [numbers[hash(memory)] for memory in memories])


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
