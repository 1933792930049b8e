"""Instructions written as StableHLO operations, function by function.

@stablehlo.attach(ADD)
def add(writer, instruction, operands):
    return writer.operation(instruction, "stablehlo.add", operands)

Text has no tuples: an instruction becomes the names of its arrays, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tracejit import ops
from tracejit.errors import UnsupportedError
from tracejit.graph import Computation, Instruction, Module
from tracejit.hlo.printer import computation_names, identifier
from tracejit.hlo.stablehlo.text import LeafShape, dictionary, integer, leaves, type_text
from tracejit.rules import RuleTable
from tracejit.shapes import AnyShape
from tracejit.traversal import called_computations, in_order, instructions

Names = tuple[str, ...]
"""The names of the arrays and tokens of a value."""
EmitRule = Callable[["Writer", Instruction, list[Names]], Names]

stablehlo: RuleTable[EmitRule] = RuleTable("stablehlo", "tracejit.hlo.stablehlo")
"""How each op is written. A rule takes the writer, the instruction and its operands' names."""

_DEEPEST = 8
_LONGEST = 32


class Writer:
    """The text of one module, as it grows."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.lines: list[str] = []
        self._indent = 1
        self._last = 0
        computations = called_computations(module)
        self._functions = computation_names(computations, "main")
        self._taken = {"main", *self._functions.values()}
        self._heights: dict[Computation, int] = {}
        self._calls: dict[Computation, int] = {}
        for computation in computations:  # callees first
            height = 0
            for instruction in instructions(computation):
                for callee in instruction.computations:
                    self._calls[callee] = self._calls.get(callee, 0) + 1
                    height = max(height, 1 + self._heights[callee])
            self._heights[computation] = height
        self._wanted: list[Computation] = []
        self._requested: set[Computation] = set()

    def text(self) -> str:
        """The whole module: the entry as ``main``, then every function it needs."""
        self._function("public @main", self.module.entry)
        for computation in self._wanted:  # grows on the way
            self._function(f"private @{self._functions[computation]}", computation)
        head = f"module @{identifier(self.module.name)}{self._devices()} {{"
        return "\n".join([head, *self.lines, "}", ""])

    def _devices(self) -> str:
        module = self.module
        if module.replica_count == module.num_partitions == 1:
            return ""
        counts = {
            "mhlo.num_partitions": integer(module.num_partitions, 32),
            "mhlo.num_replicas": integer(module.replica_count, 32),
        }
        return f" attributes {dictionary(counts)}"

    # What rules call

    def operation(
        self,
        instruction: Instruction,
        name: str,
        operands: Sequence[Names],
        attributes: Mapping[str, str] | None = None,
        regions: Sequence[Sequence[str]] = (),
        extra: Mapping[str, str] | None = None,
    ) -> Names:
        """Writes one operation with the instruction's operands and result; the result's names.

        ``attributes`` are the operation's properties, as text; ``extra`` are those that the
        dialect does not know.
        """
        shapes = [s for operand in instruction.operands for s in leaves(operand.shape)]
        flat = [n for names in operands for n in names]
        return self.raw(name, flat, shapes, instruction.shape, attributes, regions, extra)

    def elementwise(self, instruction: Instruction, name: str, operands: Sequence[Names]) -> Names:
        """Writes an operation on arrays of one type: ``stablehlo.add %0, %1 : tensor<f32>``."""
        if any(o.shape != instruction.shape for o in instruction.operands):
            return self.operation(instruction, name, operands)
        inputs = ", ".join(n for names in operands for n in names)
        (made,) = self._fresh(1)
        self._line(f"{made} = {name} {inputs} : {type_text(instruction.array_shape)}")
        return (made,)

    def raw(
        self,
        name: str,
        operands: Sequence[str],
        operand_shapes: Sequence[LeafShape],
        result: AnyShape,
        attributes: Mapping[str, str] | None = None,
        regions: Sequence[Sequence[str]] = (),
        extra: Mapping[str, str] | None = None,
    ) -> Names:
        """Writes one operation on arrays that are named already; the names of its results."""
        outputs = leaves(result)
        names = self._fresh(len(outputs))
        inputs = ", ".join(operands)
        properties = f" <{dictionary(attributes)}>" if attributes else ""
        blocks: list[str] = []
        for region in regions:
            blocks[-1:] = [f"{blocks[-1]}, {{"] if blocks else ["{"]
            blocks += [*region, "  " * self._indent + "}"]
        inside = ""
        if blocks:
            inside = " (" + "\n".join(blocks) + ")"
        written = f" {dictionary(extra)}" if extra else ""
        self._line(
            f'{_assigned(names)}"{name}"({inputs}){properties}{inside}{written} : '
            f"{_signature(operand_shapes, outputs)}"
        )
        return names

    def region(
        self, computation: Computation, arguments: Sequence[Names] | None = None
    ) -> list[str]:
        """The lines of a region that computes ``computation``.

        ``arguments`` None gives it arguments of its own; else it uses these values from outside.
        """
        outside, self.lines = self.lines, []
        self._indent += 1
        if arguments is None:
            arguments, listed = self._arguments(computation)
            if listed:
                self.lines.append("  " * (self._indent - 1) + f"^bb0({listed}):")
        result = self._called(computation, arguments)
        shapes = leaves(computation.root.shape)
        self._return("stablehlo.return", result, shapes)
        self._indent -= 1
        lines, self.lines = self.lines, outside
        return lines

    def call(self, computation: Computation, operands: Sequence[Names], result: AnyShape) -> Names:
        """Calls ``computation`` as a function of the module."""
        flat = [n for names in operands for n in names]
        shapes = [s for p in computation.parameters for s in leaves(p.shape)]
        outputs = leaves(result)
        names = self._fresh(len(outputs))
        call = f"func.call @{self.function(computation)}({', '.join(flat)})"
        self._line(f"{_assigned(names)}{call} : {_signature(shapes, outputs)}")
        return names

    def function(self, computation: Computation) -> str:
        """The name of the private function that computes ``computation``."""
        if computation not in self._functions:  # a rule made it
            name = identifier(computation.name)
            number = sum(taken.startswith(name) for taken in self._taken)
            self._functions[computation] = f"{name}.{number}" if number else name
            self._taken.add(self._functions[computation])
        if computation not in self._requested:
            self._requested.add(computation)
            self._wanted.append(computation)
        return self._functions[computation]

    def compose(
        self,
        operands: Sequence[Names],
        shapes: Sequence[AnyShape],
        build: Callable[..., Instruction],
    ) -> Names:
        """Writes what ``build`` makes of values of these shapes, with builder functions."""
        parameters = [ops.parameter(i, shape) for i, shape in enumerate(shapes)]
        root = build(*parameters)
        bound = dict(zip(parameters, operands, strict=True))
        return self._body(in_order([*parameters, root]), bound)[root]

    # Functions and bodies

    def _function(self, head: str, computation: Computation) -> None:
        self._last = 0
        arguments, listed = self._arguments(computation)
        made = _results_text(leaves(computation.root.shape))
        self.lines.append(f"  func.func {head}({listed}) -> {made} {{")
        self._indent = 2
        bound = dict(zip(computation.parameters, arguments, strict=True))
        result = self._body(instructions(computation), bound)[computation.root]
        self._return("func.return", result, leaves(computation.root.shape))
        self._indent = 1
        self.lines.append("  }")

    def _called(self, computation: Computation, arguments: Sequence[Names]) -> Names:
        """The result of a computation inside a region: written there, or called."""
        height = self._heights.get(computation, 0)
        shared = self._calls.get(computation, 0) > 1
        body = instructions(computation)
        if height > _DEEPEST or (shared and (height or len(body) > _LONGEST)):
            return self.call(computation, arguments, computation.root.shape)
        bound = dict(zip(computation.parameters, arguments, strict=True))
        return self._body(body, bound)[computation.root]

    def _body(
        self, body: Sequence[Instruction], bound: dict[Instruction, Names]
    ) -> dict[Instruction, Names]:
        for instruction in body:
            if instruction in bound:
                continue
            rule = stablehlo.get(instruction.op)
            if rule is None:
                raise UnsupportedError(
                    f"to_stablehlo: {instruction.op.name} {stablehlo.reason(instruction.op)}",
                    instruction.source,
                )
            bound[instruction] = rule(self, instruction, [bound[o] for o in instruction.operands])
        return bound

    def _return(self, name: str, values: Names, shapes: Sequence[LeafShape]) -> None:
        types = ", ".join(type_text(s) for s in shapes)
        self._line(f"{name} {', '.join(values)} : {types}" if values else name)

    def _arguments(self, computation: Computation) -> tuple[list[Names], str]:
        """Names for the leaves of each parameter, and all of them with their types."""
        arguments, listed = [], []
        for parameter in computation.parameters:
            shapes = leaves(parameter.shape)
            names = tuple(f"%arg{self._last + n}" for n in range(len(shapes)))
            self._last += len(shapes)
            arguments.append(names)
            listed += [f"{n}: {type_text(s)}" for n, s in zip(names, shapes, strict=True)]
        return arguments, ", ".join(listed)

    def _fresh(self, count: int) -> Names:
        self._last += 1
        base = f"%{self._last - 1}"
        return (base,) if count == 1 else tuple(f"{base}#{i}" for i in range(count))

    def _line(self, text: str) -> None:
        self.lines.append("  " * self._indent + text)


def _assigned(names: Names) -> str:
    """What stands before an operation with results: ``%0 = ``, or ``%0:2 = `` for two."""
    if not names:
        return ""
    count = f":{len(names)}" if len(names) > 1 else ""
    return f"{names[0].partition('#')[0]}{count} = "


def _signature(operands: Sequence[LeafShape], results: Sequence[LeafShape]) -> str:
    return f"({', '.join(map(type_text, operands))}) -> {_results_text(results)}"


def _results_text(shapes: Sequence[LeafShape]) -> str:
    types = [type_text(shape) for shape in shapes]
    return types[0] if len(types) == 1 else f"({', '.join(types)})"
