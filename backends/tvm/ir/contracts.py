"""Contracts of routines written in LLVM IR: the elements they read and write, for the verifier.

    declare("twice", [Region(0, ("first",), (("count", 1),))], [Region(1, ...)])
    contract_of("twice").reads

The verifier trusts a contract. It proves that the buffers of a call have every element that the
contract names, and counts these elements as read and written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Number = int | str
"""A number, or the name of a parameter whose value it is."""


@dataclass(frozen=True)
class Region:
    """Elements of the memory at a pointer: ``first`` and multiples of ``dimensions``' steps.

    ``pointer`` is the name of a parameter. ``first`` is the sum of its numbers, each with a factor;
    each dimension has an extent and a step.
    """

    pointer: str
    first: Sequence[tuple[Number, int]] = ()
    dimensions: Sequence[tuple[Number, int]] = ()


@dataclass(frozen=True)
class Contract:
    """A routine reads all of ``reads``, then writes all of ``writes``, and nothing else.

    If it ``permutes`` words, the lower half of every word it writes is the lower half of a word it
    read. It may write some elements of ``scratch``. ``counts`` pairs regions of one element with
    parameters: the element is between 0 and the parameter afterwards.
    """

    parameters: Sequence[str]
    reads: Sequence[Region]
    writes: Sequence[Region]
    permutes: bool = False
    scratch: Sequence[Region] = ()
    counts: Sequence[tuple[Region, str]] = ()


_declared: dict[str, Contract] = {}


def declare(routine: str, contract: Contract) -> None:
    """Register the contract of a routine; another contract for the same name is an error."""
    known = _declared.setdefault(routine, contract)
    assert known == contract, f"{routine} has two contracts"


def contract_of(routine: str) -> Contract | None:
    return _declared.get(routine)


def span(pointer: str, first: Number, count: Number) -> Region:
    """``count`` neighbours from number ``first`` on."""
    return Region(pointer, ((first, 1),), ((count, 1),))


def whole(pointer: str, count: int) -> Region:
    """The first ``count`` elements."""
    return span(pointer, 0, count)
