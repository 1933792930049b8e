"""What can go wrong, one class per kind of mistake, each message ending in the user's own line.

All derive from `TracejitError`; each also derives from the built-in exception that NumPy
or Python would raise for the same mistake, so ``except ValueError`` keeps working.
"""

from __future__ import annotations

import threading
from typing import ClassVar

import numpy as np

from tracejit.sources import Source, user_source

__all__ = [
    "ArgumentError",
    "AttributeValueError",
    "CompilationError",
    "ConcretizationError",
    "DeadlockError",
    "DerivativeError",
    "DeviceError",
    "DeviceMemoryError",
    "DeviceNotFoundError",
    "DimensionError",
    "DynamicIndexError",
    "ElementTypeError",
    "ForeignFunctionError",
    "GradientMismatchError",
    "HloParseError",
    "IntegerDivisionError",
    "IntegerOverflowError",
    "InvalidArgumentError",
    "MatrixError",
    "MemoryBudgetError",
    "MemoryLimitError",
    "MissingAttributeError",
    "NotFiniteError",
    "OpCheckError",
    "OutOfBoundsError",
    "QueueTimeoutError",
    "ReadOnlyError",
    "ShapeError",
    "SingularMatrixError",
    "StaticIndexError",
    "TracejitError",
    "TracerLeakError",
    "UnknownTargetError",
    "UnsupportedError",
    "ValueRangeError",
    "VerificationError",
]


class TracejitError(Exception):
    """Base of every error that tracejit raises on purpose.

    ``source`` is the user's line; without it the line that is running now is found.
    ``is_of_tracing``: running the function by NumPy would not have raised it.
    """

    is_of_tracing: ClassVar[bool] = False

    def __init__(self, message: str, source: Source | None = None) -> None:
        self.source = source if source is not None else user_source()
        self.message = message
        text = message if self.source is None else f"{message} ({self.source})"
        super().__init__(text)
        self.args = (text,)
        if self.is_of_tracing and _noticed.errors is not None:
            _noticed.errors.append(self)


class _Noticed(threading.local):
    def __init__(self) -> None:
        self.errors: list[TracejitError] | None = None


_noticed = _Noticed()


def notice(errors: list[TracejitError] | None) -> list[TracejitError] | None:
    """Collects the errors of tracing that this thread makes from now on; where it did before."""
    before, _noticed.errors = _noticed.errors, errors
    return before


def dismiss(error: BaseException) -> None:
    """Forgets an error that tracejit has handled itself, with the frames that it keeps alive."""
    if _noticed.errors is not None:
        _noticed.errors[:] = [one for one in _noticed.errors if one is not error]
    error.__traceback__ = None


class ShapeError(TracejitError, ValueError):
    """Ranks or sizes do not fit together."""


class DimensionError(TracejitError, np.exceptions.AxisError):
    """A dimension number (axis) is out of range, repeated or unsorted."""


class ElementTypeError(TracejitError, TypeError):
    """An op does not accept this element type, or two element types differ."""


class AttributeValueError(TracejitError, ValueError):
    """An attribute of an op (a stride, an epsilon, a direction …) has an impossible value."""


class ArgumentError(TracejitError, TypeError):
    """Something that is not an array, or not an array we can take, was passed."""


class InvalidArgumentError(TracejitError, ValueError):
    """A check in a kernel of a custom op failed: see `tracejit.custom_ops.require`."""


class MemoryLimitError(TracejitError, MemoryError):
    """An array is larger than this machine's memory."""


class MatrixError(ShapeError, np.linalg.LinAlgError):
    """A function of linear algebra takes no arrays of these shapes."""


class StaticIndexError(TracejitError, IndexError):
    """An index known while tracing is out of range."""


class ReadOnlyError(TracejitError, ValueError):
    """Something that cannot be written to was written to."""


class ValueRangeError(TracejitError, OverflowError):
    """A Python number does not fit into the element type it meets."""


class ConcretizationError(TracejitError, TypeError):
    """Python asked a traced value for a number, a truth value or an array."""

    is_of_tracing = True


class MissingAttributeError(TracejitError, AttributeError):
    """A traced array was asked for something of NumPy's arrays that only memory has."""


class TracerLeakError(TracejitError, RuntimeError):
    """A traced value was used after its trace had ended."""

    is_of_tracing = True


class UnsupportedError(TracejitError, NotImplementedError):
    """A static-shape graph cannot express what was asked for."""

    is_of_tracing = True


class DerivativeError(TracejitError, TypeError):
    """A gradient was asked for where none exists."""


class GradientMismatchError(TracejitError, AssertionError):
    """A derivative is not what finite differences give."""


class VerificationError(TracejitError, ValueError):
    """A graph breaks the rules of its own ops."""


class MemoryBudgetError(TracejitError, MemoryError):
    """No recomputation makes a program need as little memory as was asked for."""


class NotFiniteError(TracejitError, FloatingPointError):
    """An operation made NaN or infinity from finite numbers under `check=True`.

    So ``check=True`` raises where NumPy does under ``np.errstate(over="raise", divide="raise",
    invalid="raise")``, with this as the `FloatingPointError`, whatever `np.errstate` says.
    Underflow is not reported. Without ``check=True``, `np.errstate` has no effect on a graph.
    """


class SingularMatrixError(NotFiniteError, np.linalg.LinAlgError):
    """A function of linear algebra made NaN or infinity from finite numbers under `check=True`.

    NumPy and SciPy raise `LinAlgError` for such matrices: singular, not positive definite, or ones
    whose eigenvalues do not converge. Without ``check=True`` the result is NaN.
    """


class DynamicIndexError(TracejitError, IndexError):
    """An index, known only while running, was out of range, and was asked to say so."""


class EmptySelectionError(TracejitError, ValueError):
    """The greatest or least of no elements was asked for, and was asked to say so."""


class IntegerDivisionError(TracejitError, ZeroDivisionError):
    """An integer was divided by zero, and was asked to say so."""


class IntegerOverflowError(TracejitError, OverflowError):
    """An integer became greater than 64 bits hold, and was asked to say so."""


class NegativeIntegerError(TracejitError, ValueError):
    """An integer was shifted or raised to a negative one, and was asked to say so."""


class QueueTimeoutError(TracejitError, TimeoutError):
    """Nothing was put into a queue in time."""


class DeadlockError(TracejitError, RuntimeError):
    """Devices that run one program wait for each other for ever."""


class UnknownTargetError(TracejitError, LookupError):
    """A custom call names a target that is not registered in this process."""


class OpCheckError(TracejitError, AssertionError):
    """A custom op is not what it says: see `tracejit.custom_ops.opcheck`."""


class OutOfBoundsError(TracejitError):
    """A function of a compiled library wrote outside of its results (`check=True`)."""


class ForeignFunctionError(TracejitError, RuntimeError):
    """A function of a compiled library returned an error."""


class DeviceNotFoundError(TracejitError, RuntimeError):
    """There is no CUDA device of this number, or no driver that is recent enough."""


class DeviceError(TracejitError, RuntimeError):
    """The CUDA driver refused a call, a kernel failed, or an array's device memory is gone."""


class DeviceMemoryError(TracejitError, MemoryError):
    """A CUDA device has no room for an array."""


class CompilationError(TracejitError, RuntimeError):
    """The code generator refused a graph or the linker failed."""


class HloParseError(TracejitError, ValueError):
    """HLO text breaks the grammar or the rules of its ops; ``line`` and ``column`` start at 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        self.line = line
        self.column = column
        super().__init__(f"HLO text, line {line}, column {column}: {message}")


def __dir__() -> list[str]:
    return __all__
