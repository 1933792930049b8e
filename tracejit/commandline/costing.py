"""``cost``: what each instruction costs; ``profile``: how long each takes in compiled code."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tracejit import api
from tracejit.commandline.files import (
    Commands,
    arguments_for,
    command,
    positive,
    read_arrays,
    read_module,
    write,
)
from tracejit.errors import ArgumentError
from tracejit.graph import Computation, Instruction, Module
from tracejit.hlo.printer import listing
from tracejit.passes.cost_analysis import InstructionCost, instruction_costs
from tracejit.runtime.explaining import Report
from tracejit.runtime.units import time_text
from tracejit.sources import Source
from tracejit.traversal import in_order

_PROFILED = "HLO"
"""The file that instructions of a profiled module come from; their lines are their numbers."""

_SHOWN = 100


def add_cost(commands: Commands) -> None:
    made = command(commands, "cost", _cost, "print what each instruction of a module costs")
    made.add_argument(
        "--by",
        choices=["instruction", "op", "line"],
        default="instruction",
        help="what a row is: an instruction, all of an op, all of a line of the user's",
    )
    made.add_argument("--top", type=positive, metavar="N", help="the N dearest rows only")
    made.add_argument("-o", "--output", metavar="FILE", help="write there")


def add_profile(commands: Commands) -> None:
    made = command(
        commands, "profile", _profile, "run a module and print the time of each instruction"
    )
    made.add_argument("arrays", nargs="*", metavar="ARRAYS", help=".npy or .npz files, as in run")
    made.add_argument("--seed", type=int, default=0, help="of random arguments (default: 0)")
    made.add_argument("--target", default="cpu", help="what to compile for (default: cpu)")
    made.add_argument("--top", type=positive, metavar="N", help="the N slowest rows only")
    made.add_argument("-o", "--output", metavar="FILE", help="write there")


def _cost(arguments: argparse.Namespace) -> None:
    module = read_module(arguments.file)
    texts = _texts(module)
    rows: dict[str, list[int]] = {}
    for cost in instruction_costs(module.entry):
        row = rows.setdefault(_row_of(cost.instruction, arguments.by, texts), [0, 0, 0, 0])
        for column, value in enumerate((1, cost.flops, cost.transcendentals, cost.bytes_accessed)):
            row[column] += cost.times * value
    ordered = sorted(rows.items(), key=lambda item: (-_weight(*item[1][1:]), item[0]))
    lines = [f"{'times':>10}{'flops':>18}{'transcendentals':>18}{'bytes accessed':>18}"]
    lines += [
        f"{times:>10,}{flops:>18,}{functions:>18,}{moved:>18,}  {name}"
        for name, (times, flops, functions, moved) in ordered[: arguments.top]
    ]
    write("\n".join([*lines, ""]), arguments.output)


def _weight(flops: int, transcendentals: int, bytes_accessed: int) -> int:
    """One number for a cost: a function is worth some ten flops, and so is a word of memory."""
    return flops + 10 * transcendentals + bytes_accessed


def _row_of(instruction: Instruction, by: str, texts: dict[Instruction, str]) -> str:
    if by == "op":
        return instruction.op.opcode
    line = "" if instruction.source is None else str(instruction.source)
    if by == "line":
        return line or "(no line is known)"
    return f"{texts[instruction]}{f'  ({line})' if line else ''}"


def _texts(module: Module) -> dict[Instruction, str]:
    """Each instruction as HLO text, long ones cut."""
    return {
        i: text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
        for part in listing(module, literal=lambda array: "…" if array.size > 1 else str(array))
        for i, text in part.instructions
    }


@dataclass(frozen=True)
class _Numbered:
    """A module whose instructions come from the lines 0, 1, 2 … of `_PROFILED`."""

    module: Module
    instructions: Sequence[Instruction]

    @staticmethod
    def of(module: Module) -> _Numbered:
        parts = [i for part in listing(module) for i, _ in part.instructions]
        numbers = {i: number for number, i in enumerate(parts)}
        computations: dict[Computation, Computation] = {}

        def numbered(computation: Computation) -> Computation:
            if computation not in computations:
                new: dict[Instruction, Instruction] = {}
                reached = (*computation.parameters, *computation.effects, computation.root)
                for i in in_order(reached):
                    attributes = {
                        name: _with(value, numbered) for name, value in i.attributes.items()
                    }
                    new[i] = Instruction(
                        i.op,
                        tuple(new[o] for o in i.operands),
                        i.shape,
                        attributes,
                        Source(_PROFILED, numbers[i]),
                    )
                computations[computation] = Computation(
                    computation.name,
                    tuple(new[p] for p in computation.parameters),
                    new[computation.root],
                    tuple(new[e] for e in computation.effects),
                )
            return computations[computation]

        # Another name, so that code without these numbers is not taken from the disk cache.
        made = replace(module, name=f"{module.name}.profile", entry=numbered(module.entry))
        return _Numbered(made, parts)


def _with(value: object, numbered: object) -> object:
    if isinstance(value, Computation):
        return numbered(value)  # type: ignore[operator]
    if isinstance(value, tuple) and value and isinstance(value[0], Computation):
        return tuple(map(numbered, value))  # type: ignore[call-overload]
    return value


def _profile(arguments: argparse.Namespace) -> None:
    module = read_module(arguments.file)
    values = arguments_for(module, read_arrays(arguments.arrays), arguments.seed)
    numbered = _Numbered.of(module)
    if (module.replica_count, module.num_partitions) != (1, 1):
        raise ArgumentError("profile: the module runs on several devices; profile one device's")
    report = api.compile(numbered.module, arguments.target).explain(*values, measure=True)
    texts, costs = _texts(module), {c.instruction: c for c in instruction_costs(module.entry)}
    rows = sorted(_times(report, numbered.instructions, costs), key=lambda row: -row[0])
    whole = report.seconds or 0.0
    lines = [
        f"module {module.name}: {time_text(report.call_seconds or 0.0)} a call, "
        f"{time_text(whole)} in {len(report.kernels)} kernels",
        f"{'time':>10}{'share':>8}  kernel",
    ]
    for seconds, kernel, instruction, is_shared in rows[: arguments.top]:
        text = "(made by the compiler)" if instruction is None else texts[instruction]
        line = instruction.source if instruction is not None else None
        share = seconds / whole if whole else 0.0
        lines.append(
            f"{'~' if is_shared else ''}{time_text(seconds)}".rjust(10)
            + f"{share:>7.1%}  {kernel:24} {text}{f'  ({line})' if line else ''}"
        )
    lines.append("~ the time of a kernel of several instructions, shared out by their costs")
    write("\n".join([*lines, ""]), arguments.output)


def _times(
    report: Report, listed: Sequence[Instruction], costs: dict[Instruction, InstructionCost]
) -> Iterator[tuple[float, str, Instruction | None, bool]]:
    """For each kernel and instruction in it: seconds, and whether they are a share of more."""
    for kernel in report.kernels:
        seconds = kernel.seconds or 0.0
        found = [listed[s.line] for s in kernel.sources if s.file == _PROFILED]
        inside = _that_compute(found) or found
        if not inside:
            yield seconds, kernel.name, None, False
            continue
        weights = [_share(costs.get(i)) for i in inside]
        for instruction, weight in zip(inside, weights, strict=True):
            yield (
                seconds * weight / sum(weights),
                kernel.name,
                instruction,
                len(inside) > 1,
            )


def _that_compute(found: Iterable[Instruction]) -> list[Instruction]:
    return [i for i in found if i.op.opcode not in ("parameter", "constant", "tuple")]


def _share(cost: InstructionCost | None) -> int:
    if cost is None:
        return 1
    return max(1, _weight(cost.flops, cost.transcendentals, cost.bytes_accessed))
