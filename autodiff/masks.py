"""Where cotangents are zero because a Select did not take the branch that they belong to.

where(x > 0, sqrt(x), 0) at x = 0: the branch's cotangent is 0, the derivative of sqrt is infinite,
and 0 · inf is NaN. So the reverse pass remembers, behind a Select, for which elements the branch
was taken. Rules of elementwise ops may make NaN elsewhere; before anything else sees it, it is
exchanged for zero. The exchange is a Select too, so derivatives of derivatives are as safe, and
it is linear in the cotangent. A mask that nothing needs is never computed.
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from tracejit.autodiff.accumulator import CotangentAccumulator
from tracejit.graph import Instruction
from tracejit.ops.comparison import ne
from tracejit.ops.computations import binary_op
from tracejit.ops.constants import CONSTANT
from tracejit.ops.control import CALL
from tracejit.ops.element_types import (
    CONVERT_ELEMENT_TYPE,
    REDUCE_PRECISION,
    convert_element_type,
)
from tracejit.ops.elementwise import (
    ADD,
    CLAMP,
    COMPLEX,
    DIV,
    MAX,
    MIN,
    MUL,
    SELECT,
    SUB,
    and_,
    or_,
    select,
)
from tracejit.ops.elementwise_unary import IMAG, NEG, REAL, not_
from tracejit.ops.indexing import GATHER
from tracejit.ops.layout import (
    BROADCAST_IN_DIM,
    DYNAMIC_SLICE,
    broadcast_in_dim,
    full_like,
)
from tracejit.ops.reduction import REDUCE
from tracejit.shapes import Shape

_enabled: contextvars.ContextVar[bool] = contextvars.ContextVar("nan_safe", default=True)

# Their rules make nothing but zeros of zeros.
_CONVERTING = (CONVERT_ELEMENT_TYPE, REDUCE_PRECISION)
_LINEAR = (ADD, SUB, NEG, REAL, IMAG, COMPLEX, MAX, MIN, SELECT, *_CONVERTING)
# Their rules move elements and add them up.
_MOVED_BY_INDEX = (DYNAMIC_SLICE, GATHER)

Rule = Callable[[Instruction], Sequence[object]]


@contextmanager
def nan_safe(enabled: bool) -> Iterator[None]:
    """Whether derivatives made inside keep NaN out of branches that a Select did not take."""
    token = _enabled.set(enabled)
    try:
        yield
    finally:
        _enabled.reset(token)


class Mask:
    """The elements (a pred of the cotangent's shape) outside which a cotangent is zero.

    ``dirty`` says that it should be zero there, and may be NaN. ``counts`` makes an array like the
    cotangent that is zero outside, where there is one.
    """

    counts: Callable[[], Instruction] | None = None

    def __init__(self, make: Callable[[], Instruction], dirty: bool) -> None:
        self._make = make
        self._made: Instruction | None = None
        self.dirty = dirty

    @classmethod
    def of_counts(cls, counts: Callable[[], Instruction]) -> Mask:
        """The elements whose number in an array is not zero."""
        made = cls(lambda: _is_some(counts()), False)
        made.counts = counts
        return made

    @property
    def pred(self) -> Instruction:
        """The mask itself, made when it is first needed."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def with_dirty(self, dirty: bool) -> Mask:
        """The same elements."""
        return self if dirty == self.dirty else Mask(lambda: self.pred, dirty)

    def cleaned(self, cotangent: Instruction) -> Instruction:
        """The cotangent, zero outside the mask."""
        if not self.dirty:
            return cotangent
        return select(self.pred, cotangent, full_like(cotangent, 0))


class MaskRule(NamedTuple):
    """How one instruction's rule treats the mask of its cotangent."""

    keeps_dirty: bool
    masks: tuple[Mask | None, ...]


class _Either(Mask):
    """The mask of a sum of clean cotangents."""

    def __init__(self, masks: list[Mask]) -> None:
        super().__init__(self._union, False)
        self.masks = masks

    def _union(self) -> Instruction:
        counts = [mask.counts() for mask in self.masks if mask.counts is not None]
        preds = [mask.pred for mask in self.masks if mask.counts is None]
        if counts:
            total = CotangentAccumulator(counts[0])
            for other in counts[1:]:
                total.add(other)
            preds.append(_is_some(total.total()))
        return functools.reduce(or_, preds)

    def with_dirty(self, dirty: bool) -> Mask:
        """The same elements, but none that come later."""
        return Mask(lambda: self.pred, dirty)


def either(lhs: Mask | None, rhs: Mask | None) -> Mask | None:
    """The mask of a sum of two clean cotangents; the first has not been used yet."""
    if lhs is None or rhs is None:
        return None
    if isinstance(lhs, _Either):
        lhs.masks.append(rhs)
        return lhs
    return _Either([lhs, rhs])


def _is_some(counts: Instruction) -> Instruction:
    return ne(counts, full_like(counts, 0))


def step(instruction: Instruction, mask: Mask | None, pulled: Rule) -> MaskRule:
    """The masks of the operands' cotangents, given that of the instruction's own.

    ``pulled`` is the instruction's rule. Unless the step ``keeps_dirty`` the rule must be given a
    clean cotangent.
    """
    none = MaskRule(False, (None,) * len(instruction.operands))
    shape = instruction.shape
    if not _enabled.get() or not isinstance(shape, Shape) or shape.is_dynamic:
        return none
    if instruction.op is SELECT:
        return MaskRule(
            True, (None, _taken(instruction, mask, True), _taken(instruction, mask, False))
        )
    if mask is None:
        return none
    if _is_pointwise(instruction):
        if any(o.array_shape.dimensions != shape.dimensions for o in instruction.operands):
            return none
        masks = tuple(
            mask.with_dirty(mask.dirty or not _is_tame(instruction, place))
            for place in range(len(instruction.operands))
        )
        return MaskRule(instruction.op is not CLAMP, masks)
    if instruction.op.is_movement or instruction.op in _MOVED_BY_INDEX or _is_sum(instruction):
        return MaskRule(False, _moved(instruction, mask, pulled))
    return none


def _is_pointwise(instruction: Instruction) -> bool:
    if instruction.op is CALL:
        return bool(getattr(instruction.attributes["derivative"], "is_pointwise", False))
    return (
        instruction.op.family in ("elementwise", "elementwise_unary")
        or instruction.op in _CONVERTING
    )


def _taken(instruction: Instruction, mask: Mask | None, branch: bool) -> Mask:
    def make() -> Instruction:
        pred = instruction.operands[0]
        dimensions = instruction.array_shape.dimensions
        if pred.array_shape.dimensions != dimensions:
            pred = broadcast_in_dim(pred, dimensions, ())
        taken = pred if branch else not_(pred)
        return taken if mask is None else and_(mask.pred, taken)

    return Mask(make, mask is not None and mask.dirty)


def _is_sum(instruction: Instruction) -> bool:
    if instruction.op is not REDUCE or len(instruction.operands) != 2:
        return False
    return binary_op(instruction.attributes["to_apply"]) is ADD


def _moved(instruction: Instruction, mask: Mask, pulled: Rule) -> tuple[Mask | None, ...]:
    """The same rule moves the mask's ones; an element belongs to it that any of them reaches."""
    results: list[Sequence[object]] = []

    def result(place: int) -> Instruction:
        if not results:
            ones = convert_element_type(mask.pred, instruction.array_shape.element_type)
            results.append(pulled(ones))
        found = results[0][place]
        if not isinstance(found, Instruction):
            found = full_like(instruction.operands[place], 0)
        return found

    return tuple(
        Mask.of_counts(functools.partial(result, place))
        for place in range(len(instruction.operands))
    )


def _is_tame(instruction: Instruction, place: int) -> bool:
    """Whether the rule makes zeros of zeros for this operand, whatever the operands are."""
    if instruction.op in _LINEAR:
        return True
    if instruction.op is MUL:
        return _is_finite_constant(instruction.operands[1 - place])
    return instruction.op is DIV and place == 0 and _is_finite_constant(instruction.operands[1])


def _is_finite_constant(instruction: Instruction) -> bool:
    while instruction.op in (BROADCAST_IN_DIM, CONVERT_ELEMENT_TYPE):
        instruction = instruction.operands[0]
    if instruction.op is not CONSTANT:
        return False
    value = np.asarray(instruction.attributes["literal"])
    return value.size == 1 and value.item() != 0 and bool(np.isfinite(value.item()))
