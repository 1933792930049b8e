"""Samples of the ops that XLA's own passes make."""

from __future__ import annotations

from tests.building import computation
from tests.samples.base import Operand, Sample
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import ALL, FLOATING, NUMERIC
from tracejit.shapes import AnyShape, ElementType, Shape, TupleShape

SHARDING = '{kind="sharding", entry={maximal device=0}, exit={maximal device=1}}'


def reshaped(x: Instruction) -> Instruction:
    return ops.bitcast(x, Shape(x.array_shape.element_type, (3, 1, 2)))


def started(x: Instruction) -> Instruction:
    return ops.copy_done(ops.copy_start(x))


def fused(x: Instruction, y: Instruction) -> Instruction:
    body = computation("fused", lambda a, b: ops.add(ops.mul(a, b), b), x.shape, y.shape)
    return ops.fusion(body, [x, y], "kLoop")


def fused_to_tuple(x: Instruction, y: Instruction) -> Instruction:
    def both(a: Instruction, b: Instruction) -> Instruction:
        return ops.tuple_([ops.mul(a, b), ops.tuple_([ops.neg(b)])])

    made = ops.fusion(computation("both", both, x.shape, y.shape), [x, y], "kInput")
    product, rest = ops.elements_of(made)
    return ops.tuple_([product, *ops.elements_of(rest)])


def asynchronous(x: Instruction, y: Instruction) -> Instruction:
    body = computation("product", ops.mul, x.shape, y.shape)
    return ops.async_done(ops.async_update(ops.async_start(body, [x, y])))


def asynchronous_tuple(x: Instruction, y: Instruction) -> Instruction:
    def both(a: Instruction, b: Instruction) -> Instruction:
        return ops.tuple_([ops.add(a, b), ops.neg(a)])

    contexts: list[AnyShape] = [Shape(ElementType.S32), TupleShape((Shape(ElementType.U32, (2,)),))]
    body = computation("both", both, x.shape, y.shape)
    return ops.async_done(ops.async_start(body, [x, y], contexts))


SAMPLES = [
    Sample("Bitcast", reshaped, (Operand(),), ALL, exact=True),
    Sample("Copy", ops.copy, (Operand(),), ALL, exact=True),
    Sample("CopyStart", started, (Operand(),), ALL, exact=True),
    Sample("CopyDone", started, (Operand(),), ALL, exact=True),
    Sample("Domain", lambda x: ops.domain(x, SHARDING), (Operand(),), ALL, exact=True),
    Sample("Fusion", fused, (Operand(), Operand()), NUMERIC, "array"),
    Sample("Fusion", fused_to_tuple, (Operand(), Operand()), NUMERIC, "tuple"),
    Sample("AsyncStart", asynchronous, (Operand(), Operand()), NUMERIC, "array"),
    Sample("AsyncStart", asynchronous_tuple, (Operand(), Operand()), FLOATING, "tuple"),
    Sample("AsyncUpdate", asynchronous, (Operand(), Operand()), NUMERIC),
    Sample("AsyncDone", asynchronous, (Operand(), Operand()), NUMERIC),
]
