"""Ops that run computations (Call, Map, Conditional, While), and OptimizationBarrier.

conditional(predicate, x, on_true, y, on_false)        two ways
conditional_indexed(index, [first, second, third], [x, y, z])      N ways
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tracejit.attributes import Attribute, Kind
from tracejit.errors import AttributeValueError, ElementTypeError, ShapeError
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import define, make, require_array
from tracejit.ops.computations import operand_list, require_computation
from tracejit.shapes import AnyShape, ElementType, Shape

Derivative = Callable[[Instruction, Any], Sequence[Any]]
"""``derivative(instruction, cotangent)``: a cotangent or None for each operand.

Cotangents are as rules of differentiation take and give them: of a tuple, a sequence.
"""


@dataclass(frozen=True, eq=False)
class PointwiseDerivative:
    """A derivative of a Call whose operands and result have one shape, element by element.

    An element of an operand's cotangent depends on the same element of the others alone.
    """

    rule: Derivative

    def __call__(self, instruction: Instruction, cotangent: Any) -> Sequence[Any]:
        return self.rule(instruction, cotangent)

    @property
    def is_pointwise(self) -> bool:
        """True, as for such a derivative."""
        return True


COMPOSITE_NAME = "composite.name"
COMPOSITE_ATTRIBUTES = "composite.attributes"
COMPOSITE_VERSION = "composite.version"


@define(
    "Call",
    "call",
    Attribute("to_apply", Kind.COMPUTATION),
    Attribute("is_composite", Kind.BOOL, False),
    Attribute("frontend_attributes", Kind.STRINGS, ()),
    Attribute("derivative", Kind.UNWRITTEN, None),
)
def CALL(
    *operands: AnyShape,
    to_apply: Computation,
    is_composite: bool,
    frontend_attributes: tuple[tuple[str, str], ...],
    derivative: Derivative | None,
) -> AnyShape:
    require_computation("call", "computation", to_apply, operands, to_apply.root.shape)
    if is_composite:
        given = dict(frontend_attributes)
        if not given.get(COMPOSITE_NAME):
            raise AttributeValueError("composite_call: the composite must have a name")
        version = given.get(COMPOSITE_VERSION, "0")
        if not version.isdecimal():
            raise AttributeValueError(
                f"composite_call: version must be a number from 0 on, not {version!r}"
            )
    return to_apply.root.shape


def call(
    computation: Computation,
    operands: Sequence[Instruction],
    derivative: Derivative | None = None,
) -> Instruction:
    """``computation`` applied to ``operands``, of any shapes (XLA: Call).

    ``derivative`` stands in place of the computation's own; text does not hold it. Raises
    `ShapeError` unless the operands are of the parameters' shapes.
    """
    return make(CALL, *operands, to_apply=computation, derivative=derivative)


def composite_call(
    computation: Computation,
    operands: Sequence[Instruction],
    name: str,
    attributes: str | None = None,
    version: int | None = None,
) -> Instruction:
    """``computation`` applied to ``operands``, as the op ``name`` (XLA: CompositeCall).

    A backend that knows the name may do it otherwise. ``attributes`` is the text of a dictionary,
    ``{n = 1 : i32}``; ``version`` changes with the meaning of the name, None is 0. In HLO text it
    is a `call` with ``is_composite`` and frontend attributes. Raises `AttributeValueError` for an
    empty name or a negative version, `ShapeError` when the operands are not the computation's.
    """
    given = {COMPOSITE_NAME: name, COMPOSITE_VERSION: str(version or 0)}
    if attributes:
        given[COMPOSITE_ATTRIBUTES] = attributes
    return make(
        CALL,
        *operands,
        to_apply=computation,
        is_composite=True,
        frontend_attributes=tuple(sorted(given.items())),
    )


@define(
    "Map",
    "map",
    Attribute("dimensions", Kind.INTS),
    Attribute("to_apply", Kind.COMPUTATION),
)
def MAP(*operands: AnyShape, dimensions: tuple[int, ...], to_apply: Computation) -> Shape:
    if not operands:
        raise ShapeError("map: needs at least one operand")
    arrays = [require_array("map", f"operand {i}", s) for i, s in enumerate(operands)]
    for i, array in enumerate(arrays):
        if array.dimensions != arrays[0].dimensions:
            raise ShapeError(
                f"map: all operands must have the same dimensions; operand 0 is {arrays[0]}, "
                f"operand {i} is {array}"
            )
    if dimensions != tuple(range(arrays[0].rank)):
        raise AttributeValueError(
            f"map: dimensions must be all of operand 0 {arrays[0]} in order, not {dimensions}"
        )
    result = require_array("map", "the computation's result", to_apply.root.shape)
    if result.rank:
        raise ShapeError(f"map: the computation's result {result} must be a scalar")
    scalars = [Shape(a.element_type) for a in arrays]
    require_computation("map", "computation", to_apply, scalars, result)
    return arrays[0].with_dimensions(arrays[0].dimensions).with_element_type(result.element_type)


def map_(
    operands: Instruction | Sequence[Instruction],
    computation: Computation,
    dimensions: Sequence[int] | None = None,
) -> Instruction:
    """``computation``, from scalars to a scalar, applied element by element (XLA: Map).

    All operands have the same dimensions, which ``dimensions`` lists in order. Raises
    `ShapeError` when operands or computation do not fit.
    """
    arrays = operand_list(operands)
    if not arrays:
        raise ShapeError("map: needs at least one operand")
    rank = require_array("map", "operand 0", arrays[0].shape).rank
    over = tuple(range(rank) if dimensions is None else dimensions)
    return make(MAP, *arrays, dimensions=over, to_apply=computation)


@define(
    "Conditional",
    "conditional",
    Attribute("true_computation", Kind.COMPUTATION, None),
    Attribute("false_computation", Kind.COMPUTATION, None),
    Attribute("branch_computations", Kind.COMPUTATIONS, ()),
)
def CONDITIONAL(
    selector: AnyShape,
    *operands: AnyShape,
    true_computation: Computation | None,
    false_computation: Computation | None,
    branch_computations: tuple[Computation, ...],
) -> AnyShape:
    chosen = require_array("conditional", "predicate or branch_index", selector)
    if chosen.rank or chosen.element_type not in (ElementType.PRED, ElementType.S32):
        raise ElementTypeError(
            f"conditional: predicate must be pred[] or branch_index s32[], not {chosen}"
        )
    named = [c for c in (true_computation, false_computation) if c is not None]
    if chosen.element_type is ElementType.PRED:
        if len(named) != 2 or branch_computations:
            raise AttributeValueError(
                "conditional: a predicate goes with true_computation and false_computation"
            )
        branches: Sequence[Computation] = named
    else:
        if named or not branch_computations:
            raise AttributeValueError(
                "conditional: a branch_index goes with one or more branch_computations"
            )
        branches = branch_computations
    if len(operands) != len(branches):
        raise ShapeError(
            f"conditional: {len(branches)} branches need as many operands, not {len(operands)}"
        )
    result = branches[0].root.shape
    for i, (branch, operand) in enumerate(zip(branches, operands, strict=True)):
        require_computation("conditional", f"branch {i}", branch, [operand], result)
    return result


def conditional(
    predicate: Instruction,
    true_operand: Instruction,
    true_computation: Computation,
    false_operand: Instruction,
    false_computation: Computation,
) -> Instruction:
    """``true_computation(true_operand)`` or ``false_computation(false_operand)``.

    Only one of them runs (XLA: Conditional). ``predicate`` is pred[]; each computation takes one
    argument, and both return the same shape. Raises `ShapeError` when something does not fit.
    """
    return make(
        CONDITIONAL,
        predicate,
        true_operand,
        false_operand,
        true_computation=true_computation,
        false_computation=false_computation,
    )


def conditional_indexed(
    branch_index: Instruction,
    branch_computations: Sequence[Computation],
    branch_operands: Sequence[Instruction],
) -> Instruction:
    """``branch_computations[i](branch_operands[i])``, i = ``branch_index`` (XLA: Conditional).

    Only one of them runs, the last for an index out of range. ``branch_index`` is s32[]; each
    computation takes one argument, and all return the same shape. Raises `ShapeError` when
    something does not fit.
    """
    return make(
        CONDITIONAL,
        branch_index,
        *branch_operands,
        branch_computations=tuple(branch_computations),
    )


@define(
    "While",
    "while",
    Attribute("condition", Kind.COMPUTATION),
    Attribute("body", Kind.COMPUTATION),
)
def WHILE(init: AnyShape, *, condition: Computation, body: Computation) -> AnyShape:
    require_computation("while", "condition", condition, [init], Shape(ElementType.PRED))
    require_computation("while", "body", body, [init], init)
    return init


def while_(condition: Computation, body: Computation, init: Instruction) -> Instruction:
    """``init`` replaced by ``body`` of it while ``condition`` of it is true (XLA: While).

    Both take one argument of init's shape, usually a tuple; ``condition`` returns pred[]. Raises
    `ShapeError` otherwise.
    """
    return make(WHILE, init, condition=condition, body=body)


@define("OptimizationBarrier", "opt-barrier")
def OPTIMIZATION_BARRIER(operand: AnyShape) -> AnyShape:
    return operand


def optimization_barrier(operand: Instruction) -> Instruction:
    """``operand``, of any shape, all of it computed before anything that uses the result.

    Nothing is moved across, joined with an equal value or folded (XLA: OptimizationBarrier).
    """
    return make(OPTIMIZATION_BARRIER, operand)
