"""The header of an exported library: every function with its shapes, and how to call it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tracejit.backends.tvm.export.c_types import c_type, note
from tracejit.backends.tvm.export.entries import Array, Entry
from tracejit.backends.tvm.export.source import MESSAGES, abi_of, signature


def header(entries: Sequence[Entry], name: str, library: str, threads: int) -> str:
    """The text of a header for C and C++; ``library`` is the file that it belongs to."""
    return "\n".join(_lines(entries, name, library, threads)) + "\n"


def _lines(entries: Sequence[Entry], name: str, library: str, threads: int) -> Iterator[str]:
    guard = f"TRACEJIT_{name.upper()}_H"
    yield f"/* Functions of {library}, compiled by tracejit.\n *"
    yield " * Arrays are dense and row-major, aligned to their element type. Results overlap"
    yield " * neither arguments nor each other. A function returns 0, or a status that"
    yield f" * {name}_message explains. Any number of threads may call at once. */"
    yield f"#ifndef {guard}\n#define {guard}\n"
    yield "#include <stddef.h>\n#include <stdint.h>\n"
    yield '#ifdef __cplusplus\nextern "C" {\n#endif\n'
    for entry in entries:
        yield f"/* {entry.name}"
        yield " *"
        for kind, arrays in (("takes", entry.arguments), ("returns", entry.results)):
            for array in arrays:
                yield f" * {kind} {described(array)}"
        yield f" *\n * and keeps {entry.program.workspace_bytes} bytes of memory to work in. */"
        yield f"{signature(entry)};\n"
    yield "/* What a status means:"
    yield from (f" * {number} {message}" for number, message in enumerate(MESSAGES))
    yield " */"
    yield f"const char *{name}_message(int status);\n"
    yield "/* How many threads a call uses from now on; 0 is as many as there are cores, but no"
    yield f" * more than {threads}. A call that comes during another uses one thread. */"
    yield f"void {name}_set_threads(int count);\n"
    yield "/* A number for the functions, their arrays and how they are called: the library's and"
    yield " * this header's. */"
    yield f"#define {name.upper()}_ABI {abi_of(entries)}"
    yield f"uint64_t {name}_abi(void);\n"
    yield "/* Where memory to work in comes from; NULL is the C library. Call it before others. */"
    yield f"void {name}_set_allocator(void *(*allocate)(size_t alignment, size_t size),"
    yield f"    {' ' * len(name)}               void (*release)(void *memory));\n"
    yield "#ifdef __cplusplus\n}\n#endif\n"
    yield "#if defined(__cplusplus) && __cplusplus >= 202002L\n#include <span>"
    for entry in entries:
        if entry.arguments or entry.results:
            yield _with_spans(entry)
    yield "#endif\n"
    yield "#endif"


def _with_spans(entry: Entry) -> str:
    """The function of C++ that takes arrays with their sizes."""
    given = [f"std::span<const {_span(array)} {array.name}" for array in entry.arguments]
    made = [f"std::span<{_span(array)} {array.name}" for array in entry.results]
    data = ", ".join(f"{array.name}.data()" for array in (*entry.arguments, *entry.results))
    called = f"{{ return {entry.name}({data}); }}"
    return f"inline int {entry.name}({', '.join([*given, *made])}) {called}"


def _span(array: Array) -> str:
    """``float, 6>``, with twice as many for complex numbers."""
    count = math.prod(array.spec.shape) * (2 if array.spec.dtype.kind == "c" else 1)
    return f"{c_type(array.spec.dtype)}, {count}>"


def described(array: Array) -> str:
    """One array in words."""
    sizes = "".join(f"[{size}]" for size in array.spec.shape)
    parts = "[2]" if array.spec.dtype.kind == "c" else ""
    kind = c_type(array.spec.dtype)
    more = note(array.spec.dtype)
    text = f"{kind} {array.name}{sizes or ('' if parts else '[1]')}{parts}"
    details = [array.described] if array.described != array.name else []
    details += [more] if more else []
    text += f" ({'; '.join(details)})" if details else ""
    return text.replace("*/", "* /").replace("/*", "/ *")
