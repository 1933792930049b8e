"""HLO text, as XLA prints it, read into a module.

module = parse(open("dump.txt").read())

Layouts, sharding, backend configuration and what else changes no value is read past; the user's
line is taken from the metadata. A constant that XLA left out, ``constant({...})``, becomes one more
parameter of the module. Nothing here recurses, so no text is too long or too deeply nested.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracejit.attributes import Kind
from tracejit.errors import TracejitError
from tracejit.graph import Computation, Instruction, Module
from tracejit.hlo.attributes import ComputationName
from tracejit.hlo.lexer import Lexer
from tracejit.hlo.syntax import Block, Program, Reader, Statement
from tracejit.ops.base import operand_counts
from tracejit.ops.constants import PARAMETER
from tracejit.traversal import unreached


def parse(text: str) -> Module:
    """The module that ``text`` describes.

    Raises `HloParseError`, with line and column, when it is not HLO text, uses an opcode that
    the op table lacks, or breaks an op's shape rule.
    """
    lexer = Lexer(text)
    program = Reader(lexer).program()
    return Module(program.name, _Builder(lexer, program).entry(), **program.devices)


class _Builder:
    """Makes computations of a program's blocks; the lexer only places errors."""

    def __init__(self, lexer: Lexer, program: Program) -> None:
        self.lexer = lexer
        self.program = program
        self.made: dict[str, Computation] = {}

    def entry(self) -> Computation:
        """The entry computation, whatever it calls made first."""
        blocks, made = self.program.blocks, self.made
        waiting: set[str] = set()
        stack = [(self.program.entry, 0)]
        while stack:
            name, offset = stack[-1]
            if name in made:
                stack.pop()
                continue
            if name not in blocks:
                raise self.lexer.error(f"computation {name} is not defined", offset)
            called = [
                (callee, statement.offset)
                for statement in blocks[name].statements
                for callee in _called(statement)
                if callee not in made
            ]
            if not called:
                made[name] = self.computation(blocks[name])
                continue
            if name in waiting:
                raise self.lexer.error(f"computation {name} calls itself", blocks[name].offset)
            waiting.add(name)
            stack.extend(called)
        return made[self.program.entry]

    def computation(self, block: Block) -> Computation:
        values: dict[str, Instruction] = {}
        parameters: dict[int, Instruction] = {}
        for statement in block.statements:
            operands = []
            for name, offset in statement.operands:
                if name not in values:
                    raise self.lexer.error(f"operand {name} is not defined before", offset)
                operands.append(values[name])
            instruction = self.instruction(statement, operands)
            values[statement.name] = instruction
            if statement.op is PARAMETER:
                number = instruction.attributes["parameter_number"]
                if number in parameters:
                    raise self.lexer.error(f"there are two parameters {number}", statement.offset)
                parameters[number] = instruction
        if sorted(parameters) != list(range(len(parameters))):
            raise self.lexer.error(
                f"computation {block.name} has the parameters {sorted(parameters)}; "
                "they must be numbered from 0",
                block.offset,
            )
        ordered = tuple(parameters[i] for i in range(len(parameters)))
        root = values[block.root]
        effects = unreached(root, [value for value in values.values() if value.has_effect])
        return Computation(block.name, ordered, root, effects)

    def instruction(self, statement: Statement, operands: list[Instruction]) -> Instruction:
        op = statement.op
        fewest, most = operand_counts(op)
        if not fewest <= len(operands) <= most:
            raise self.lexer.error(
                f"{op.opcode} does not take {len(operands)} operands", statement.offset
            )
        attributes = {
            a.name: operands[0].array_shape.layout
            if a.kind is Kind.OPERAND_LAYOUT
            else _resolved(statement.attributes[a.name], self.made)
            for a in op.attributes
        }
        try:
            shape = op.shape_rule(*[o.shape for o in operands], **attributes)
        except TracejitError as error:
            raise self.lexer.error(error.message, statement.offset) from error
        if shape != statement.shape:
            raise self.lexer.error(
                f"{op.opcode} makes {shape} of these operands, not {statement.shape}",
                statement.offset,
            )
        return Instruction(op, tuple(operands), statement.shape, attributes, statement.source)


def _called(statement: Statement) -> list[str]:
    """The names of the computations that an instruction calls."""
    names: list[str] = []
    for value in statement.attributes.values():
        if isinstance(value, ComputationName):
            names.append(value)
        elif isinstance(value, tuple):
            names.extend(v for v in value if isinstance(v, ComputationName))
    return names


def _resolved(value: Any, made: Mapping[str, Computation]) -> Any:
    """``value`` with computations in place of their names."""
    if isinstance(value, ComputationName):
        return made[value]
    if isinstance(value, tuple) and value and isinstance(value[0], ComputationName):
        return tuple(made[v] for v in value)
    return value
