"""Sorts of narrow numbers alone are sorts of numbers of 32 bits."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends_tvm.compiled import check, computation
from tracejit.backends.tvm.passes.canonicalize.sort_promote_type import promote_sort_keys
from tracejit.graph import Computation, Instruction
from tracejit.ops.comparison import lt_total_order
from tracejit.ops.constants import parameter
from tracejit.ops.reduction import SORT, sort, sort_order
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import in_order

RNG = np.random.default_rng(0)
NARROW = [
    ElementType.S8,
    ElementType.U8,
    ElementType.S16,
    ElementType.U16,
    ElementType.F16,
    ElementType.BF16,
    ElementType.PRED,
]


def widths(root: Instruction) -> set[int]:
    """How many bits the operands of its sorts have."""
    found = in_order(promote_sort_keys([root]))
    return {o.array_shape.element_type.bits for i in found if i.op is SORT for o in i.operands}


def of_all_bits(shape: Shape) -> np.ndarray:
    """Different bits in every element, if there are so many; NaN are quiet."""
    bits = RNG.permutation(65536)[: shape.size].astype(np.uint16)
    if shape.element_type is ElementType.PRED:
        bits = bits % 2
    # A conversion makes quiet NaN of those that signal.
    infinity = {ElementType.F16: 0x7C00, ElementType.BF16: 0x7F80}.get(shape.element_type)
    if infinity is not None:
        bits[(bits & 0x7FFF) > infinity] |= infinity >> 1 | infinity
    dtype = shape.element_type.dtype
    given = bits.astype(np.uint8) if dtype.itemsize == 1 else bits
    made: np.ndarray = given.view(dtype).reshape(shape.dimensions)
    return made


@pytest.mark.parametrize("element_type", NARROW, ids=str)
@pytest.mark.parametrize("sizes", [(1,), (40,), (65536,), (7, 300), (300, 7)])
def test_every_bit_stays(element_type: ElementType, sizes: tuple[int, ...]) -> None:
    shape = Shape(element_type, sizes)
    x = of_all_bits(shape)
    for axis in range(len(sizes)):
        for descending in (False, True):
            order = sort_order(element_type, descending=descending)

            def build(
                given: Instruction, axis: int = axis, order: Computation = order
            ) -> Instruction:
                return sort(given, order, axis, is_stable=True)

            assert widths(build(parameter(0, shape))) == {32}
            (found,) = check(computation(build, shape), [x])
            expected = np.sort(x.astype(np.float64), axis)
            expected = np.flip(expected, axis) if descending else expected
            np.testing.assert_array_equal(found.astype(np.float64), expected)
            here, there = (np.sort(each.view(f"u{each.itemsize}"), axis) for each in (found, x))
            np.testing.assert_array_equal(here, there)


def test_others_stay_narrow() -> None:
    shape = Shape(ElementType.F16, (40,))
    given, numbers = parameter(0, shape), parameter(1, Shape(ElementType.S16, (40,)))
    first, second = (parameter(i, Shape(ElementType.F16)) for i in range(2))
    total = Computation("total", (first, second), lt_total_order(first, second))
    assert widths(sort(given, total)) == {16}
    assert widths(sort([given, numbers])) == {16}
    wide = Shape(ElementType.F64, (40,))
    assert widths(sort(parameter(0, wide))) == {64}
