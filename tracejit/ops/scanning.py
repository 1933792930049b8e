"""Scan: a computation applied to the slices of arrays one after the other, carrying a state.

scan([x], [initial], step, scan_dimension=0)      a tuple: stacked outputs, then final carries
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.attributes import Attribute, Kind
from tracejit.errors import ArgumentError, AttributeValueError, ShapeError
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import define, make, require_array
from tracejit.ops.computations import require_computation
from tracejit.ops.constants import constant, elements_of, parameter, tuple_
from tracejit.ops.elementwise import sub
from tracejit.ops.layout import dynamic_slice, dynamic_update_slice, full, reshape
from tracejit.ops.loops import Turn, counted
from tracejit.shapes import AnyShape, ElementType, Shape, TupleShape
from tracejit.traversal import inline_with_effects


@define(
    "Scan",
    "scan",
    Attribute("dimensions", Kind.INTS),
    Attribute("num_carries", Kind.INT),
    Attribute("is_reverse", Kind.BOOL, False),
    Attribute("is_associative", Kind.BOOL, False),
    Attribute("to_apply", Kind.COMPUTATION),
    Attribute("shape", Kind.SHAPE),
)
def SCAN(
    *operands: AnyShape,
    dimensions: tuple[int, ...],
    num_carries: int,
    is_reverse: bool,
    is_associative: bool,
    to_apply: Computation,
    shape: AnyShape,
) -> TupleShape:
    if len(dimensions) != 1 or dimensions[0] < 0:
        raise AttributeValueError(f"scan: scan_dimension must be one dimension, not {dimensions}")
    (dimension,) = dimensions
    if not 0 <= num_carries <= len(operands):
        raise AttributeValueError(
            f"scan: num_carries must be between 0 and the {len(operands)} operands, "
            f"not {num_carries}"
        )
    count = len(operands) - num_carries
    inputs = [require_array("scan", f"input {i}", s) for i, s in enumerate(operands[:count])]
    inits = [require_array("scan", f"init {i}", s) for i, s in enumerate(operands[count:])]
    made = to_apply.root.shape
    if not isinstance(made, TupleShape) or len(made.elements) < num_carries:
        raise ShapeError(
            f"scan: the computation must return a tuple of outputs and {num_carries} carries, "
            f"not {made}"
        )
    outputs = [
        require_array("scan", f"the computation's output {i}", s)
        for i, s in enumerate(made.elements[: len(made.elements) - num_carries])
    ]
    for what, arrays, least in (("input", inputs, 1), ("output", outputs, 0)):
        for i, array in enumerate(arrays):
            if dimension >= array.rank + 1 - least:
                raise ShapeError(
                    f"scan: scan_dimension {dimension} is out of range for {what} {i} {array}"
                )
    if not inputs and not outputs:
        raise ShapeError(
            "scan: without inputs and outputs there is nothing that says how many steps there are"
        )
    length = _length(inputs, dimension, shape)
    slices = [s.with_dimensions(_without(s.dimensions, dimension)) for s in inputs]
    require_computation("scan", "computation", to_apply, [*slices, *inits], made)
    if made.elements[len(outputs) :] != tuple(inits):
        given, wanted = (
            ", ".join(map(str, shapes)) for shapes in (made.elements[len(outputs) :], inits)
        )
        raise ShapeError(
            f"scan: the computation must return carries of the inits' shapes; it returns "
            f"({given}), inits are ({wanted})"
        )
    stacked = [s.with_dimensions(_with(s.dimensions, dimension, length)) for s in outputs]
    result = TupleShape((*stacked, *inits))
    if shape != result:
        raise ShapeError(f"scan: the result of these operands is {result}, not {shape}")
    return result


def _length(inputs: Sequence[Shape], dimension: int, result: AnyShape) -> int:
    """How many steps there are; without inputs the first of the stacked outputs says it."""
    lengths = [s.dimensions[dimension] for s in inputs]
    if len(set(lengths)) > 1:
        listed = ", ".join(f"input {i} {s}" for i, s in enumerate(inputs))
        raise ShapeError(
            f"scan: inputs must have equal sizes in scan_dimension {dimension}; {listed}"
        )
    if lengths:
        return lengths[0]
    first = result.elements[0] if isinstance(result, TupleShape) and result.elements else result
    stacked = isinstance(first, Shape) and dimension < first.rank
    return first.dimensions[dimension] if isinstance(first, Shape) and stacked else 0


def _without(dimensions: tuple[int, ...], dimension: int) -> tuple[int, ...]:
    return dimensions[:dimension] + dimensions[dimension + 1 :]


def _with(dimensions: tuple[int, ...], dimension: int, size: int) -> tuple[int, ...]:
    return (*dimensions[:dimension], size, *dimensions[dimension:])


def scan(
    inputs: Sequence[Instruction],
    inits: Sequence[Instruction],
    to_apply: Computation,
    scan_dimension: int = 0,
    is_reverse: bool = False,
    is_associative: bool = False,
    length: int | None = None,
) -> Instruction:
    """``to_apply`` applied to the slices of ``inputs`` in order, or in reverse (XLA: Scan).

    ``to_apply`` takes a slice of every input, without the scan dimension, then the carries, first
    ``inits``, and returns the tuple of the step's outputs and the next carries. The result is the
    tuple of the outputs, stacked along the scan dimension, and the final carries. ``length`` is
    needed only where there are no inputs; where there are no outputs either, an input that is not
    read holds it. ``is_associative`` is a hint. Raises `ShapeError` when sizes or shapes do not
    fit.
    """
    count = length
    for i, operand in enumerate(inputs):
        given = require_array("scan", f"input {i}", operand.shape)
        if not 0 <= scan_dimension < given.rank:
            raise ShapeError(
                f"scan: scan_dimension {scan_dimension} is out of range for input {i} {given}"
            )
        count = given.dimensions[scan_dimension] if count is None else count
    if count is None:
        raise ArgumentError("scan: without inputs, length must say how many steps there are")
    made = to_apply.root.shape
    elements = made.elements if isinstance(made, TupleShape) else (made,)
    if not inputs and len(elements) == len(inits):
        inputs = [full(Shape(ElementType.PRED, (*[1] * scan_dimension, count)), 0)]
        to_apply = _with_slice(to_apply, Shape(ElementType.PRED, (1,) * scan_dimension))
    stacked = [
        s.with_dimensions(_with(s.dimensions, scan_dimension, count)) if isinstance(s, Shape) else s
        for s in elements[: max(0, len(elements) - len(inits))]
    ]
    return make(
        SCAN,
        *inputs,
        *inits,
        dimensions=(scan_dimension,),
        num_carries=len(inits),
        is_reverse=bool(is_reverse),
        is_associative=bool(is_associative),
        to_apply=to_apply,
        shape=TupleShape((*stacked, *(i.shape for i in inits))),
    )


def _with_slice(step: Computation, slice_: Shape) -> Computation:
    """``step`` with one more parameter, the first, that it does not read."""
    parameters = [parameter(0, slice_)]
    parameters += [parameter(i + 1, p.shape) for i, p in enumerate(step.parameters)]
    root, effects = inline_with_effects(step, parameters[1:])
    return Computation(step.name, tuple(parameters), root, effects)


def scan_length(instruction: Instruction) -> int:
    """How many steps a Scan takes."""
    (dimension,) = instruction.attributes["dimensions"]
    count = len(instruction.operands) - instruction.attributes["num_carries"]
    shapes = [o.array_shape for o in instruction.operands[:count]]
    return _length(shapes, dimension, instruction.shape)


def scan_as_while(
    instruction: Instruction, begin: Callable[[Shape], Instruction] = lambda shape: full(shape, 0)
) -> Instruction:
    """The tuple that a Scan makes, as a While over (counter, outputs, carries, inputs).

    ``begin`` makes the arrays that the steps write the outputs into, every element once.
    """
    attributes = instruction.attributes
    (dimension,) = attributes["dimensions"]
    carried, length = attributes["num_carries"], scan_length(instruction)
    count = len(instruction.operands) - carried
    stacked = len(instruction.element_shapes) - carried
    buffers = [begin(s) for s in instruction.element_shapes[:stacked] if isinstance(s, Shape)]
    inputs, inits = instruction.operands[:count], instruction.operands[count:]
    if not length:
        return tuple_([*buffers, *inits])

    def step(counter: Instruction, *state: Instruction) -> Turn:
        written, carries = state[:stacked], state[stacked : stacked + carried]
        sources = state[stacked + carried :]
        last = constant(length - 1, ElementType.S32)
        place = sub(last, counter) if attributes["is_reverse"] else counter
        slices = [_slice(source, dimension, place) for source in sources]
        root, effects = inline_with_effects(attributes["to_apply"], [*slices, *carries])
        results = elements_of(root)
        made = [_store(b, r, dimension, place) for b, r in zip(written, results, strict=False)]
        return [*made, *results[stacked:], *sources], effects

    final = counted("scan", length, [*buffers, *inits, *inputs], step)
    return tuple_(final[: stacked + carried])


def _starts(rank: int, dimension: int, place: Instruction) -> list[Instruction]:
    zero = constant(0, ElementType.S32)
    return [place if d == dimension else zero for d in range(rank)]


def _slice(source: Instruction, dimension: int, place: Instruction) -> Instruction:
    sizes = source.array_shape.dimensions
    one = _with(_without(sizes, dimension), dimension, 1)
    row = dynamic_slice(source, _starts(len(sizes), dimension, place), one)
    return reshape(row, _without(sizes, dimension))


def _store(
    buffer: Instruction, row: Instruction, dimension: int, place: Instruction
) -> Instruction:
    rank = buffer.array_shape.rank
    update = reshape(row, _with(row.array_shape.dimensions, dimension, 1))
    return dynamic_update_slice(buffer, update, _starts(rank, dimension, place))
