"""Fft: kernels for lengths with small prime factors, a callback to the interpreter for others."""

from __future__ import annotations

import math

from tracejit.backends.tvm.analysis.fft_plan import transform_of
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.root_rules import rooted
from tracejit.backends.tvm.cpu.schedule.fft.fft import fourier
from tracejit.backends.tvm.cpu.schedule.fft.real_halves import Halves, fourier_halves
from tracejit.backends.tvm.ir.internal_ops import FOURIER, FOURIER_HALVES
from tracejit.backends.tvm.ir.tir import Stmt
from tracejit.graph import Instruction


@rooted.attach(FOURIER)
def fft_kernel(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    source, table, plan = (frame.inputs[operand] for operand in instruction.operands)
    return fourier(frame, transform_of(instruction), source, table, plan, results[0][1])


@rooted.attach(FOURIER_HALVES)
def real_halves_kernel(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    operand, table = instruction.operands
    shape, inverse = instruction.array_shape, instruction.attributes["inverse"]
    *outer, length = shape.dimensions
    points = length if inverse else length - 1
    itemsize = shape.element_type.real.dtype.itemsize
    what = Halves(math.prod(outer), points, inverse, itemsize, machine_of(frame).vector_bytes)
    return fourier_halves(frame, what, frame.inputs[operand], frame.inputs[table], results[0][1])
