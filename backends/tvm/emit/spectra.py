"""Fft: rows of a power of two by a kernel, everything else left to the interpreter."""

from __future__ import annotations

import math

from tracejit.backends.tvm.known import FOURIER, INVERSE_FOURIER
from tracejit.backends.tvm.library import library_call
from tracejit.backends.tvm.roots import Results, rooted
from tracejit.backends.tvm.schedule.fourier import Rows, fourier
from tracejit.backends.tvm.schedule.frame import Frame
from tracejit.backends.tvm.tir import Stmt
from tracejit.graph import Instruction
from tracejit.ops.spectra import FFT

rooted.attach(FFT)(library_call)


@rooted.attach(FOURIER, INVERSE_FOURIER)
def rows_of_fourier(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    operand, table = instruction.operands
    *outer, length = operand.array_shape.dimensions
    rows = Rows(
        count=math.prod(outer),
        length=length,
        inverse=instruction.op is INVERSE_FOURIER,
        source=frame.inputs[operand],
        table=frame.inputs[table],
        target=results[0][1],
    )
    return fourier(frame, rows)
