"""Reading modules and arrays from files, and writing results."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tracejit.errors import ArgumentError
from tracejit.graph import Module
from tracejit.hlo import parse
from tracejit.loading import load
from tracejit.shapes import (
    AnyShape,
    ElementType,
    Shape,
    TokenShape,
    TupleShape,
    element_type_of,
)
from tracejit.verifier import verify

DISTRIBUTIONS = ("normal", "special")
"""What random arguments can be."""

Commands = Any
"""What `argparse.ArgumentParser.add_subparsers` returns."""


def command(
    commands: Commands, name: str, run: Callable[[argparse.Namespace], None], help: str
) -> argparse.ArgumentParser:
    """A new command on one HLO file."""
    made: argparse.ArgumentParser = commands.add_parser(name, help=help, description=help)
    made.add_argument("file", help="HLO text, .mlir, .mlirbc or .pb; - reads standard input")
    made.set_defaults(command=run)
    return made


def positive(text: str) -> int:
    """The number of an option. Raises `ValueError` below 1."""
    number = int(text)
    if number < 1:
        raise ValueError(f"{number} is not positive")
    return number


def read_module(file: str) -> Module:
    """The verified module in a file: HLO text, or by the file's ending what jaxlib reads.

    ``.mlir`` and ``.mlirbc`` are StableHLO as text and as bytecode, ``.pb`` a serialised
    HloModuleProto. Raises `HloParseError`, `ArgumentError`, `OSError`, and `UnsupportedError` where
    jaxlib is needed and not installed.
    """
    if file.endswith((".mlir", ".mlirbc", ".pb")):
        read = "module_of_proto" if file.endswith(".pb") else "from_stablehlo"
        data = Path(file).read_bytes()
        try:
            return verify(getattr(_interop(), read)(data))
        except ArgumentError as error:
            raise ArgumentError(f"{file}: {error.message}", error.source) from None
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{file} is not text: {error.reason}") from error
    if text.lstrip().startswith(("module", "func.func", "#loc")):
        return verify(_interop().from_stablehlo(text))
    return verify(parse(text))


def _interop() -> Any:
    return load("tracejit.interop")


def write(text: str, output: str | None) -> None:
    """Writes to a file, or to standard output."""
    if output is None or output == "-":
        print(text, end="" if text.endswith("\n") else "\n")
    else:
        Path(output).write_text(text, encoding="utf-8")


def read_arrays(files: Sequence[str]) -> list[np.ndarray]:
    """The arrays of .npy files, and those of .npz files in their order."""
    arrays: list[np.ndarray] = []
    for file in files:
        try:
            loaded = np.load(file, allow_pickle=False)
            arrays += [loaded] if isinstance(loaded, np.ndarray) else list(loaded.values())
        except ValueError as error:
            raise ArgumentError(f"{file} holds no arrays: {error}") from error
    return arrays


def write_arrays(arrays: Sequence[np.ndarray], output: str) -> None:
    """One array as .npy, or any number as .npz, as the file's name ends."""
    if output.endswith(".npy"):
        if len(arrays) != 1:
            raise ArgumentError(f"{output} holds one array, not {len(arrays)}; name it .npz")
        np.save(output, arrays[0])
    elif output.endswith(".npz"):
        named: dict[str, Any] = {f"result{i}": array for i, array in enumerate(arrays)}
        np.savez(output, **named)
    else:
        raise ArgumentError(f"{output} must end in .npy or .npz")


def arguments_for(
    module: Module, given: Sequence[np.ndarray], seed: int, distribution: str = "normal"
) -> list[Any]:
    """The given arrays, then random ones for the parameters that are left.

    Arrays of other types of the same width, such as NumPy's void for bfloat16, are taken as what
    the parameter is.
    """
    parameters = module.entry.parameters
    if len(given) > len(parameters):
        raise ArgumentError(
            f"{module.name} takes {len(parameters)} arguments; {len(given)} arrays were given"
        )
    rng = np.random.default_rng(seed)
    drawn = [random_value(rng, p.shape, distribution) for p in parameters[len(given) :]]
    fitted = [
        _fitted(a, p.shape, i) for i, (a, p) in enumerate(zip(given, parameters, strict=False))
    ]
    return [*fitted, *drawn]


def _fitted(array: np.ndarray, shape: AnyShape, number: int) -> np.ndarray:
    if not isinstance(shape, Shape):
        raise ArgumentError(f"argument {number} is {shape}; only arrays come from files")
    if array.dtype != shape.dtype and array.dtype.kind == "V":
        array = array.view(shape.dtype) if array.itemsize == shape.dtype.itemsize else array
    if array.shape != shape.dimensions or array.dtype != shape.dtype:
        raise ArgumentError(
            f"argument {number} must be {shape}; the file has {array.dtype}{list(array.shape)}"
        )
    return array


def random_value(rng: np.random.Generator, shape: AnyShape, distribution: str = "normal") -> Any:
    """Normally distributed numbers, small integers, truth values; tuples of them.

    Of the distribution "special" a quarter are zeros of either sign, infinities, NaN, and the least
    and greatest numbers of the type.
    """
    if isinstance(shape, TupleShape):
        return tuple(random_value(rng, element, distribution) for element in shape.elements)
    if isinstance(shape, TokenShape):
        return None
    element_type, sizes = shape.element_type, shape.dimensions
    if element_type is ElementType.PRED:
        return rng.integers(0, 2, sizes).astype(bool)
    if element_type.is_integral:
        highest = int(ml_dtypes.iinfo(shape.dtype).max)  # type: ignore[no-untyped-call]
        values = rng.integers(0, min(10, highest + 1), sizes).astype(shape.dtype)
        return _with_special(rng, values) if distribution == "special" else values
    values = np.asarray(rng.standard_normal(sizes))
    if element_type.is_complex:
        values = values + 1j * rng.standard_normal(sizes)
    values = np.asarray(values).astype(shape.dtype)
    return _with_special(rng, values) if distribution == "special" else values


def _with_special(rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
    """The array with a quarter of its numbers replaced by special ones of its type."""
    if values.dtype.kind == "c":
        parts = [_with_special(rng, np.array(part)) for part in (values.real, values.imag)]
        made: np.ndarray = np.empty_like(values)
        made.real, made.imag = parts
        return made
    if element_type_of(values.dtype).is_integral:
        limits = ml_dtypes.iinfo(values.dtype)  # type: ignore[no-untyped-call]
        choice = np.array([0, limits.min, limits.max, limits.max // 2 + 1]).astype(values.dtype)
    else:
        info = ml_dtypes.finfo(values.dtype)  # type: ignore[no-untyped-call]
        with np.errstate(all="ignore"):
            listed = [0.0, -0.0, np.inf, -np.inf, np.nan, info.max, info.min, info.smallest_normal]
            choice = np.array(listed).astype(values.dtype)
    drawn = choice[rng.integers(0, len(choice), values.shape)]
    return np.asarray(np.where(rng.random(values.shape) < 0.25, drawn, values))
