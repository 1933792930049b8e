"""Exchange among replicas, the devices that run one program on data of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.lax.elementwise import operands
from tracejit.ops import replicas
from tracejit.trace.public import public
from tracejit.trace.tracer import lift


@public
def cross_replica_sum(x: Any, replica_groups: Sequence[Sequence[int]] = ()) -> Any:
    """The sum of an array over all replicas, or over those of each group; on one device, itself.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.lax.cross_replica_sum(np.array([1.0, 2.0]))
    array([1., 2.])
    """
    (operand,) = operands(x)
    return lift(replicas.cross_replica_sum(operand, replica_groups), False)
