"""Expands composite ops into simpler ones, which fusion and schedules support.

Windows lose their padding (a Pad of the operand replaces it), so that every index of a window is
inside its operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from tracejit.attributes import PaddingDimension, Window
from tracejit.backends.tvm.ir.internal_ops import (
    as_known,
    logarithm_to_base,
    power_of_two,
    undefined,
)
from tracejit.backends.tvm.ir.limits import LONGEST_GROUP, Limits
from tracejit.backends.tvm.passes.legalize import fft
from tracejit.backends.tvm.passes.legalize.cofactors import COFACTORS, cofactors
from tracejit.backends.tvm.passes.legalize.pseudo_inverse import PSEUDO_INVERSE, pseudo_inverse
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import make
from tracejit.ops.computations import identity_value, monoid
from tracejit.ops.constants import constant, elements_of, tuple_
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.control import CONDITIONAL, MAP, WHILE
from tracejit.ops.custom import CUSTOM_CALL
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import DIV, POW, add, div, mul, sub
from tracejit.ops.elementwise_unary import rsqrt
from tracejit.ops.grouped import SCALED_DOT
from tracejit.ops.grouped_expansions import scaled_as_dot
from tracejit.ops.layout import broadcast_in_dim, full, full_like, pad
from tracejit.ops.lifting import lift
from tracejit.ops.normalisation import BATCH_NORM_GRAD, BATCH_NORM_INFERENCE, BATCH_NORM_TRAINING
from tracejit.ops.random import RNG
from tracejit.ops.random_expansions import expanded_rng
from tracejit.ops.reduction import reduce_sum
from tracejit.ops.scanning import SCAN, scan_as_while
from tracejit.ops.spectra import FFT
from tracejit.ops.windows import REDUCE_WINDOW, running_axis
from tracejit.rules import RuleTable
from tracejit.shapes import ElementType, Shape, TupleShape
from tracejit.targets import expansion_for, kernel_for
from tracejit.traversal import inline, rebuild, transform

_SMALL_BYTES = 1 << 10

expansions: RuleTable[Callable[[Instruction, Limits], Instruction | None]] = RuleTable("legalise")
"""``rule(instruction, limits) -> instruction or None``: the same value from simpler ops."""


def legalize(roots: Sequence[Instruction], limits: Limits) -> list[Instruction]:
    """Equal ``roots`` without composite ops."""

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        rule = expansions.get(instruction.op)
        if rule is None:
            return None
        changed = any(a is not b for a, b in zip(operands, instruction.operands, strict=True))
        new = rebuild(instruction, operands) if changed else instruction
        return rule(new, limits) or new

    return transform(roots, visit)


class _Features:
    """A batch normalisation's operands in its arithmetic type, and its dimensions."""

    def __init__(self, instruction: Instruction) -> None:
        self.shape = instruction.operands[0].array_shape
        self.feature = instruction.attributes["feature_index"]
        self.epsilon = instruction.attributes["epsilon"]
        self.others = [d for d in range(self.shape.rank) if d != self.feature]
        self.count = math.prod(self.shape.dimensions[d] for d in self.others)
        self.wide = ElementType.F32 if self.shape.element_type.bits < 32 else None
        self.operands = [self.widen(operand) for operand in instruction.operands]

    def widen(self, operand: Instruction) -> Instruction:
        return operand if self.wide is None else convert_element_type(operand, self.wide)

    def narrow(self, result: Instruction) -> Instruction:
        if self.wide is None:
            return result
        return convert_element_type(result, self.shape.element_type)

    def spread(self, per_feature: Instruction) -> Instruction:
        return broadcast_in_dim(per_feature, self.shape.dimensions, (self.feature,))

    def total(self, operand: Instruction) -> Instruction:
        return reduce_sum(operand, self.others)

    def mean(self, operand: Instruction) -> Instruction:
        total = self.total(operand)
        return div(total, full_like(total, self.count))

    def inverse_deviation(self, variance: Instruction) -> Instruction:
        return rsqrt(add(variance, full_like(variance, self.epsilon)))


@expansions.attach(BATCH_NORM_TRAINING)
def _batch_norm_training(instruction: Instruction, limits: Limits) -> Instruction:
    over = _Features(instruction)
    operand, scale, offset = over.operands
    mean = over.mean(operand)
    centred = sub(operand, over.spread(mean))
    variance = over.mean(mul(centred, centred))
    # (x - mean) * (scale / deviation) + offset, with the factor computed once per feature
    factor = mul(scale, over.inverse_deviation(variance))
    output = add(mul(centred, over.spread(factor)), over.spread(offset))
    return tuple_([over.narrow(result) for result in (output, mean, variance)])


@expansions.attach(BATCH_NORM_INFERENCE)
def _batch_norm_inference(instruction: Instruction, limits: Limits) -> Instruction:
    over = _Features(instruction)
    operand, scale, offset, mean, variance = over.operands
    factor = mul(scale, over.inverse_deviation(variance))
    centred = sub(operand, over.spread(mean))
    return over.narrow(add(mul(centred, over.spread(factor)), over.spread(offset)))


@expansions.attach(BATCH_NORM_GRAD)
def _batch_norm_grad(instruction: Instruction, limits: Limits) -> Instruction:
    over = _Features(instruction)
    operand, scale, mean, variance, grad_output = over.operands
    inverse = over.inverse_deviation(variance)
    centred = sub(operand, over.spread(mean))
    grad_offset = over.total(grad_output)
    products = over.total(mul(grad_output, centred))
    grad_scale = mul(products, inverse)
    # scale / deviation * (g - sum(g) / n - (x - mean) * sum(g (x - mean)) / (n variance))
    count = full_like(mean, over.count)
    slope = div(mul(grad_scale, inverse), count)
    inner = sub(
        sub(grad_output, over.spread(div(grad_offset, count))), mul(centred, over.spread(slope))
    )
    grad_operand = mul(over.spread(mul(scale, inverse)), inner)
    return tuple_([over.narrow(result) for result in (grad_operand, grad_scale, grad_offset)])


@expansions.attach(MAP)
def _map(instruction: Instruction, limits: Limits) -> Instruction:
    known = as_known(instruction)
    return known or lift(instruction.attributes["to_apply"], instruction.operands)


@expansions.attach(RNG)
def _rng(instruction: Instruction, limits: Limits) -> Instruction:
    a, b = instruction.operands
    distribution = instruction.attributes["distribution"]
    return expanded_rng(a, b, distribution, instruction.array_shape)


_LINEAR_ALGEBRA: dict[str, Callable[[Instruction], Instruction | None]] = {
    COFACTORS: cofactors,
    PSEUDO_INVERSE: pseudo_inverse,
}


@expansions.attach(CUSTOM_CALL)
def _custom_call(instruction: Instruction, limits: Limits) -> Instruction | None:
    """Inlines a custom call's expansion, legalised; expands cofactors and pseudo-inverses."""
    target = instruction.attributes["custom_call_target"]
    if target in _LINEAR_ALGEBRA:
        return _LINEAR_ALGEBRA[target](instruction)
    kernel = kernel_for(instruction, limits.device)
    expansion = None if kernel is not None else expansion_for(instruction, limits.device)
    if expansion is None:
        return None
    root, *effects = legalize([expansion.root, *expansion.effects], limits)
    simple = Computation(expansion.name, expansion.parameters, root, tuple(effects))
    return inline(simple, instruction.operands)


@expansions.attach(DOT_GENERAL)
def _dot_of_columns(instruction: Instruction, limits: Limits) -> Instruction | None:
    """Dots whose contracted dimension is strided in memory, as vectorised sums of products.

    Not for vectors so long that kernels could not index them with 32 bits.
    """
    lhs, rhs = instruction.operands
    attributes = instruction.attributes
    batch, summed = attributes["lhs_batch_dims"], attributes["lhs_contracting_dims"]
    is_same = (batch, summed) == (attributes["rhs_batch_dims"], attributes["rhs_contracting_dims"])
    rank = lhs.array_shape.rank
    is_whole = len(batch) + len(summed) == rank == rhs.array_shape.rank
    has_columns = [*batch] == sorted(batch) and rank - 1 in batch
    types = {i.array_shape.element_type for i in (lhs, rhs, instruction)}
    # Sums of narrow floats need a wider type.
    is_plain = len(types) == 1 and all(t.is_integral or t.bits >= 32 for t in types)
    is_long = not batch and lhs.array_shape.size >= LONGEST_GROUP
    if not (is_same and is_whole and (has_columns or is_long) and is_plain and summed):
        return None
    return reduce_sum(mul(lhs, rhs), summed)


@expansions.attach(SCALED_DOT)
def _scaled_dot(instruction: Instruction, limits: Limits) -> Instruction:
    return scaled_as_dot(instruction, instruction.operands)


@expansions.attach(SCAN)
def _scan(instruction: Instruction, limits: Limits) -> Instruction:
    return scan_as_while(instruction, _unwritten)


def _unwritten(shape: Shape) -> Instruction:
    """An array for the outputs of a Scan, which writes it; a small one may become registers, which
    are loaded before the loop.
    """
    return undefined(shape) if shape.nbytes > _SMALL_BYTES else full(shape, 0)


@expansions.attach(WHILE, CONDITIONAL)
def _taken_apart(instruction: Instruction, limits: Limits) -> Instruction:
    """The operands as Tuple instructions, so that each array in them is an instruction."""
    return rebuild(instruction, [_apart(operand) for operand in instruction.operands])


def _apart(operand: Instruction) -> Instruction:
    if not isinstance(operand.shape, TupleShape):
        return operand
    return tuple_([_apart(element) for element in elements_of(operand)])


def _neutral(reducer: Computation, initial: Instruction) -> Instruction:
    """A value that a reduction ignores: the identity, else the initial value."""
    op = monoid(reducer)
    if op is None:
        return initial
    element_type = initial.array_shape.element_type
    return constant(identity_value(op.function, element_type), element_type)


def _without_padding(window: Window) -> Window:
    return tuple(replace(w, padding_low=0, padding_high=0, base_dilation=1) for w in window)


def _padding(window: Window) -> list[PaddingDimension]:
    return [PaddingDimension(w.padding_low, w.padding_high, w.base_dilation - 1) for w in window]


@expansions.attach(REDUCE_WINDOW)
def _reduce_window(instruction: Instruction, limits: Limits) -> Instruction | None:
    window: Window = instruction.attributes["window"]
    plain = _without_padding(window)
    count = len(instruction.operands) // 2
    sizes = instruction.operands[0].array_shape.dimensions
    if plain == window or (count == 1 and running_axis(window, sizes) is not None):
        return None
    operands, initial = instruction.operands[:count], instruction.operands[count:]
    fills = [_neutral(instruction.attributes["to_apply"], i) for i in initial]
    padded = [pad(o, fill, _padding(window)) for o, fill in zip(operands, fills, strict=True)]
    return make(
        instruction.op,
        *padded,
        *initial,
        window=plain,
        to_apply=instruction.attributes["to_apply"],
    )


expansions.attach(FFT)(fft.expanded)


@expansions.attach(DIV)
def _div(instruction: Instruction, limits: Limits) -> Instruction | None:
    return logarithm_to_base(instruction)


@expansions.attach(POW)
def _pow(instruction: Instruction, limits: Limits) -> Instruction | None:
    return power_of_two(instruction)
