"""The one place that joins all parts: what runs a graph is chosen here."""

from __future__ import annotations

import importlib
import threading
from typing import Any

import numpy as np

from tracejit.backends.numpy.interpreter import evaluate, evaluate_instruction
from tracejit.errors import AttributeValueError
from tracejit.graph import Module
from tracejit.hlo import to_text
from tracejit.runtime import DiskCache, Executable, cache_key, importing_tvm
from tracejit.shapes import TupleShape
from tracejit.trace.evaluation import use_evaluator
from tracejit.transforms import compiler
from tracejit.transforms.interpreted import Checked

TARGETS = ("cpu",)

_compiling = threading.Lock()


def interpret(module: Module, *arrays: Any) -> Any:
    """The result of a module on ``arrays``, worked out op by op with NumPy."""
    return evaluate(module.entry, [np.asarray(array) for array in arrays])


class Compiled:
    """A compiled module; called with arrays it returns the array, or a tuple of them."""

    def __init__(self, module: Module, program: Executable) -> None:
        self.module = module
        self.program = program

    def __call__(self, *arrays: Any) -> Any:
        """The results, new arrays. Raises `ArgumentError` for arguments of another shape or type.

        A tuple within a tuple comes back flat.
        """
        values = self.program([np.asarray(array) for array in arrays])
        return tuple(values) if isinstance(self.module.entry.root.shape, TupleShape) else values[0]


def compile(module: Module, target: str = "cpu") -> Compiled:
    """Machine code for a module, to be called with one array for each parameter.

    Raises `AttributeValueError` for an unknown target, `CompilationError` for an op that cannot be
    compiled.
    """
    return Compiled(module, executable(module, target))


def executable(module: Module, target: str = "cpu") -> Executable:
    """Machine code for a module, from the disk cache if it was compiled before, else by TVM."""
    if target not in TARGETS:
        raise AttributeValueError(f"target must be one of {', '.join(TARGETS)}, not {target!r}")
    cache, key = DiskCache.default(), cache_key(to_text(module), target)
    found = cache.find(key)
    if found is not None:
        return found
    # One compilation uses all threads; two at once would only wait for each other.
    with _compiling:
        with importing_tvm():
            backend = importlib.import_module("tracejit.backends.tvm.compiler")
        return cache.add(key, backend.compile_for_host(module))


def _compiler(module: Module, target: str, check: bool) -> compiler.Executable:
    return Checked(module) if check else executable(module, target)


use_evaluator(evaluate_instruction)
compiler.use_compiler(_compiler)
