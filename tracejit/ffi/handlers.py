"""Functions of compiled libraries, by XLA's FFI, and calls of them.

handler = NativeHandler("rms_norm", {"execute": address})
site = handler.site(operand_shapes, result_shapes, "{eps = 1.0 : f32}")
site([operand addresses], [result addresses])
site.address                                        # of the record by which compiled code calls
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tracejit.attributes import OutputAlias
from tracejit.backends import native_abi as abi
from tracejit.backends.native_attributes import parse, structures
from tracejit.errors import ArgumentError, ElementTypeError, ShapeError, UnsupportedError
from tracejit.ffi.addresses import address_of
from tracejit.ffi.host import (
    Instance,
    address_caller,
    api_address,
    end_run,
    places_of_types,
    raise_error,
)
from tracejit.ffi.symbols import symbol_at
from tracejit.native_calls import Symbols
from tracejit.shapes import ElementType, Shape
from tracejit.sources import Source

MOST_DIMENSIONS = 16
"""The most that a shape function may give a result."""

STAGES = tuple(stage.name.lower() for stage in abi.Stage)


class NativeHandler:
    """The functions of a target, by stage; only ``execute`` must be there."""

    def __init__(self, name: str, addresses: Mapping[str, int]) -> None:
        """Raises `ArgumentError` for handlers of another version of the interface."""
        self.name = name
        self._stages = {
            stage: abi.Handler(addresses[stage.name.lower()])
            for stage in abi.Stage
            if addresses.get(stage.name.lower())
        }
        self._types = {
            _type_of(f"{name} ({stage.name.lower()})", handler)
            for stage, handler in self._stages.items()
        } - {0}

    def symbols(self) -> Symbols:
        """The names of the handler in C, by which a linker finds it.

        Raises `UnsupportedError` for a function, or a type of its states, without a name.
        """
        stages = {
            stage.name.lower(): self._symbol(ctypes.cast(handler, ctypes.c_void_p).value, "handler")
            for stage, handler in self._stages.items()
        }
        places = [places_of_types[number] for number in sorted(self._types)]
        types = [
            (self._symbol(at, "type id"), self._symbol(info, "type info") if info else "")
            for at, info in places
        ]
        return Symbols(stages, types)

    def _symbol(self, address: int | None, what: str) -> str:
        found = symbol_at(address or 0)
        if found is None:
            raise UnsupportedError(
                f"export: the {what} of {self.name!r} has no name that a linker could find; its "
                "library must export it"
            )
        return found

    def site(
        self,
        operands: Sequence[Shape],
        results: Sequence[Shape],
        config: str,
        aliasing: Sequence[OutputAlias] = (),
        source: Source | None = None,
    ) -> CallSite:
        """A call in a program, which keeps the states of its handlers until it is closed.

        Errors name the line ``source``.

        Raises `ElementTypeError` for a type that the interface lacks, `AttributeValueError` for a
        ``config`` that is no dictionary of typed attributes, and what the handler that
        instantiates the call returns.
        """
        return CallSite(self.name, self._stages, operands, results, config, aliasing, source)


def _type_of(name: str, handler: Any) -> int:
    """The number of the type of state that a handler leaves, 0 for none.

    Raises `ArgumentError` for a handler of another version.
    """
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
    return int(metadata.state_type)


class CallSite:
    """A call of a native function on arrays of known shapes; threads may share it."""

    def __init__(
        self,
        name: str,
        stages: Mapping[abi.Stage, Any],
        operands: Sequence[Shape],
        results: Sequence[Shape],
        config: str,
        aliasing: Sequence[OutputAlias],
        source: Source | None,
        function: tuple[int, Any] | None = None,
    ) -> None:
        """``function`` is an address for `address_caller`, and the object that it belongs to."""
        self._function = function
        self._frame = Frame(operands, results, parse(config))
        self._runs = [(s, h) for s, h in stages.items() if s is not abi.Stage.INSTANTIATE]
        # What shares its memory with an operand begins as a copy of it.
        places = [(a.operand, a.output_index[0] if a.output_index else 0) for a in aliasing]
        self._shared = [(operand, result, results[result].nbytes) for operand, result in places]
        self._instance = Instance(f"custom_call: {name!r}", source)
        record = self._instance.record
        record.frame = self._frame.address
        if function is not None:
            record.state = function[0]
        for stage, handler in self._runs:
            setattr(record, stage.name.lower(), ctypes.cast(handler, ctypes.c_void_p))
        instantiate = stages.get(abi.Stage.INSTANTIATE)
        if instantiate is not None:
            frame = Frame([], [], parse(config))
            try:
                self._run(frame.memory, [(abi.Stage.INSTANTIATE, instantiate)])
            except BaseException:
                self.close()
                raise

    @property
    def address(self) -> int:
        return ctypes.addressof(self._instance.record)

    def close(self) -> None:
        self._instance.close()

    def __call__(self, operands: Sequence[int], results: Sequence[int]) -> None:
        operands = list(operands)
        for operand, result, size in self._shared:
            ctypes.memmove(results[result], operands[operand], size)
            operands[operand] = results[result]
        self._instance.record.runs += 1
        self._run(self._frame.on([*operands, *results]), self._runs)

    def _run(self, memory: Any, stages: Sequence[tuple[abi.Stage, Any]]) -> None:
        run = abi.Run(record=self.address, number=self._instance.record.runs)
        frame = abi.CallFrame.from_buffer(memory)
        frame.context = ctypes.addressof(run)
        try:
            for stage, handler in stages:
                frame.stage, frame.future = stage, None
                error = handler(ctypes.addressof(frame))
                self._instance.settle(error, frame.future)
        finally:
            end_run(run)


class AddressHandler:
    """A C function ``void f(void **outputs, void **inputs)`` for arrays of given shapes.

    ``make(operands, results, config)`` returns it in any form that `address_of` takes.
    """

    def __init__(
        self, name: str, make: Callable[[Sequence[Shape], Sequence[Shape], Mapping[str, Any]], Any]
    ) -> None:
        self.name = name
        self._make = make

    def symbols(self) -> Symbols:
        """Raises `UnsupportedError`: an address is that of one process."""
        raise UnsupportedError(
            f"export: {self.name!r} is a function at an address of this process, which a linker "
            "cannot find; write a handler of tj.ffi"
        )

    def site(
        self,
        operands: Sequence[Shape],
        results: Sequence[Shape],
        config: str,
        aliasing: Sequence[OutputAlias] = (),
        source: Source | None = None,
    ) -> CallSite:
        """A call in a program. Raises what ``make`` raises, `ArgumentError` for no function."""
        function = self._make(operands, results, parse(config))
        address = address_of(f"kernel: {self.name}", function)
        stages = {abi.Stage.EXECUTE: address_caller()}
        return CallSite(
            self.name, stages, operands, results, "", aliasing, source, (address, function)
        )


class ShapeHandler:
    """A handler that sets the dimensions of a call's results, and has no data."""

    def __init__(self, title: str, address: int) -> None:
        self._title, self._handler = title, abi.Handler(address)
        self._instance = Instance(title, None)

    def __call__(
        self, operands: Sequence[Shape], results: Sequence[ElementType], config: Mapping[str, Any]
    ) -> list[tuple[int, ...]]:
        """The dimensions of the results.

        Raises what the handler returns, and `ShapeError` for dimensions that cannot be.
        """
        most = (0,) * MOST_DIMENSIONS
        frame = Frame(operands, [Shape(each, most) for each in results], config)
        memory = frame.on([0] * frame.layout.count)
        begin = ctypes.addressof(memory)
        run = abi.Run(record=ctypes.addressof(self._instance.record))
        head = abi.CallFrame.from_buffer(memory)
        head.context = ctypes.addressof(run)
        self._instance.settle(self._handler(begin), head.future)
        found = []
        for number in range(len(operands), frame.layout.count):
            buffer = abi.Buffer.from_address(begin + frame.layout.buffer(number))
            rank = buffer.rank if 0 <= buffer.rank <= MOST_DIMENSIONS else 0
            sizes = (ctypes.c_int64 * rank).from_address(buffer.dimensions)[:]
            if rank != buffer.rank or min(sizes, default=0) < 0:
                raise ShapeError(
                    f"{self._title}: the shape function gives output {number - len(operands)} rank "
                    f"{buffer.rank} and the dimensions {sizes}"
                )
            found.append(tuple(sizes))
        return found


class Frame:
    """The memory of a call's frame, as `abi.FrameLayout` says, without addresses of arrays."""

    def __init__(
        self, operands: Sequence[Shape], results: Sequence[Shape], config: Mapping[str, Any]
    ) -> None:
        self.layout = layout = abi.FrameLayout(len(operands), len(results))
        attributes, self._held = structures(config)
        types = (ctypes.c_int * layout.count)(*[abi.BUFFER] * layout.count)
        self._held.append(types)
        self.memory = ctypes.create_string_buffer(layout.size)
        self.address = ctypes.addressof(self.memory)
        head = abi.made(
            abi.CallFrame,
            api=api_address(),
            arguments=abi.made(abi.Arguments, size=len(operands), types=ctypes.addressof(types)),
            results=abi.made(abi.Arguments, size=len(results), types=ctypes.addressof(types)),
            attributes=attributes,
        )
        ctypes.memmove(self.address, ctypes.addressof(head), ctypes.sizeof(head))
        for number, shape in enumerate([*operands, *results]):
            buffer = self._buffer(shape)
            place = self.address + layout.buffer(number)
            ctypes.memmove(place, ctypes.addressof(buffer), ctypes.sizeof(buffer))

    def on(self, addresses: Sequence[int]) -> Any:
        """A copy of the memory for a call on the arrays at these addresses."""
        memory = ctypes.create_string_buffer(self.memory.raw, self.layout.size)
        begin = ctypes.addressof(memory)
        words = {place: begin + own for place, own in self.layout.own_pointers().items()}
        words |= {self.layout.data(number): data for number, data in enumerate(addresses)}
        for place, word in words.items():
            ctypes.c_uint64.from_address(begin + place).value = word
        return memory

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
