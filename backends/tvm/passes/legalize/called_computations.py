"""Makes the computations that Map, Reduce, ReduceWindow, Scatter, SelectAndScatter and Sort call
straight-line code, before canonicalisation: kernels apply only elementwise ops to scalars.

    reduce(x, init), to_apply={conditional(a > b, ...)}    reduce(x, init), to_apply={select(...)}
    map(x), to_apply={while(...)}                          while(...) over the whole array

If a computation cannot be elementwise, because of loops, arrays or table look-ups, the op becomes
a loop over whole arrays (`tracejit.ops.folds`), and a Map becomes the batched computation.
"""

from __future__ import annotations

from typing import Any

from tracejit.attributes import Window
from tracejit.backends.tvm.analysis.monoids import identities
from tracejit.batching.elements import map_as_batch
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.constants import parameter
from tracejit.ops.control import MAP
from tracejit.ops.folds import AS_LOOPS
from tracejit.ops.lifting import is_straight, straightened
from tracejit.ops.windows import REDUCE_WINDOW, running_axis
from tracejit.traversal import called_computations, inline, rebuild, transform

_APPLIES = {MAP: map_as_batch, **AS_LOOPS}


def with_straight_calls(computation: Computation) -> Computation:
    """The computation, with only elementwise computations in all such ops that it calls."""
    return _straight(computation, {})


def _straight(computation: Computation, made: dict[Computation, Computation]) -> Computation:
    """``made`` maps computations to their replacements."""
    for each in called_computations(Module("called", computation)):
        if each not in made:
            made[each] = _Straightener(made).computation(each)
            made[made[each]] = made[each]
    return made[computation]


class _Straightener:
    def __init__(self, made: dict[Computation, Computation]) -> None:
        self.made = made

    def computation(self, computation: Computation) -> Computation:
        before = [computation.root, *computation.effects]
        root, *effects = after = transform(before, self._visit)
        if all(a is b for a, b in zip(before, after, strict=True)):
            return computation
        return Computation(computation.name, computation.parameters, root, tuple(effects))

    def _visit(
        self, instruction: Instruction, operands: tuple[Instruction, ...]
    ) -> Instruction | None:
        if not instruction.computations:
            return None
        attributes = {name: self._attribute(v) for name, v in instruction.attributes.items()}
        is_straight_here = True
        if instruction.op in _APPLIES:
            for name, value in attributes.items():
                if isinstance(value, Computation) and not is_straight(value):
                    straight = straightened(value)
                    is_straight_here &= straight is not None
                    attributes[name] = straight or value
        if any(v is not instruction.attributes[n] for n, v in attributes.items()):
            instruction = Instruction(
                instruction.op, operands, instruction.shape, attributes, instruction.source
            )
        elif any(a is not b for a, b in zip(operands, instruction.operands, strict=True)):
            instruction = rebuild(instruction, operands)
        elif is_straight_here and not _leaves_padding_out(instruction):
            return None
        if is_straight_here and not _leaves_padding_out(instruction):
            return instruction
        return self._as_loop(instruction)

    def _as_loop(self, instruction: Instruction) -> Instruction:
        parameters = tuple(parameter(i, o.shape) for i, o in enumerate(instruction.operands))
        root = _APPLIES[instruction.op](rebuild(instruction, parameters))
        loop = _straight(Computation("loop", parameters, root), self.made)
        return inline(loop, instruction.operands)

    def _attribute(self, value: Any) -> Any:
        if isinstance(value, Computation):
            return self.made[value]
        if isinstance(value, tuple) and value and isinstance(value[0], Computation):
            new = tuple(self.made[each] for each in value)
            return new if any(a is not b for a, b in zip(new, value, strict=True)) else value
        return value


def _leaves_padding_out(instruction: Instruction) -> bool:
    """Whether padding must be distinguished from elements, because the reducer has no identity.

    Forward cumulative ReduceWindows have a schedule that does.
    """
    if instruction.op is not REDUCE_WINDOW:
        return False
    window: Window = instruction.attributes["window"]
    sizes = instruction.operands[0].array_shape.dimensions
    axis = running_axis(window, sizes) if len(instruction.operands) == 2 else None
    is_running = axis is not None and window[axis].padding_low > 0
    if is_running or identities(instruction.attributes["to_apply"]) is not None:
        return False
    return any(w.padding_low > 0 or w.padding_high > 0 or w.base_dilation > 1 for w in window)
