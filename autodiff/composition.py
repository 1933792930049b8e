"""Derivatives of ops through graphs that compute the same.

pullback_through(expanded, instruction.operands, [cotangent])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.autodiff.reverse import Cotangent, pullback
from tracejit.graph import Instruction
from tracejit.ops.constants import parameter
from tracejit.traversal import substitute


def pullback_through(
    function: Callable[..., Sequence[Instruction]],
    operands: Sequence[Instruction],
    cotangents: Sequence[Cotangent],
) -> list[Cotangent]:
    """The cotangents of ``operands``, all arrays, given those of ``function(*operands)``.

    ``function`` sees parameters in place of the operands, so that nothing before them is visited.
    """
    inputs = [parameter(i, o.shape) for i, o in enumerate(operands)]
    outputs = function(*inputs)
    given = [c for c in cotangents if c is not None]
    arriving = [parameter(i, c.shape) for i, c in enumerate(given)]
    left = iter(arriving)
    results = pullback(outputs, inputs, [None if c is None else next(left) for c in cotangents])
    reached = [r for r in results if r is not None]
    actual = dict(zip([*inputs, *arriving], [*operands, *given], strict=True))
    made = iter(substitute(reached, actual))
    return [None if r is None else next(made) for r in results]
