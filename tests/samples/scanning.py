"""Samples of Scan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tests.building import computation
from tests.samples.base import Operand, Sample
from tests.samples.domains import near_one, small_integers
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import NUMERIC
from tracejit.shapes import ElementType

Step = Callable[..., Sequence[Instruction]]


def scanned(
    step: Step, inputs: int, dimension: int = 0, is_reverse: bool = False, length: int | None = None
) -> Callable[..., Instruction]:
    """A Scan of a step from slices and carries to outputs and carries, on operands in order."""

    def build(*operands: Instruction) -> Instruction:
        slices = []
        for operand in operands[:inputs]:
            shape = operand.array_shape
            sizes = [s for d, s in enumerate(shape.dimensions) if d != dimension]
            slices.append(shape.with_dimensions(sizes))
        shapes = [*slices, *(o.shape for o in operands[inputs:])]
        to_apply = computation("step", lambda *given: ops.tuple_(step(*given)), *shapes)
        return ops.scan(
            operands[:inputs], operands[inputs:], to_apply, dimension, is_reverse, length=length
        )

    return build


def running_sum(x: Instruction, total: Instruction) -> Sequence[Instruction]:
    made = ops.add(x, total)
    return [made, made]


def recurrence(x: Instruction, w: Instruction, h: Instruction) -> Sequence[Instruction]:
    """A weight that never changes, and a state that does."""
    new = ops.add(ops.mul(w, h), x)
    return [ops.mul(new, x), w, new]


def two_of_each(
    x: Instruction, y: Instruction, a: Instruction, b: Instruction
) -> list[Instruction]:
    """Outputs and carries of several shapes; one output depends on no carry."""
    row = ops.mul(ops.broadcast_in_dim(y, x.array_shape.dimensions, ()), x)
    return [row, ops.add(a, y), ops.add(a, ops.mul(y, y)), ops.add(b, ops.mul(row, b))]


def counting(total: Instruction) -> Sequence[Instruction]:
    return [total, ops.add(total, ops.full_like(total, 2))]


def only_outputs(x: Instruction) -> Sequence[Instruction]:
    return [ops.mul(x, x)]


def only_carry(x: Instruction, total: Instruction) -> Sequence[Instruction]:
    return [ops.mul(x, total)]


def no_slice(total: Instruction, factor: Instruction) -> Sequence[Instruction]:
    return [ops.mul(total, factor), factor]


def nested(x: Instruction, total: Instruction) -> Sequence[Instruction]:
    """A scan over the elements of each slice."""
    inner = scanned(recurrence, 1)(x, ops.full_like(total, 0.5), total)
    rows, _, state = ops.elements_of(inner)
    return [rows, state]


VECTOR = Operand((4,), domain=near_one)
MATRIX = Operand((4, 3), domain=near_one)
SCALAR = Operand((), domain=near_one)
SOME = (ElementType.BF16, ElementType.F32, ElementType.F64, ElementType.C128)
LOOSE = {
    **{t: 2.4 * 0.5**t.float_format.mantissa_bits for t in ElementType if t.is_small_float},
    ElementType.BF16: 0.06,
    ElementType.F16: 0.01,
    ElementType.F32: 1e-5,
    ElementType.F64: 1e-13,
    ElementType.C64: 1e-5,
    ElementType.C128: 1e-13,
}
INTEGERS = Operand((4,), domain=small_integers)
INTEGER = Operand((), domain=small_integers)


def _scan(
    label: str,
    build: Callable[..., Instruction],
    operands: Sequence[Operand],
    types: Collection[ElementType] = SOME,
) -> Sample:
    return Sample("Scan", build, tuple(operands), types, label, LOOSE)


SAMPLES = [
    _scan("running sum", scanned(running_sum, 1), (INTEGERS, INTEGER), NUMERIC),
    _scan("in reverse", scanned(running_sum, 1, 0, True), (INTEGERS, INTEGER)),
    _scan("fixed carry", scanned(recurrence, 1), (VECTOR, SCALAR, SCALAR)),
    _scan("rows", scanned(recurrence, 1), (MATRIX, Operand((3,)), Operand((3,)))),
    _scan(
        "second dimension",
        scanned(recurrence, 1, 1, True),
        (MATRIX, Operand((4,)), Operand((4,))),
        SOME,
    ),
    _scan(
        "several",
        scanned(two_of_each, 2),
        (MATRIX, VECTOR, SCALAR, Operand((3,), domain=near_one)),
        SOME,
    ),
    _scan("no input", scanned(counting, 0, length=3), (INTEGER,)),
    _scan("no carry", scanned(only_outputs, 1), (INTEGERS,)),
    _scan("no output", scanned(only_carry, 1), (VECTOR, SCALAR)),
    _scan("only carries", scanned(no_slice, 0, length=4), (SCALAR, SCALAR)),
    _scan("only carries of arrays", scanned(no_slice, 0, 1, length=3), (VECTOR, VECTOR)),
    _scan("no step", scanned(running_sum, 1), (Operand((0, 2)), Operand((2,)))),
    _scan("empty slices", scanned(running_sum, 1), (Operand((3, 0)), Operand((0,)))),
    _scan("nested", scanned(nested, 1), (MATRIX, SCALAR)),
]
