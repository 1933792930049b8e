"""The files of an exported library, of modules as they are.

made = files([("model", module, ["x"], ["result"])], "model", "model.so", Target("cpu"), 4)
made.library, made.header, made.loader
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracejit.backends.target import Target
from tracejit.backends.tvm.cpu.processor import processor_of
from tracejit.backends.tvm.export.entries import entry_of
from tracejit.backends.tvm.export.header import header
from tracejit.backends.tvm.export.library import library
from tracejit.backends.tvm.export.loader import loader
from tracejit.graph import Module


def files(
    functions: Sequence[tuple[str, Module, Sequence[str], Sequence[str]]],
    name: str,
    file_name: str,
    target: Target,
    threads: int,
) -> tuple[bytes, str, str]:
    """The shared library of ``functions``, its header for C, and the Python module that loads it.

    A function is its name, its graph, and its arrays' names.

    Raises what `entry_of` and `library` raise.
    """
    processor = replace(processor_of(target), threads=threads)
    entries = [
        entry_of(title, module, arguments, results, processor)
        for title, module, arguments, results in functions
    ]
    return (
        library(entries, name, processor),
        header(entries, name, file_name, threads),
        loader(entries, name, file_name, processor.architecture),
    )
