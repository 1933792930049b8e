"""HLO text, as XLA prints it, read into a module.

module = parse(open("dump.txt").read())

What changes no value is read past (`tracejit.hlo.ignored_syntax` says what and why); the user's
line is taken from the metadata. A constant that XLA left out, ``constant({...})``, becomes one more
parameter of the module: after its own ones, in the order of the text. Without ENTRY the last
computation is the entry, and without HloModule the module is named after it, as XLA has it.
Calls may be nested as deeply as they like: nothing recurses along them. What is called by other ops
may not, nor may a program be too large with all that is called written out (`ops.program_size`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracejit.attributes import Kind
from tracejit.errors import ArgumentError, AttributeValueError, ShapeError, TracejitError
from tracejit.graph import Computation, Instruction, Module
from tracejit.hlo.attributes import ComputationName
from tracejit.hlo.elided import THREADED, with_more
from tracejit.hlo.entry_layout import with_entry_layout
from tracejit.hlo.header import Header
from tracejit.hlo.inferred_attributes import LEFT_OUT
from tracejit.hlo.known_calls import as_op
from tracejit.hlo.legacy_syntax import starts_apart
from tracejit.hlo.lexer import Lexer
from tracejit.hlo.normal_forms import with_normal_form
from tracejit.hlo.program import Block, ParsedModule, Statement
from tracejit.hlo.shardy import as_edges
from tracejit.hlo.syntax import Reader
from tracejit.ops.base import operand_counts
from tracejit.ops.constants import CONSTANT, PARAMETER, parameter
from tracejit.ops.program_size import Extents, TooLargeError
from tracejit.shapes import AnyShape, ElementType, Shape
from tracejit.tracebacks import api_boundary
from tracejit.traversal import in_order, unreached


@api_boundary
def parse(text: str) -> Module:
    """The module that ``text`` describes.

    Raises `HloParseError`, with line and column, when it is not HLO text, uses an opcode that
    the op table lacks, or breaks an op's shape rule. Raises `ArgumentError` for what is no text.
    """
    if not isinstance(text, str):
        raise ArgumentError(f"hlo.parse: text is needed, not {type(text).__name__}")
    lexer = Lexer(text)
    program = Reader(lexer).program()
    header = program.header
    entry = _Builder(lexer, program).entry()
    if header.layout is not None:
        try:
            entry = with_entry_layout(entry, header.layout)
        except ShapeError as error:
            raise lexer.error(error.message, header.layout_offset) from error
    devices = header.devices | _partitions_of_meshes(header, entry)
    return Module(header.name, entry, **devices, input_output_alias=header.aliases)


def _partitions_of_meshes(header: Header, entry: Computation) -> dict[str, int]:
    """How many partitions JAX means where its text does not say so: the devices of a mesh."""
    reached = in_order([*entry.parameters, entry.root])
    if header.says_partitions or not any("devices=" in each.sharding for each in reached):
        return {}
    return {"num_partitions": max((len(m.devices) for m in header.meshes.values()), default=1)}


class _Builder:
    """Makes computations of a program's blocks; the lexer only places errors."""

    def __init__(self, lexer: Lexer, program: ParsedModule) -> None:
        self.lexer = lexer
        self.program = program
        self.made: dict[str, Computation] = {}
        # Computations that take more parameters for constants that are left out: their places.
        self.places: dict[Computation, list[int]] = {}
        self.extents = Extents(one_branch=True)

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
        own = [s for s in block.statements if s.op is PARAMETER]
        left_out = self.left_out_parameters(block, len(own))
        for statement in block.statements:
            operands = []
            for name, offset in statement.operands:
                if name not in values:
                    raise self.lexer.error(f"operand {name} is not defined before", offset)
                operands.append(values[name])
            self.check_declared(statement, operands)
            if _is_left_out(statement):
                values[statement.name] = left_out[statement.offset]
            else:
                values[statement.name] = self.instruction(statement, operands, left_out)
        parameters = self.parameters(block, own, values)
        root = values[block.root]
        if block.result is not None and block.result != root.shape:
            raise self.lexer.error(
                f"computation {block.name} returns {root.shape}, not {block.result}", block.offset
            )
        effects = unreached(root, [value for value in values.values() if value.has_effect])
        made = Computation(block.name, (*parameters, *left_out.values()), root, effects)
        try:
            self.extents.add(made)
        except TooLargeError as error:
            where = {values[s.name]: s.offset for s in block.statements}
            offset = where.get(error.instruction, block.offset)
            raise self.lexer.error(error.message, offset) from error
        if left_out:
            self.places[made] = list(left_out)
        return made

    def parameters(
        self, block: Block, statements: list[Statement], values: Mapping[str, Instruction]
    ) -> list[Instruction]:
        """The block's own parameters in order."""
        found: dict[int, Instruction] = {}
        for statement in statements:
            number = statement.attributes["parameter_number"]
            if number in found:
                raise self.lexer.error(f"there are two parameters {number}", statement.offset)
            found[number] = values[statement.name]
        if sorted(found) != list(range(len(found))):
            raise self.lexer.error(
                f"computation {block.name} has the parameters {sorted(found)}; "
                "they must be numbered from 0",
                block.offset,
            )
        return [found[i] for i in range(len(found))]

    def left_out_parameters(self, block: Block, first: int) -> dict[int, Instruction]:
        """A parameter for each constant that is left out in the block or in what it calls.

        The keys are their places in the text, in order.
        """
        shapes = {s.offset: s.shape for s in block.statements if _is_left_out(s) and s.shape}
        for statement in block.statements:
            for callee in _called(statement):
                computation = self.made[callee]
                places = self.places.get(computation, [])
                if places and statement.op not in THREADED:
                    raise self.lexer.error(
                        f"a constant is left out in {callee}, which {statement.op.opcode} applies; "
                        "dump large constants",
                        statement.offset,
                    )
                taken = computation.parameters[len(computation.parameters) - len(places) :]
                shapes |= {p: t.shape for p, t in zip(places, taken, strict=True)}
        return {
            place: parameter(first + i, shapes[place]) for i, place in enumerate(sorted(shapes))
        }

    def check_declared(self, statement: Statement, operands: list[Instruction]) -> None:
        for position, shape in statement.declared.items():
            if operands[position].shape != shape:
                name, offset = statement.operands[position]
                raise self.lexer.error(
                    f"operand {name} is {operands[position].shape}, not {shape}", offset
                )

    def instruction(
        self, statement: Statement, operands: list[Instruction], left_out: dict[int, Instruction]
    ) -> Instruction:
        op = statement.op
        operands = starts_apart(op, operands)
        fewest, most = operand_counts(op)
        if not fewest <= len(operands) <= most:
            raise self.lexer.error(
                f"{op.opcode} does not take {len(operands)} operands", statement.offset
            )
        try:
            attributes = {
                a.name: operands[0].array_shape.layout
                if a.kind is Kind.OPERAND_LAYOUT
                else _resolved(statement.attributes[a.name], self.made)
                for a in op.attributes
            }
            operands = with_normal_form(op, operands, attributes)
            for name, usual in LEFT_OUT.get(op, {}).items():
                if attributes[name] is None:
                    attributes[name] = usual(operands, attributes)
            if any(self.made[callee] in self.places for callee in _called(statement)):
                return self.threaded(statement, operands, attributes, left_out)
            shape = op.shape_rule(*[o.shape for o in operands], **attributes)
        except TracejitError as error:
            raise self.lexer.error(error.message, statement.offset) from error
        self.check_shape(statement, shape)
        given = shape if statement.shape is None else statement.shape
        header = self.program.header
        made = Instruction(
            op,
            tuple(operands),
            given,
            attributes,
            statement.source,
            sharding="" if header.is_scheduled else statement.sharding,
        )
        try:
            made = as_op(made, header.devices["num_partitions"] > 1)
            return as_edges(made, statement.frontend, header.meshes)
        except AttributeValueError as error:
            raise self.lexer.error(error.message, statement.offset) from error

    def threaded(
        self,
        statement: Statement,
        operands: list[Instruction],
        attributes: dict[str, Any],
        left_out: dict[int, Instruction],
    ) -> Instruction:
        """An instruction that hands on constants which are left out in what it calls."""
        shape = Shape(ElementType.PRED) if statement.shape is None else statement.shape
        bare = Instruction(statement.op, tuple(operands), shape, attributes, statement.source)
        made = with_more(bare, lambda computation: self.places.get(computation, ()), left_out)
        self.check_shape(statement, made.shape)
        return made

    def check_shape(self, statement: Statement, shape: AnyShape) -> None:
        if statement.shape is not None and shape != statement.shape:
            raise self.lexer.error(
                f"{statement.op.opcode} makes {shape} of these operands, not {statement.shape}",
                statement.offset,
            )


def _is_left_out(statement: Statement) -> bool:
    return statement.op is CONSTANT and "literal" not in statement.attributes


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
