"""The files of an exported library, of modules as they are.

made = files([("model", module, ["x"], ["result"])], "model", "model.so", Target("cpu"), 4)
made.library, made.header, made.loader
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tracejit.backends.export_report import FunctionSize
from tracejit.backends.target import Target
from tracejit.backends.tvm.cpu.processor import processor_of
from tracejit.backends.tvm.export.cuda import cuda_files
from tracejit.backends.tvm.export.entries import Entry, entry_of
from tracejit.backends.tvm.export.header import header
from tracejit.backends.tvm.export.library import Linked, library
from tracejit.backends.tvm.export.loader import loader
from tracejit.errors import UnsupportedError
from tracejit.graph import Module
from tracejit.native_calls import Symbols


def files(
    functions: Sequence[tuple[str, Module, Sequence[str], Sequence[str]]],
    name: str,
    file_name: str,
    target: Target,
    threads: int,
    objects: Sequence[str] = (),
    libraries: Sequence[str] = (),
    symbols: Mapping[str, Symbols] | None = None,
) -> tuple[bytes, str, str, list[FunctionSize]]:
    """The shared library of ``functions``, its header for C, the Python module that loads it,
    and what its functions take. A ``file_name`` that ends in ``.a`` is a static library.

    A function is its name, its graph, and its arrays' names; the rest is what a
    `Linked` has.

    Raises what `entry_of` and `library` raise.
    """
    if target.is_cuda:
        if objects or libraries or symbols or file_name.endswith(".a"):
            raise UnsupportedError(
                "export: a library for CUDA devices is a shared one, and links no other code"
            )
        made, text, python, found = cuda_files(functions, name, file_name, target)
        return made, text, python, [_size(entry) for entry in found]
    processor = replace(processor_of(target), threads=threads)
    entries = [
        entry_of(title, module, arguments, results, processor)
        for title, module, arguments, results in functions
    ]
    linked = Linked(objects, libraries, symbols or {})
    return (
        library(entries, name, processor, linked, file_name.endswith(".a")),
        header(entries, name, file_name, threads),
        loader(entries, name, file_name, processor.architecture),
        [_size(entry) for entry in entries],
    )


def _size(entry: Entry) -> FunctionSize:
    program = entry.program
    constants = sum(array.nbytes for array in program.constants)
    return FunctionSize(entry.name, len(program.kernels), constants, program.workspace_bytes)
