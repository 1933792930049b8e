"""Random bits: every element of the batch has a state, and its numbers, of its own."""

from __future__ import annotations

from tracejit.batching.batch import batching
from tracejit.batching.sequential import one_by_one
from tracejit.ops.random import RNG, RNG_BIT_GENERATOR, RNG_GET_AND_UPDATE_STATE

batching.attach(RNG_BIT_GENERATOR, RNG)(one_by_one)
batching.decline(RNG_GET_AND_UPDATE_STATE, "has no operands")
