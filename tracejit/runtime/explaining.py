"""What a compiled program does, kernel by kernel, and how fast this machine could do it.

report = explain(executable)                         # counted
report = explain(executable, [x, y])                 # and timed, on these arrays
print(report)
report.kernels[0].flops
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tracejit.backends.explanation import WHOLE_LOOP, Change, Explanation, KernelFacts, Nest, Node
from tracejit.backends.launch_plan import LaunchPlan
from tracejit.errors import UnsupportedError
from tracejit.graph import Module
from tracejit.loading import load, supplied
from tracejit.runtime.executable import Executable
from tracejit.runtime.measuring import Timing, timed
from tracejit.runtime.roofline import Limits, limits_measured_again, machine_limits
from tracejit.runtime.tuning_notes import Tuning
from tracejit.runtime.units import bytes_text as _bytes
from tracejit.runtime.units import count_text as _count
from tracejit.runtime.units import time_text as _time
from tracejit.sources import Source

BEYOND = 1.05
"""A kernel that attains more than this shows that the machine's limits are higher."""


@dataclass(frozen=True)
class LaunchReport:
    """One launch of a kernel on a CUDA device, and what NVRTC says of its function.

    ``registers`` are those of a thread, ``shared_bytes`` those of a block; ``occupancy`` is the
    part of a multiprocessor's threads that its blocks can fill.
    """

    function: str
    blocks: int
    threads: int
    registers: int
    shared_bytes: int
    spilled_bytes: int
    occupancy: float


@dataclass(frozen=True)
class KernelReport:
    """One kernel. All counts and ``bound_seconds`` are those of one call.

    ``ops`` are the opcodes of the operations that were fused into it, ``loops`` its loops with how
    deep they lie; ``where`` names the loops and branches of the program around it. Bytes are those
    of distinct elements outside the kernel, flops operations on distinct elements, exp and its kin
    apart in ``transcendentals``. ``bound`` is what limits it, "memory", "arithmetic", "library"
    for a call into Python, or "nothing", and ``bound_seconds`` the time below which this machine
    cannot do it; ``share`` is its part of all kernels' bounds.

    Timed, ``calls`` is how often it ran, ``seconds`` how long in all, and ``attained`` how near it
    came to its bound, 1 being there. Otherwise ``calls`` is how often it is called, None inside a
    loop or a branch.

    Tuned, ``changes`` are the questions that are answered otherwise than by the cost model, each
    with its answer and the new one, and ``gain`` the kernel's seconds before and after.

    On a CUDA device, ``threads`` are those of all blocks, and ``launches`` what is launched.

    ``sources`` are the user's lines that the operations come from.
    """

    name: str
    ops: tuple[str, ...]
    schedule: str
    loops: tuple[Nest, ...]
    where: str
    threads: int
    bytes_read: int
    bytes_written: int
    flops: int
    transcendentals: int
    callbacks: tuple[str, ...]
    bound: str
    bound_seconds: float
    share: float
    calls: int | None
    seconds: float | None
    attained: float | None
    changes: tuple[Change, ...] = ()
    gain: tuple[float, float] | None = None
    launches: tuple[LaunchReport, ...] = ()
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True)
class Report:
    """The kernels in the order in which they stand, and the sums over a whole run.

    Untimed, the body of a loop counts as often as its text says, else once (``unknown_loops`` is
    how many of those there are), and a branch as its most expensive side. ``call_seconds`` is the
    fastest whole call, ``seconds`` the sum of the kernels' times, each including up to a
    microsecond for being called on its own. ``tuning`` is how the program was tuned, if it was.
    ``machine`` is what the limits are those of. ``module`` is the traced graph, if it is known.
    """

    kernels: tuple[KernelReport, ...]
    bytes_read: int
    bytes_written: int
    flops: int
    transcendentals: int
    bound_seconds: float
    workspace_bytes: int
    unknown_loops: int
    seconds: float | None
    call_seconds: float | None
    limits: Limits
    tuning: Tuning | None = None
    machine: str = "this machine"
    module: Module | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """A table, for notebooks."""
        html: str = supplied("display").html_of(self)
        return html


def explain(executable: object, arguments: Sequence[Any] | None = None) -> Report:
    """The report of a program; timed where ``arguments``, arrays as it takes them, are given.

    The program runs some tens of times then, and what it does outside (random streams, callbacks)
    happens as often. Raises `ArgumentError` for arguments that do not fit, `UnsupportedError` where
    the CPU's kernels cannot be timed because there was no linker.
    """
    if not isinstance(executable, Executable):
        raise UnsupportedError("explain: with check=True nothing is compiled; leave it out")
    artifact = executable.artifact
    if not artifact.explanation:
        raise UnsupportedError("explain: this program was compiled without an explanation")
    told = Explanation.from_json(artifact.explanation)
    device = _CudaDevice(artifact.processor, artifact.plan) if artifact.plan else None
    limits = machine_limits() if device is None else device.limits
    # What works on devices is imported by programs for them.
    measured = timed if device is None else load("tracejit.runtime.cuda_timing").timed_on_device
    timing = None if arguments is None else measured(executable, told, arguments)
    bounds = [_bound(facts, limits) for facts in told.kernels]
    if timing is not None and device is None and _is_beyond(timing, bounds):
        limits = limits_measured_again(limits)
        bounds = [_bound(facts, limits) for facts in told.kernels]
    if timing is not None:
        counts = [timing.calls[number] for number in range(len(bounds))]
    else:
        counts = _dearest(told.steps, [seconds for _, seconds in bounds])
    whole = sum(c * s for c, (_, s) in zip(counts, bounds, strict=True))
    places: dict[int, dict[str, int]] = {}
    for number, around in _places(told.steps, ""):
        found = places.setdefault(number, {})
        found[around] = found.get(around, 0) + 1
    kernels = []
    for number, (facts, (bound, seconds)) in enumerate(zip(told.kernels, bounds, strict=True)):
        share = counts[number] * seconds / whole if whole else 0.0
        calls_at = places.get(number, {})
        where = "; ".join(place for place in calls_at if place)
        called = None if where else calls_at.get("", 0)
        made = KernelReport(
            facts.name, facts.ops, facts.schedule, facts.loops, where, facts.threads,
            facts.bytes_read, facts.bytes_written, facts.flops, facts.transcendentals,
            facts.callbacks, bound, seconds, share, called, None, None, facts.changes, facts.gain,
            () if device is None else device.launches(facts.name),
            tuple(Source(*line) for line in facts.sources),
        )  # fmt: skip
        kernels.append(made if timing is None else _with_times(made, timing, number))

    def total(values: Iterable[int]) -> int:
        return sum(c * v for c, v in zip(counts, values, strict=True))

    return Report(
        tuple(kernels),
        total(k.bytes_read for k in kernels),
        total(k.bytes_written for k in kernels),
        total(k.flops for k in kernels),
        total(k.transcendentals for k in kernels),
        whole,
        artifact.workspace_bytes,
        sum(node[0] == "loop" and node[4] is None for node in _nodes(told.steps))
        + _whole_loops(kernels),
        None if timing is None else sum(timing.seconds),
        None if timing is None else timing.whole,
        limits,
        executable.tuning,
        "this machine" if device is None else device.name,
    )


class _CudaDevice:
    """The device that a program is compiled for, by its architecture's data sheet."""

    def __init__(self, processor: str, plan: str) -> None:
        self._plan = LaunchPlan.from_json(plan)
        self._found = found = load("tracejit.cuda.architectures").architecture_of(processor)
        self.name = f"{processor} as {found.product}"
        self.limits = Limits(found.flops32, found.flops64, (0,), (found.bandwidth,))

    def launches(self, kernel: str) -> tuple[LaunchReport, ...]:
        """What a kernel launches."""
        made = []
        for function, blocks, threads, dynamic in self._plan.launched[kernel]:
            registers, fixed, spilled = self._plan.kernels.get(function, (0, 0, 0))
            shared = fixed + dynamic
            occupancy = self._found.occupancy(threads, registers, shared)
            sizes = blocks, threads, registers, shared, spilled
            made.append(LaunchReport(function, *sizes, occupancy))
        return tuple(made)


def _with_times(kernel: KernelReport, timing: Timing, number: int) -> KernelReport:
    calls, seconds = timing.calls[number], timing.seconds[number]
    attained = calls * kernel.bound_seconds / seconds if calls and kernel.bound_seconds else None
    return replace(kernel, calls=calls, seconds=seconds, attained=attained)


def _is_beyond(timing: Timing, bounds: Sequence[tuple[str, float]]) -> bool:
    """Whether a kernel was faster than the machine is known to be."""
    done = zip(timing.calls, timing.seconds, bounds, strict=True)
    return any(seconds and calls * bound > BEYOND * seconds for calls, seconds, (_, bound) in done)


def _bound(facts: KernelFacts, limits: Limits) -> tuple[str, float]:
    """What limits a kernel, and the seconds that it takes at least."""
    memory = limits.memory_seconds(facts.bytes_read + facts.bytes_written)
    arithmetic = limits.arithmetic_seconds(facts.flops, facts.transcendentals, facts.wide)
    if facts.callbacks:
        return "library", max(memory, arithmetic)
    if not memory and not arithmetic:
        return "nothing", 0.0
    return ("memory", memory) if memory >= arithmetic else ("arithmetic", arithmetic)


def _nodes(steps: Sequence[Node]) -> Iterator[Node]:
    for node in steps:
        yield node
        if node[0] == "loop":
            yield from _nodes([*node[1], *node[3]])
        elif node[0] == "branch":
            for branch in node[2]:
                yield from _nodes(branch)


def _places(steps: Sequence[Node], around: str) -> Iterator[tuple[int, str]]:
    """For each kernel that is called, by number, the loops and branches around the call."""
    loops = branches = 0
    for node in steps:
        inside = f"{around}, " if around else ""
        if node[0] == "call":
            yield node[1], around
        elif node[0] == "loop":
            yield from _places(node[1], f"{inside}loop {loops} condition")
            yield from _places(node[3], f"{inside}loop {loops}")
            loops += 1
        else:
            for number, branch in enumerate(node[2]):
                yield from _places(branch, f"{inside}branch {branches}.{number}")
            branches += 1


def _dearest(steps: Sequence[Node], seconds: Sequence[float]) -> list[int]:
    """How often each kernel counts where nothing was run.

    Loops do as often as is known, else once, and of branches the dearest.
    """
    called = _once(steps, seconds)[1]
    return [called[number] for number in range(len(seconds))]


def _once(steps: Sequence[Node], seconds: Sequence[float]) -> tuple[float, Counter[int]]:
    total, called = 0.0, Counter[int]()
    for node in steps:
        if node[0] == "call":
            total += seconds[node[1]]
            called[node[1]] += 1
        elif node[0] == "loop":
            turns = 1 if node[4] is None else node[4]
            for part, times in ((node[1], turns + (node[4] is not None)), (node[3], turns)):
                cost, found = _once(part, seconds)
                total += times * cost
                called.update({number: times * count for number, count in found.items()})
        else:
            cost, found = max((_once(b, seconds) for b in node[2]), key=lambda pair: pair[0])
            total += cost
            called.update(found)
    return total, called


def _whole_loops(kernels: Iterable[KernelReport]) -> int:
    """How many loops of the program are part of a kernel."""
    inside = [nest for k in kernels if k.schedule == WHOLE_LOOP for nest in k.loops]
    return sum(nest.kind == "while" for nest in inside)


# Printing


def _lines(report: Report) -> Iterator[str]:
    width = max([len(k.name) for k in report.kernels], default=6)
    head = f"{'kernel':<{width}}  threads       read    written      flops       bound  share"
    is_timed = report.seconds is not None
    yield head + ("  calls       time  attained" if is_timed else "")
    for k in report.kernels:
        work = k.flops + k.transcendentals
        line = (
            f"{k.name:<{width}}  {k.threads:>7} {_bytes(k.bytes_read):>10} "
            f"{_bytes(k.bytes_written):>10} {_count(work):>10} {_time(k.bound_seconds):>11} "
            f"{k.share:>6.0%}"
        )
        if is_timed:
            attained = "" if k.attained is None else f"{k.attained:.0%}"
            line += f" {k.calls or 0:>6} {_time(k.seconds or 0):>10} {attained:>9}"
        yield line
        yield f"    {k.schedule}, bound by {k.bound}" + (f", in {k.where}" if k.where else "")
        counts = Counter(k.ops)
        ops = [f"{n} x {op}" if n > 1 else op for op, n in counts.items()]
        yield f"    computes {', '.join(ops) or 'a constant'}"
        loops = " > ".join(f"{n.kind} {n.extent if n.extent >= 0 else 'n'}" for n in _chain(k))
        if loops:
            yield f"    loops {loops}"
        for launch in k.launches:
            yield (
                f"    launches {launch.function}: {launch.blocks} x {launch.threads} threads, "
                f"{launch.registers} registers, {_bytes(launch.shared_bytes)} shared, "
                f"{launch.occupancy:.0%} occupied"
                + (f", {_bytes(launch.spilled_bytes)} spilled" if launch.spilled_bytes else "")
            )
        if k.callbacks:
            yield f"    calls {', '.join(k.callbacks)}"
        if k.gain is not None:
            changes = [f"{question}: {new} (was {old})" for question, old, new in k.changes]
            yield f"    tuned from {_time(k.gain[0])} to {_time(k.gain[1])}: {'; '.join(changes)}"
    yield (
        f"total: {_bytes(report.bytes_read)} read, {_bytes(report.bytes_written)} written, "
        f"{_count(report.flops)} flops, {_count(report.transcendentals)} transcendental, "
        f"at least {_time(report.bound_seconds)}"
    )
    if report.seconds is not None and report.call_seconds is not None:
        yield f"measured: kernels {_time(report.seconds)}, a call {_time(report.call_seconds)}"
    elif report.unknown_loops:
        unknown = report.unknown_loops
        one = "1 loop is counted as if it ran once"
        yield one if unknown == 1 else f"{unknown} loops are counted as if they ran once"
    if report.tuning is not None:
        yield _tuned(report.tuning)
    limits = report.limits
    yield (
        f"{report.machine}: {limits.flops32 / 1e9:.0f} Gflop/s in f32, "
        f"{limits.flops64 / 1e9:.0f} in f64; "
        f"{limits.bandwidths[0] / 1e9:.0f} to {limits.bandwidths[-1] / 1e9:.0f} GB/s; "
        f"workspace {_bytes(report.workspace_bytes)}"
    )


def _tuned(tuning: Tuning) -> str:
    found = "nothing was clearly quicker"
    if tuning.kept:
        found = f"a call took {_time(tuning.before)} and takes {_time(tuning.after)}"
    rest = "" if tuning.complete else ", some were left out for want of time"
    return f"tuned for {tuning.seconds:g} s: {found}; {tuning.candidates} candidates{rest}"


def _chain(kernel: KernelReport) -> list[Nest]:
    """The loops around the deepest one, and it."""
    chain: list[Nest] = []
    best: list[Nest] = []
    for nest in kernel.loops:
        chain = [*chain[: nest.depth], nest]
        best = max(best, chain, key=len)
    return best
