"""The derivative that a Call brings along, batched like the Call itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracejit.batching.batch import Batched, Flag, batch
from tracejit.graph import Instruction
from tracejit.ops.constants import parameter
from tracejit.ops.reduction import reduce_sum
from tracejit.shapes import TupleShape
from tracejit.traversal import rebuild


@dataclass(frozen=True, eq=False)
class BatchedDerivative:
    """What a batched Call has in place of ``single``'s derivative; operands are arrays.

    ``flags`` say which operands are batched, ``flag`` what of the result is.
    """

    single: Instruction
    flags: Sequence[Flag]
    flag: Flag
    size: int

    @property
    def is_pointwise(self) -> bool:
        """Whether each element is by itself, so that those of a batch are, too."""
        return bool(getattr(self.single.attributes["derivative"], "is_pointwise", False))

    def __call__(self, instruction: Instruction, cotangent: Any) -> Sequence[Any]:
        """The cotangents of the batched operands; what was the same for all takes the sum."""
        given = [parameter(i, o.shape) for i, o in enumerate(self.single.operands)]
        known = {
            p: Batched(o, f)
            for p, o, f in zip(given, instruction.operands, self.flags, strict=True)
        }
        seeds = self._seeds(cotangent, self.flag, known)
        one = rebuild(self.single, given)
        results = self.single.attributes["derivative"](one, seeds)
        reached = [r for r in results if isinstance(r, Instruction)]
        made = iter(batch(reached, known, self.size))
        return [
            self._for_operand(next(made), flag) if isinstance(r, Instruction) else r
            for r, flag in zip(results, self.flags, strict=True)
        ]

    def _seeds(self, cotangent: Any, flag: Flag, known: dict[Instruction, Batched]) -> Any:
        """The cotangent of a single result: a parameter for each array."""
        if cotangent is None:
            return None
        if isinstance(flag, tuple):
            return [self._seeds(c, f, known) for c, f in zip(cotangent, flag, strict=True)]
        shape = cotangent.array_shape
        if flag:
            shape = shape.with_dimensions(shape.dimensions[1:])
        seed = parameter(len(known), shape)
        known[seed] = Batched(cotangent, flag)
        return seed

    def _for_operand(self, result: Batched, flag: Flag) -> Instruction:
        assert not isinstance(result.value.shape, TupleShape)
        if flag:
            return result.stretched(self.size)
        return reduce_sum(result.value, [0]) if result.is_batched else result.value
