"""The memory by which compiled code calls a function of a compiled library.

A record is a constant without contents: whoever loads the program fills it (`native_abi.Record`).
"""

from __future__ import annotations

import numpy as np

from tracejit.backends.native_abi import RECORD_WORDS
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT, constant

_CALL = "native_call"


def native_record(call: str) -> Instruction:
    """A record of its own for a call, given as HLO text."""
    blank = constant(np.zeros(RECORD_WORDS, np.uint64))
    attributes = {**blank.attributes, _CALL: call}
    return Instruction(CONSTANT, (), blank.shape, attributes, None)


def recorded_call(constant: Instruction) -> str | None:
    """The text of the call whose record a constant is; None for every other constant."""
    return constant.attributes.get(_CALL)
