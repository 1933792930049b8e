"""The graph: ops, instructions, computations, modules. Frozen data, nothing else.

An instruction names its operands directly, so any instruction is the root of a graph; a
computation is a root with its parameters in order. What no root reaches does not exist.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tracejit.attributes import Attribute
from tracejit.shapes import AnyShape, Shape, TupleShape
from tracejit.sources import Source

_serial = itertools.count()


@dataclass(frozen=True, eq=False)
class Op:
    """A row of the op table.

    ``name`` is XlaBuilder's (BatchNormTraining), ``opcode`` HLO text's (batch-norm-training),
    ``function`` the builder function's (batch_norm_training). ``shape_rule`` takes the operands'
    shapes in order and the attributes by name, and returns the result's shape or raises.
    """

    name: str
    opcode: str
    family: str
    function: str
    shape_rule: Callable[..., AnyShape]
    attributes: tuple[Attribute, ...] = ()

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False, slots=True)
class Instruction:
    """One op applied to operands; compared by identity.

    ``attributes`` includes the computations that the op calls. ``serial`` grows with
    creation, so operands always have smaller numbers than their users.
    """

    op: Op
    operands: tuple[Instruction, ...]
    shape: AnyShape
    attributes: Mapping[str, Any]
    source: Source | None = None
    serial: int = field(default_factory=_serial.__next__)

    @property
    def array_shape(self) -> Shape:
        """The shape, for an instruction known to make one array."""
        assert isinstance(self.shape, Shape), f"{self.op} makes {self.shape}"
        return self.shape

    @property
    def element_shapes(self) -> tuple[AnyShape, ...]:
        """The shapes of a tuple's elements, or the one shape."""
        return self.shape.elements if isinstance(self.shape, TupleShape) else (self.shape,)

    @property
    def computations(self) -> tuple[Computation, ...]:
        """The computations this instruction calls, in the order of the op's attributes."""
        called: list[Computation] = []
        for value in self.attributes.values():
            if isinstance(value, Computation):
                called.append(value)
            elif isinstance(value, tuple) and value and isinstance(value[0], Computation):
                called.extend(value)
        return tuple(called)

    def __repr__(self) -> str:
        return f"<{self.op.opcode}.{self.serial} {self.shape}>"


@dataclass(frozen=True, eq=False)
class Computation:
    """A function: ``parameters`` (Parameter instructions, in order) and the ``root`` it returns."""

    name: str
    parameters: tuple[Instruction, ...]
    root: Instruction

    def __repr__(self) -> str:
        inputs = ", ".join(str(p.shape) for p in self.parameters)
        return f"<{self.name}: ({inputs}) -> {self.root.shape}>"


@dataclass(frozen=True, eq=False)
class Module:
    """A whole program: the entry computation and, through its instructions, all it calls."""

    name: str
    entry: Computation
    formatter: ClassVar[Callable[[Module], str] | None] = None
    """What makes the text; `tracejit.hlo`, which knows how, sets it when it is imported."""

    def __str__(self) -> str:
        formatter = Module.formatter
        return repr(self) if formatter is None else formatter(self)


OPS: dict[str, Op] = {}
"""The op table: every op by name, in the order of definition."""
