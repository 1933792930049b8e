"""Connects each RecvDone to the Send of its data, in a program for one device."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence

from tracejit.errors import UnsupportedError
from tracejit.graph import Instruction
from tracejit.ops.channels import RECV, RECV_DONE, SEND, pairs_of


def carried_within(order: Sequence[Instruction]) -> dict[Instruction, tuple[Instruction, ...]]:
    """Maps each RecvDone of a computation, with instructions in order, to the data it receives.

    That is the operand of the first unmatched Send of its channel, or nothing if this device is
    not a target; transfers with the host are left out. Raises `UnsupportedError` if a pair names
    another device, or if the computation has no matching Send.
    """
    waiting: dict[int | None, deque[Instruction]] = defaultdict(deque)
    carried: dict[Instruction, tuple[Instruction, ...]] = {}
    for instruction in order:
        if instruction.op is SEND and _takes_part(instruction):
            waiting[instruction.attributes["channel_id"]].append(instruction.operands[0])
        if instruction.op is not RECV_DONE:
            continue
        (begun,) = instruction.operands
        if begun.op is not RECV:
            raise _unsupported(instruction, "its operand must be a recv")
        if begun.attributes["is_host_transfer"]:
            continue
        channel = begun.attributes["channel_id"]
        if not _takes_part(begun):
            carried[instruction] = ()
        elif waiting[channel]:
            carried[instruction] = (waiting[channel].popleft(),)
        else:
            raise _unsupported(instruction, f"nothing here sends through channel {channel} before")
    return carried


def _takes_part(instruction: Instruction) -> bool:
    """Whether a Send or a Recv is between the one device and itself."""
    if instruction.attributes["is_host_transfer"]:
        return False
    pairs = pairs_of(instruction.attributes["frontend_attributes"])
    if pairs is None or pairs == ((0, 0),):
        return True
    if pairs:
        raise _unsupported(instruction, "a pair names another device")
    return False


def _unsupported(instruction: Instruction, reason: str) -> UnsupportedError:
    return UnsupportedError(
        f"{instruction.op.function}: the program is for one device; {reason}",
        instruction.source,
    )
