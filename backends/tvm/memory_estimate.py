"""Estimates a module's memory use from its buffer assignment, without compiling kernels."""

from __future__ import annotations

from tracejit.backends.target import CPU, Target
from tracejit.backends.tvm.cpu.processor import processor_of
from tracejit.backends.tvm.cpu.target import cpu_target
from tracejit.backends.tvm.lower.lowering import lower
from tracejit.graph import Module


def planned_bytes(module: Module, target: Target = CPU) -> int:
    """The bytes of arguments, constants, results and workspace of a module's program.

    Raises `CompilationError` for an op without a rule.
    """
    program = lower(module.entry, cpu_target(processor_of(target)))
    specs = (*program.inputs, *program.outputs)
    constants = sum(constant.nbytes for constant in program.constants)
    return program.workspace_bytes + constants + sum(spec.nbytes for spec in specs)
