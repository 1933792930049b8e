"""A module as HLO text that XLA parses, verifies and runs.

print(to_text(module))
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tracejit.attributes import Attribute, Kind
from tracejit.graph import Computation, Instruction, Module, Op
from tracejit.hlo.attributes import ELSEWHERE, write_attribute
from tracejit.hlo.calls import write_aliasing
from tracejit.hlo.literals import write_literal
from tracejit.hlo.shapes import shape_text
from tracejit.ops.constants import CONSTANT, PARAMETER
from tracejit.traversal import called_computations, instructions

Literal = Callable[[np.ndarray], str]


def to_text(module: Module, *, metadata: bool = False, literal: Literal = write_literal) -> str:
    """The module as HLO text, computations before their callers, the entry last.

    ``metadata`` adds to each instruction the user's line that made it. ``literal`` writes the
    values of constants.
    """
    parameters = ", ".join(shape_text(p.shape) for p in module.entry.parameters)
    layout = f"{{({parameters})->{shape_text(module.entry.root.shape)}}}"
    devices = "".join(
        f", {name}={count}"
        for name, count in (
            ("replica_count", module.replica_count),
            ("num_partitions", module.num_partitions),
        )
        if count != 1
    )
    front = f"HloModule {identifier(module.name)}"
    if module.input_output_alias:
        front += f", input_output_alias={write_aliasing(module.input_output_alias)}"
    texts = [f"{front}, entry_computation_layout={layout}{devices}"]
    for part in listing(module, literal=literal):
        lines = [
            f"  {'ROOT ' if instruction is part.root else ''}{text}"
            f"{_metadata_text(instruction) if metadata else ''}"
            for instruction, text in part.instructions
        ]
        texts.append("\n".join([part.head, *lines, "}"]))
    return "\n\n".join(texts) + "\n"


class Listing(NamedTuple):
    """A computation of a text: its name there, its first line, each instruction with its text."""

    name: str
    head: str
    is_entry: bool
    root: Instruction
    instructions: list[tuple[Instruction, str]]


def listing(module: Module, *, literal: Literal = write_literal) -> Iterator[Listing]:
    """The computations as `to_text` writes them, callees first."""
    computations = called_computations(module)
    names = computation_names(computations)
    first = 0
    for computation in computations:
        body = instructions(computation)
        yield _listed(computation, body, module, names, first, literal)
        first += len(body)


def computation_names(
    computations: Iterable[Computation], *reserved: str
) -> dict[Computation, str]:
    """A name for each computation, its own where that is free; ``reserved`` ones are not."""
    names: dict[Computation, str] = {}
    taken = set(reserved)
    last: dict[str, int] = {}
    for computation in computations:
        wanted = name = identifier(computation.name)
        while name in taken:
            last[wanted] = last.get(wanted, 0) + 1
            name = f"{wanted}.{last[wanted]}"
        taken.add(name)
        names[computation] = name
    return names


def identifier(name: str) -> str:
    """``name`` with every character that HLO text does not allow in names replaced."""
    if name.isascii() and name.isidentifier():
        return name
    clean = re.sub(r"[^A-Za-z0-9_.-]", "_", name)
    return clean if re.match(r"[A-Za-z_]", clean) else f"_{clean}"


def _listed(
    computation: Computation,
    body: Sequence[Instruction],
    module: Module,
    computation_names: Mapping[Computation, str],
    first: int,
    literal: Literal,
) -> Listing:
    names = {i: f"{i.op.opcode}.{first + n}" for n, i in enumerate(body)}
    inputs = ", ".join(f"{names[p]}: {shape_text(p.shape, False)}" for p in computation.parameters)
    is_entry, name = computation is module.entry, computation_names[computation]
    result = shape_text(computation.root.shape, False)
    head = f"{'ENTRY ' if is_entry else ''}%{name} ({inputs}) -> {result} {{"
    texts = [(i, _instruction_text(i, names, computation_names, literal)) for i in body]
    return Listing(name, head, is_entry, computation.root, texts)


def _instruction_text(
    instruction: Instruction,
    names: Mapping[Instruction, str],
    computation_names: Mapping[Computation, str],
    literal: Literal,
) -> str:
    op, values = instruction.op, instruction.attributes
    if op is PARAMETER:
        operands = str(values["parameter_number"])
    elif op is CONSTANT:
        operands = literal(values["literal"])
    else:
        operands = ", ".join([f"%{names[o]}" for o in instruction.operands])
    text = f"%{names[instruction]} = {shape_text(instruction.shape)} {op.opcode}({operands})"
    for a in _written(op):
        value = values[a.name]
        if value != a.default:
            text += f", {a.name}={write_attribute(a.kind, value, computation_names)}"
    return f"{text}, sharding={{{instruction.sharding}}}" if instruction.sharding else text


@functools.cache
def _written(op: Op) -> tuple[Attribute, ...]:
    """The attributes that stand behind the operands, unless they have their default."""
    return tuple(a for a in op.attributes if a.kind not in ELSEWHERE)


def _metadata_text(instruction: Instruction) -> str:
    source = instruction.source
    if source is None:
        return ""
    file = write_attribute(Kind.STRING, source.file, {})
    name = write_attribute(Kind.STRING, instruction.op.function, {})
    return f", metadata={{op_name={name} source_file={file} source_line={source.line}}}"
