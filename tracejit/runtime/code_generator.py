"""The one way to the code generator: its functions run in another process, and here where none can.

    built = generate("compile.compile_for", module, target, title=module.name)

Whatever needs machine code or a program's plan asks here: LLVM's aborts are errors then, and TVM is
not loaded in this process.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tracejit.backends.target import Target
from tracejit.graph import Module
from tracejit.hlo.fingerprint import fingerprint
from tracejit.loading import load
from tracejit.passes.native_calls import with_native_calls
from tracejit.runtime.cache import DiskCache, cache_key
from tracejit.runtime.imports import importing_tvm
from tracejit.targets import kernel_texts
from tracejit.traversal import called_computations

_PACKAGE = "tracejit.backends.tvm"

Progress = Callable[[int, int], None]


def generate(
    function: str,
    *arguments: Any,
    title: str,
    graph: Module | None = None,
    save: Callable[[], str] | None = None,
    progress: Progress | None = None,
    is_new: bool = False,
    here: bool = False,
) -> Any:
    """What a function of `tracejit.backends.tvm` returns, named ``"module.function"`` in it.

    ``graph`` is what the code is for: it is kept if the compiler dies, unless ``save`` says how.
    ``progress`` is told of the parts that are done, ``is_new`` asks for a copy of this process as
    it is now, and ``here`` forbids another process. Raises what the function raises, and
    `CompilationError` for ``title`` where the compiler dies.
    """
    # A CUDA program's host evaluates calls of compiled libraries, and needs no records of them.
    if not any(isinstance(each, Target) and each.is_cuda for each in arguments):
        arguments = tuple(
            with_native_calls(each) if isinstance(each, Module) else each for each in arguments
        )
    module, _, name = f"{_PACKAGE}.{function}".rpartition(".")
    server = load("tracejit.runtime.compile_server")
    try:
        if here:
            raise server.Here
        task = server.task_of(module, name, *arguments)
        return server.served(task, title, save or partial(_kept, graph), progress, is_new)
    except server.Here:
        reports = {} if progress is None else {"progress": progress}
        with importing_tvm():
            code = load(module)
        return getattr(code, name)(*arguments, **reports)


def has_own_kernels(module: Module, target: Target) -> bool:
    """Whether kernels of the user's are called, which a copy of this process as it is now knows."""
    return bool(kernel_texts(called_computations(module), target.device))


def _kept(graph: Module | None) -> str:
    """Keeps the graph; a sentence that says where."""
    if graph is None:
        return "it was compiling no graph"
    return DiskCache.default().save_graph(cache_key(fingerprint(graph), "graph"), graph)
