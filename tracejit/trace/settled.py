"""Values known while tracing as plain arrays: in long traces they are read and written at once.

board = np.zeros(8, int)        in a trace that has recorded some hundreds of instructions
board[r] = c                    is NumPy's own, and records nothing
x + board                       records a constant

A search over known values, such as that for eight queens, takes NumPy's time and leaves no graph.
Short traces record known values as well: their graphs show all that the function says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import EllipsisType
from typing import Any

import numpy as np

from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT, constant
from tracejit.ops.control import WHILE
from tracejit.ops.layout import full
from tracejit.shapes import Shape, shape_of
from tracejit.sources import user_source
from tracejit.trace.context import Trace, running_traces
from tracejit.trace.evaluation import known_value
from tracejit.trace.table import Traced
from tracejit.traversal import in_order

LARGEST = 1 << 16
"""The most elements of an array that is worked out or made while tracing."""


class Unrecorded:
    """In place of an instruction: the elements of an array that the graph does not have yet.

    ``whole`` is that of the array which this is a view of; itself where it is none.
    """

    __slots__ = ("array_shape", "plain", "source", "whole")
    serial = 0

    def __init__(self, plain: np.ndarray, whole: Unrecorded | None = None) -> None:
        self.source = user_source()
        self.array_shape: Shape = shape_of(plain)
        self.plain = plain
        self.whole = self if whole is None else whole

    @property
    def shape(self) -> Shape:
        return self.array_shape

    def recorded(self) -> Instruction:
        """The elements, as they are now, as a constant of the graph; one number if all are it."""
        plain = self.plain
        if plain.size > 1 and plain.tobytes() == plain.flat[0].tobytes() * plain.size:
            return full(self.array_shape, plain.flat[0])
        return constant(plain)


class NotPlainError(Exception):
    """Something is unknown, or NumPy's own function would do something else."""


def settled_trace() -> Trace | None:
    """The one trace that is running, if it is so long that known values are plain arrays in it.

    Not while one of NumPy's functions is recorded: its own code expects traced arrays.
    """
    traces = running_traces()
    if len(traces) != 1:
        return None
    trace = traces[0]
    return trace if trace.is_settled and not trace.inside else None


def literal_of(instruction: Instruction, trace: Trace) -> np.ndarray | None:
    """The value of an instruction that depends on no argument and on no loop; else None."""
    if instruction.op is CONSTANT:
        literal: np.ndarray = instruction.attributes["literal"]
        return literal
    if instruction not in trace.literals:
        trace.literals[instruction] = _worked_out(instruction)
    return trace.literals[instruction]


def _worked_out(instruction: Instruction) -> np.ndarray | None:
    if instruction.array_shape.size > LARGEST:
        return None
    value = known_value(instruction, through_loops=False)
    if value is None or any(at.op is WHILE for at in in_order([instruction])):
        return None
    return value


_SIMPLE = (int, float, complex, bool, str, type(None), type, EllipsisType)


def plain(value: Any) -> Any:
    """A value with what traced arrays hold in their places, read-only.

    Raises `NotPlainError` where one is unknown, or for what is no array, number or option.
    """
    kind = type(value)
    if kind in _SIMPLE or isinstance(value, np.generic | np.dtype):
        return value
    if isinstance(value, Traced):
        found: np.ndarray | None = getattr(value, "plain", None)
        if found is None:
            raise NotPlainError
        return found[()] if not found.ndim and value.is_scalar else _read_only(found)  # type: ignore[attr-defined]
    if isinstance(value, np.ndarray):
        return _read_only(value)
    if kind in (list, tuple):
        return kind([plain(part) for part in value])
    if kind is slice:
        return slice(plain(value.start), plain(value.stop), plain(value.step))
    raise NotPlainError


def _read_only(array: np.ndarray) -> np.ndarray:
    shown = array.view(np.ndarray)
    shown.flags.writeable = False
    return shown


_VIEWS = frozenset(
    "ravel reshape transpose permute_dims matrix_transpose swapaxes moveaxis rollaxis squeeze "
    "expand_dims flip fliplr flipud rot90 diagonal real imag split array_split hsplit vsplit "
    "dsplit atleast_1d atleast_2d atleast_3d broadcast_to broadcast_arrays asarray "
    "asanyarray ascontiguousarray asfortranarray unstack array require".split()
)
"""Functions whose results may be views, which a copy is not."""


def called_plainly(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """What NumPy's own ``function`` gives for known arguments: numbers, and arrays of their own.

    Raises `NotPlainError` where an argument is unknown, or the function fails, writes, or gives a
    view.
    """
    name = getattr(function, "__name__", "")
    if name.startswith("empty") or name in _VIEWS:
        raise NotPlainError
    given = [plain(value) for value in args]
    options = {name: plain(value) for name, value in kwargs.items()}
    arrays = [one for one in _flat([*given, *options.values()]) if isinstance(one, np.ndarray)]
    if any(one.size > LARGEST for one in arrays):
        raise NotPlainError
    try:
        with np.errstate(all="ignore"):
            made = function(*given, **options)
    except Exception as error:  # which the function that records explains
        raise NotPlainError from error
    for one in _flat(made if type(made) in (list, tuple) else [made]):
        if isinstance(one, np.ndarray):
            is_plain = type(one) is np.ndarray and one.size <= LARGEST and one.dtype.kind in "biufc"
            if not (is_plain and one.flags.c_contiguous and one.ndim):
                raise NotPlainError
            if any(np.may_share_memory(one, other) for other in arrays):
                raise NotPlainError
        elif not (type(one) in _SIMPLE or isinstance(one, np.generic)):
            raise NotPlainError
    return made


def _flat(values: Any) -> list[Any]:
    found: list[Any] = []
    for one in values:
        found += _flat(one) if type(one) in (list, tuple) else [one]
    return found
