"""Runtime routines (precompiled code shared by programs), and kernels that only call one.

A routine takes what differs between programs, such as sizes and strides, as numbers. It is
compiled once in a process: see `cpu.llvm.runtime_routines`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.ir.tir import Buffer


@dataclass(frozen=True)
class Routine:
    """``int32 name(ptr…, ptr numbers)``.

    ``kernels`` and ``driver`` are LLVM text of the routine and of its callees; the driver, which
    calls the kernels, need not be fast.
    """

    name: str
    kernels: str
    driver: str


@dataclass(frozen=True, eq=False)
class RoutineCall:
    """A call of a routine with some of a kernel's parameters; None is a null pointer.

    ``numbers`` are 64-bit integers, in memory at the routine's last pointer.
    """

    routine: Routine
    pointers: Sequence[Buffer | None]
    numbers: Sequence[int]

    def places(self, parameters: Sequence[Buffer]) -> list[int | None]:
        """The positions of the pointers among a kernel's parameters."""

        def place(pointer: Buffer) -> int:
            return next(n for n, each in enumerate(parameters) if each.same_as(pointer))

        return [None if pointer is None else place(pointer) for pointer in self.pointers]
