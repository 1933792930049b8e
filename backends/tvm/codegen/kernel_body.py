"""`KernelBody`: the result of a kernel writer: a statement and its scratch memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tracejit.backends.tvm.ir.tir import AllocBuffer, Buffer, Evaluate, Stmt, i32, seq


class KernelBody(NamedTuple):
    """``statement`` uses the buffers in ``scratch``, which the caller allocates around it.

    Scratch is uninitialised and begins at a multiple of 64 bytes. Buffers that are small and
    private to a thread are allocated inside the statement. ``schedule`` names the chosen schedule.
    """

    statement: Stmt
    scratch: tuple[Buffer, ...] = ()
    schedule: str = ""

    def allocated(self) -> Stmt:
        """The statement with its scratch allocated in front of it."""
        return seq([AllocBuffer(buffer) for buffer in self.scratch], self.statement)


def nothing() -> KernelBody:
    """No work: the kernel of an empty result."""
    return KernelBody(Evaluate(i32(0)))


def one_after_another(works: Sequence[KernelBody]) -> KernelBody:
    return KernelBody(
        seq([work.statement for work in works]),
        tuple(buffer for work in works for buffer in work.scratch),
        ", ".join(dict.fromkeys(work.schedule for work in works if work.schedule)),
    )
