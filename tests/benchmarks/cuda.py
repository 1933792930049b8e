"""What the benchmarks' programs are on a CUDA device: predicted by data sheets, or timed on one.

    python -m tests.benchmarks.cuda --predict             # needs NVRTC, and no device
    python -m tests.benchmarks.cuda --only softmax        # timed; says so where there is no device

The prediction has, for each program, its launches, the most registers, the least occupancy, spilled
bytes, and the time that memory or arithmetic take at least. Nothing in it was measured.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import tracejit as tj
from tests.benchmarks.case import Case
from tests.benchmarks.cases import CASES
from tracejit.errors import TracejitError
from tracejit.tree_util import tree_leaves

CALLS = 30
HEAD = (
    f"{'program':<34} {'launches':>8} {'registers':>9} {'occupied':>8} {'spilled':>8} {'bound':>11}"
)


def compiled(case: Case, target: str, tiny: bool = False) -> tuple[Any, tuple[Any, ...]]:
    """A case's program for a target, and its arguments."""
    implementation = case.implementation("tracejit")
    assert implementation is not None
    inputs = case.make_inputs(tiny)
    return tj.jit(partial(implementation, tj), target=target).lower(*inputs).compile(), inputs


def predicted(program: Any) -> str:
    """A line of the table."""
    report = program.explain()
    launches = [launch for kernel in report.kernels for launch in kernel.launches]
    registers = max((launch.registers for launch in launches), default=0)
    occupied = min((launch.occupancy for launch in launches), default=0)
    spilled = sum(launch.spilled_bytes for launch in launches)
    bound = f"{1e6 * report.bound_seconds:.2f} us"
    return f"{len(launches):>8} {registers:>9} {occupied:>8.0%} {spilled:>8} {bound:>11}"


def timed(program: Any, inputs: Sequence[Any]) -> float:
    """Seconds of a call, of many that are queued at once, with arguments on the device."""
    (device,) = tj.devices()[:1]
    given = tj.tree.map(lambda x: tj.device_put(x, "cuda"), tuple(inputs))
    for _ in range(3):
        made = program(*given)
    device.synchronize()
    start = perf_counter()
    for _ in range(CALLS):
        made = program(*given)
    device.synchronize()
    assert tree_leaves(made)
    return (perf_counter() - start) / CALLS


def lines(cases: Sequence[Case], target: str, measured: bool, tiny: bool) -> Iterator[str]:
    """The table; programs that cannot be compiled have the reason."""
    yield HEAD + (f" {'a call':>11}" if measured else "")
    for case in cases:
        try:
            program, inputs = compiled(case, target, tiny)
            line = f"{case.name:<34} {predicted(program)}"
            yield line + (f" {1e6 * timed(program, inputs):>8.2f} us" if measured else "")
        except TracejitError as error:
            yield f"{case.name:<34} refused: {error.message.splitlines()[0]}"


def main(arguments: Sequence[str] | None = None, say: Callable[[str], None] = print) -> int:
    """What the module's docstring says; 1 without a device, unless it is only predicted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--predict", action="store_true", help="no device is asked")
    parser.add_argument("--arch", default="sm_90a", help="what is predicted, if not timed")
    parser.add_argument("--only", default="", help="programs whose names have this text")
    parser.add_argument("--tiny", action="store_true", help="with the least inputs")
    given = parser.parse_args(arguments)
    cases = [
        case
        for case in CASES
        if given.only in case.name and case.measure == "run" and case.implementation("tracejit")
    ]
    target = f"cuda:{given.arch}"
    if not given.predict:
        if not tj.devices():
            say(
                "There is no CUDA device to time programs on; --predict says what data sheets "
                "promise."
            )
            return 1
        target = "cuda"
    for line in lines(cases, target, not given.predict, given.tiny):
        say(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
