"""Python's integers among a traced function's arguments, which must fit the arrays they meet.

NumPy refuses a Python integer that does not fit. The value of an integer argument is unknown while
tracing: where it meets an array of fewer bits, the trace notes its required range, and every call
checks it. Numbers computed from arguments wrap around, as arrays do.
"""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.ops.computations import highest, lowest
from tracejit.shapes import ElementType
from tracejit.sources import user_source
from tracejit.trace.context import Bounds, current_trace

_ANY = Bounds(-(2**63), 2**63 - 1)


def require_fits(number: Instruction, element_type: ElementType) -> None:
    """Notes that a Python integer is used as one of this element type, if it is an argument.

    Raises `ValueRangeError` where it is known and does not fit.
    """
    if element_type.is_integral and element_type is not ElementType.PRED:
        require_between(number, int(lowest(element_type)), int(highest(element_type)))


def require_between(number: Instruction, least: int, most: int) -> None:
    """Notes that a Python integer must lie between two others, if it is an argument.

    Raises `ValueRangeError` where it is known and does not.
    """
    trace = current_trace()
    while trace is not None and (least > _ANY.least or most < _ANY.most):
        argument = trace.arguments.get(number)
        if argument is None or number.array_shape.element_type is not ElementType.S64:
            return
        if isinstance(argument.value, Instruction):
            # For a function that is differentiated: it runs whenever the one around it does.
            number, trace = argument.value, trace.parent
            continue
        known = trace.bounds.get(number, _ANY)
        bounds = Bounds(max(least, known.least), min(most, known.most), user_source())
        trace.bounds[number] = bounds
        if argument.value is not None:
            bounds.require(int(argument.value), argument.describe())
        return
