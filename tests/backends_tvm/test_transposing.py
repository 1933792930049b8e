"""Kernels that read across memory, which turn tiles of their operands in registers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends_tvm.compiled import check, computation
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.shapes import ElementType, Shape

F32 = ElementType.F32
KINDS = "PRED S8 U16 F16 BF16 F32 S64 F64 C64".split()


def values(kind: ElementType, *sizes: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 100, sizes).astype(kind.dtype)


@pytest.mark.parametrize("kind", [ElementType[name] for name in KINDS], ids=str)
def test_every_element_type(kind: ElementType) -> None:
    x = values(kind, 70, 131)
    check(computation(lambda a: ops.transpose(a, (1, 0)), Shape(kind, x.shape)), [x])


@pytest.mark.parametrize(
    "sizes", [(4, 2000), (2000, 4), (5, 1000), (1031, 17), (64, 64), (300, 63)]
)
def test_remainders(sizes: tuple[int, int]) -> None:
    x = values(F32, *sizes)
    check(computation(lambda a: ops.transpose(a, (1, 0)), Shape(F32, sizes)), [x])


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (0, 2, 3, 1), (3, 0, 2, 1), (2, 1, 0, 3)])
def test_four_dimensions(order: tuple[int, ...]) -> None:
    x = values(F32, 5, 18, 20, 22)
    check(computation(lambda a: ops.transpose(a, order), Shape(F32, x.shape)), [x])


def test_arithmetic_on_the_way() -> None:
    """Operands as they lie and turned ones, one of them both ways, and two results."""

    def build(x: Instruction, y: Instruction) -> Instruction:
        turned = ops.transpose(x, (1, 0))
        both = ops.add(y, ops.transpose(y, (1, 0)))
        return ops.tuple_([ops.mul(ops.neg(turned), both), ops.add(turned, turned)])

    x, y = values(F32, 90, 90), values(F32, 90, 90)
    check(computation(build, Shape(F32, x.shape), Shape(F32, y.shape)), [x, y])


def test_more_operands_than_tiles() -> None:
    def build(*operands: Instruction) -> Instruction:
        total = operands[0]
        for each in operands[1:]:
            total = ops.add(total, ops.transpose(each, (1, 0)))
        return total

    given = [values(F32, 80, 80) + n for n in range(7)]
    check(computation(build, *[Shape(F32, (80, 80))] * 7), given)
