"""What a compiled program consists of, kept beside its code: kernels, and in what order they run.

Written by the compiler, stored in the artifact as JSON, read by `tracejit.runtime.explaining`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

ArgumentAddress = tuple[str, int, int]
"""Where an argument lies: "input", "output", "constant", "workspace" or `SIGNALS`, its number, its
offset.
"""

SIGNALS = "signals"
"""The memory of a kernel that asks whether a signal ends the program; see `signal_state`."""

Node = tuple[Any, ...]
"""A step of the program, as JSON has it:

("call", kernel's number, places), ("loop", condition, predicate's place, body, steps or None) or
("branch", selector's place, branches).
"""

WHOLE_LOOP = "loop in registers"
"""The schedule of a kernel that is a loop of the program."""

Change = tuple[str, str, str]
"""A question about how a kernel is written, the cost model's answer, and the one that is taken."""


@dataclass(frozen=True)
class Nest:
    """A loop of a kernel: its depth, kind and extent.

    ``kind`` is "serial", "parallel", "vectorized", "unrolled", or "while" for one that goes on as
    long as something holds; the extent is -1 where it is only known as the kernel runs.
    """

    depth: int
    kind: str
    extent: int


@dataclass(frozen=True)
class KernelFacts:
    """One kernel, counted when it was made.

    ``ops`` are the opcodes of the instructions that it computes, in order; ``schedule`` says in
    which way. Bytes are those of the elements that it needs and makes, each counted once; ``flops``
    and ``transcendentals`` the operations on distinct elements. ``wide`` is whether the arithmetic
    is in 64-bit floats. ``callbacks`` are the Python functions that it calls. ``changes`` are what
    was found better than the cost model's picks, and ``gain`` the seconds before and after.
    ``sources`` are the user's lines that the instructions come from, files and numbers.
    """

    name: str
    ops: tuple[str, ...]
    schedule: str
    loops: tuple[Nest, ...]
    threads: int
    bytes_read: int
    bytes_written: int
    flops: int
    transcendentals: int
    wide: bool
    callbacks: tuple[str, ...]
    changes: tuple[Change, ...] = ()
    gain: tuple[float, float] | None = None
    sources: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Explanation:
    """All kernels of a program, and the steps that call them."""

    kernels: Sequence[KernelFacts]
    steps: Sequence[Node]

    def to_json(self) -> bytes:
        kernels = [astuple(kernel) for kernel in self.kernels]
        return json.dumps([kernels, self.steps], separators=(",", ":")).encode()

    @staticmethod
    def from_json(data: bytes) -> Explanation:
        kernels, steps = json.loads(data)
        return Explanation([_facts(kernel) for kernel in kernels], steps)


def _facts(values: Sequence[Any]) -> KernelFacts:
    name, ops, schedule, loops, *counts, callbacks, changes, gain, sources = values
    threads, read, written, flops, functions, wide = counts
    return KernelFacts(
        name,
        tuple(ops),
        schedule,
        tuple(Nest(*loop) for loop in loops),
        threads,
        read,
        written,
        flops,
        functions,
        wide,
        tuple(callbacks),
        tuple((question, before, after) for question, before, after in changes),
        gain and (gain[0], gain[1]),
        tuple((file, line) for file, line in sources),
    )
