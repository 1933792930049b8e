"""The graph: ops, instructions, computations, modules. Frozen data, nothing else.

An instruction names its operands directly, so any instruction is the root of a graph; a
computation is a root with its parameters in order, and the instructions that run for their side
effects alone. What neither reaches does not exist. Side effects happen in order of creation.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tracejit.attributes import Attribute, OutputAlias
from tracejit.loading import supplied
from tracejit.shapes import AnyShape, Shape, TupleShape
from tracejit.sources import Source

_serial = itertools.count()


def mark() -> int:
    """A number between those of the instructions made so far and those made from now on."""
    return next(_serial)


class Trait(enum.Flag):
    """What is true of an op wherever it stands, for passes to ask instead of listing ops."""

    NONE = 0
    ELEMENTWISE = enum.auto()
    """Each element of the result depends on the operands' elements at its own index."""
    CONVERSION = enum.auto()
    """The result has the same numbers in another element type, or fewer of their bits."""
    MOVEMENT = enum.auto()
    """Each element of the result is an element of an operand, at an index known beforehand."""
    VIEW = enum.auto()
    """A movement out of one operand."""
    CHEAP = enum.auto()
    """An element of the result takes an instruction or two of a processor."""
    TRANSCENDENTAL = enum.auto()
    """An element of the result takes a polynomial, a root or a function of a library."""
    MONOID = enum.auto()
    """Of two operands, associative and commutative, with an `identity_value`."""
    IDEMPOTENT = enum.auto()
    """Of two operands that are the same value, that value."""


@dataclass(frozen=True, eq=False)
class Op:
    """A row of the op table.

    ``name`` is XlaBuilder's (BatchNormTraining), ``opcode`` HLO text's (batch-norm-training),
    ``function`` the builder function's (batch_norm_training). ``shape_rule`` takes the operands'
    shapes in order and the attributes by name, and returns the result's shape or raises.
    ``side_effect`` says that running the op is noticed elsewhere (a queue, a stream of random
    numbers), so that it runs exactly once; where an attribute says so, it is that one's name.
    """

    name: str
    opcode: str
    family: str
    function: str
    shape_rule: Callable[..., AnyShape]
    attributes: tuple[Attribute, ...] = ()
    side_effect: bool | str = False
    traits: Trait = Trait.NONE

    @property
    def is_elementwise(self) -> bool:
        """Whether results are made element by element, conversions included."""
        return Trait.ELEMENTWISE in self.traits

    @property
    def is_arithmetic(self) -> bool:
        """Whether results are made element by element, by no conversion."""
        return self.is_elementwise and Trait.CONVERSION not in self.traits

    @property
    def is_movement(self) -> bool:
        """Whether elements of the operands are put elsewhere, and nothing is computed."""
        return Trait.MOVEMENT in self.traits

    @property
    def is_view(self) -> bool:
        """Whether the result shows elements of its one operand at other indices."""
        return Trait.VIEW in self.traits

    @property
    def is_cheap(self) -> bool:
        """Whether to compute an element again costs less than to store and load it."""
        return Trait.CHEAP in self.traits

    @property
    def is_transcendental(self) -> bool:
        """Whether an element is a polynomial, a root or a function of a library."""
        return Trait.TRANSCENDENTAL in self.traits

    @property
    def is_monoid(self) -> bool:
        """Whether it combines two values in any order and grouping, and has an identity."""
        return Trait.MONOID in self.traits

    @property
    def is_idempotent(self) -> bool:
        """Whether a value combined with itself is that value."""
        return Trait.IDEMPOTENT in self.traits

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False, slots=True)
class Instruction:
    """One op applied to operands; compared by identity.

    ``attributes`` includes the computations that the op calls, which are ``computations`` in the
    order of the op's attributes. ``serial`` grows with creation, so operands always have smaller
    numbers than their users. ``has_effect`` is whether the op or a computation it calls has a side
    effect, ``reaches_effect`` whether that is so of the instruction or of anything that it is made
    from. ``sharding`` is how text annotates where partitions have its parts, without the braces.
    """

    op: Op
    operands: tuple[Instruction, ...]
    shape: AnyShape
    attributes: Mapping[str, Any]
    source: Source | None = None
    serial: int = field(default_factory=_serial.__next__)
    sharding: str = ""
    computations: tuple[Computation, ...] = field(init=False)
    has_effect: bool = field(init=False)
    reaches_effect: bool = field(init=False)

    def __post_init__(self) -> None:
        called: tuple[Computation, ...] = ()
        for value in self.attributes.values():
            if isinstance(value, Computation):
                called += (value,)
            elif isinstance(value, tuple) and value and isinstance(value[0], Computation):
                called += value
        object.__setattr__(self, "computations", called)
        effect = self.op.side_effect
        own = effect is True or (effect and self.attributes[effect])
        own = bool(own) or any([c.has_effect for c in called])
        object.__setattr__(self, "has_effect", own)
        reaches = own or any([operand.reaches_effect for operand in self.operands])
        object.__setattr__(self, "reaches_effect", reaches)

    @property
    def array_shape(self) -> Shape:
        """The shape, for an instruction known to make one array."""
        assert isinstance(self.shape, Shape), f"{self.op} makes {self.shape}"
        return self.shape

    @property
    def element_shapes(self) -> tuple[AnyShape, ...]:
        """The shapes of a tuple's elements, or the one shape."""
        return self.shape.elements if isinstance(self.shape, TupleShape) else (self.shape,)

    def __repr__(self) -> str:
        return f"<{self.op.opcode}.{self.serial} {self.shape}>"


@dataclass(frozen=True, eq=False)
class Computation:
    """A function: ``parameters`` (Parameter instructions, in order) and the ``root`` it returns.

    ``effects`` are instructions with side effects that run although the root does not need them.
    """

    name: str
    parameters: tuple[Instruction, ...]
    root: Instruction
    effects: tuple[Instruction, ...] = ()

    @property
    def has_effect(self) -> bool:
        """Whether running it has a side effect."""
        return bool(self.effects) or self.root.reaches_effect

    def __repr__(self) -> str:
        inputs = ", ".join(str(p.shape) for p in self.parameters)
        return f"<{self.name}: ({inputs}) -> {self.root.shape}>"


@dataclass(frozen=True, eq=False)
class Module:
    """A whole program: the entry computation and, through its instructions, all it calls.

    It runs on ``replica_count`` times ``num_partitions`` devices, each with arguments of its own.
    ``input_output_alias`` maps results to the donated parameters whose memory they may take over:
    "operand" is a parameter's number there.
    """

    name: str
    entry: Computation
    replica_count: int = 1
    num_partitions: int = 1
    input_output_alias: tuple[OutputAlias, ...] = ()
    formatter: ClassVar[Callable[[Module], str] | None] = None
    """What makes the text; `tracejit.hlo`, which knows how, sets it when it is imported."""
    reader: ClassVar[Callable[[str], Module] | None] = None
    """What makes a module of the text, set likewise."""

    def __repr__(self) -> str:
        return f"<module {self.summary}>"

    def _repr_html_(self) -> str:
        """The graph by computation, for notebooks."""
        html: str = supplied("display").html_of(self)
        return html

    @property
    def summary(self) -> str:
        """Its name, parameters and results, and how many instructions there are, in one line."""
        inputs = ", ".join(str(p.shape) for p in self.entry.parameters)
        count = supplied("traversal").instruction_count(self)
        return (
            f"{self.name}: ({inputs}) -> {self.entry.root.shape}, "
            f"{count} instruction{'s' * (count != 1)}"
        )

    def __str__(self) -> str:
        formatter = Module.formatter
        return repr(self) if formatter is None else formatter(self)

    def __copy__(self) -> Module:
        return self

    def __deepcopy__(self, memory: dict[int, object]) -> Module:
        return self

    def __reduce__(self) -> str | tuple[object, ...]:
        """Pickled as its text."""
        return super().__reduce__() if Module.reader is None else (Module.reader, (str(self),))


OPS: dict[str, Op] = {}
"""The op table: every op by name, in the order of definition."""


INTERNAL_OPS: dict[str, Op] = {}
"""Ops of a compiler's own, by name: its passes make them, and no module from outside holds them."""
