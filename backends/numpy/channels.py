"""Send and Recv, evaluated: messages between the devices of one program, or queues of the host."""

from __future__ import annotations

import numpy as np

from tracejit.backends.numpy.devices import Device, Message, Wait, current_device
from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.errors import AttributeValueError, ShapeError, UnsupportedError
from tracejit.graph import Instruction
from tracejit.ops.channels import RECV, RECV_DONE, SEND, SEND_DONE, pairs_of
from tracejit.queues import channel
from tracejit.shapes import TOKEN, AnyShape, Shape, TupleShape, shape_of


def _devices(device: Device, instruction: Instruction) -> dict[int, int] | None:
    """Which device sends to which, of those that this one may know; None: nothing says so."""
    pairs = pairs_of(instruction.attributes["frontend_attributes"])
    if pairs is None:
        return None
    world = device.world
    across_partitions = instruction.attributes["channel_id"] is not None
    count = world.num_partitions if across_partitions else world.replica_count
    if any(max(pair) >= count for pair in pairs):
        raise AttributeValueError(
            f"{instruction.op.function}: source_target_pairs {pairs} name more than the {count} "
            f"{'partitions' if across_partitions else 'replicas'} there are",
            instruction.source,
        )
    if across_partitions:
        first = device.number - device.partition
        return {first + source: first + target for source, target in pairs}
    step = world.num_partitions
    return {
        source * step + device.partition: target * step + device.partition
        for source, target in pairs
    }


@interpret.attach(SEND)
def send(instruction: Instruction, operand: Value, token: Value) -> Value:
    handle = instruction.attributes["channel_id"]
    context = operand, np.uint32(0), TOKEN
    if instruction.attributes["is_host_transfer"]:
        channel(handle).put(operand)
        return context
    device = current_device()
    devices = _devices(device, instruction)
    if devices is None or device.number in devices:
        target = None if devices is None else devices[device.number]
        device.world.messages[handle].append(Message(device.number, target, operand))
    return context


@interpret.attach(SEND_DONE)
def send_done(instruction: Instruction, context: Value) -> Value:
    return TOKEN


@interpret.attach(RECV)
def recv(instruction: Instruction, token: Value) -> Value:
    # The context's number says which Recv the RecvDone ends, wherever it stands.
    device = current_device()
    number = next(device.numbers)
    device.received[number] = instruction
    return _zeros(instruction.element_shapes[0]), np.uint32(number), TOKEN


@interpret.attach(RECV_DONE)
def recv_done(instruction: Instruction, context: Value) -> Value:
    device = current_device()
    begun = device.received.pop(int(context[1]), None)
    if begun is None:
        raise UnsupportedError(
            "recv_done: its operand must come from a recv, used once", instruction.source
        )
    shape = begun.element_shapes[0]
    handle = begun.attributes["channel_id"]
    if begun.attributes["is_host_transfer"]:
        return channel(handle).take(shape, instruction.source), TOKEN
    devices = _devices(device, begun)
    if devices is not None and device.number not in devices.values():
        return _zeros(shape), TOKEN
    sources = [s for s, t in (devices or {}).items() if t == device.number]
    others = [d.number for d in device.world.devices if d is not device] or [device.number]
    waiting = device.world.messages[handle]

    def arrived() -> list[Message]:
        mine = [m for m in waiting if m.target in (None, device.number)]
        return [m for m in mine if not sources or m.source in sources]

    device.wait(Wait(instruction, lambda: bool(arrived()), lambda: sources or others))
    found = _first(arrived(), device, instruction)
    waiting.remove(found)
    if _shape_of(found.value) != shape:
        raise ShapeError(
            f"recv: {shape} was to come through channel {handle}, not {_shape_of(found.value)}",
            begun.source,
        )
    return found.value, TOKEN


def _first(messages: list[Message], device: Device, instruction: Instruction) -> Message:
    """The oldest message to this device, else from itself, else from the one that sends."""
    for mine in ("target", "source"):
        found = [m for m in messages if getattr(m, mine) == device.number]
        if found:
            return found[0]
    senders = {m.source for m in messages}
    if len(senders) > 1:
        raise AttributeValueError(
            f"recv: devices {sorted(senders)} all send through channel "
            f"{instruction.attributes['channel_id']}; say source_target_pairs",
            instruction.source,
        )
    return messages[0]


def _zeros(shape: AnyShape) -> Value:
    if isinstance(shape, TupleShape):
        return tuple(map(_zeros, shape.elements))
    assert isinstance(shape, Shape)
    return np.zeros(shape.dimensions, shape.dtype)


def _shape_of(value: Value) -> AnyShape:
    return TupleShape(tuple(map(shape_of, value))) if isinstance(value, tuple) else shape_of(value)
