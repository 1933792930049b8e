"""Narrow floats to registers and back, and through every conversion: all of their codes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends_tvm.compiled import compiled, computation
from tests.tolerances import same_bits
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.runtime import importing_tvm
from tracejit.shapes import ElementType, Shape

with importing_tvm():
    from tests.lowered import lower
    from tracejit.backends.target import CPU
    from tracejit.backends.tvm.cpu.processor import processor_of

F32, F64 = ElementType.F32, ElementType.F64
NARROW = [t for t in ElementType if t.is_floating and t.bits < 32]


def every(element_type: ElementType) -> np.ndarray:
    codes = np.arange(1 << element_type.bits, dtype=f"u{element_type.dtype.itemsize}")
    return codes.view(element_type.dtype)


def rounded(x: np.ndarray, element_type: ElementType) -> np.ndarray:
    """What ml_dtypes makes; a NaN is -0 in f4e2m1fn, whatever its sign, as XLA has it."""
    return np.where(np.isnan(x), np.float32(np.nan), x).astype(element_type.dtype)


def midpoints(element_type: ElementType) -> np.ndarray:
    """f32 on every boundary between two neighbours, a little to each side, and far outside."""
    with np.errstate(invalid="ignore"):
        finite = every(element_type).astype(np.float64)
    finite = np.unique(finite[np.isfinite(finite)])
    middle = ((finite[1:] + finite[:-1]) / 2).astype(np.float32)
    last = np.float32(finite[-1] + (finite[-1] - finite[-2]) / 2)
    ends = np.array([last, -last, np.inf, -np.inf, np.nan, 1e-45, -1e-45], np.float32)
    at = np.concatenate([middle, ends])
    return np.concatenate([at, np.nextafter(at, np.float32(np.inf)), np.nextafter(at, -at)])


@pytest.mark.parametrize("element_type", NARROW, ids=str)
def test_every_code_is_decoded(element_type: ElementType) -> None:
    x = every(element_type)

    def build(x: Instruction) -> Instruction:
        return ops.tuple_(
            [
                ops.convert_element_type(x, F32),
                ops.reshape(ops.neg(ops.neg(x)), (x.array_shape.size, 1)),
            ]
        )

    wide, same = compiled(computation(build, Shape(element_type, x.shape)))([x])
    assert not same_bits(wide, x.astype(np.float32))
    assert not same_bits(same.reshape(-1), x)


@pytest.mark.parametrize("element_type", NARROW, ids=str)
def test_every_boundary_is_rounded(element_type: ElementType) -> None:
    x = midpoints(element_type)
    entry = computation(lambda v: ops.convert_element_type(v, element_type), Shape(F32, x.shape))
    (made,) = compiled(entry)([x])
    with np.errstate(all="ignore"):
        assert not same_bits(made, rounded(x, element_type))


@pytest.mark.parametrize("target", NARROW, ids=str)
def test_between_narrow_types(target: ElementType) -> None:
    arrays = [every(t) for t in NARROW]

    def build(*given: Instruction) -> Instruction:
        return ops.tuple_([ops.convert_element_type(x, target) for x in given])

    entry = computation(build, *[Shape(t, (1 << t.bits,)) for t in NARROW])
    for made, x in zip(compiled(entry)(arrays), arrays, strict=True):
        with np.errstate(all="ignore"):
            expected = rounded(x.astype(np.float32), target)
            assert not same_bits(made, expected), f"from {x.dtype}"


@pytest.mark.parametrize("element_type", NARROW, ids=str)
def test_to_integers_and_back(element_type: ElementType) -> None:
    x = every(element_type)
    kinds = [ElementType.S4, ElementType.U8, ElementType.S32, ElementType.U64, ElementType.PRED]

    def build(x: Instruction) -> Instruction:
        return ops.tuple_([ops.convert_element_type(x, t) for t in kinds])

    entry = computation(build, Shape(element_type, x.shape))
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
    for made, kind in zip(compiled(entry)([x]), kinds, strict=True):
        low = -(2 ** (kind.bits - 1)) if kind.is_signed else 0
        high = 2 ** (kind.bits - kind.is_signed) - 1
        if kind is ElementType.PRED:
            assert (made == (wide != 0)).all()
            continue
        for value, number in zip(wide, made, strict=True):
            exact = (
                0
                if np.isnan(value)
                else low
                if value <= low
                else high
                if value >= high
                else int(value)
            )
            assert int(number) == exact, f"{value} to {kind}"


@pytest.mark.parametrize("element_type", NARROW, ids=str)
def test_a_product_is_rounded_once(element_type: ElementType) -> None:
    """A sum that is rounded and then stored: both conversions are expressions without sharing."""
    x = every(element_type)

    def build(a: Instruction, b: Instruction) -> Instruction:
        return ops.dot(a, b)

    shapes = [Shape(element_type, (x.size, 1)), Shape(element_type, (1, 2))]
    entry = computation(build, *shapes)
    (kernel,) = lower(entry, processor_of(CPU).machine).kernels
    assert len(str(kernel.body)) < 20_000
    ones = np.ones((1, 2)).astype(element_type.dtype)
    (made,) = compiled(entry)([x.reshape(-1, 1), ones])
    with np.errstate(invalid="ignore"):
        sums = np.float32(0) + x.astype(np.float32)[:, None] * np.ones(2, np.float32)
    assert not same_bits(made, rounded(sums, element_type))
