"""The compiler's front: a module in, machine code out."""

from __future__ import annotations

from dataclasses import replace

from tracejit.backends.artifact import InProcess
from tracejit.backends.tvm.aliases import aliases_of
from tracejit.backends.tvm.build import Progress, build
from tracejit.backends.tvm.cpu import host_target
from tracejit.backends.tvm.lower import lower
from tracejit.graph import Module


def compile_for_host(
    module: Module, progress: Progress | None = None, fast_math: bool = False
) -> bytes | InProcess:
    """The module for this machine's processor: an artifact to keep, or code in this process alone.

    The second where no linker is installed. Raises `CompilationError` for an op without a rule.
    """
    target = replace(host_target(), fast_math=fast_math)
    program = lower(module.entry, target.machine, aliases_of(module))
    return build(program, target, progress)
