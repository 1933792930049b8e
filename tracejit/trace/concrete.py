"""When Python asks a traced value for a number: the value if it is known, else an explanation."""

from __future__ import annotations

import linecache
import re

import numpy as np

from tracejit.errors import ConcretizationError, dismiss
from tracejit.graph import Instruction
from tracejit.ops.constants import PARAMETER
from tracejit.shapes import Shape
from tracejit.sources import user_source
from tracejit.trace.context import find_argument
from tracejit.trace.evaluation import behind, known_value, unknown_arguments

STATIC = "or make the argument static: jit(f, static_argnums=...)"
ADVICE = {
    "bool": (
        "if, and, or, not and chained comparisons need it now; write "
        f"np.where(condition, a, b), np.logical_and, np.logical_or or tracejit.lax.cond, {STATIC}"
    ),
    "int": f"keep it as an array (x.astype(int)), {STATIC}",
    "index": (
        "a size, a range or a position in a list must be known; loop over a known range, index a "
        f"traced array (np.asarray(table)[i]), {STATIC}"
    ),
    "float": (
        "keep it as an array: use np. functions instead of Python's float, and write it to an "
        "array made inside the traced function; print it with tracejit.debug.print('{}', x)"
    ),
    "complex": "keep it as an array and use np. functions instead of Python's complex",
    "array": (
        "a function that is not traced was called on it, it indexes a NumPy array, or is stored "
        "into one; use np. functions, np.asarray(table)[i], and arrays made inside the traced "
        "function"
    ),
    "tolist": "keep it as an array; return it to see its values",
    "item": "keep it as an array; return it to see its value",
    "format": (
        "a text is made now, before there are values; print it with tracejit.debug.print('{}', x)"
    ),
    "hash": "a dictionary key must be known; use a position in an array",
    "pickle": "return it and pickle the result",
}

LOSING = frozenset({"array"})
"""What takes a value out of the graph, and its derivative with it, without anybody asking so.

float(x) and x.item() ask for a number, and get one.
"""


_AUTOGRAPH = (
    "write jit(f, autograph=True), which records if, while, for, and, or, not and chained "
    "comparisons on traced values"
)
_LOOP = re.compile(r"\bfor\b.*\brange\(")
_OF_NUMBERS = frozenset({"bool", "int", "index", "float", "complex", "item", "hash"})


def concrete(instruction: Instruction, wish: str) -> np.ndarray:
    """The value of an instruction that depends on no unknown argument.

    Raises `ConcretizationError` otherwise, naming the arguments; ``wish`` is a key of ADVICE.
    """
    value = known_value(instruction)
    if value is None:
        error = ConcretizationError(
            f"{wish}: the value {instruction.shape} depends on {dependence(instruction)}, unknown "
            f"while tracing; {_advice(wish)}"
        )
        if wish in _OF_NUMBERS and instruction.array_shape.size != 1:
            # An array of several is no number for NumPy either, whose error may be caught.
            dismiss(error)
        raise error
    if wish in LOSING:
        argument = differentiated_argument(instruction)
        if argument is not None:
            raise ConcretizationError(
                f"{wish}: the value {instruction.shape} depends on {argument}, which is being "
                f"differentiated, and its derivative would be lost; {ADVICE[wish]}, or write "
                f"tracejit.stop_gradient(x) for a value without one"
            )
    return value


def _advice(wish: str) -> str:
    """What to write instead; autograph first, where there is a source to be rewritten."""
    source = user_source()
    line = linecache.getline(source.file, source.line) if source is not None else ""
    if line and (wish == "bool" or (wish == "index" and _LOOP.search(line))):
        return f"{_AUTOGRAPH}; without it {ADVICE[wish]}"
    return ADVICE[wish]


def differentiated_argument(instruction: Instruction) -> str | None:
    """The argument being differentiated that a value has a derivative by, in words; or None."""
    stack, seen = [instruction], set()
    while stack:
        at = stack.pop()
        is_array = isinstance(at.shape, Shape)
        if at in seen or (is_array and not at.array_shape.element_type.is_differentiable):
            continue
        seen.add(at)
        found = find_argument(at) if at.op is PARAMETER else None
        if found is not None and found[1].differentiated:
            return found[1].describe()
        stack.extend(behind(at))
    return None


def dependence(instruction: Instruction) -> str:
    """Which unknown arguments an instruction depends on, in words: argument x['w'] of loss."""
    names = []
    for parameter in unknown_arguments(instruction):
        found = find_argument(parameter)
        if parameter.op is not PARAMETER:
            names.append(f"{parameter.op.function}, which each device works out as it runs")
        else:
            names.append("a value of another thread" if found is None else found[1].describe())
    shown = names[:3] + ([f"{len(names) - 3} more"] if len(names) > 3 else [])
    return " and ".join(shown)
