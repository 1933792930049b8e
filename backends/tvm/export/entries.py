"""The functions of an exported library: a program each, and C names for its arguments."""

from __future__ import annotations

import ctypes
import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tracejit.backends.abi import ArraySpec
from tracejit.backends.tvm.cpu.objects.identical_code_folding import fold_identical_kernels
from tracejit.backends.tvm.cpu.objects.tir_pipeline import contents
from tracejit.backends.tvm.cpu.processor import Processor
from tracejit.backends.tvm.cpu.target import cpu_target
from tracejit.backends.tvm.export.c_types import C_KEYWORDS, C_NAMES
from tracejit.backends.tvm.lower.lowering import lower
from tracejit.backends.tvm.program.program import Branch, Call, Kernel, Loop, Node, Program
from tracejit.errors import ArgumentError, UnsupportedError
from tracejit.graph import Module
from tracejit.shapes import AnyShape, Shape, TupleShape


@dataclass(frozen=True)
class Array:
    """An argument or a result: its C and Python name, and its path in the user's function."""

    name: str
    described: str
    spec: ArraySpec


@dataclass(frozen=True)
class Entry:
    """One function: ``program`` with kernels named after it, and its arrays in order."""

    name: str
    program: Program
    arguments: Sequence[Array]
    results: Sequence[Array]


def entry_of(
    name: str, module: Module, arguments: Sequence[str], results: Sequence[str], target: Processor
) -> Entry:
    """A module as a function ``name``; ``arguments`` and ``results`` describe its arrays.

    Raises what `require_arrays` raises, and `UnsupportedError` for ops that call back into Python.
    """
    require_arrays(name, module)
    without_python = cpu_target(target, replace(target.machine, python=False))
    program = fold_identical_kernels(lower(module.entry, without_python))
    for kernel in program.kernels:
        called = contents(kernel.body).callbacks
        if called:
            op = ", ".join(dict.fromkeys(kernel.stats.ops)) or kernel.name
            raise UnsupportedError(
                f"export: {op} needs Python ({', '.join(called)}), "
                "which a library for C does not have"
            )
    return entry_for(name, program, arguments, results)


def require_arrays(name: str, module: Module) -> None:
    """Raises `ArgumentError` for a name that is no identifier in C or Python, or that the C library
    uses, `UnsupportedError` for dynamic dimensions and for more than one device.
    """
    _require_name(name)
    if (module.replica_count, module.num_partitions) != (1, 1):
        raise UnsupportedError("export: the module runs on several devices")
    for shape in (*(p.shape for p in module.entry.parameters), module.entry.root.shape):
        if not all(isinstance(s, Shape) and not s.is_dynamic for s in _leaves(shape)):
            raise UnsupportedError(
                f"export: {name} takes or returns {shape}, which is no array of C"
            )


def entry_for(
    name: str, program: Program, arguments: Sequence[str], results: Sequence[str]
) -> Entry:
    """A program as a function ``name``; ``arguments`` and ``results`` describe its arrays."""
    program.check()
    taken = set(C_NAMES)
    return Entry(
        name,
        _renamed(program, f"{name}_"),
        [
            Array(_unique(d, "argument", taken), d, spec)
            for d, spec in zip(arguments, program.inputs, strict=True)
        ],
        [
            Array(_unique(d, "result", taken), d, spec)
            for d, spec in zip(results, program.outputs, strict=True)
        ],
    )


def _require_name(name: str) -> None:
    """Raises `ArgumentError` for an invalid function name."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in C_KEYWORDS | C_NAMES:
        raise ArgumentError(f"export: {name!r} cannot be the name of a function in C")
    if keyword.iskeyword(name):
        raise ArgumentError(f"export: {name!r} cannot be the name of a function in Python")
    # The dynamic linker would bind calls of the C function to the exported one.
    if name == "main" or hasattr(ctypes.CDLL(None), name):
        raise ArgumentError(
            f"export: C's library has a function {name!r}; give another name with name="
        )


def _leaves(shape: AnyShape) -> list[AnyShape]:
    if isinstance(shape, TupleShape):
        return [leaf for element in shape.elements for leaf in _leaves(element)]
    return [shape]


def _unique(described: str, otherwise: str, taken: set[str]) -> str:
    """``described`` as an identifier of C and Python: parameters['w'][0] is parameters_w_0."""
    words = re.findall(r"[A-Za-z0-9_]+", described)
    wanted = "_".join(word.strip("_") or "_" for word in words)
    if not re.match(r"[A-Za-z]", wanted):
        wanted = f"{otherwise}_{wanted}".rstrip("_")
    if wanted in C_KEYWORDS or keyword.iskeyword(wanted):
        wanted += "_"
    name, count = wanted, 1
    while name in taken:
        count += 1
        name = f"{wanted}_{count}"
    taken.add(name)
    return name


def _renamed(program: Program, prefix: str) -> Program:
    """The program with a prefix before its kernels' names."""

    def kernel(each: Kernel) -> Kernel:
        return replace(each, name=prefix + each.name)

    def nodes(given: Sequence[Node]) -> list[Node]:
        made: list[Node] = []
        for node in given:
            if isinstance(node, Call):
                made.append(replace(node, kernel=prefix + node.kernel))
            elif isinstance(node, Loop):
                made.append(replace(node, condition=nodes(node.condition), body=nodes(node.body)))
            elif isinstance(node, Branch):
                made.append(replace(node, branches=[nodes(b) for b in node.branches]))
        return made

    kernels = [kernel(each) for each in program.kernels]
    return replace(program, kernels=kernels, calls=nodes(program.calls))
