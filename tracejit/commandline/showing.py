"""``show``: a module as text, as a summary, or as a drawing."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter

from tracejit.commandline.files import Commands, command, read_module, write
from tracejit.commandline.listing import listed
from tracejit.display import page_of
from tracejit.graph import Instruction, Module
from tracejit.hlo import to_stablehlo, to_text
from tracejit.shapes import AnyShape, Shape, TupleShape
from tracejit.traversal import called_computations, instructions


def add_command(commands: Commands) -> None:
    made = command(commands, "show", _show, "print a module")
    made.add_argument(
        "--as",
        dest="form",
        choices=sorted([*FORMS, "listing"]),
        default="hlo",
        help="HLO or StableHLO text, a listing by the user's lines with small computations folded, "
        "a summary, or a graph for Graphviz (default: hlo)",
    )
    made.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help="colours of a listing (default: where standard output is a terminal)",
    )
    made.add_argument("--unfold", action="store_true", help="a listing of all computations")
    made.add_argument("--metadata", action="store_true", help="HLO text with source lines")
    made.add_argument("--html", metavar="FILE", help="write a page to read in a browser there")
    made.add_argument("-o", "--output", metavar="FILE", help="write there")


def _show(arguments: argparse.Namespace) -> None:
    module = read_module(arguments.file)
    if arguments.html is not None:
        page_of(module).save(arguments.html)
    elif arguments.form == "hlo":
        write(to_text(module, metadata=arguments.metadata), arguments.output)
    elif arguments.form == "listing":
        wanted = {"always": True, "never": False}.get(arguments.color, _is_terminal(arguments))
        write(listed(module, arguments.unfold, wanted), arguments.output)
    else:
        write(FORMS[arguments.form](module), arguments.output)


def _is_terminal(arguments: argparse.Namespace) -> bool:
    return arguments.output is None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def summary(module: Module) -> str:
    """Parameters, results, and how many instructions of each op there are."""
    computations = called_computations(module)
    listed = [i for c in computations for i in instructions(c)]
    constants = sum(i.array_shape.nbytes for i in listed if i.op.name == "Constant")
    lines = [f"module {module.name}"]
    for number, parameter in enumerate(module.entry.parameters):
        lines.append(f"parameter {number}: {parameter.shape}")
    for number, shape in enumerate(module.entry.root.element_shapes):
        lines.append(f"result {number}: {shape}")
    lines += [
        f"argument bytes: {sum(_bytes(p.shape) for p in module.entry.parameters)}",
        f"result bytes: {_bytes(module.entry.root.shape)}",
        f"constant bytes: {constants}",
        f"computations: {len(computations)}",
        f"instructions: {len(listed)}",
    ]
    counts = Counter(i.op.opcode for i in listed)
    for opcode, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        lines.append(f"  {opcode}: {count}")
    return "\n".join(lines) + "\n"


def _bytes(shape: AnyShape) -> int:
    if isinstance(shape, TupleShape):
        return sum(map(_bytes, shape.elements))
    return shape.nbytes if isinstance(shape, Shape) else 0


def graph(module: Module) -> str:
    """The module in the language of Graphviz, a cluster for each computation."""
    lines = [f'digraph "{module.name}" {{', "  node [shape=box];"]
    for number, computation in enumerate(called_computations(module)):
        lines.append(f"  subgraph cluster{number} {{")
        lines.append(f'    label="{computation.name}";')
        for instruction in instructions(computation):
            label = f"{instruction.op.opcode}\\n{instruction.shape}"
            style = ", style=bold" if instruction is computation.root else ""
            lines.append(f'    {_node(instruction)} [label="{label}"{style}];')
        lines.append("  }")
        for instruction in instructions(computation):
            for operand in instruction.operands:
                lines.append(f"  {_node(operand)} -> {_node(instruction)};")
            for called in instruction.computations:
                lines.append(f"  {_node(called.root)} -> {_node(instruction)} [style=dashed];")
    return "\n".join([*lines, "}"]) + "\n"


def _node(instruction: Instruction) -> str:
    return f"i{instruction.serial}"


FORMS = {"graph": graph, "hlo": to_text, "stablehlo": to_stablehlo, "summary": summary}
