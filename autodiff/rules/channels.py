"""Send and Recv: what goes through a channel leaves the graph, so it has no derivative."""

from __future__ import annotations

from typing import NoReturn

from tracejit.autodiff.reverse import differentiate
from tracejit.errors import DerivativeError
from tracejit.graph import Instruction
from tracejit.ops.channels import RECV, RECV_DONE, SEND, SEND_DONE


@differentiate.attach(SEND, SEND_DONE, RECV, RECV_DONE)
def channel_rule(instruction: Instruction, cotangent: object) -> NoReturn:
    raise DerivativeError(
        f"{instruction.op.function}: has no derivative, because what a channel carries is not "
        "followed; use collective_permute",
        instruction.source,
    )
