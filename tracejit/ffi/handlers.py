"""Functions of compiled libraries, by XLA's FFI, and calls of them.

handler = NativeHandler("rms_norm", {"execute": address})
site = handler.site(operand_shapes, result_shapes, "{eps = 1.0 : f32}")
site([operand addresses], [result addresses])
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from tracejit.attributes import OutputAlias
from tracejit.errors import ArgumentError, ElementTypeError
from tracejit.ffi import abi
from tracejit.ffi.attributes import parse, structures
from tracejit.ffi.host import Context, api_address, raise_error, wait
from tracejit.shapes import Shape
from tracejit.sources import Source

STAGES = tuple(stage.name.lower() for stage in abi.Stage)


class NativeHandler:
    """The functions of a target, by stage; only ``execute`` must be there."""

    def __init__(self, name: str, addresses: Mapping[str, int]) -> None:
        """Raises `ArgumentError` for handlers of another version of the interface."""
        self.name = name
        self._stages = [
            (stage, abi.Handler(addresses[stage.name.lower()]))
            for stage in abi.Stage
            if addresses.get(stage.name.lower())
        ]
        for stage, handler in self._stages:
            _require_version(f"{name} ({stage.name.lower()})", handler)

    def site(
        self,
        operands: Sequence[Shape],
        results: Sequence[Shape],
        config: str,
        aliasing: Sequence[OutputAlias] = (),
    ) -> CallSite:
        """A call in a program, which keeps the states of its handlers.

        Raises `ElementTypeError` for a type that the interface lacks, `AttributeValueError` for a
        ``config`` that is no dictionary of typed attributes, and what the handler that
        instantiates the call returns.
        """
        return CallSite(self.name, self._stages, operands, results, config, aliasing)


def _require_version(name: str, handler: Any) -> None:
    metadata = abi.Metadata(
        struct_size=ctypes.sizeof(abi.Metadata), version=abi.made(abi.Version, major=-1, minor=-1)
    )
    extension = abi.MetadataExtension(
        struct_size=ctypes.sizeof(abi.MetadataExtension),
        type=abi.METADATA,
        metadata=ctypes.addressof(metadata),
    )
    frame = abi.made(abi.CallFrame, api=api_address())
    frame.extension_start = ctypes.addressof(extension)
    raise_error(handler(ctypes.addressof(frame)), name)
    version = metadata.version.major, metadata.version.minor
    if version == (-1, -1):
        raise ArgumentError(
            f"register_ffi_target: {name} does not say which version of the interface it was "
            f"compiled for; this is {abi.MAJOR}.{abi.MINOR}, of XLA's headers"
        )
    if version[0] != abi.MAJOR or version[1] > abi.MINOR:
        raise ArgumentError(
            f"register_ffi_target: {name} was compiled for version {version[0]}.{version[1]} of "
            f"the interface; this is {abi.MAJOR}.{abi.MINOR}"
        )


class CallSite:
    """A call of a native function on arrays of known shapes; threads may share it."""

    def __init__(
        self,
        name: str,
        stages: Sequence[tuple[abi.Stage, Any]],
        operands: Sequence[Shape],
        results: Sequence[Shape],
        config: str,
        aliasing: Sequence[OutputAlias],
    ) -> None:
        self._name = name
        self._in_runs = [s for s in stages if s[0] is not abi.Stage.INSTANTIATE]
        self._operands, self._results = operands, results
        self._config = parse(config)
        # What shares its memory with an operand begins as a copy of it.
        self._shared = [
            (alias.operand, alias.output_index[0] if alias.output_index else 0)
            for alias in aliasing
        ]
        self._context = Context()
        self._frames: list[_Frame] = []
        weakref.finalize(self, self._context.end)
        for stage, handler in stages:
            if stage is abi.Stage.INSTANTIATE:
                frame = _Frame([], [], self._config, self._context)
                self._run(frame, stage, handler, None)

    def __call__(
        self, operands: Sequence[int], results: Sequence[int], source: Source | None = None
    ) -> None:
        """Calls the function on the memory at these addresses. Raises what it returns."""
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = _Frame(self._operands, self._results, self._config, self._context)
        if self._shared:
            operands = list(operands)
            for operand, result in self._shared:
                ctypes.memmove(results[result], operands[operand], self._bytes(result))
                operands[operand] = results[result]
        frame.place(operands, results)
        self._context.runs += 1
        for stage, handler in self._in_runs:
            self._run(frame, stage, handler, source)
        self._frames.append(frame)

    def _bytes(self, result: int) -> int:
        shape = self._results[result]
        return shape.size * shape.dtype.itemsize

    def _run(self, frame: _Frame, stage: abi.Stage, handler: Any, source: Source | None) -> None:
        frame.structure.stage = stage
        frame.structure.future = None
        error = handler(frame.address) or wait(frame.structure.future)
        if error:
            raise_error(error, f"custom_call: {self._name!r}", source)


class _Frame:
    """The structure that handlers read, whose buffers can be placed elsewhere."""

    def __init__(
        self,
        operands: Sequence[Shape],
        results: Sequence[Shape],
        config: Mapping[str, Any],
        context: Context,
    ) -> None:
        self._held: list[Any] = []
        self._inputs = (abi.Buffer * len(operands))(*map(self._buffer, operands))
        self._outputs = (abi.Buffer * len(results))(*map(self._buffer, results))
        attributes, memory = structures(config)
        self._held.append(memory)
        self.structure = abi.made(
            abi.CallFrame,
            api=api_address(),
            context=context.number,
            arguments=self._list(self._inputs),
            results=self._list(self._outputs),
            attributes=attributes,
        )
        self.address = ctypes.addressof(self.structure)

    def _buffer(self, shape: Shape) -> Any:
        try:
            dtype = abi.data_type(shape.element_type)
        except KeyError:
            raise ElementTypeError(
                f"custom_call: native functions take no arrays of {shape.element_type.value}"
            ) from None
        sizes = (ctypes.c_int64 * shape.rank)(*shape.dimensions)
        self._held.append(sizes)
        at = ctypes.addressof(sizes)
        return abi.made(abi.Buffer, dtype=dtype, rank=shape.rank, dimensions=at)

    def _list(self, buffers: Any) -> Any:
        size = ctypes.sizeof(abi.Buffer)
        at = [ctypes.addressof(buffers) + size * number for number in range(len(buffers))]
        types = (ctypes.c_int * len(at))(*[abi.BUFFER] * len(at))
        values = (ctypes.c_void_p * len(at))(*at)
        self._held += [types, values]
        return abi.made(
            abi.Arguments,
            size=len(at),
            types=ctypes.addressof(types),
            values=ctypes.addressof(values),
        )

    def place(self, operands: Sequence[int], results: Sequence[int]) -> None:
        for buffer, address in zip(self._inputs, operands, strict=True):
            buffer.data = address
        for buffer, address in zip(self._outputs, results, strict=True):
            buffer.data = address
