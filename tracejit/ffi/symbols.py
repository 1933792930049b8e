"""Names of the functions of loaded libraries."""

from __future__ import annotations

import ctypes


class _SymbolInfo(ctypes.Structure):
    """``Dl_info`` of the system's dynamic linker."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def symbol_at(address: int) -> str | None:
    """The name of the symbol that begins at an address; None without one."""
    found = _SymbolInfo()
    dladdr = ctypes.CDLL(None).dladdr
    if not dladdr(ctypes.c_void_p(address), ctypes.byref(found)) or found.address != address:
        return None
    name: bytes | None = found.name
    return None if name is None else name.decode()
