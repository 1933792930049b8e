"""Small programs, written as TIR by hand, and the way from a program to something to call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.backends.abi import ArraySpec
from tracejit.backends.artifact import InProcess
from tracejit.runtime import DiskCache, Executable, importing_tvm

with importing_tvm():
    from tracejit.backends.tvm.cpu.objects.build import build
    from tracejit.backends.tvm.cpu.processor import processor_of
    from tracejit.backends.tvm.ir.tir import PARALLEL, SERIAL, Expr, buffer, loop, store
    from tracejit.backends.tvm.program.program import Argument, Call, Kernel, Program

Formula = Callable[..., Expr]

# NumPy's name of an element type, and TIR's for the memory that holds it; complex is two reals.
MEMORY = {
    "bool": ("uint8", 1),
    "int4": ("int8", 1),
    "uint4": ("uint8", 1),
    "int8": ("int8", 1),
    "int16": ("int16", 1),
    "int32": ("int32", 1),
    "int64": ("int64", 1),
    "uint8": ("uint8", 1),
    "uint16": ("uint16", 1),
    "uint32": ("uint32", 1),
    "uint64": ("uint64", 1),
    "float8_e4m3fn": ("uint8", 1),
    "float8_e5m2": ("uint8", 1),
    "bfloat16": ("uint16", 1),
    "float16": ("float16", 1),
    "float32": ("float32", 1),
    "float64": ("float64", 1),
    "complex64": ("float32", 2),
    "complex128": ("float64", 2),
}


def spec(dtype: str, *shape: int) -> ArraySpec:
    return ArraySpec(np.dtype(dtype), shape)


def elementwise(
    name: str,
    formula: Formula,
    size: int,
    inputs: int = 2,
    dtype: str = "float32",
    parallel: bool = False,
) -> Kernel:
    """A kernel of ``inputs`` arrays and one result of ``size`` items each."""
    *sources, target = (buffer(f"b{n}", (size,), dtype) for n in range(inputs + 1))
    kind = PARALLEL if parallel else SERIAL
    body = loop(size, lambda i: store(target, i, formula(*(s[i] for s in sources))), kind)
    return Kernel(name, (*sources, target), body)


def copy(dtype: str, size: int) -> Kernel:
    """A kernel that copies ``size`` items of a NumPy element type."""
    memory, words = MEMORY[dtype]
    return elementwise("copy", lambda x: x, size * words, 1, memory)


def of_one_kernel(kernel: Kernel, inputs: Sequence[ArraySpec], output: ArraySpec) -> Program:
    arguments = [*map(Argument.input, range(len(inputs))), Argument.output(0)]
    return Program([kernel], [Call(kernel.name, arguments)], inputs, [output])


def addition(size: int = 10) -> Program:
    array = spec("float32", size)
    return of_one_kernel(elementwise("add", lambda x, y: x + y, size), [array, array], array)


def built(program: Program, **options: Any) -> bytes:
    data = build(program, processor_of(), **options)
    assert isinstance(data, bytes)
    return data


def loaded(data: bytes | InProcess) -> Executable:
    """What `build` made, to be called, and kept nowhere."""
    return DiskCache(None).add("", data)


def executable(program: Program) -> Executable:
    return loaded(built(program))
