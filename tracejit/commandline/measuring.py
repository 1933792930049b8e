"""``stats``: what a module costs, read off its graph; ``diff``: where two modules differ."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterator

from tracejit.commandline.files import Commands, command, read_module, write
from tracejit.equality import same_graph
from tracejit.graph import Module
from tracejit.hlo import to_text
from tracejit.passes.cost_analysis import cost_analysis
from tracejit.passes.memory_report import memory_report

_NUMBERED = re.compile(r"(%[A-Za-z_][A-Za-z_-]*)[.\d]*")


def add_stats(commands: Commands) -> None:
    made = command(
        commands, "stats", _stats, "print operations, flops, bytes and the memory of a module"
    )
    made.add_argument("-o", "--output", metavar="FILE", help="write there")


def add_diff(commands: Commands) -> None:
    made = command(commands, "diff", _diff, "print where the graphs of two modules differ")
    made.add_argument("other", help="the other module, in a file of the same kinds")
    made.add_argument("-o", "--output", metavar="FILE", help="write there")


def _stats(arguments: argparse.Namespace) -> None:
    module = read_module(arguments.file)
    write("\n".join([*_costs(module), str(memory_report(module.entry)), ""]), arguments.output)


def _costs(module: Module) -> Iterator[str]:
    """A line for the whole, and one for each op, the most expensive first."""
    costs = cost_analysis(module.entry)
    columns = ("flops", "transcendentals", "bytes accessed")
    yield f"{'':24}{'count':>10}" + "".join(f"{name:>18}" for name in columns)
    ops = sorted(costs["ops"].items(), key=lambda item: [-item[1][name] for name in columns])
    total = {"count": sum(each["count"] for _, each in ops), **costs}
    for name, each in [(module.name, total), *ops]:
        numbers = "".join(f"{each[column]:>18,}" for column in columns)
        yield f"{name:24}{each['count']:>10,}{numbers}"
    if costs["unknown loops"]:
        yield f"{costs['unknown loops']} loops have an unknown number of iterations, counted once"


def _diff(arguments: argparse.Namespace) -> None:
    first, second = (read_module(file) for file in (arguments.file, arguments.other))
    if same_graph(first, second):
        write("the graphs are equal\n", arguments.output)
        return
    lines = difflib.unified_diff(
        _lines(first), _lines(second), arguments.file, arguments.other, lineterm="", n=2
    )
    write("\n".join([*lines, ""]), arguments.output)


def _lines(module: Module) -> list[str]:
    """The module's lines without the numbers of instructions, which shift where one is added."""
    return _NUMBERED.sub(r"\1", to_text(module)).splitlines()[1:]
