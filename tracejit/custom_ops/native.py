"""Ops of compiled libraries, which describe themselves as ``tracejit/ops.h`` says.

    library = NativeLibrary("libmyop.so")
    library.register(replace=False)         the ops, registered with their kernels

A kernel is a handler of XLA's FFI. It becomes a traced kernel of the op that calls the handler, so
that compiled code calls it without Python, and `vmap`, `export` and gradients of the user's work as
for any op.
"""

from __future__ import annotations

import ctypes
import dataclasses
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from tracejit.backends import native_abi as abi
from tracejit.custom_ops.definition import Definition
from tracejit.custom_ops.kernels import Kernel, make_kernel
from tracejit.custom_ops.op import Op
from tracejit.custom_ops.shape_inference import InferenceContext, unchanged_shape
from tracejit.custom_ops.values import decode, encode
from tracejit.errors import ArgumentError, UnsupportedError
from tracejit.ffi import ffi_call, register_ffi_target, register_ffi_type
from tracejit.ffi.handlers import AddressHandler, ShapeHandler
from tracejit.shapes import Shape, element_type_of
from tracejit.targets import Target, enter_target

SYMBOL = "tracejit_op_library"
_ATTRS = "attrs"

_TEXT, _POINTER = ctypes.c_char_p, ctypes.c_void_p


class _Kernel(ctypes.Structure):
    _fields_ = (
        ("types", _TEXT),
        ("execute", _POINTER),
        ("instantiate", _POINTER),
        ("prepare", _POINTER),
        ("initialize", _POINTER),
    )


class _Op(ctypes.Structure):
    _fields_ = (
        ("name", _TEXT),
        ("definition", _TEXT),
        ("kernels", ctypes.POINTER(_Kernel)),
        ("shape", _POINTER),
    )


class _State(ctypes.Structure):
    _fields_ = (("name", _TEXT), ("id", _POINTER), ("info", _POINTER))


class _Library(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("ops", ctypes.POINTER(_Op)),
        ("states", ctypes.POINTER(_State)),
    )


class NativeLibrary:
    """A library of ops that is loaded as long as the process lives."""

    def __init__(self, path: Path) -> None:
        """Raises `ArgumentError` for a file that cannot be loaded, holds no ops, or is newer."""
        title = f"load_op_library: {path}"
        try:
            _require_whole(path)
            self._library = ctypes.CDLL(str(path))
            describe = self._library[SYMBOL]
        except OSError as error:
            raise ArgumentError(f"{title}: cannot be loaded: {error}") from error
        except AttributeError:
            raise ArgumentError(
                f"{title}: has no function {SYMBOL}; TJ_LIBRARY of tracejit/ops.h defines it"
            ) from None
        describe.restype = ctypes.POINTER(_Library)
        self._description = describe().contents
        version = self._description.major, self._description.minor
        if version[0] != abi.MAJOR or version[1] > abi.MINOR:
            raise ArgumentError(
                f"{title}: was compiled for version {version[0]}.{version[1]} of the interface; "
                f"this is {abi.MAJOR}.{abi.MINOR}"
            )
        if self._description.struct_size < ctypes.sizeof(_Library):
            raise ArgumentError(f"{title}: describes itself in a form that is too old")

    def register(self, replace: bool, register_op: Callable[..., Op]) -> list[Op]:
        """Registers all ops. Raises what `register_op`, `kernel` and `register_ffi_target` do."""
        for state in _until_empty(self._description.states, "name"):
            types = {"type_id": state.id} | ({"type_info": state.info} if state.info else {})
            register_ffi_type(state.name.decode(), types)
        return [
            self._registered(each, replace, register_op)
            for each in _until_empty(self._description.ops, "name")
        ]

    def _registered(self, given: Any, replace: bool, register_op: Callable[..., Op]) -> Op:
        op = register_op(given.name.decode(), replace=replace)
        _define(op, given.definition.decode())
        op.set_shape_fn(_shape_function(op, given.shape) if given.shape else unchanged_shape)
        for number, kernel in enumerate(_until_empty(given.kernels, "execute")):
            names = [stage.name.lower() for stage in abi.Stage]
            stages = {stage: at for stage in names if (at := getattr(kernel, stage))}
            add_native_kernel(
                op,
                f"{op.name}.{number}",
                stages,
                _constraints(op.name, (kernel.types or b"").decode()),
                replace,
            )
        return op


def _require_whole(path: Path) -> None:
    """Raises `OSError` for an ELF file that ends before what the system would map of it.

    The loader maps even such a file, and the process dies where it reads beyond the end.
    """
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01" or len(data) < 64:
        return  # another format, which the loader judges
    table, size, count = struct.unpack_from("<Q14xHH", data, 32)
    if table + size * count > len(data):
        raise OSError("the file is truncated")
    for number in range(count):
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", data, table + size * number)
        if kind == 1 and offset + length > len(data):  # PT_LOAD
            raise OSError("the file is truncated")


def _until_empty(array: Any, field: str) -> Iterator[Any]:
    """The elements of a C array up to one whose ``field`` is null."""
    number = 0
    while array and getattr(array[number], field):
        yield array[number]
        number += 1


def _define(op: Op, definition: str) -> None:
    """Adds the lines of a definition. Raises `ArgumentError` for another kind of line."""
    lines = definition.splitlines()
    for number, line in enumerate(lines):
        kind, _, text = line.strip().partition(" ")
        if kind == "doc":
            op.doc("\n".join([text, *lines[number + 1 :]]).strip())
            return
        if kind in ("attr", "input", "output"):
            getattr(op, kind)(text)
        elif line.strip():
            raise ArgumentError(
                f"{op.name}: a line of a definition begins with attr, input, output or doc; "
                f"this one is {line!r}"
            )


def _constraints(op: str, text: str) -> dict[str, list[str]]:
    """``T=float,double U=int32`` as types by attribute."""
    found = {}
    for part in text.split():
        name, equals, types = part.partition("=")
        if not equals:
            raise ArgumentError(f"kernel: {op}: types are written T=float,double, not {part!r}")
        found[name] = types.split(",")
    return found


def add_native_kernel(
    op: Op,
    target: str,
    stages: Mapping[str, Any],
    constraints: Mapping[str, Any],
    replace: bool = False,
) -> None:
    """Gives the op a kernel that calls a compiled library's function, registered as ``target``."""
    register_ffi_target(target, stages, replace=replace)
    definition = op.definition
    call = _calling(op, target, lambda attrs: _native_attributes(definition, attrs))
    op.implementations.add(make_kernel(definition, call, "CPU", "tracejit", (), constraints))


def address_kernel(op: Op, given: Kernel, replace: bool) -> Kernel:
    """The traced kernel that calls the C functions that a kernel of form ``native`` returns."""
    definition = op.definition
    types = " ".join(f"{n}={','.join(map(str, t))}" for n, t in sorted(given.constraints.items()))
    target = f"{op.name} kernel {types} {given.priority} {given.label}"

    def make(inputs: Sequence[Shape], outputs: Sequence[Shape], config: Mapping[str, Any]) -> Any:
        attrs = decode(definition, config[_ATTRS])
        return given.implementation(list(inputs), list(outputs), **given.taken(attrs))

    native = AddressHandler(target, make)
    enter_target(Target(target, _never, native=native, source=given.source), replace)
    call = _calling(op, target, lambda attrs: {_ATTRS: encode(definition, attrs)})
    return dataclasses.replace(given, implementation=call, form="tracejit", attrs=None)


def _never(*_: Any, **__: Any) -> NoReturn:
    raise AssertionError("a native function is called on addresses")


def _calling(
    op: Op, target: str, attributes: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> Callable[..., Any]:
    """A traced kernel that calls a target with these attributes."""
    definition = op.definition

    def call(*inputs: Any, **attrs: Any) -> Any:
        lists = [one if isinstance(one, list | tuple) else [one] for one in inputs]
        arrays = [array for one in lists for array in one]
        shapes = [Shape(element_type_of(x.dtype), tuple(x.shape)) for x in arrays]
        results = op.implementations.output_shapes(attrs, shapes)
        made = ffi_call(target, tuple(results))(*arrays, **attributes(attrs))
        grouped = definition.grouped(definition.outputs, attrs, made)
        return grouped[0] if len(grouped) == 1 else tuple(grouped)

    return call


def _shape_function(op: Op, address: int) -> Callable[[InferenceContext], None]:
    handler = ShapeHandler(op.name, address)

    def shape(c: InferenceContext) -> None:
        definition = op.definition
        sizes = [c.input(number) for number in range(c.num_inputs)]
        if any(each is None or None in each for each in sizes):
            return  # all outputs are unknown
        types = definition.flat_types(definition.inputs, c.attrs)
        inputs = [
            Shape(element_type_of(dtype), tuple(size or 0 for size in each or ()))
            for dtype, each in zip(types, sizes, strict=True)
        ]
        made = definition.flat_types(definition.outputs, c.attrs)
        given = _native_attributes(definition, c.attrs)
        found = handler(inputs, [element_type_of(dtype) for dtype in made], given)
        for number, dimensions in enumerate(found):
            c.set_output(number, dimensions)

    return shape


def _native_attributes(definition: Definition, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that calls give, as handlers read them: types as their numbers.

    Raises `UnsupportedError` for kinds that the interface lacks.
    """
    found = {}
    for attr in definition.parameters:
        value = attrs[attr.name]
        if attr.kind == "tensor" or (attr.kind in ("string", "shape") and attr.is_list):
            raise UnsupportedError(
                f"{definition.name}: attribute {attr.name!r} has type {attr.type_text}, which "
                "compiled kernels cannot read"
            )
        if attr.kind == "type":
            several = value if attr.is_list else (value,)
            numbers = np.array([abi.data_type(element_type_of(t)) for t in several], np.int32)
            found[attr.name] = numbers if attr.is_list else numbers[0]
        elif attr.kind == "shape":
            found[attr.name] = np.array([-1 if n is None else n for n in value or ()], np.int64)
        elif attr.is_list:
            kinds = {"int": np.int64, "float": np.float64, "bool": np.bool_}
            found[attr.name] = np.array(value, kinds[attr.kind])
        else:
            found[attr.name] = value.decode() if isinstance(value, bytes) else value
    return found
