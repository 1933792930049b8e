"""Runtime routines, shared by many programs, and kernels that are one call of a routine.

What depends on a program alone, such as sizes and strides, a routine is told in numbers. It is
compiled once in a process: see `cpu.llvm.runtime_routines`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.ir.tir import Buffer


@dataclass(frozen=True)
class Routine:
    """``int32 name(ptr…, ptr numbers)``.

    ``kernels`` and ``driver`` are LLVM's text of it and of all that it calls; the driver, which
    calls the kernels, need not be fast.
    """

    name: str
    kernels: str
    driver: str


@dataclass(frozen=True, eq=False)
class Direct:
    """A call of a routine with some of a kernel's parameters, null for None.

    ``numbers`` are 64-bit integers, which the routine finds in memory behind its last pointer.
    """

    routine: Routine
    pointers: Sequence[Buffer | None]
    numbers: Sequence[int]

    def places(self, parameters: Sequence[Buffer]) -> list[int | None]:
        """The numbers of the pointers among a kernel's parameters."""

        def place(pointer: Buffer) -> int:
            return next(n for n, each in enumerate(parameters) if each.same_as(pointer))

        return [None if pointer is None else place(pointer) for pointer in self.pointers]
