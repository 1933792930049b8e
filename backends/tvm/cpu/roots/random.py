"""Lowers RngBitGenerator to a kernel of vectors."""

from __future__ import annotations

from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.codegen.scalar.random import bits_by
from tracejit.backends.tvm.cpu.root_rules import rooted
from tracejit.backends.tvm.cpu.schedule.rng_bits import generating
from tracejit.backends.tvm.ir.tir import Stmt
from tracejit.graph import Instruction
from tracejit.ops.random import RNG_BIT_GENERATOR


@rooted.attach(RNG_BIT_GENERATOR)
def rng_bit_generator(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    return bits_by(generating, frame, instruction, results)
