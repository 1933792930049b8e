"""StableHLO text: the portable dialect that other compilers read.

to_stablehlo(module)       the module as MLIR text
stablehlo                  the table of how each op is written, a file for each family of ops

Tuples are opened: the function ``main`` takes and returns the arrays that are in them, in order.
Missing ops are composed of others; an op that it cannot express at all raises.
"""

from __future__ import annotations

from tracejit.graph import Module
from tracejit.hlo.stablehlo.writer import Writer, stablehlo

__all__ = ["stablehlo", "to_stablehlo"]


def to_stablehlo(module: Module) -> str:
    """The module as StableHLO text, its entry the function ``main``.

    Computations become regions, or private functions where they are called or nest deeply. Raises
    `UnsupportedError`, naming the op and the user's line, where the dialect has no form.
    """
    return Writer(module).text()
