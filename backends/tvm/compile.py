"""The compiler's entry points: module to machine code, module to optimised graph's text."""

from __future__ import annotations

from tracejit.backends.artifact import InProcess
from tracejit.backends.object_store import ObjectStore
from tracejit.backends.target import CPU, Target
from tracejit.backends.tvm.buffers.donation import aliases_of
from tracejit.backends.tvm.cpu.processor import processor_of
from tracejit.backends.tvm.cpu.target import cpu_target
from tracejit.backends.tvm.cuda.target import cuda_target
from tracejit.backends.tvm.lower.lowering import lower
from tracejit.backends.tvm.passes.manager import Session
from tracejit.backends.tvm.pipeline import optimized
from tracejit.backends.tvm.target import target as targets
from tracejit.backends.tvm.target.target import Progress
from tracejit.graph import Module
from tracejit.hlo import to_text


def compile_for(
    module: Module,
    target: Target = CPU,
    store: ObjectStore | None = None,
    progress: Progress | None = None,
) -> bytes | InProcess:
    """The module for a processor: an artifact to keep, or code in this process alone.

    The latter if no linker is installed. Object files that programs share are in ``store``. Raises
    `CompilationError` for an op without a rule, `AttributeValueError` for an unknown processor.
    """
    return compile_on(module, _target_of(target, store), progress)


def compile_on(
    module: Module, target: targets.Target, progress: Progress | None = None
) -> bytes | InProcess:
    """The same for any target, by the same passes, plan of kernels and buffers.

    Raises `CompilationError` for an op that the target lacks.
    """
    return target.build(lower(module.entry, target, aliases_of(module)), progress)


def optimized_text(module: Module, target: Target = CPU) -> str:
    """The module after all graph passes as HLO text, which may have the compiler's internal ops."""
    graph = optimized(module.entry, _target_of(target).limits)
    return to_text(Module(module.name, graph.computation(module.entry.name)))


def changes_of(module: Module, target: Target = CPU) -> list[tuple[str, str]]:
    """The optional passes that change a graph of the module, each with that graph."""
    session = Session()
    optimized(module.entry, _target_of(target).limits, session)
    return session.changes


def _target_of(target: Target, store: ObjectStore | None = None) -> targets.Target:
    resolved = target.resolved()
    if resolved.is_cuda:
        return cuda_target(resolved.processor)
    return cpu_target(processor_of(target), store=store)
