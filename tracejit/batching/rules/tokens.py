"""Tokens are never batched; data goes through a queue as one datum, the batch in front."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.batch import Batched, batching, uniform
from tracejit.graph import Instruction
from tracejit.ops.tokens import ADD_DEPENDENCY, AFTER_ALL, INFEED, OUTFEED, add_dependency, outfeed

batching.decline(AFTER_ALL, "takes tokens, which are never batched")
batching.decline(INFEED, "takes a token, which is never batched")


@batching.attach(ADD_DEPENDENCY)
def add_dependency_rule(
    instruction: Instruction, operands: Sequence[Batched], size: int
) -> Batched:
    operand, token = operands
    return Batched(add_dependency(operand.value, token.value), operand.flag)


@batching.attach(OUTFEED)
def outfeed_rule(instruction: Instruction, operands: Sequence[Batched], size: int) -> Batched:
    operand, token = operands
    config = instruction.attributes["outfeed_config"]
    made = outfeed(operand.stretched(size), token.value, outfeed_config=config)
    return Batched(made, uniform(made.shape, False))
