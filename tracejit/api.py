"""The one place that joins all parts: what runs a graph is chosen here."""

from __future__ import annotations

import importlib
import threading
from typing import Any

import numpy as np

from tracejit.backends.numpy.interpreter import evaluate, evaluate_instruction
from tracejit.errors import AttributeValueError
from tracejit.graph import Computation, Module
from tracejit.hlo import to_text
from tracejit.runtime import DiskCache, Executable, cache_key, importing_tvm
from tracejit.shapes import AnyShape, TupleShape
from tracejit.trace.evaluation import use_evaluator
from tracejit.transforms import compiler
from tracejit.transforms.interpreted import Checked
from tracejit.transforms.memory_order import in_memory_order, inverse, order_of

TARGETS = ("cpu",)

_compiling = threading.Lock()


def interpret(module: Module | Computation, *arrays: Any) -> Any:
    """The result of a module, or of one computation, worked out op by op with NumPy."""
    return evaluate(_program(module).entry, [np.asarray(array) for array in arrays])


class Compiled:
    """A compiled module; called with arrays it returns the array, or a tuple of them."""

    def __init__(self, module: Module, target: str) -> None:
        entry = module.entry
        self.module = module
        self._orders = [order_of(p.shape) for p in entry.parameters]
        wanted = [order_of(shape) for shape in entry.root.element_shapes]
        self._results = [
            order and inverse(order)
            for shape, order in zip(entry.root.element_shapes, wanted, strict=True)
            for _ in range(_leaf_count(shape))
        ]
        self._is_tuple = isinstance(entry.root.shape, TupleShape)
        self.program = executable(in_memory_order(module, self._orders, wanted), target)

    def __call__(self, *arrays: Any) -> Any:
        """The results, new arrays. Raises `ArgumentError` for arguments of another shape or type.

        An array that lies as its parameter's layout says is not copied; results lie as theirs
        say. A tuple within a tuple comes back flat.
        """
        given = [np.asarray(array) for array in arrays]
        for place, order in enumerate(self._orders[: len(given)]):
            if order and given[place].ndim == len(order):
                given[place] = given[place].transpose(order)
        values = self.program(given)
        if any(self._results):
            orders = zip(values, self._results, strict=True)
            values = [value.transpose(order) if order else value for value, order in orders]
        return tuple(values) if self._is_tuple else values[0]


def compile(module: Module | Computation, target: str = "cpu") -> Compiled:
    """Machine code for a module or a computation, to be called with one array per parameter.

    Raises `AttributeValueError` for an unknown target, `CompilationError` for an op that cannot be
    compiled.
    """
    return Compiled(_program(module), target)


def _leaf_count(shape: AnyShape) -> int:
    """How many results a value of this shape is handed out as."""
    return sum(map(_leaf_count, shape.elements)) if isinstance(shape, TupleShape) else 1


def _program(given: Module | Computation) -> Module:
    return given if isinstance(given, Module) else Module(given.name, given)


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
