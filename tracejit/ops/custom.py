"""CustomCall: a function from outside the graph, known by its target's name.

custom_call("my_target", [x, y], Shape(F32, (2, 3)))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.attributes import Attribute, Kind, OutputAlias
from tracejit.errors import AttributeValueError, ShapeError
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import define, make
from tracejit.shapes import AnyShape

API_VERSIONS = (
    "API_VERSION_ORIGINAL",
    "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED",
    "API_VERSION_TYPED_FFI",
)

VMAP_METHODS = (None, "sequential", "broadcast_all", "expand_dims", "legacy_vectorized")
"""How a function is called for a batch, as JAX names it: not at all; for one element after the
other; or once, with the batch in front, where operands without it are repeated, have a dimension of
size 1 there, or are as they are. Text does not hold it."""

LINEAR_ALGEBRA = "tracejit.linalg."
"""How the names of the library's own targets for linear algebra begin."""

# Targets that every process knows: the queues, and ops on dynamic arrays, for compiled code.
DYNAMIC_TARGET = "tracejit.dynamic"
INFEED_TARGET = "tracejit.infeed"
OUTFEED_TARGET = "tracejit.outfeed"
# And the channels to the host; the number of the channel is the call's opaque text.
RECV_TARGET = "tracejit.recv"
SEND_TARGET = "tracejit.send"
# Collective ops of a program on several devices, whose opaque text is the op as HLO text.
COLLECTIVE_TARGET = "tracejit.collective"
COLLECTIVE_START_TARGET = "tracejit.collective_start"
COLLECTIVE_DONE_TARGET = "tracejit.collective_done"
NATIVE_TARGET = "tracejit.native"
"""A function of a compiled library, on arrays in the order in which it wants them in memory.

The opaque text is the call as HLO text, with the target's name, layouts and attributes.
"""


@define(
    "CustomCall",
    "custom-call",
    Attribute("window", Kind.WINDOW, None),
    Attribute("dim_labels", Kind.DIM_LABELS, None),
    Attribute("feature_group_count", Kind.INT, 1),
    Attribute("batch_group_count", Kind.INT, 1),
    Attribute("operand_precision", Kind.PRECISIONS, ()),
    Attribute("padding_type", Kind.NAME, "PADDING_INVALID"),
    Attribute("custom_call_target", Kind.STRING),
    Attribute("operand_layout_constraints", Kind.SHAPES, None),
    Attribute("custom_call_has_side_effect", Kind.BOOL, False),
    Attribute("schedule", Kind.NAME, "SCHEDULE_NONE"),
    Attribute("output_to_operand_aliasing", Kind.ALIASING, ()),
    Attribute("api_version", Kind.NAME, "API_VERSION_ORIGINAL"),
    Attribute("called_computations", Kind.COMPUTATIONS, ()),
    Attribute("backend_config", Kind.CONFIG, ""),
    Attribute("literal", Kind.LITERAL_TEXT, ""),
    Attribute("callback", Kind.UNWRITTEN, None),
    Attribute("vmap_method", Kind.UNWRITTEN, "sequential"),
    Attribute("shape", Kind.SHAPE),
    side_effect="custom_call_has_side_effect",
)
def CUSTOM_CALL(
    *operands: AnyShape,
    custom_call_target: str,
    operand_layout_constraints: tuple[AnyShape, ...] | None,
    output_to_operand_aliasing: tuple[OutputAlias, ...],
    api_version: str,
    shape: AnyShape,
    **others: Any,
) -> AnyShape:
    if not custom_call_target:
        raise AttributeValueError("custom_call: custom_call_target must not be empty")
    if api_version not in API_VERSIONS:
        raise AttributeValueError(
            f"custom_call: api_version must be one of {', '.join(API_VERSIONS)}, not {api_version}"
        )
    if operand_layout_constraints is not None and operand_layout_constraints != operands:
        wanted, given = (", ".join(map(str, s)) for s in (operands, operand_layout_constraints))
        raise ShapeError(
            f"custom_call: operand_layout_constraints must be the operands' shapes, {wanted}; "
            f"they are {given}"
        )
    for alias in output_to_operand_aliasing:
        if not 0 <= alias.operand < len(operands):
            raise AttributeValueError(
                f"custom_call: output_to_operand_aliasing names operand {alias.operand} of "
                f"{len(operands)}"
            )
    return shape


def custom_call(
    call_target_name: str,
    operands: Sequence[Instruction],
    shape: AnyShape,
    opaque: str = "",
    has_side_effect: bool = False,
    output_operand_aliasing: Sequence[OutputAlias] = (),
    api_version: str = "API_VERSION_ORIGINAL",
    called_computations: Sequence[Computation] = (),
    callback: object = None,
    operand_layout_constraints: Sequence[AnyShape] | None = None,
    vmap_method: str | None = "sequential",
) -> Instruction:
    """What the registered function of that name makes of ``operands`` (XLA: CustomCall).

    The result has the given ``shape``. ``opaque`` is handed to the function (HLO's
    backend_config). A call with a side effect runs exactly once, in the order of creation; one
    without may be left out, or be one with an equal call. ``callback`` is kept alive by the call;
    text does not hold it. ``operand_layout_constraints`` are the operands' shapes with the layouts
    that the function wants, ``vmap_method`` one of `VMAP_METHODS`. Raises `AttributeValueError` for
    an empty name.
    """
    return make(
        CUSTOM_CALL,
        *operands,
        custom_call_target=call_target_name,
        operand_layout_constraints=operand_layout_constraints and (*operand_layout_constraints,),
        custom_call_has_side_effect=has_side_effect,
        output_to_operand_aliasing=tuple(output_operand_aliasing),
        api_version=api_version,
        called_computations=tuple(called_computations),
        backend_config=opaque,
        callback=callback,
        vmap_method=vmap_method,
        shape=shape,
    )


def is_native_call(instruction: Instruction) -> bool:
    """Whether an instruction is a CustomCall of `NATIVE_TARGET`."""
    if instruction.op is not CUSTOM_CALL:
        return False
    return bool(instruction.attributes["custom_call_target"] == NATIVE_TARGET)
