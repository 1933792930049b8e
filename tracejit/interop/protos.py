"""Serialised HLO as its fields, before XLA reads it: a module, or a dump that holds one.

module_bytes(data)      the bytes of a HloModuleProto, which has all that XLA writes
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tracejit.errors import ArgumentError

# Numbers of fields in XLA's hlo.proto.
_NAME, _ENTRY_NAME, _COMPUTATIONS, _FRONTEND_ATTRIBUTES = 1, 2, 3, 19
_MODULE_OF_DUMP = 1
_FIXED_SIZES = {1: 8, 5: 4}
_VARINT, _BYTES = 0, 2

_WHO = "module_of_proto: "


def module_bytes(data: bytes) -> bytes:
    """The bytes of the HloModuleProto that ``data`` is, or that a HloProto holds.

    XLA's dumps (``--xla_dump_hlo_as_proto``) are HloProtos. A message has no length of its own, and
    bytes that end between two fields are a message too. So one is whole if it has the field that
    XLA writes last, empty or not.

    Raises `ArgumentError` for bytes that are no message, and for those that end early.
    """
    fields = list(_fields(data))
    numbers = {field.number for field in fields}
    if _ENTRY_NAME not in numbers:
        held = [data[f.start : f.stop] for f in fields if f.number == _MODULE_OF_DUMP]
        if not held or not _is_module(held[0]):
            raise ArgumentError(f"{_WHO}there is no module in the bytes, or they are cut short")
        return module_bytes(held[0])
    if max(numbers) < _FRONTEND_ATTRIBUTES:
        raise ArgumentError(
            f"{_WHO}the bytes end after field {max(numbers)} of HloModuleProto. XLA writes field "
            f"{_FRONTEND_ATTRIBUTES} (frontend_attributes) behind it: they are cut short, or of an "
            "XLA so old that HLO text is the way from it"
        )
    return data


class _Field(NamedTuple):
    number: int
    start: int
    stop: int


def _is_module(data: bytes) -> bool:
    try:
        return {_NAME, _ENTRY_NAME, _COMPUTATIONS} <= {field.number for field in _fields(data)}
    except ArgumentError:
        return False


def _fields(data: bytes) -> Iterator[_Field]:
    """The fields of a message, with where their contents lie."""
    place = 0
    while place < len(data):
        begin = place
        key, place = _varint(data, place)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            _, stop = _varint(data, place)
        elif kind == _BYTES:
            size, place = _varint(data, place)
            stop = place + size
        elif kind in _FIXED_SIZES:
            stop = place + _FIXED_SIZES[kind]
        else:
            raise ArgumentError(f"{_WHO}byte {begin} begins no field of a message")
        if number == 0:
            raise ArgumentError(f"{_WHO}byte {begin} begins no field of a message")
        if stop > len(data):
            raise ArgumentError(
                f"{_WHO}field {number} at byte {begin} ends at byte {stop}, and there are "
                f"{len(data)}: they are cut short, or no serialised HLO"
            )
        yield _Field(number, place, stop)
        place = stop


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number of seven bits a byte, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            raise ArgumentError(f"{_WHO}the bytes end within a field: they are cut short")
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise ArgumentError(f"{_WHO}byte {place} is in a number of more than ten bytes")
