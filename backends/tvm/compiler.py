"""The compiler's front: a module in, machine code out."""

from __future__ import annotations

from tracejit.backends.artifact import InProcess
from tracejit.backends.target import CPU, Target
from tracejit.backends.tvm.aliases import aliases_of
from tracejit.backends.tvm.build import Progress, build
from tracejit.backends.tvm.cpu import cpu_target
from tracejit.backends.tvm.lower import lower
from tracejit.graph import Module


def compile_for(
    module: Module, target: Target = CPU, progress: Progress | None = None
) -> bytes | InProcess:
    """The module for a processor: an artifact to keep, or code in this process alone.

    The second where no linker is installed. Raises `CompilationError` for an op without a rule,
    `AttributeValueError` for an unknown processor.
    """
    processor = cpu_target(target)
    program = lower(module.entry, processor.machine, aliases_of(module))
    return build(program, processor, progress)
