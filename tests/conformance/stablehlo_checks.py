"""What a test module of StableHLO checks, as a module that returns both sides of every check."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.hlo.mlir import hlo_of_stablehlo
from tests.tolerances import differences, same_bits
from tracejit import ops, tree
from tracejit.graph import Computation, Instruction, Module
from tracejit.hlo import parse
from tracejit.shapes import ElementType, element_type_of
from tracejit.traversal import instructions, transform
from tracejit.verifier import verify

_PREFIX = "check."
# How far results may be from what is expected, by kind of check: in units of the last place.
_UNITS = {"expect_close": 8, "expect_almost_eq": 16}


class Unusable(Exception):
    """Why a module cannot be run: XLA refuses it, or it checks nothing."""


@dataclass(frozen=True)
class Checked:
    """A module that returns, for each check, the value and what it must be."""

    module: Module
    kinds: tuple[str, ...]


def checked_module(text: str) -> Checked:
    """The module of StableHLO text. Raises `Unusable`, or the product's errors."""
    try:
        hlo = hlo_of_stablehlo(text)
    except RuntimeError as error:
        raise Unusable(_first_error(str(error))) from error
    module = verify(parse(hlo))
    body = instructions(module.entry)
    checks = [i for i in body if i.op.name == "CustomCall" and _target(i).startswith(_PREFIX)]
    if not checks:
        raise Unusable("checks nothing")
    if module.entry.parameters:
        raise Unusable("takes arguments")
    sides = [operand for check in checks for operand in check.operands]
    outputs = transform(sides, lambda instruction, operands: None)
    others = tuple(e for e in module.entry.effects if e not in checks)
    entry = Computation(module.entry.name, (), ops.tuple_(outputs), others)
    kinds = tuple(_target(check).removeprefix(_PREFIX) for check in checks)
    return Checked(verify(Module(module.name, entry)), kinds)


def _target(instruction: Instruction) -> str:
    return str(instruction.attributes["custom_call_target"])


def _first_error(message: str) -> str:
    """What MLIR complains about, without the place."""
    found = re.search(r"error: (.*)", message)
    return found[1] if found else message.strip().splitlines()[0]


def differing(checked: Checked, results: Any) -> str:
    """What differs from the expected values; empty when all checks pass."""
    arrays = [np.asarray(leaf) for leaf in tree.leaves(results)]
    for number, kind in enumerate(checked.kinds):
        actual, expected = arrays[2 * number : 2 * number + 2]
        element_type = element_type_of(expected.dtype)
        if kind == "expect_eq" or not element_type.is_inexact:
            found = same_bits(actual, expected)
        else:
            unit = _unit(element_type) * _UNITS[kind]
            finite = expected[np.isfinite(expected)].astype(np.complex128)
            scale = float(np.abs(finite).max(initial=0)) if kind == "expect_close" else 1.0
            found = differences(actual, expected, unit, scale)
        if found:
            return found
    return ""


def _unit(element_type: ElementType) -> float:
    """The relative distance of neighbouring numbers."""
    return float(np.spacing(np.ones((), element_type.real.dtype)).astype(np.float64))
