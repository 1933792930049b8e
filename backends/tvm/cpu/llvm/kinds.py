"""Element types of LLVM values: their names in TVM, LLVM types and float layouts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """An element type.

    ``name`` is TVM's dtype, ``llvm`` the type of one element in LLVM text. ``fraction`` counts the
    explicit significand bits of a float and is 0 for other types.
    """

    name: str
    llvm: str
    bits: int
    fraction: int = 0

    @property
    def is_float(self) -> bool:
        return self.fraction > 0

    @property
    def is_signed(self) -> bool:
        return self.name.startswith(("float", "int"))

    @property
    def integer(self) -> Kind:
        """The signed integer of the same width."""
        return KINDS[f"int{self.bits}"]

    @property
    def bias(self) -> int:
        """The exponent field of 1.0."""
        return (1 << (self.bits - self.fraction - 2)) - 1

    @property
    def infinity(self) -> int:
        """The bits of +inf."""
        return ((1 << (self.bits - self.fraction - 1)) - 1) << self.fraction

    @property
    def smallest_normal(self) -> float:
        return float(2.0 ** (1 - self.bias))

    @property
    def epsilon(self) -> float:
        """The distance from 1.0 to the next float."""
        return float(2.0**-self.fraction)


BOOL = Kind("bool", "i1", 1)
FLOAT32 = Kind("float32", "float", 32, 23)
FLOAT64 = Kind("float64", "double", 64, 52)
INT32 = Kind("int32", "i32", 32)
INT64 = Kind("int64", "i64", 64)

KINDS = {
    kind.name: kind
    for kind in (
        BOOL,
        FLOAT32,
        FLOAT64,
        INT32,
        INT64,
        *(Kind(f"int{bits}", f"i{bits}", bits) for bits in (8, 16)),
        *(Kind(f"uint{bits}", f"i{bits}", bits) for bits in (8, 16, 32, 64)),
    )
}

MOVED = KINDS | {"float16": Kind("float16", "half", 16, 10)}
"""Kinds that registers hold for arithmetic, and kinds that are only loaded and stored."""
