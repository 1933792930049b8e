"""Whether two graphs say the same, whatever their names, order of creation and source lines.

same_graph(parse(to_text(module)), module)      True
"""

from __future__ import annotations

from typing import Any

from tracejit.attributes import attribute_key
from tracejit.graph import Computation, Instruction, Module


def same_graph(a: Module | Computation, b: Module | Computation) -> bool:
    """Whether a one-to-one mapping of instructions and computations takes ``a`` to ``b``.

    Ops, operands, shapes, attributes (constants to the bit), parameters, called computations and
    the numbers of replicas and partitions must agree, and so must the aliases of results and
    parameters.
    """
    if _header(a) != _header(b):
        return False
    pairs = _Pairs()
    pairs.add(_entry(a), _entry(b))
    while pairs.todo and pairs.agree:
        left, right = pairs.todo.pop()
        if isinstance(left, Computation) and isinstance(right, Computation):
            _compare_computations(left, right, pairs)
        elif isinstance(left, Instruction) and isinstance(right, Instruction):
            _compare_instructions(left, right, pairs)
        else:
            return False
    return pairs.agree


def _header(graph: Module | Computation) -> tuple[Any, ...]:
    if not isinstance(graph, Module):
        return 1, 1, ()
    return graph.replica_count, graph.num_partitions, graph.input_output_alias


def _entry(graph: Module | Computation) -> Computation:
    return graph.entry if isinstance(graph, Module) else graph


class _Pairs:
    """What has been matched so far, both ways, and which pairs are still to be compared."""

    def __init__(self) -> None:
        self.forward: dict[object, object] = {}
        self.backward: dict[object, object] = {}
        self.todo: list[tuple[object, object]] = []
        self.agree = True

    def add(self, left: object, right: object) -> None:
        if left not in self.forward and right not in self.backward:
            self.forward[left], self.backward[right] = right, left
            self.todo.append((left, right))
        elif self.forward.get(left) is not right:
            self.agree = False


def _compare_computations(left: Computation, right: Computation, pairs: _Pairs) -> None:
    if len(left.parameters) != len(right.parameters) or len(left.effects) != len(right.effects):
        pairs.agree = False
        return
    for one, other in zip(left.parameters, right.parameters, strict=True):
        pairs.add(one, other)
    for one, other in zip(left.effects, right.effects, strict=True):
        pairs.add(one, other)
    pairs.add(left.root, right.root)


def _compare_instructions(left: Instruction, right: Instruction, pairs: _Pairs) -> None:
    if (
        left.op is not right.op
        or left.shape != right.shape
        or len(left.operands) != len(right.operands)
        or len(left.computations) != len(right.computations)
        or _plain_attributes(left) != _plain_attributes(right)
    ):
        pairs.agree = False
        return
    for one, other in zip(left.operands, right.operands, strict=True):
        pairs.add(one, other)
    for called, other_called in zip(left.computations, right.computations, strict=True):
        pairs.add(called, other_called)


def _plain_attributes(instruction: Instruction) -> dict[str, Any]:
    """The attributes that are not computations, constants as bytes."""
    called = instruction.computations
    plain = {}
    for name, value in instruction.attributes.items():
        if value in called or (isinstance(value, tuple) and value and value[0] in called):
            continue
        plain[name] = attribute_key(value)
    return plain
