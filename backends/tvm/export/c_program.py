"""A module as one file of C: scalar loops that read as they compute, with nothing to link but libm.

    c_program(module, "model", ["x"], ["result"])

The kernels are those of the plain target, in the order in which the program calls them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracejit.backends.tvm.export.entries import Entry, entry_for, require_arrays
from tracejit.backends.tvm.export.header import described
from tracejit.backends.tvm.export.source import (
    EntryStatements,
    constants_of,
    signature,
    with_plain_names,
)
from tracejit.backends.tvm.lower.lowering import lower
from tracejit.backends.tvm.plain.functions import PREAMBLE, helpers
from tracejit.backends.tvm.plain.printer import function
from tracejit.backends.tvm.plain.target import PLAIN
from tracejit.graph import Module

_LINE = 20


def c_program(module: Module, name: str, arguments: Sequence[str], results: Sequence[str]) -> str:
    """The text of a C file whose function ``name`` computes the module.

    Raises what `require_arrays` raises, and `CompilationError` for an op that has no loops.
    """
    require_arrays(name, module)
    entry = entry_for(name, lower(module.entry, PLAIN), arguments, results)
    return "\n".join(_lines(entry)) + "\n"


def _lines(entry: Entry) -> Iterator[str]:
    program, name = entry.program, entry.name
    yield f"/* {signature(entry)};\n *"
    for kind, arrays in (("takes", entry.arguments), ("returns", entry.results)):
        for array in arrays:
            yield f" * {kind} {described(array)}"
    yield " *\n * Written by tracejit. Arrays are dense and row-major; results overlap nothing."
    yield " * Returns 0, or 1 where there is no memory to work in. For GCC and Clang:"
    yield f" * cc -std=gnu11 -O2 -c {name}.c, to be linked with -lm. */"
    yield "#include <stdlib.h>"
    called: dict[str, str] = {}
    kernels = [function(kernel, called) for kernel in program.kernels]
    functions = "\n".join(called.values())
    yield PREAMBLE + helpers("\n".join([functions, *kernels])) + functions
    data = constants_of([entry])
    if data:
        yield "static const _Alignas(64) unsigned char model_constants[] = {"
        for start in range(0, len(data), _LINE):
            yield "  " + "".join(f"{byte}," for byte in data[start : start + _LINE])
        yield "};"
    for kernel in kernels:
        yield f"\nstatic {kernel}"
    plain = with_plain_names(entry)
    yield f"\n{signature(plain)} {{"
    if program.workspace_bytes:
        size = program.workspace_bytes + -program.workspace_bytes % 64
        yield f"  char *workspace = aligned_alloc(64, {size});"
        yield "  if (!workspace) return 1;"
    yield "  int status = 1;"
    yield from EntryStatements(plain, 0).nodes(program.calls, "  ")
    yield "  status = 0;"
    yield "end: __attribute__((unused));"
    if program.workspace_bytes:
        yield "  free(workspace);"
    yield "  return status;"
    yield "}"
