"""Generates the Python module for an exported library: NumPy arrays in and out, through ctypes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracejit.backends.tvm.export.c_types import c_type, note
from tracejit.backends.tvm.export.entries import Array, Entry

# Element types that NumPy lacks are passed as their C types.
_PLAIN = "?bBhHiIlLqQefdFD"


def loader(
    entries: Sequence[Entry], name: str, library: str, architecture: str, on_host: str = ""
) -> str:
    """The text of a module that needs only NumPy, and finds ``library`` in its own folder.

    Libraries for devices have functions for the host's arrays, whose names end in ``on_host``.
    """
    return "\n".join(_lines(entries, name, library, architecture, on_host)) + "\n"


def _lines(
    entries: Sequence[Entry], name: str, library: str, architecture: str, on_host: str
) -> Iterator[str]:
    about = f"The functions of {library}, compiled by tracejit; needs NumPy alone."
    yield f'"""{_in_docstring(about)}"""\n'
    yield "import ctypes as _ctypes\nimport pathlib as _pathlib\nimport platform as _platform\n"
    yield "import numpy as _np\n"
    yield '_machine = {"arm64": "aarch64", "amd64": "x86_64"}.get('
    yield "    _platform.machine().lower(), _platform.machine().lower()"
    yield ")"
    yield f"if _machine != {architecture!r}:"
    yield f'    raise ImportError(f"{library} is compiled for {architecture}, not {{_machine}}")'
    yield "_folder = _pathlib.Path(__file__).resolve().parent"
    yield f"_library = _ctypes.CDLL(str(_folder / {library!r}))"
    yield f"_library.{name}_message.restype = _ctypes.c_char_p\n\n"
    yield "def _call(function, given, results):"
    yield "    arrays = []"
    yield "    for (name, dtype, shape), value in given:"
    yield "        array = _np.asarray(value)"
    yield "        if array.dtype != dtype or array.shape != shape:"
    yield '            wanted = f"{name} must be {dtype}{list(shape)}"'
    yield '            raise TypeError(f"{wanted}, not {array.dtype}{list(array.shape)}")'
    yield '        arrays.append(_np.require(array, requirements="CA"))'
    yield "    made = [_np.empty(shape, dtype) for dtype, shape in results]"
    yield "    pointers = [_ctypes.c_void_p(a.ctypes.data) for a in (*arrays, *made)]"
    yield "    status = function(*pointers)"
    yield "    if status:"
    yield f"        raise RuntimeError(_library.{name}_message(status).decode())"
    yield "    return made[0] if len(made) == 1 else tuple(made)"
    if not on_host:
        yield "\n\ndef set_threads(count):"
        yield '    """How many threads a call uses; 0 is as many as there are cores."""'
        yield f"    _library.{name}_set_threads(_ctypes.c_int(count))"
    for entry in entries:
        yield from _function(entry, on_host)


def _function(entry: Entry, on_host: str) -> Iterator[str]:
    names = ", ".join(array.name for array in entry.arguments)
    yield f"\n\ndef {entry.name}({names}):"
    yield '    """'
    yield from (f"    {array.name}: {_described(array)}" for array in entry.arguments)
    yield "\n    Returns:"
    yield from (f"    {_described(array)}" for array in entry.results)
    yield '    """'
    yield "    given = ["
    for array in entry.arguments:
        dtype, shape = _dtype(array), tuple(array.spec.shape)
        yield f"        (({array.name!r}, _np.dtype({dtype!r}), {shape}), {array.name}),"
    yield "    ]"
    results = [f"({_dtype(array)!r}, {tuple(array.spec.shape)})" for array in entry.results]
    yield f"    return _call(_library.{entry.name}{on_host}, given, [{', '.join(results)}])"


def _dtype(array: Array) -> str:
    dtype = array.spec.dtype
    return dtype.name if dtype.char in _PLAIN else c_type(dtype).removesuffix("_t")


def _described(array: Array) -> str:
    dtype = array.spec.dtype
    more = "" if dtype.char in _PLAIN else f" ({note(dtype)})"
    named = f", {array.described}" if array.described != array.name else ""
    return _in_docstring(f"{_dtype(array)}{list(array.spec.shape)}{more}{named}")


def _in_docstring(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"")
