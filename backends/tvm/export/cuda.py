"""Exported libraries for CUDA devices: device pointers and a stream, or the host's arrays.

    made = cuda_files([("model", module, ["x"], ["result"])], "model", "model.so", Target("cuda"))

``model`` queues its kernels on a stream, ``model_on_host`` copies there and back. The library holds
the devices' machine code, and finds the driver when it is first called.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources

from tracejit.backends.launch_plan import (
    CONSTANT,
    INPUT,
    OUTPUT,
    Choose,
    DeviceAddress,
    Launch,
    LibraryCall,
    Repeat,
    every_node,
)
from tracejit.backends.launch_plan import Node as PlanNode
from tracejit.backends.target import CPU, Target
from tracejit.backends.tvm.cpu.processor import processor_of
from tracejit.backends.tvm.cuda.build import joined, launch_plan, source_of
from tracejit.backends.tvm.cuda.target import cuda_target
from tracejit.backends.tvm.export.c_types import c_type
from tracejit.backends.tvm.export.entries import Entry, entry_for, require_arrays
from tracejit.backends.tvm.export.header import described
from tracejit.backends.tvm.export.library import (
    exporting,
    find_compiler,
    run_tool,
    temporary_folder,
)
from tracejit.backends.tvm.export.loader import loader
from tracejit.backends.tvm.export.source import constants_of, included, with_plain_names
from tracejit.backends.tvm.lower.lowering import lower
from tracejit.cuda.nvrtc import compiler
from tracejit.errors import UnsupportedError
from tracejit.graph import Module

MESSAGES = (
    "success",
    "an argument or a result is a null pointer",
    "there is no NVIDIA driver, or no device",
    "there is no memory left",
    "the library has no code for this device",
    "a kernel or a copy failed",
)
"""The error messages of the functions' return values, 0 first."""


def cuda_files(
    functions: Sequence[tuple[str, Module, Sequence[str], Sequence[str]]],
    name: str,
    file_name: str,
    target: Target,
) -> tuple[bytes, str, str, list[Entry]]:
    """The shared library, its header for C, the Python module that loads it, and its functions.

    Raises what `require_arrays` raises, and `CompilationError` without NVRTC or a C compiler.
    """
    arch = target.resolved().processor
    device = cuda_target(arch)
    entries = []
    for title, module, arguments, results in functions:
        require_arrays(title, module)
        program = lower(module.entry, device)
        entries.append(entry_for(title, program, arguments, results))
    sources = [source_of(entry.program, f"{entry.name}_") for entry in entries]
    for entry, source in zip(entries, sources, strict=True):
        for kernel in entry.program.kernels:
            if kernel.name in source.host_calls:
                raise UnsupportedError(
                    f"export: {', '.join(dict.fromkeys(kernel.stats.ops))} needs Python, which a "
                    "library for C does not have"
                )
    code = compiler().compile(joined(sources), arch).cubin
    plans = [
        launch_plan(entry.program, source) for entry, source in zip(entries, sources, strict=True)
    ]
    text = "\n".join(_source(entries, plans, name)) + "\n"
    contents = {"source.c": text.encode(), "code": code, "constants": constants_of(entries)}
    exported = [f"{e.name}{end}" for e in entries for end in ("", "_on_host")]
    made = _linked(contents, [*exported, f"{name}_message"])
    architecture = {"arm64": "aarch64", "amd64": "x86_64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )
    python = loader(entries, name, file_name, architecture, on_host="_on_host")
    return made, "\n".join(_header(entries, name, file_name, arch)) + "\n", python, entries


def _linked(contents: Mapping[str, bytes], exported: Sequence[str]) -> bytes:
    """The library of a source and of the files that it includes."""
    compiler = find_compiler(processor_of(CPU))
    with temporary_folder() as folder:
        for name, data in contents.items():
            (folder / name).write_bytes(data)
        options = ["-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-shared", "-o", "made"]
        linking = [*exporting(exported, folder), "-ldl"]
        run_tool([*compiler, *options, "source.c", *linking], folder)
        return (folder / "made").read_bytes()


Planned = tuple[Sequence[PlanNode], int]
"""The launches of a program, and the bytes of its workspace."""


def _signature(entry: Entry, on_host: bool) -> str:
    arrays = [f"const {c_type(a.spec.dtype)} *{a.name}" for a in entry.arguments]
    arrays += [f"{c_type(a.spec.dtype)} *{a.name}" for a in entry.results]
    if on_host:
        return f"int {entry.name}_on_host({', '.join(arrays) or 'void'})"
    return f"int {entry.name}({', '.join(['void *stream', *arrays])})"


def _header(entries: Sequence[Entry], name: str, library: str, arch: str) -> Iterator[str]:
    guard = f"TRACEJIT_{name.upper()}_H"
    yield f"/* Functions of {library} for CUDA devices of {arch}, compiled by tracejit.\n *"
    yield " * Arrays are dense and row-major, aligned to their element type. Results overlap"
    yield " * neither arguments nor each other. A function takes pointers to the memory of the"
    yield " * current context's device, and a CUstream (or cudaStream_t), on which it queues its"
    yield " * kernels: it returns before they have run, but where loops depend on values. With no"
    yield " * current context it works in the first device's primary one. Those that end in"
    yield " * _on_host take pointers to the host's memory, and wait. All return 0, or a status"
    yield f" * that {name}_message explains. Any number of threads may call at once. */"
    yield f"#ifndef {guard}\n#define {guard}\n"
    yield "#include <stdint.h>\n"
    yield '#ifdef __cplusplus\nextern "C" {\n#endif\n'
    for entry in entries:
        yield f"/* {entry.name}\n *"
        for kind, arrays in (("takes", entry.arguments), ("returns", entry.results)):
            yield from (f" * {kind} {described(array)}" for array in arrays)
        yield " */"
        yield f"{_signature(entry, False)};\n{_signature(entry, True)};\n"
    yield "/* What a status means:"
    yield from (f" * {number} {message}" for number, message in enumerate(MESSAGES))
    yield " */"
    yield f"const char *{name}_message(int status);\n"
    yield "#ifdef __cplusplus\n}\n#endif\n"
    yield "#endif"


def _source(entries: Sequence[Entry], plans: Sequence[Planned], name: str) -> Iterator[str]:
    launches = [launch for nodes, _ in plans for launch in _launches(nodes)]
    shared: dict[str, int] = {}
    for launch in launches:
        shared[launch.function] = max(shared.get(launch.function, 0), launch.shared_bytes)
    numbers = {function: number for number, function in enumerate(shared)}
    yield f"#define FUNCTIONS {max(len(shared), 1)}"
    yield f"#define CONSTANT_BYTES {len(constants_of(entries))}"
    yield f"#define MOST_ARGUMENTS {max([len(x.arguments) for x in launches], default=0) + 1}"
    yield from included("model_code", "code")
    yield from included("model_constants", "constants")
    names = ", ".join(f'"{function}"' for function in shared) or '""'
    yield f"static const char *const function_names[FUNCTIONS] = {{{names}}};"
    sizes = ", ".join(map(str, shared.values())) or "0"
    yield f"static const int function_shared[FUNCTIONS] = {{{sizes}}};"
    yield resources.files(__package__).joinpath("cuda_runtime.c").read_text(encoding="utf-8")
    yield '#define API __attribute__((visibility("default")))'
    yield f"API const char *{name}_message(int status) {{"
    yield "  static const char *const messages[] = {"
    yield from (f'    "{message}",' for message in MESSAGES)
    yield "  };"
    yield f'  if (status < 0 || status >= {len(MESSAGES)}) return "unknown status";'
    yield "  return messages[status];"
    yield "}"
    first = 0
    for entry, plan in zip(entries, plans, strict=True):
        plain = with_plain_names(entry)
        yield from _function(plain, plan, first, numbers)
        yield from _on_host(plain)
        first += len(constants_of([entry]))


def _launches(nodes: Sequence[PlanNode]) -> Iterator[Launch]:
    yield from (node for node in every_node(nodes) if isinstance(node, Launch))


def _function(entry: Entry, plan: Planned, first: int, numbers: Mapping[str, int]) -> Iterator[str]:
    nodes, workspace_bytes = plan
    arrays = [array for array in (*entry.arguments, *entry.results) if array.spec.nbytes]
    yield f"API {_signature(entry, False)} {{"
    if arrays:
        yield f"  if ({' || '.join(f'!{array.name}' for array in arrays)}) return 1;"
    yield "  const Loaded *loaded;"
    yield "  int pushed, status = enter(&loaded, &pushed);"
    yield "  Address workspace = 0;"
    yield "  if (status) goto end;"
    if workspace_bytes:
        yield f"  if (cuMemAllocAsync(&workspace, {workspace_bytes}, stream)) {{"
        yield "    status = NO_MEMORY;"
        yield "    goto end;"
        yield "  }"
    yield "  status = FAILED;"
    places = _Places(entry, first, numbers)
    yield from places.nodes(nodes, "  ")
    yield "  status = 0;"
    yield "end:"
    yield "  if (workspace && cuMemFreeAsync(workspace, stream)) status = FAILED;"
    yield "  leave(pushed);"
    yield "  return status;"
    yield "}"


class _Places:
    """The statements of one function."""

    def __init__(self, entry: Entry, first: int, numbers: Mapping[str, int]) -> None:
        self._numbers = numbers
        self._names = {
            INPUT: [array.name for array in entry.arguments],
            OUTPUT: [array.name for array in entry.results],
        }
        self._constants = []
        for array in entry.program.constants:
            self._constants.append(first)
            first += array.nbytes + -array.nbytes % 64

    def nodes(self, nodes: Sequence[PlanNode], indent: str) -> Iterator[str]:
        for node in nodes:
            if isinstance(node, Launch):
                values = ", ".join(map(self._address, node.arguments)) or "0"
                function = f"loaded->functions[{self._numbers[node.function]}]"
                sizes = f"{node.blocks}, {node.threads}, {node.shared_bytes}"
                count = len(node.arguments)
                given = f"{function}, {sizes}, stream, (Address[]){{{values}}}, {count}"
                yield f"{indent}if (start({given})) goto end;"
            elif isinstance(node, LibraryCall):
                yield from self.nodes(node.otherwise, indent)
            elif isinstance(node, Repeat):
                yield f"{indent}for (;;) {{"
                yield from self.nodes(node.condition, indent + "  ")
                yield f"{indent}  uint8_t goes_on;"
                where = self._address(node.predicate)
                yield f"{indent}  if (told(&goes_on, {where}, 1, stream)) goto end;"
                yield f"{indent}  if (!goes_on) break;"
                yield from self.nodes(node.body, indent + "  ")
                yield f"{indent}}}"
            elif isinstance(node, Choose):
                yield f"{indent}{{"
                yield f"{indent}  int32_t chosen;"
                where = self._address(node.selector)
                yield f"{indent}  if (told(&chosen, {where}, 4, stream)) goto end;"
                yield f"{indent}  switch (chosen) {{"
                last = len(node.branches) - 1
                for number, branch in enumerate(node.branches):
                    yield f"{indent}    {'default' if number == last else f'case {number}'}:;"
                    yield from self.nodes(branch, indent + "      ")
                    yield f"{indent}      break;"
                yield f"{indent}  }}"
                yield f"{indent}}}"

    def _address(self, place: DeviceAddress) -> str:
        if place.memory == CONSTANT:
            return f"loaded->constants + {self._constants[place.index] + place.offset}"
        names = self._names.get(place.memory)
        base = "workspace" if names is None else f"(Address){names[place.index]}"
        return f"{base} + {place.offset}"


def _on_host(entry: Entry) -> Iterator[str]:
    """The function that copies arrays to the device and back."""
    arrays = [*entry.arguments, *entry.results]
    count = len(arrays)
    given = len(entry.arguments)
    yield f"API {_signature(entry, True)} {{"
    yield f"  enum {{ COUNT = {count} }};"
    pointers = ", ".join(f"(void *){array.name}" for array in arrays) or "0"
    sizes = ", ".join(str(array.spec.nbytes) for array in arrays) or "0"
    yield f"  void *const host[COUNT + 1] = {{{pointers}}};"
    yield f"  static const size_t bytes[COUNT + 1] = {{{sizes}}};"
    yield "  Address device[COUNT + 1] = {0};"
    yield "  const Loaded *loaded;"
    yield "  for (int n = 0; n < COUNT; n++)"
    yield "    if (bytes[n] && !host[n]) return 1;"
    yield "  int pushed, status = enter(&loaded, &pushed);"
    yield "  for (int n = 0; !status && n < COUNT; n++)"
    yield "    if (bytes[n] && cuMemAlloc_v2(&device[n], bytes[n])) status = NO_MEMORY;"
    yield f"  for (int n = 0; !status && n < {given}; n++)"
    yield "    if (copied_in(device[n], host[n], bytes[n])) status = FAILED;"
    values = "".join(f", (void *)device[{n}]" for n in range(count))
    yield f"  if (!status) status = {entry.name}(NULL{values});"
    yield f"  for (int n = {given}; !status && n < COUNT; n++)"
    yield "    if (bytes[n] && told(host[n], device[n], bytes[n], NULL)) status = FAILED;"
    yield "  for (int n = 0; n < COUNT; n++)"
    yield "    if (device[n]) cuMemFree_v2(device[n]);"
    yield "  leave(pushed);"
    yield "  return status;"
    yield "}"
