"""Samples of Send and Recv on one device, which sends to itself."""

from __future__ import annotations

from tests.samples.base import Operand, Sample
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import ALL


def there_and_back(x: Instruction) -> Instruction:
    token = ops.send(x, 1)
    return ops.get_tuple_element(ops.recv_with_token(token, x.shape, 1), 0)


def to_itself_by_pairs(x: Instruction) -> Instruction:
    token = ops.send_with_token(x, ops.after_all([]), 2, [(0, 0)])
    return ops.get_tuple_element(ops.recv_with_token(token, x.shape, 2, [(0, 0)]), 0)


SAMPLES = [
    Sample(
        name,
        build,
        (Operand(),),
        ALL,
        label,
        differentiable=False,
        why="what a channel carries is not followed",
    )
    for name in ("Send", "SendDone", "Recv", "RecvDone")
    for label, build in (("plain", there_and_back), ("pairs", to_itself_by_pairs))
]
