"""Samples of AfterAll, AddDependency, Infeed and Outfeed."""

from __future__ import annotations

from tests.samples.base import Operand, Sample
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import ALL, INEXACT
from tracejit.shapes import TupleShape


def after_tokens(x: Instruction) -> Instruction:
    first = ops.after_all([])
    return ops.add_dependency(x, ops.after_all([first, ops.after_all([first])]))


def after_infeed(x: Instruction) -> Instruction:
    """An infeed of no data, which waits for nothing."""
    made = ops.infeed(ops.after_all([]), TupleShape(()), "config")
    return ops.add_dependency(x, ops.get_tuple_element(made, 1))


def after_outfeed(x: Instruction) -> Instruction:
    return ops.add_dependency(x, ops.outfeed(x, ops.after_all([])))


def after_outfeed_of_two(x: Instruction) -> Instruction:
    """A tuple of an expression and a parameter."""
    both = ops.tuple_([ops.neg(x), x])
    return ops.add_dependency(x, ops.outfeed(both, ops.after_all([]), outfeed_config="config"))


SAMPLES = [
    Sample("AfterAll", after_tokens, (Operand(),), ALL, exact=True),
    Sample("AddDependency", after_tokens, (Operand(),), ALL, exact=True),
    Sample("Infeed", after_infeed, (Operand(),), ALL, "nothing", exact=True),
    Sample("Outfeed", after_outfeed, (Operand(),), ALL, "array", exact=True),
    Sample("Outfeed", after_outfeed_of_two, (Operand(),), INEXACT, "tuple", exact=True),
]
