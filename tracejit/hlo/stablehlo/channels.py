"""Send and Recv: the first part does it all, the second hands out what came."""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.dumps import zeros
from tracejit.hlo.stablehlo.replicas import (
    DEVICE_TO_DEVICE,
    DEVICE_TO_HOST,
    HOST_TO_DEVICE,
    channel,
)
from tracejit.hlo.stablehlo.text import boolean, leaves, matrix
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.channels import RECV, RECV_DONE, SEND, SEND_DONE, pairs_of
from tracejit.shapes import TOKEN, TupleShape


def _attributes(instruction: Instruction, to_host: int) -> dict[str, str]:
    values = instruction.attributes
    on_host = values["is_host_transfer"]
    attributes = {
        **channel(instruction, to_host if on_host else DEVICE_TO_DEVICE),
        "is_host_transfer": boolean(on_host),
    }
    pairs = pairs_of(values["frontend_attributes"])
    if pairs is not None:
        attributes["source_target_pairs"] = matrix(pairs, 2)
    return attributes


@stablehlo.attach(SEND)
def send(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    flat = [name for names in operands for name in names]
    shapes = [s for operand in instruction.operands for s in leaves(operand.shape)]
    attributes = _attributes(instruction, DEVICE_TO_HOST)
    token = writer.raw("stablehlo.send", flat, shapes, TOKEN, attributes)
    return (*operands[0], *zeros(writer, instruction.element_shapes[1:2]), *token)


@stablehlo.attach(RECV)
def recv(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    data, context, token = instruction.element_shapes
    attributes = _attributes(instruction, HOST_TO_DEVICE)
    both = TupleShape((data, token))
    made = writer.raw("stablehlo.recv", operands[0], [TOKEN], both, attributes)
    return (*made[:-1], *zeros(writer, (context,)), made[-1])


@stablehlo.attach(SEND_DONE)
def send_done(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    return operands[0][-1:]


@stablehlo.attach(RECV_DONE)
def recv_done(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    return (*operands[0][:-2], operands[0][-1])
