"""Ops that XLA's own passes make, met only in dumps of compiled modules.

Bitcast, Copy, CopyStart, CopyDone, Domain, Fusion, AsyncStart, AsyncUpdate, AsyncDone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tracejit.attributes import Attribute, Kind, OutputAlias
from tracejit.errors import AttributeValueError, ShapeError
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import define, make, require_array
from tracejit.ops.computations import require_computation
from tracejit.shapes import AnyShape, ElementType, Layout, Shape, TupleShape

FUSION_KINDS = ("kLoop", "kInput", "kOutput", "kCustom")


@define(
    "Bitcast",
    "bitcast",
    Attribute("operand_layout", Kind.OPERAND_LAYOUT, None),
    Attribute("shape", Kind.SHAPE),
)
def BITCAST(operand: AnyShape, *, operand_layout: Layout | None, shape: AnyShape) -> Shape:
    given = require_array("bitcast", "operand", operand)
    if operand_layout is not None:
        operand_layout.require_fits(given.dimensions)
    wanted = require_array("bitcast", "result", shape)
    bits = [math.prod(s.dimensions) * s.element_type.bits for s in (given, wanted)]
    if bits[0] != bits[1]:
        raise ShapeError(
            f"bitcast: operand and result must take the same memory; operand {given} takes "
            f"{bits[0]} bits, result {wanted} takes {bits[1]}"
        )
    return wanted


def bitcast(operand: Instruction, shape: Shape) -> Instruction:
    """The bytes of ``operand``, as they lie under its layout, read as ``shape`` (XLA: Bitcast).

    Raises `ShapeError` unless both take as many bits.
    """
    given = require_array("bitcast", "operand", operand.shape).layout
    layout = None if given is None or given.is_row_major else given
    return make(BITCAST, operand, operand_layout=layout, shape=shape)


@define("Copy", "copy")
def COPY(operand: AnyShape) -> AnyShape:
    return operand


def copy(operand: Instruction) -> Instruction:
    """The same value in memory of its own (XLA: Copy)."""
    return make(COPY, operand)


@define(
    "CopyStart",
    "copy-start",
    Attribute("cross_program_prefetch_index", Kind.INT, None),
)
def COPY_START(operand: AnyShape, *, cross_program_prefetch_index: int | None) -> AnyShape:
    given = require_array("copy_start", "operand", operand)
    return TupleShape((given, given, Shape(ElementType.U32)))


def copy_start(operand: Instruction) -> Instruction:
    """The begin of a copy: (the copy, the operand, a context) for `copy_done` (XLA: CopyStart)."""
    return make(COPY_START, operand)


@define("CopyDone", "copy-done")
def COPY_DONE(operand: AnyShape) -> AnyShape:
    parts = operand.elements if isinstance(operand, TupleShape) else ()
    context = Shape(ElementType.U32)
    if len(parts) != 3 or parts[0] != parts[1] or parts[2] != context:
        raise ShapeError(f"copy_done: operand must be a copy_start's result, not {operand}")
    return parts[0]


def copy_done(operand: Instruction) -> Instruction:
    """The copy that a `copy_start` began (XLA: CopyDone)."""
    return make(COPY_DONE, operand)


@define("Domain", "domain", Attribute("domain", Kind.BRACED))
def DOMAIN(operand: AnyShape, *, domain: str) -> AnyShape:
    return operand


def domain(operand: Instruction, metadata: str) -> Instruction:
    """``operand``, at the border of two domains such as shardings (XLA: Domain).

    ``metadata`` is XLA's text, ``{kind="sharding", entry={…}, exit={…}}``.
    """
    return make(DOMAIN, operand, domain=metadata)


@define(
    "Fusion",
    "fusion",
    Attribute("kind", Kind.NAME),
    Attribute("output_to_operand_aliasing", Kind.ALIASING, ()),
    Attribute("calls", Kind.COMPUTATION),
)
def FUSION(
    *operands: AnyShape,
    kind: str,
    output_to_operand_aliasing: tuple[OutputAlias, ...],
    calls: Computation,
) -> AnyShape:
    if kind not in FUSION_KINDS:
        raise AttributeValueError(
            f"fusion: kind must be one of {', '.join(FUSION_KINDS)}, not {kind}"
        )
    require_computation("fusion", "calls", calls, operands, calls.root.shape)
    return calls.root.shape


def fusion(
    computation: Computation, operands: Sequence[Instruction], kind: str = "kLoop"
) -> Instruction:
    """``computation`` applied to ``operands``, to be compiled as one kernel (XLA: Fusion).

    ``kind`` is kLoop, kInput, kOutput or kCustom. Raises `ShapeError` unless the operands are of
    the computation's parameters' shapes.
    """
    return make(FUSION, *operands, kind=kind, calls=computation)


def _bundle(function: str, operand: AnyShape) -> tuple[AnyShape, ...]:
    """The parts of an async op's bundle: operands, result, contexts."""
    parts = operand.elements if isinstance(operand, TupleShape) else ()
    if len(parts) < 2 or not isinstance(parts[0], TupleShape):
        raise ShapeError(
            f"{function}: must be a bundle ((operands…), result, contexts…), not {operand}"
        )
    return parts


@define(
    "AsyncStart",
    "async-start",
    Attribute("async_execution_thread", Kind.STRING, "main"),
    Attribute("calls", Kind.COMPUTATION),
    Attribute("shape", Kind.SHAPE),
)
def ASYNC_START(
    *operands: AnyShape, async_execution_thread: str, calls: Computation, shape: AnyShape
) -> AnyShape:
    parts = _bundle("async_start: the result", shape)
    require_computation("async_start", "calls", calls, operands, parts[1])
    if parts[0] != TupleShape(tuple(operands)):
        raise ShapeError(
            f"async_start: the result {shape} must begin with the operands "
            f"{TupleShape(tuple(operands))}"
        )
    return shape


def async_start(
    computation: Computation,
    operands: Sequence[Instruction],
    contexts: Sequence[AnyShape] = (Shape(ElementType.S32),),
) -> Instruction:
    """Begins ``computation`` on ``operands`` (XLA: AsyncStart).

    Returns the bundle (operands, result, contexts…) for `async_update` and `async_done`. Raises
    `ShapeError` unless the operands are of the computation's parameters' shapes.
    """
    given = TupleShape(tuple(operand.shape for operand in operands))
    shape = TupleShape((given, computation.root.shape, *contexts))
    return make(ASYNC_START, *operands, calls=computation, shape=shape)


@define("AsyncUpdate", "async-update")
def ASYNC_UPDATE(operand: AnyShape) -> AnyShape:
    _bundle("async_update: operand", operand)
    return operand


def async_update(bundle: Instruction) -> Instruction:
    """The bundle of an `async_start`, looked at on the way (XLA: AsyncUpdate)."""
    return make(ASYNC_UPDATE, bundle)


@define("AsyncDone", "async-done")
def ASYNC_DONE(operand: AnyShape) -> AnyShape:
    return _bundle("async_done: operand", operand)[1]


def async_done(bundle: Instruction) -> Instruction:
    """The result of the operation that an `async_start` began (XLA: AsyncDone)."""
    return make(ASYNC_DONE, bundle)
