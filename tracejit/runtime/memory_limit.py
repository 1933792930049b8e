"""Arrays that this machine has no memory for, found before anything is computed.

require_memory("interpret", instructions(computation))
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable

from tracejit.errors import MemoryLimitError
from tracejit.graph import Instruction
from tracejit.shapes import Shape

# Smaller arrays are not looked at.
_SMALL = 1 << 30


@functools.cache
def physical_memory() -> int:
    """The bytes of memory of this machine, or a number beyond all where that is unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 1 << 62


def require_memory(function: str, made: Iterable[Instruction]) -> None:
    """Raises `MemoryLimitError`, naming the line, for an array larger than all of the memory."""
    for instruction in made:
        for shape in instruction.element_shapes:
            if isinstance(shape, Shape) and shape.nbytes > _SMALL:
                if shape.nbytes > physical_memory():
                    raise MemoryLimitError(
                        f"{function}: {instruction.op.function} makes {shape}, "
                        f"{shape.nbytes / 2**30:,.0f} GiB; this machine has "
                        f"{physical_memory() / 2**30:,.0f} GiB of memory",
                        instruction.source,
                    )


def require_workspace(nbytes: int) -> None:
    """Raises `MemoryLimitError` for a program whose workspace is larger than all of the memory."""
    if nbytes > physical_memory():
        raise MemoryLimitError(
            f"compile: the program needs {nbytes / 2**30:,.0f} GiB of workspace; this machine has "
            f"{physical_memory() / 2**30:,.0f} GiB of memory"
        )
