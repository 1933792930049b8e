"""The callback by which compiled code takes part in collective ops."""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Callable
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
from tracejit.runtime.callbacks import callback, view, viewer
from tracejit.runtime.devices.collectives import Call, Rule, rules
from tracejit.runtime.devices.device import Operation, current_device
from tracejit.shapes import AnyShape, Shape, TupleShape
from tracejit.traversal import instructions

Address = int | str
"""Where an array lies; of a scalar constant, its bytes in hexadecimal."""

View = Callable[[Address], np.ndarray]


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


@callback(COLLECTIVE)
def _collective(target: str, text: str, *addresses: Any) -> None:
    device = current_device()
    if device is None:
        raise UnsupportedError("call: the program runs on several devices and was called on none")
    op = _op(text)
    if target == COLLECTIVE_DONE_TARGET:
        number, addresses = int(view(addresses[0], (), np.uint32)), addresses[1:]
        made = device.end(number)
        places = addresses[len(op.operands) :]
        for at, address, array in zip(op.results, places, made, strict=True):
            at(address)[...] = array
        return
    count = len(op.operands)
    operands = [at(a) for at, a in zip(op.operands, addresses[:count], strict=True)]
    source = device.sources.get(text)
    tag = op.tag if op.is_message else device.numbered(op.tag)
    is_begun = target == COLLECTIVE_START_TARGET
    if is_begun:
        results = [np.empty(s.dimensions, s.dtype) for s in op.made]
    else:
        results = [at(a) for at, a in zip(op.results, addresses[count:], strict=True)]
    steps = op.rule(Call(device, op.instruction, operands, results, tag))
    operation = Operation(op.instruction.op.function, source, steps, results)
    if is_begun:
        view(addresses[count], (), np.uint32)[...] = device.begin(operation)
    else:
        device.finish(operation)
