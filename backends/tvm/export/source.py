"""Generates the C source of an exported library: functions that call the kernels in order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import resources

from tracejit.backends.tvm.export.c_types import c_type
from tracejit.backends.tvm.export.entries import Array, Entry
from tracejit.backends.tvm.export.native_records import record_name, records_of, start_of
from tracejit.backends.tvm.program.program import Argument, Branch, Call, Loop, Memory, Node
from tracejit.native_calls import Symbols

# The version of the calling convention of exported functions.
_INTERFACE = 1

MESSAGES = (
    "success",
    "an argument or a result is a null pointer",
    "there is no memory left",
    "a kernel failed",
    "this processor lacks instructions that the library was compiled for",
    "a linked function failed",
)
"""The error messages of the functions' return values, 0 first."""

_NULL, _MEMORY, _KERNEL, _PROCESSOR, _LINKED = range(1, 6)


def source(
    entries: Sequence[Entry],
    name: str,
    threads: int,
    features: Sequence[str],
    constants: str,
    symbols: Mapping[str, Symbols],
) -> str:
    """The text of the one C file.

    ``features`` are required of the processor, by GCC's names; ``constants`` is the path of a file
    with all constants of all entries, one after the other; ``symbols`` the names of linked
    functions in C, by the targets of custom calls.
    """
    return "\n".join(_lines(entries, name, threads, features, constants, symbols)) + "\n"


def constants_of(entries: Sequence[Entry]) -> bytes:
    """The constants of all entries, each at a multiple of 64 bytes."""
    parts = []
    for entry in entries:
        for array in entry.program.constants:
            data = array.tobytes()
            parts.append(data + bytes(-len(data) % 64))
    return b"".join(parts)


def _lines(
    entries: Sequence[Entry],
    name: str,
    threads: int,
    features: Sequence[str],
    constants: str,
    symbols: Mapping[str, Symbols],
) -> Iterator[str]:
    yield f"#define COMPILED_THREADS {threads}"
    yield _file(__package__, "runtime.c")
    calls_others = any(entry.program.native_calls for entry in entries)
    if calls_others:
        yield _file("tracejit.backends", "include/tracejit/ops.h")
        yield _file(__package__, "native.c")
        for entry in entries:
            yield from records_of(entry, symbols)
        yield from start_of(entries, symbols)
    yield '#define API __attribute__((visibility("default")))'
    yield from included("model_constants", constants)
    yield "static int processor_suits(void) {"
    if features:
        yield "#if defined(__x86_64__) || defined(__i386__)"
        yield "  __builtin_cpu_init();"
        checks = " && ".join(f'__builtin_cpu_supports("{feature}")' for feature in features)
        yield f"  return {checks};"
        yield "#endif"
    yield "  return 1;"
    yield "}"
    yield f"API const char *{name}_message(int status) {{"
    yield "  static const char *const messages[] = {"
    yield from (f'    "{message}",' for message in MESSAGES)
    yield "  };"
    yield f'  if (status < 0 || status >= {len(MESSAGES)}) return "unknown status";'
    if calls_others:
        yield f"  if (status == {_LINKED}) return native_message;"
    yield "  return messages[status];"
    yield "}"
    yield f"API void {name}_set_threads(int count) {{ set_thread_count(count); }}"
    yield f"API uint64_t {name}_abi(void) {{ return {abi_of(entries)}; }}"
    yield f"API void {name}_set_allocator("
    yield "    void *(*allocate)(size_t, size_t), void (*release)(void *)) {"
    yield "  allocate_memory = allocate ? allocate : allocate_aligned;"
    yield "  release_memory = allocate ? release : free;"
    yield "}"
    first = 0
    for entry in entries:
        yield from _entry(with_plain_names(entry), first)
        first += len(constants_of([entry]))
    yield "__attribute__((destructor)) static void free_memory(void) {"
    yield from (f"  give_memory(&kept_for_{e.name}, NULL);" for e in _keeping(entries))
    yield "}"


def _file(package: str, name: str) -> str:
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def _keeping(entries: Sequence[Entry]) -> list[Entry]:
    """The functions that keep a workspace between calls."""
    return [entry for entry in entries if entry.program.workspace_bytes]


def with_plain_names(entry: Entry) -> Entry:
    """Replaces array names that would hide other names."""

    def named(arrays: Sequence[Array], name: str) -> list[Array]:
        return [replace(array, name=f"{name}_{n}") for n, array in enumerate(arrays)]

    arguments, results = named(entry.arguments, "argument"), named(entry.results, "result")
    return replace(entry, arguments=arguments, results=results)


def included(symbol: str, path: str) -> Iterator[str]:
    """The contents of a file as an array of C, at a multiple of 64 bytes."""
    yield f"extern const char {symbol}[];"
    yield "#ifdef __APPLE__"
    yield f'__asm__(".const_data\\n.p2align 6\\n_{symbol}:\\n.incbin \\"{path}\\"\\n.text");'
    yield "#else"
    yield f'__asm__(".pushsection .rodata\\n.balign 64\\n.hidden {symbol}\\n"'
    yield f'        "{symbol}:\\n"'
    yield f'        ".incbin \\"{path}\\"\\n.byte 0\\n.popsection");'
    yield "#endif"


def signature(entry: Entry) -> str:
    """``int model(const float *x, float *result)``"""
    arguments = [f"const {c_type(a.spec.dtype)} *{a.name}" for a in entry.arguments]
    results = [f"{c_type(r.spec.dtype)} *{r.name}" for r in entry.results]
    return f"int {entry.name}({', '.join([*arguments, *results]) or 'void'})"


def abi_of(entries: Sequence[Entry]) -> str:
    """A number in C that changes with the interface: of functions, and of how they are called."""
    text = "\n".join(
        [
            f"version {_INTERFACE}",
            *map(signature, entries),
            *(str(array.spec) for e in entries for array in (*e.arguments, *e.results)),
        ]
    )
    return f"0x{hashlib.sha256(text.encode()).hexdigest()[:16]}ull"


def _entry(entry: Entry, first: int) -> Iterator[str]:
    program = entry.program
    for kernel in program.kernels:
        kinds = ", ".join(["void *"] * len(kernel.parameters)) or "void"
        yield f"int {kernel.name}({kinds});"
    arrays = [array for array in (*entry.arguments, *entry.results) if array.spec.nbytes]
    if program.workspace_bytes:
        yield f"static _Atomic(void *) kept_for_{entry.name};"
    yield f"API {signature(entry)} {{"
    if arrays:
        yield f"  if ({' || '.join(f'!{array.name}' for array in arrays)}) return {_NULL};"
    yield f"  if (!processor_suits()) return {_PROCESSOR};"
    if program.workspace_bytes:
        kept = f"&kept_for_{entry.name}"
        yield f"  char *workspace = take_memory({kept}, {program.workspace_bytes});"
        yield f"  if (!workspace) return {_MEMORY};"
    yield f"  int status = {_KERNEL};"
    if program.native_calls:
        yield "  native_message[0] = 0;"
        yield "  if (!native_is_ready()) goto end;"
    places = EntryStatements(entry, first)
    yield from places.nodes(program.calls, "  ")
    yield "  status = 0;"
    yield "end: __attribute__((unused));"
    if program.native_calls:
        yield f"  if (status && native_message[0]) status = {_LINKED};"
    if program.workspace_bytes:
        yield f"  give_memory({kept}, workspace);"
    yield "  return status;"
    yield "}"


class EntryStatements:
    """The statements of one function, which call its kernels."""

    def __init__(self, entry: Entry, first: int) -> None:
        self._inputs = [array.name for array in entry.arguments]
        self._outputs = [array.name for array in entry.results]
        self._constants = []
        self._records = {n: record_name(entry.name, n) for n in entry.program.native_calls}
        for array in entry.program.constants:
            self._constants.append(first)
            first += array.nbytes + -array.nbytes % 64

    def nodes(self, nodes: Sequence[Node], indent: str) -> Iterator[str]:
        for node in nodes:
            if isinstance(node, Call):
                arguments = ", ".join(self._address(argument) for argument in node.arguments)
                yield f"{indent}if ({node.kernel}({arguments})) goto end;"
            elif isinstance(node, Loop):
                yield f"{indent}for (;;) {{"
                yield from self.nodes(node.condition, indent + "  ")
                predicate = self._address(node.predicate)
                yield f"{indent}  if (!*(const volatile uint8_t *){predicate}) break;"
                yield from self.nodes(node.body, indent + "  ")
                yield f"{indent}}}"
            elif isinstance(node, Branch):
                yield from self._branch(node, indent)

    def _branch(self, branch: Branch, indent: str) -> Iterator[str]:
        yield f"{indent}switch (*(const volatile int32_t *){self._address(branch.selector)}) {{"
        last = len(branch.branches) - 1
        for number, nodes in enumerate(branch.branches):
            yield f"{indent}  {'default' if number == last else f'case {number}'}:"
            yield from self.nodes(nodes, indent + "    ")
            yield f"{indent}    break;"
        yield f"{indent}}}"

    def _address(self, argument: Argument) -> str:
        offset = argument.offset
        if argument.memory is Memory.WORKSPACE:
            return f"(void *)(workspace + {offset})"
        if argument.memory is Memory.CONSTANT and argument.index in self._records:
            return f"&{self._records[argument.index]}"
        if argument.memory is Memory.CONSTANT:
            return f"(void *)(model_constants + {self._constants[argument.index] + offset})"
        names = self._inputs if argument.memory is Memory.INPUT else self._outputs
        return f"(void *)((char *){names[argument.index]} + {offset})"
