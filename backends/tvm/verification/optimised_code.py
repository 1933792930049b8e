"""Verifies the code that LLVM's passes leave: no index may be half of a forwarded store.

    refuse_forwarded_indices(text_of_llvm)      # raises `CompilationError`

    store <2 x i32> %indices, ptr %order        # LLVM 22 for x86 forwards all 64 bits
    %index = load i32, ptr %order               # to this, where the address below
    %wide = sext i32 %index to i64              # scales it
    %address = getelementptr double, ptr %x, i64 %wide

TIR does not show that LLVM joins two stores. Kernels in which it may are compiled without
the pass that joins them (see `cpu.objects.stored_indices`), and this is the proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tracejit.errors import CompilationError

_FUNCTION = re.compile(r"^define .*?@([\w.$-]+)\(")
_OFFSET = re.compile(r"(%\S+) = getelementptr .*?i8, ptr (%[^\s,]+), i64 (-?\d+)(?:,|$)")
_STORE = re.compile(r"store <2 x i32> .+, ptr (%[^\s,]+)(?:,|$)")
_LOAD = re.compile(r"(%\S+) = load i32, ptr (%[^\s,]+)(?:,|$)")
_WIDEN = re.compile(r"(%\S+) = [sz]ext (?:nneg )?i32 (%\S+) to i64")
_ADDRESS = re.compile(r"getelementptr .*?(?:double|float|ptr|i64|i32), ptr [^,]+, i64 (%[^\s,]+)")


def refuse_forwarded_indices(text: str) -> None:
    """Raise `CompilationError` for functions of LLVM's text that LLVM would compile wrongly."""
    for name, lines in _functions(text):
        if _forwards(lines):
            raise CompilationError(
                f"code generation: {name} loads an index that LLVM stored in a vector of two"
            )


def _functions(text: str) -> Iterator[tuple[str, list[str]]]:
    name = ""
    lines: list[str] = []
    for line in text.splitlines():
        found = _FUNCTION.match(line)
        if found:
            name, lines = found[1], []
        elif line == "}":
            yield name, lines
        else:
            lines.append(line)


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """The parts between conditional branches: instructions are selected in one block at a time.

    Blocks that a plain branch joins are one, since LLVM may still merge them.
    """
    block: list[str] = []
    for line in lines:
        block.append(line)
        if line.lstrip().startswith(("br i1 ", "switch ")):
            yield block
            block = []
    yield block


def _forwards(lines: list[str]) -> bool:
    """Whether a load reads a pair that its block stores, widens it, and scales it to an address."""
    offsets = {m[1]: (m[2], int(m[3])) for m in map(_OFFSET.search, lines) if m}
    for block in _blocks(lines):
        memory = {_place(m[1], offsets) for m in map(_STORE.search, block) if m}
        loads = [m for m in map(_LOAD.search, block) if m]
        loaded = {m[1] for m in loads if _place(m[2], offsets) in memory}
        wide = {m[1] for m in map(_WIDEN.search, block) if m and m[2].rstrip(",") in loaded}
        if any(m and m[1] in wide for m in map(_ADDRESS.search, block)):
            return True
    return False


def _place(pointer: str, offsets: Mapping[str, tuple[str, int]]) -> tuple[str, int]:
    """The pointer at the start of a chain of offsets, and the bytes between them."""
    bytes_from = 0
    while pointer in offsets:
        pointer, offset = offsets[pointer]
        bytes_from += offset
    return pointer, bytes_from
