"""Programs within a memory budget: values are computed again instead of being kept.

jit(grad(loss), memory_budget=64 << 20)

As long as the program takes more than the budget, the value is looked for that lives across the
peak and whose second computation, where it is read next, lowers the peak for the least work per
byte. That is the peak of `memory_report`'s model; what the program takes the compiler plans, which
joins more and places values otherwise, and the model's goal moves until the plan fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tracejit.backends.work import work_of
from tracejit.errors import MemoryBudgetError
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.constants import (
    CONSTANT,
    GET_TUPLE_ELEMENT,
    PARAMETER,
    TUPLE,
    elements_of,
    tuple_,
)
from tracejit.ops.control import OPTIMIZATION_BARRIER, optimization_barrier
from tracejit.passes.cost_analysis import size_in_bytes
from tracejit.passes.memory_report import Lifetimes, Value, lifetimes
from tracejit.shapes import Shape
from tracejit.traversal import in_order, instructions, rebuild, transform, unreached

# Ops of other families (loops, calls, random numbers, side effects) are computed once.
_FAMILIES = (
    "comparison",
    "contraction",
    "convolution",
    "element_types",
    "elementwise",
    "elementwise_unary",
    "layout",
    "reduction",
    "windows",
)
# How many instructions one value may be computed again by, and how many values are tried at once.
_LONGEST = 64
_TRIED = 64


def within_budget(module: Module, budget: int, planned: Callable[[Module], int]) -> Module:
    """The module with values computed again until it takes at most ``budget`` bytes.

    ``planned(module)`` says how many it takes. Raises `MemoryBudgetError` with the least number
    found if that is impossible.
    """
    computation = module.entry
    taken = least = planned(module)
    if taken <= budget:
        return module
    measured = _measured(computation)
    while True:
        # The limit for the model, so that the program itself meets the budget.
        goal = measured[0] - (taken - budget)
        while measured[0] > goal:
            better = _lowered(computation, measured)
            if better is None:
                break
            computation, measured = better
        made = replace(module, entry=computation)
        taken = planned(made)
        least = min(least, taken)
        if taken <= budget:
            return made
        if measured[0] > goal:
            raise MemoryBudgetError(
                f"{module.name}: the memory budget is {budget} bytes, and the least that "
                f"recomputation reaches is {least}"
            )


_Measured = tuple[int, int]
"""The peak, and how much lies above nine tenths of it: many steps may stand at the peak."""


def _measured(computation: Computation) -> _Measured:
    timeline = lifetimes(computation).timeline()
    peak = max(timeline, default=0)
    return peak, sum(max(0, at - peak * 9 // 10) for at in timeline)


def _lowered(computation: Computation, measured: _Measured) -> tuple[Computation, _Measured] | None:
    lives = lifetimes(computation)
    timeline = lives.timeline()
    step = timeline.index(max(timeline))
    results = set(in_order([computation.root])) - {v.instruction for v in lives.values}
    across = [
        v
        for v in lives.values
        if v.first < step < v.last and v.nbytes and v.instruction not in results
    ]
    ends = {v.instruction: v.last for v in lives.values}
    ranked = []
    for value in across:
        for again in _ways(value, ends):
            work = sum(1 + sum(work_of(i)) for i in again)
            ranked.append((work / value.nbytes, value.first, value, again))
    ranked.sort(key=lambda one: one[:2])
    for _, _, value, again in ranked[:_TRIED]:
        made = _repeated(computation, lives, step, value.instruction, again)
        found = _measured(made)
        if found < measured:
            return made, found
    return None


def _ways(value: Value, ends: dict[Instruction, int]) -> Iterator[set[Instruction]]:
    """What may be computed again for a value: itself, or all back to what lives anyway."""
    known: list[set[Instruction]] = []
    for least_life in (-1, value.last):
        again: set[Instruction] = set()
        stack = [value.instruction]
        while stack and len(again) <= _LONGEST:
            at = stack.pop()
            if at in again:
                continue
            again.add(at)
            for operand in at.operands:
                if operand.op in (PARAMETER, CONSTANT):
                    continue
                if operand not in ends or (least_life >= 0 and ends[operand] < least_life):
                    stack.append(operand)
        if len(again) <= _LONGEST and again not in known and all(map(_is_repeatable, again)):
            known.append(again)
            yield again


def _is_repeatable(instruction: Instruction) -> bool:
    if not any(o.op is not CONSTANT for o in instruction.operands):
        return False
    if instruction.has_effect or not isinstance(instruction.shape, Shape):
        return False
    return instruction.op.family in _FAMILIES


def _repeated(
    computation: Computation,
    lives: Lifetimes,
    step: int,
    value: Instruction,
    again: set[Instruction],
) -> Computation:
    """The value is computed once more, where it is first read after ``step``."""
    serial = lives.steps[step].serial
    order = [i for i in in_order([value]) if i in again]
    barriers = _barriers(computation)
    done: dict[Instruction, Instruction] = {}
    second: list[Instruction] = []

    def compute(new: dict[Instruction, Instruction]) -> Instruction:
        if second:
            return second[0]
        made: dict[Instruction, Instruction] = {}
        for instruction in order:
            operands = [made.get(o, new.get(o, o)) for o in instruction.operands]
            if not any(o in made for o in instruction.operands):
                # One operand, the smallest, stands behind a barrier, so that the compiler does not
                # find out that both computations are the same.
                arrays = [o for o in instruction.operands if o.op is not CONSTANT]
                hidden = min(arrays, key=lambda o: size_in_bytes(o.shape))
                made[hidden] = new.get(hidden, hidden)
                for _ in range(1 + barriers.get(hidden, 0)):
                    (made[hidden],) = elements_of(optimization_barrier(tuple_([made[hidden]])))
                operands = [made.get(o, new.get(o, o)) for o in instruction.operands]
            made[instruction] = rebuild(instruction, operands)
        second.append(made[value])
        return second[0]

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        made: Instruction | None = None
        if instruction.serial > serial and value in instruction.operands:
            changed = [
                compute(done) if old is value else new
                for old, new in zip(instruction.operands, operands, strict=True)
            ]
            made = rebuild(instruction, changed)
        elif any(a is not b for a, b in zip(operands, instruction.operands, strict=True)):
            made = rebuild(instruction, operands)
        elif instruction.serial > serial and instruction.operands:
            # Made anew, so that the order stays that of creation.
            made = rebuild(instruction, operands)
        if made is not None:
            done[instruction] = made
        return made

    root, *effects = transform([computation.root, *computation.effects], visit)
    return Computation(computation.name, computation.parameters, root, unreached(root, effects))


def _barriers(computation: Computation) -> dict[Instruction, int]:
    """How many barriers, one behind the other, each value stands behind already.

    One more makes a value that differs from all of these.
    """
    behind: dict[Instruction, tuple[Instruction, int]] = {}
    most: dict[Instruction, int] = {}
    for instruction in instructions(computation):
        if instruction.op not in (GET_TUPLE_ELEMENT, OPTIMIZATION_BARRIER, TUPLE):
            continue
        if len(instruction.operands) != 1:
            continue
        (operand,) = instruction.operands
        origin, depth = behind.get(operand, (operand, 0))
        depth += instruction.op is OPTIMIZATION_BARRIER
        behind[instruction] = origin, depth
        most[origin] = max(most.get(origin, 0), depth)
    return most
