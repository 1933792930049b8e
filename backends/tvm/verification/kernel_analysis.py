"""The analysis of one kernel: a quick one, and a thorough one if that leaves accesses unproven.

    analysed(kernel)
    analysed(kernel, {1: Linear.of(i)}, [Loop(i, number(10), is_parallel=False)])

The second one is that of a kernel that a loop over i calls with the integer i as parameter 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracejit.backends.tvm.program.program import Kernel
from tracejit.backends.tvm.verification.accesses import EnclosingLoop
from tracejit.backends.tvm.verification.analysis import MOST_STEPS, Analysis
from tracejit.backends.tvm.verification.expressions import NotModelledError
from tracejit.backends.tvm.verification.linear import Linear

_MORE = 60
_LEAST = 50_000
"""The work of a thorough analysis, as a multiple of the first one's, or in steps."""


def analysed(
    kernel: Kernel,
    integers: Mapping[int, Linear] | None = None,
    loops: Sequence[EnclosingLoop] = (),
    most: int = MOST_STEPS,
) -> Analysis:
    """The analysis of a kernel that ``loops`` call with known ``integers``, by the number of the
    parameter of one element.

    Raises `NotModelledError`.
    """

    def run(followed: frozenset[int], most: int) -> Analysis:
        analysis = Analysis(kernel.parameters, kernel.scratch, followed, most, kernel.reads, loops)
        for place, value in (integers or {}).items():
            analysis.suppose(kernel.parameters[place], value)
        analysis.run(kernel.body)
        return analysis

    quick = run(frozenset(), most)
    if all(access.problem is None for access in quick.accesses):
        return quick
    if any(a.problem is not None and a.problem.is_certain for a in quick.accesses):
        return quick
    try:
        return run(quick.relevant(), max(_MORE * quick.nodes, _LEAST))
    except NotModelledError:
        return quick
