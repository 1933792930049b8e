"""Fft: powers of two by kernels, everything else left to the interpreter."""

from __future__ import annotations

import math

from tracejit.backends.tvm.known import FOURIER, FOURIER_COLUMNS, INVERSE_FOURIER
from tracejit.backends.tvm.library import library_call
from tracejit.backends.tvm.roots import Results, rooted
from tracejit.backends.tvm.schedule.fourier import Rows, fourier
from tracejit.backends.tvm.schedule.fourier_columns import Columns, fourier_columns
from tracejit.backends.tvm.schedule.frame import Frame
from tracejit.backends.tvm.tir import Stmt
from tracejit.graph import Instruction
from tracejit.ops.spectra import FFT

rooted.attach(FFT)(library_call)


@rooted.attach(FOURIER, INVERSE_FOURIER)
def rows_of_fourier(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    operand, table = instruction.operands
    *outer, length = operand.array_shape.dimensions
    if not operand.array_shape.element_type.is_complex:
        length //= 2
    rows = Rows(
        count=math.prod(outer),
        length=length,
        inverse=instruction.op is INVERSE_FOURIER,
        source=frame.inputs[operand],
        table=frame.inputs[table],
        target=results[0][1],
    )
    return fourier(frame, rows)


@rooted.attach(FOURIER_COLUMNS)
def columns_of_fourier(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    operand, table = instruction.operands
    count, length, columns = instruction.attributes["sizes"]
    what = Columns(
        count=count,
        length=length,
        columns=columns,
        inverse=instruction.attributes["inverse"],
        turned=instruction.attributes["turned"],
        gap=instruction.attributes["gap"],
        source=frame.inputs[operand],
        table=frame.inputs[table],
        target=results[0][1],
    )
    return fourier_columns(frame, what)
