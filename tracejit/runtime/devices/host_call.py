"""The callback by which compiled code takes part in collective ops."""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracejit.backends.abi import COLLECTIVE
from tracejit.errors import UnsupportedError
from tracejit.graph import Computation, Instruction
from tracejit.hlo import parse
from tracejit.ops.channels import RECV, SEND
from tracejit.ops.computations import binary_op
from tracejit.ops.custom import COLLECTIVE_DONE_TARGET, COLLECTIVE_START_TARGET
from tracejit.runtime.callbacks import callback, decoded, view, viewer
from tracejit.runtime.devices.collectives import SCRATCH_BYTES, Call, Rule, rules
from tracejit.runtime.devices.communicator import Tag
from tracejit.runtime.devices.device import Again, Device, Operation, current_device
from tracejit.shapes import AnyShape, Shape, TupleShape
from tracejit.sources import Source
from tracejit.traversal import instructions

Address = int | str
"""Where an array lies; of a scalar constant, its bytes in hexadecimal."""

View = Callable[[Address], np.ndarray]

_MOST_CALLS = 1024
"""The most calls that a device remembers."""


@dataclass(frozen=True, eq=False)
class _Op:
    """A collective op as it is written in a program."""

    instruction: Instruction
    operands: tuple[View, ...]
    results: tuple[Callable[[int], np.ndarray], ...]
    made: tuple[Shape, ...]
    tag: str
    rule: Rule
    is_message: bool

    def tagged(self, call: Call) -> Call:
        """The call, as one more run of the op."""
        call.tag = Tag(self.tag) if self.is_message else call.device.numbered(self.tag)
        return call


@functools.lru_cache(maxsize=4096)
def _op(text: str) -> _Op:
    entry = parse(text).entry
    instruction = entry.root
    given = [p.array_shape for p in entry.parameters]
    made = [] if instruction.op is SEND else _arrays(_result_shape(instruction))
    return _Op(
        instruction,
        tuple(map(_reader, given)),
        tuple(viewer(s.dimensions, s.dtype) for s in made),
        tuple(made),
        _tag(instruction, given or made),
        _rule(instruction),
        instruction.op in (SEND, RECV),
    )


def _reader(shape: Shape) -> View:
    """What makes an array of an operand."""
    at = viewer(shape.dimensions, shape.dtype, writeable=False)

    def read(address: Address) -> np.ndarray:
        if isinstance(address, int):
            return at(address)
        return np.frombuffer(bytes.fromhex(address), shape.dtype).reshape(shape.dimensions)

    return read


def _rule(instruction: Instruction) -> Rule:
    rule = rules.get(instruction.op)
    assert rule is not None, f"{instruction.op} is no collective op"
    return rule


def _result_shape(instruction: Instruction) -> AnyShape:
    return instruction.element_shapes[0] if instruction.op is RECV else instruction.shape


def _arrays(shape: AnyShape) -> list[Shape]:
    if isinstance(shape, TupleShape):
        return [leaf for element in shape.elements for leaf in _arrays(element)]
    return [shape] if isinstance(shape, Shape) else []


def _tag(instruction: Instruction, arrays: list[Shape]) -> str:
    """The op, its operands' shapes and its groups, by which devices recognise the same op."""
    attributes = instruction.attributes
    named = {
        "channel": attributes.get("channel_id"),
        "groups": attributes.get("replica_groups"),
        "pairs": attributes.get("source_target_pairs"),
        "dimensions": attributes.get("dimensions"),
        "by": _reduction(attributes.get("to_apply")),
    }
    said = " ".join(f"{name} {value}" for name, value in named.items() if value not in (None, ()))
    name = "send" if instruction.op is RECV else instruction.op.function
    shapes = ", ".join(str(Shape(a.element_type, a.dimensions)) for a in arrays[:4])
    size = sum(math.prod(a.dimensions) for a in arrays[4:])
    more = f" and {size} more elements" if size else ""
    return f"{name} of {shapes}{more}{' ' if said else ''}{said}"


def _reduction(computation: Computation | None) -> str | None:
    """The name of a reduction's op; of another computation a number that its text has."""
    if computation is None:
        return None
    op = binary_op(computation)
    if op is not None:
        return op.function
    ops = " ".join(f"{i.op.name}{i.shape}" for i in instructions(computation))
    return f"computation {zlib.crc32(ops.encode()):08x}"


@callback(COLLECTIVE, decoded=False)
def _collective(words: Sequence[int]) -> None:
    device = current_device()
    if device is None:
        raise UnsupportedError("call: the program runs on several devices and was called on none")
    key = tuple(words)
    again = device.calls.get(key)
    if again is not None:
        device.run(*again())
        return
    _run(device, key, *decoded(words))


def _run(device: Device, key: object, target: str, text: str, *addresses: Any) -> None:
    """Either half of an op; the device may remember no run of it."""
    op = _op(text)
    if target == COLLECTIVE_DONE_TARGET:
        number, addresses = int(view(addresses[0], (), np.uint32)), addresses[1:]
        made = device.end(number)
        places = addresses[len(op.operands) :]
        for at, address, array in zip(op.results, places, made, strict=True):
            at(address)[...] = array
        return
    source = device.sources.get(text)
    if target == COLLECTIVE_START_TARGET:
        made = [np.empty(s.dimensions, s.dtype) for s in op.made]
        call = Call(device, op.instruction, _operands(op, addresses), made, Tag(op.tag))
        at = addresses[len(op.operands)]
        steps = op.rule(op.tagged(call))
        operation = Operation(op.instruction.op.function, source, steps, made)
        view(at, (), np.uint32)[...] = device.begin(operation)
        return
    again = _again(device, op, source, addresses)
    if len(device.calls) == _MOST_CALLS:
        device.calls.clear()
    device.calls[key] = again
    device.run(*again())


def _operands(op: _Op, addresses: Sequence[Address]) -> list[np.ndarray]:
    return [at(a) for at, a in zip(op.operands, addresses, strict=False)]


def _again(device: Device, op: _Op, source: Source | None, addresses: Sequence[Any]) -> Again:
    """What each run of an op on this memory is."""
    places = addresses[len(op.operands) :]
    results = [at(a) for at, a in zip(op.results, places, strict=True)]
    operands = _operands(op, addresses)
    scratch = device.scratch(SCRATCH_BYTES)
    call = Call(device, op.instruction, operands, results, Tag(op.tag), scratch)
    function = op.instruction.op.function
    nbytes = sum(result.nbytes for result in results)
    return lambda: (function, source, nbytes, op.rule(op.tagged(call)))
