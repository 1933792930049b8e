"""A linker for a few ELF object files: faster than starting the system's linker.

    library = shared_library([file.read_bytes() for file in files])    # or None: ask a linker

Supports the ELF objects that LLVM emits for kernels on x86-64, and nothing else: no thread-local
storage, no section groups, only the relocations named here. Debug information is dropped. The
first non-weak definition of a symbol wins; undefined symbols are resolved when the library is
loaded.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

MOST_BYTES = 1 << 18
"""The most bytes of all objects together; for more, a linker is faster."""

_PAGE = 4096
_WORD = 8
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")
_TAG = struct.Struct("<QQ")
_DISTANCE = struct.Struct("<i")

_ELF = b"\x7fELF\x02\x01\x01"  # 64 bits, little endian
_OBJECT, _SHARED, _X86_64 = 1, 3, 62
# Section types, and their flags.
_CONTENT, _SYMBOLS, _RELOCATIONS, _ZEROS, _CONSTRUCTORS = 1, 2, 4, 8, 14
_UNWINDING = 0x70000001
_WRITE, _LOADED, _EXECUTE, _OF_GROUPS_OR_THREADS = 1, 2, 4, 0x200 | 0x400
# Special section indices; symbol visibilities and types.
_UNDEFINED, _ABSOLUTE, _COMMON = 0, 0xFFF1, 0xFFF2
_LOCAL, _WEAK = 0, 2
_ORDINARY = range(5)
# Relocations: absolute addresses; PC-relative distances to data, to code, to GOT entries.
_ADDRESS, _TO_PLACE, _TO_CODE, _TO_KEPT, _TO_KEPT_BY_LOAD = 1, 2, 4, (9, 41, 42), 42
# Dynamic relocations: addresses in the library, and of external symbols.
_OWN, _OTHERS = 8, 6
# `mov symbol@GOTPCREL(%rip), register`, which may be relaxed to `lea symbol(%rip), register`.
_MOV, _LEA = 0x8B, 0x8D
# `jmp *distance(%rip)`, which is six bytes long.
_INDIRECT, _JUMP = b"\xff\x25", struct.Struct("<2si2x")
# Segments, their access flags, and the tags of the dynamic section.
_TO_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551
_RUN, _MODIFY, _READ = 1, 2, 4
_HASHES, _STRINGS, _TABLE, _LEFT = 4, 5, 6, 7
_LEFT_BYTES, _LEFT_ITEM, _STRING_BYTES, _TABLE_ITEM = 8, 9, 10, 11
_BUILD, _BUILD_BYTES, _FLAGS = 25, 27, 30
_OWN_FIRST_AND_NOW = 2 | 8


class _UnknownError(Exception):
    """A feature that only a full linker supports."""


def shared_library(objects: Sequence[bytes], most: float = math.inf) -> bytes | None:
    """The bytes of a shared library; None for objects that need a full linker.

    Also None for objects of more than ``most`` bytes together.
    """
    if sum(map(len, objects)) > most:
        return None
    try:
        return _Library([_Object(data) for data in objects]).linked()
    except (_UnknownError, struct.error, IndexError):
        return None


@dataclass(eq=False)
class _Section:
    """A loaded section: its bytes, or a size for zeros, and its address."""

    kind: int
    flags: int
    data: bytearray
    size: int
    alignment: int
    relocations: list[tuple[int, int, _Symbol, int]] = field(default_factory=list)
    address: int = 0


@dataclass(frozen=True)
class _Symbol:
    """A symbol: a name, and its address if it is in a loaded section."""

    name: bytes
    section: _Section | None
    value: int
    size: int
    info: int
    is_common: bool

    @property
    def is_local(self) -> bool:
        return self.info >> 4 == _LOCAL

    @property
    def is_weak(self) -> bool:
        return self.info >> 4 == _WEAK

    @property
    def address(self) -> int:
        if self.section is None:
            raise _UnknownError
        return self.section.address + self.value


class _Object:
    """The loaded sections of an object file, and its symbols."""

    def __init__(self, data: bytes) -> None:
        ident, kind, machine, _, _, _, offset, *_, count, _ = _HEADER.unpack_from(data)
        if not ident.startswith(_ELF) or (kind, machine) != (_OBJECT, _X86_64):
            raise _UnknownError
        self._data = data
        headers = [*_SECTION.iter_unpack(self._span(offset, count * _SECTION.size))]
        self.sections = [self._section(header) for header in headers]
        self.symbols: list[_Symbol] = []
        for _, kind, _, _, offset, size, link, *_ in headers:
            if kind == _SYMBOLS:
                names = self._span(*headers[link][4:6])
                fields = _SYMBOL.iter_unpack(self._span(offset, size))
                self.symbols = [self._symbol(names, *each) for each in fields]
        for _, kind, _, _, offset, size, _, of, *_ in headers:
            section = self.sections[of] if kind == _RELOCATIONS else None
            if section is not None:
                entries = _RELOCATION.iter_unpack(self._span(offset, size))
                section.relocations += [(at, k, self.symbols[s], a) for at, k, s, a in entries]

    def _span(self, offset: int, size: int) -> bytes:
        return self._data[offset : offset + size]

    def _section(self, header: tuple[int, ...]) -> _Section | None:
        _, kind, flags, _, offset, size, _, _, alignment, _ = header
        if not flags & _LOADED or kind == _UNWINDING:
            return None
        is_written = flags & _WRITE and not flags & _EXECUTE
        is_known = kind == _CONTENT or (kind in (_ZEROS, _CONSTRUCTORS) and is_written)
        if not is_known or flags & _OF_GROUPS_OR_THREADS or alignment > _PAGE:
            raise _UnknownError
        data = bytearray() if kind == _ZEROS else bytearray(self._span(offset, size))
        return _Section(kind, flags, data, size, max(alignment, 1))

    def _symbol(
        self, names: bytes, start: int, info: int, sight: int, index: int, value: int, size: int
    ) -> _Symbol:
        is_somewhere = index not in (_UNDEFINED, _ABSOLUTE, _COMMON)
        if sight or info & 15 not in _ORDINARY:
            raise _UnknownError
        name = names[start : names.index(b"\0", start)]
        section = self.sections[index] if is_somewhere else None
        return _Symbol(name, section, value, size, info, index == _COMMON)


class _Image:
    """The bytes of the file, in three segments: read-only, executable, writable.

    Segments are adjacent in the file. In memory each begins a page later than in the file, so that
    no page belongs to two segments.
    """

    def __init__(self) -> None:
        self.data = bytearray()
        self.starts = [0]

    @property
    def end(self) -> int:
        """The address after the last byte."""
        return len(self.data) + _PAGE * (len(self.starts) - 1)

    def take(self, size: int, alignment: int = _WORD) -> int:
        """Allocate ``size`` bytes; returns their address."""
        self.data += bytes(-len(self.data) % alignment)
        address = self.end
        self.data += bytes(size)
        return address

    def place(self, sections: Sequence[_Section]) -> None:
        for section in sections:
            section.address = self.take(len(section.data), section.alignment)

    def begin_part(self) -> None:
        self.starts.append(self.end + _PAGE)

    def put(self, address: int, data: bytes | bytearray) -> None:
        part = sum(address >= start for start in self.starts) - 1
        offset = address - _PAGE * part
        self.data[offset : offset + len(data)] = data

    def segment(self, part: int, use: int, memory_end: int) -> bytes:
        """The program header of a segment, which ends at ``memory_end`` in memory."""
        start = self.starts[part]
        is_last = part + 1 == len(self.starts)
        end = self.end if is_last else self.starts[part + 1] - _PAGE
        offset, size = start - _PAGE * part, end - start
        memory = max(memory_end - start, size)
        return _SEGMENT.pack(_TO_LOAD, use, offset, start, start, size, memory, _PAGE)


class _Library:
    """A library under construction, from objects."""

    def __init__(self, objects: Sequence[_Object]) -> None:
        sections = [s for each in objects for s in each.sections if s is not None]
        self._read = [s for s in sections if not s.flags & (_WRITE | _EXECUTE)]
        self._run = [s for s in sections if s.flags & _EXECUTE]
        self._constructors = [s for s in sections if s.kind == _CONSTRUCTORS]
        self._written = [s for s in sections if s.flags & _WRITE and s.kind == _CONTENT]
        self._zeros = [s for s in sections if s.kind == _ZEROS]
        self._patched = [*self._read, *self._run, *self._constructors, *self._written]
        self._defined: dict[bytes, _Symbol] = {}
        self._missing: dict[bytes, _Symbol] = {}
        self._resolve(s for each in objects for s in each.symbols if not s.is_local)
        self._numbers = {n: i for i, n in enumerate([*self._missing, *self._defined], 1)}
        # GOT symbols and PLT functions, each with its index.
        self._kept: dict[bytes, int] = {}
        self._called: dict[bytes, int] = {}
        self._left: list[bytes] = []

    def _resolve(self, symbols: Iterable[_Symbol]) -> None:
        wanted: dict[bytes, _Symbol] = {}
        for symbol in symbols:
            before = self._defined.get(symbol.name)
            if symbol.section is None and not symbol.is_common:
                wanted.setdefault(symbol.name, symbol)
            elif before is None or (before.is_weak and not symbol.is_weak):
                self._defined[symbol.name] = symbol
            elif not symbol.is_weak and not (symbol.is_common and before.is_common):
                raise _UnknownError  # defined twice: a linker reports it
        self._missing = {n: s for n, s in wanted.items() if n not in self._defined}
        for name, symbol in self._defined.items():
            if symbol.is_common:
                zeros = _Section(_ZEROS, _WRITE, bytearray(), symbol.size, max(symbol.value, 1))
                self._zeros.append(zeros)
                self._defined[name] = replace(symbol, section=zeros, value=0)

    def _inside(self, symbol: _Symbol) -> _Symbol | None:
        """The definition of a symbol; None if it is external."""
        return symbol if symbol.is_local else self._defined.get(symbol.name)

    def linked(self) -> bytes:
        """The bytes of the linked file."""
        left = self._survey()
        strings = b"\0" + b"".join(name + b"\0" for name in self._numbers)
        hashes = self._hashes()
        image = _Image()
        image.take(_HEADER.size + 5 * _SEGMENT.size)
        hashes_at, strings_at = image.take(len(hashes)), image.take(len(strings))
        table_at = image.take((1 + len(self._numbers)) * _SYMBOL.size)
        left_at = image.take(left * _RELOCATION.size)
        image.place(self._read)
        image.begin_part()
        image.place(self._run)
        self._jumps_at = image.take(len(self._called) * _JUMP.size)
        image.begin_part()
        tags = [
            (_HASHES, hashes_at),
            (_STRINGS, strings_at),
            (_STRING_BYTES, len(strings)),
            (_TABLE, table_at),
            (_TABLE_ITEM, _SYMBOL.size),
            (_LEFT, left_at),
            (_LEFT_BYTES, left * _RELOCATION.size),
            (_LEFT_ITEM, _RELOCATION.size),
            (_FLAGS, _OWN_FIRST_AND_NOW),
        ]
        build_at = image.take(0)
        image.place(self._constructors)
        if self._constructors:
            tags += [(_BUILD, build_at), (_BUILD_BYTES, image.end - build_at)]
        tags.append((0, 0))
        tags_bytes = len(tags) * _TAG.size
        tags_at = image.take(tags_bytes)
        self._kept_at = image.take(len(self._kept) * _WORD)
        image.place(self._written)
        end = image.end
        for section in self._zeros:
            section.address = end + -end % section.alignment
            end = section.address + section.size

        for section in self._patched:
            self._patch(section)
            image.put(section.address, section.data)
        self._put_kept(image)
        image.put(hashes_at, hashes)
        image.put(strings_at, strings)
        image.put(table_at, self._table())
        image.put(left_at, b"".join(self._left))
        image.put(tags_at, b"".join(_TAG.pack(*tag) for tag in tags))
        offset = tags_at - _PAGE * 2
        segments = [
            image.segment(0, _READ, 0),
            image.segment(1, _READ | _RUN, 0),
            image.segment(2, _READ | _MODIFY, end),
            _SEGMENT.pack(
                _DYNAMIC, _READ | _MODIFY, offset, tags_at, tags_at, tags_bytes, tags_bytes, _WORD
            ),
            _SEGMENT.pack(_STACK, _READ | _MODIFY, 0, 0, 0, 0, 0, 16),
        ]
        sizes = (_HEADER.size, _SEGMENT.size, len(segments), 0, 0, 0)
        header = _HEADER.pack(_ELF, _SHARED, _X86_64, 1, 0, _HEADER.size, 0, 0, *sizes)
        image.put(0, header + b"".join(segments))
        return bytes(image.data)

    def _survey(self) -> int:
        """Collect GOT and PLT entries; returns the number of dynamic relocations."""
        addresses = 0
        for section in self._patched:
            for offset, kind, symbol, _ in section.relocations:
                is_inside = self._inside(symbol) is not None
                if kind == _ADDRESS and section.flags & _WRITE:
                    addresses += 1
                elif kind in _TO_KEPT and not symbol.is_local:
                    if not (is_inside and _is_load(section, offset, kind)):
                        self._kept.setdefault(symbol.name, len(self._kept))
                elif kind == _TO_CODE and not is_inside:
                    self._kept.setdefault(symbol.name, len(self._kept))
                    self._called.setdefault(symbol.name, len(self._called))
                elif kind not in (_TO_CODE, _TO_PLACE) or not is_inside:
                    raise _UnknownError
        return addresses + len(self._kept)

    def _patch(self, section: _Section) -> None:
        """Apply the relocations of a section."""
        for offset, kind, symbol, addend in section.relocations:
            inside = self._inside(symbol)
            here = section.address + offset
            if kind == _ADDRESS:
                self._leave(here, symbol, _ADDRESS, addend)
                continue
            if kind in _TO_KEPT:
                if inside is not None and _is_load(section, offset, kind):
                    section.data[offset - 2] = _LEA
                    there = inside.address
                else:
                    there = self._kept_at + self._kept[symbol.name] * _WORD
            elif inside is not None:
                there = inside.address
            else:
                there = self._jumps_at + self._called[symbol.name] * _JUMP.size
            _DISTANCE.pack_into(section.data, offset, there + addend - here)

    def _put_kept(self, image: _Image) -> None:
        """Write the GOT, with dynamic relocations, and the PLT."""
        for name, number in self._kept.items():
            symbol = self._defined.get(name) or self._missing[name]
            self._leave(self._kept_at + number * _WORD, symbol, _OTHERS, 0)
        for name, number in self._called.items():
            here = self._jumps_at + number * _JUMP.size
            there = self._kept_at + self._kept[name] * _WORD
            image.put(here, _JUMP.pack(_INDIRECT, there - here - 6))

    def _leave(self, here: int, symbol: _Symbol, kind: int, addend: int) -> None:
        """Add a dynamic relocation for a symbol's address."""
        inside = self._inside(symbol)
        if inside is not None:
            made = _RELOCATION.pack(here, _OWN, 0, inside.address + addend)
        else:
            made = _RELOCATION.pack(here, kind, self._numbers[symbol.name], addend)
        self._left.append(made)

    def _hashes(self) -> bytes:
        """The symbol hash table: a single chain of all symbols, compared by name."""
        count = 1 + len(self._numbers)
        chain = [0, *range(2, count), 0][:count]
        return struct.pack(f"<{3 + count}I", 1, count, min(1, len(self._numbers)), *chain)

    def _table(self) -> bytes:
        rows = [bytes(_SYMBOL.size)]
        start = 1
        for name in self._numbers:
            found = self._defined.get(name)
            if found is None:
                rows.append(_SYMBOL.pack(start, self._missing[name].info, 0, _UNDEFINED, 0, 0))
            else:
                rows.append(_SYMBOL.pack(start, found.info, 0, 1, found.address, found.size))
            start += len(name) + 1
        return b"".join(rows)


def _is_load(section: _Section, offset: int, kind: int) -> bool:
    """Whether a GOT load may be relaxed to an address computation."""
    return kind == _TO_KEPT_BY_LOAD and section.data[offset - 2] == _MOV
