"""The values that ops carry as attributes, beyond integers and tuples of integers.

Each attribute of an `Op` has a kind, which tells the HLO printer and parser how it is written.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from tracejit.errors import AttributeValueError


class Kind(enum.Enum):
    """How an attribute is written in HLO text."""

    INT = "7"
    INTS = "{0,1}"
    BOOL = "true"
    FLOAT = "0.001"
    NAME = "LT"
    STRING = '"text"'
    WINDOW = "{size=3x3 stride=2x2 pad=1_1x1_1 lhs_dilate=1x2 rhs_dilate=1x2 rhs_reversal=0x1}"
    DIM_LABELS = "b01f_01io->b01f"
    PADDING = "0_1x2_0_1"
    SLICE = "{[0:2], [1:7:2]}"
    PRECISIONS = "{highest,default}"
    COMPUTATION = "%add"
    COMPUTATIONS = "{%a, %b}"
    LITERAL = "constant(…)"
    LITERAL_TEXT = "s32[2]{0} {1, 2}"
    PARAMETER_NUMBER = "parameter(0)"
    SHAPE = "f32[2]"
    OPERAND_LAYOUT = "{0,1}, at the operand"
    UNWRITTEN = ""
    RESULT_ACCURACY = "{tolerance={atol=0.5,rtol=0.25,ulps=2}}"
    SHAPE_VALUE = "f32[2]{0}"
    SHAPES = "{f32[2]{0}, s32[]}"
    CONFIG = '"text" or {a = 1}'
    BRACED = '{kind="sharding", entry={replicated}}'
    STRINGS = '{composite.name="f",composite.version="1"}'
    ALIASING = "{{}: (0, {1})}"
    INT_LISTS = "{{0,1},{1,2}}"
    REPLICA_GROUPS = "{{0,1},{2,3}} or [2,2]<=[4]"


class Required(enum.Enum):
    """The default of an attribute that has none."""

    REQUIRED = 0


REQUIRED = Required.REQUIRED


@dataclass(frozen=True)
class Attribute:
    """One attribute of an op: its name in HLO text, its kind, the value it may be left out at."""

    name: str
    kind: Kind
    default: Any = REQUIRED


@dataclass(frozen=True, slots=True)
class SliceDimension:
    """One dimension of a Slice: ``start:limit:stride``."""

    start: int
    limit: int
    stride: int = 1

    @property
    def size(self) -> int:
        return max(0, -(-(self.limit - self.start) // self.stride))


@dataclass(frozen=True, slots=True)
class PaddingDimension:
    """One dimension of a Pad: elements before, after (either may be negative) and between."""

    low: int = 0
    high: int = 0
    interior: int = 0

    def padded(self, size: int) -> int:
        """The size after padding; may be negative when the padding crops too much."""
        return self.low + self.high + size + max(size - 1, 0) * self.interior


@dataclass(frozen=True, slots=True)
class WindowDimension:
    """One dimension of a window, as ReduceWindow, SelectAndScatter and Conv use it."""

    size: int
    stride: int = 1
    padding_low: int = 0
    padding_high: int = 0
    window_dilation: int = 1
    base_dilation: int = 1
    reversal: bool = False

    @property
    def dilated_size(self) -> int:
        """The extent of the window over the base, holes included."""
        return (self.size - 1) * self.window_dilation + 1 if self.size else 0

    def dilated_base(self, size: int) -> int:
        """The extent of a base of ``size`` elements, holes included, without padding."""
        return (size - 1) * self.base_dilation + 1 if size else 0

    def positions(self, size: int) -> int:
        """How many places the window takes on a base of ``size`` elements."""
        padded = self.dilated_base(size) + self.padding_low + self.padding_high
        if self.dilated_size == 0 or padded < self.dilated_size:
            return 0
        return (padded - self.dilated_size) // self.stride + 1


Window = tuple[WindowDimension, ...]


@dataclass(frozen=True, slots=True)
class OutputAlias:
    """A part of a result that shares its memory with a part of an operand.

    ``output_index`` and ``operand_index`` say where in nested tuples; () is the whole. ``kind`` is
    may-alias or must-alias, "" where the text does not say.
    """

    output_index: tuple[int, ...]
    operand: int
    operand_index: tuple[int, ...] = ()
    kind: str = ""


class Numbers:
    """A record of dimension numbers, whose sequences may be given as lists."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:  # type: ignore[attr-defined]
            value = getattr(self, name)
            if not isinstance(value, int | tuple):
                object.__setattr__(self, name, tuple(value))


@dataclass(frozen=True, slots=True)
class ConvDimensionNumbers(Numbers):
    """Which dimension of each operand and of the result of a Conv means what."""

    input_batch_dimension: int
    input_feature_dimension: int
    input_spatial_dimensions: tuple[int, ...]
    kernel_input_feature_dimension: int
    kernel_output_feature_dimension: int
    kernel_spatial_dimensions: tuple[int, ...]
    output_batch_dimension: int
    output_feature_dimension: int
    output_spatial_dimensions: tuple[int, ...]

    @staticmethod
    def from_labels(lhs: str, rhs: str, out: str) -> ConvDimensionNumbers:
        """From labels such as ``("NCHW", "OIHW", "NCHW")``; spatial letters follow ``lhs``."""
        spatial = [c for c in lhs if c not in "NC"]
        return ConvDimensionNumbers(
            lhs.index("N"),
            lhs.index("C"),
            tuple(lhs.index(c) for c in spatial),
            rhs.index("I"),
            rhs.index("O"),
            tuple(rhs.index(c) for c in spatial),
            out.index("N"),
            out.index("C"),
            tuple(out.index(c) for c in spatial),
        )


@dataclass(frozen=True, slots=True)
class ResultAccuracy:
    """How exact a unary op must be: ``mode`` "highest", or "tolerance" with at least one bound.

    An op without one has XLA's "default" mode.
    """

    mode: str = "tolerance"
    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self) -> None:
        bounds = (self.atol, self.rtol, self.ulps)
        if self.mode not in ("highest", "tolerance"):
            raise AttributeValueError(
                f"result_accuracy: mode must be highest or tolerance, not {self.mode!r}"
            )
        if any(bound < 0 for bound in bounds):
            raise AttributeValueError(
                f"result_accuracy: atol, rtol and ulps must not be negative, not {bounds}"
            )
        if (self.mode == "tolerance") != any(bounds):
            raise AttributeValueError(
                "result_accuracy: mode tolerance needs atol, rtol or ulps, and mode highest none"
            )


def attribute_key(value: Any) -> Any:
    """``value`` as something hashable, equal for equal attributes (arrays by their bytes)."""
    if hasattr(value, "tobytes"):
        return (value.dtype.str, value.shape, value.tobytes())
    return value


__all__ = [
    "REQUIRED",
    "Attribute",
    "ConvDimensionNumbers",
    "Kind",
    "Numbers",
    "OutputAlias",
    "PaddingDimension",
    "ResultAccuracy",
    "SliceDimension",
    "Window",
    "WindowDimension",
    "attribute_key",
]
