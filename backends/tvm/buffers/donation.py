"""Donated arguments: which argument each result may be written over.

A caller that gives an argument away hands the same memory in twice, as the argument and as the
result that comes in its place. Where the last kernel that reads the argument reads each element
just before it stores the result's, or has run before, the result is written straight there; where
not, it is made elsewhere and copied there when nothing is left to be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracejit.backends.tvm.fusion.kernel import is_given
from tracejit.backends.tvm.ir.reshapes import base_buffer
from tracejit.graph import Instruction, Module
from tracejit.shapes import AnyShape, Shape, TupleShape


def aliases_of(module: Module) -> dict[int, int]:
    """For arrays among the parameters, tuples taken apart, the number of the result's array.

    Nothing for modules with tokens or dynamic dimensions, whose arrays are numbered otherwise.
    """
    entry = module.entry
    parameters = [leaf for p in entry.parameters for leaf in _leaves(p.shape)]
    results = _leaves(entry.root.shape)
    if not all(_is_plain(shape) for shape in (*parameters, *results)):
        return {}
    firsts = [0]
    for parameter in entry.parameters:
        firsts.append(firsts[-1] + len(_leaves(parameter.shape)))
    made = {}
    for alias in module.input_output_alias:
        within = _number(entry.parameters[alias.operand].shape, alias.operand_index)
        made[firsts[alias.operand] + within] = _number(entry.root.shape, alias.output_index)
    return made


def usable(
    parameters: Sequence[Instruction], outputs: Sequence[Instruction], wanted: Mapping[int, int]
) -> dict[Instruction, int]:
    """Parameters with the numbers of the outputs that come in their place, as far as that can be.

    An output that is the value of another parameter, a constant, or another output again gets
    memory of its own.
    """
    made: dict[Instruction, int] = {}
    seen: set[Instruction] = set()
    first: dict[int, Instruction] = {}
    for number, output in enumerate(outputs):
        source = base_buffer(output)
        if source not in seen:
            first[number] = source
        seen.add(source)
    for given, number in wanted.items():
        parameter = parameters[given]
        if number not in first or not parameter.array_shape.size:
            continue
        source = first[number]
        if source is parameter or not is_given(source):
            made[parameter] = number
    return made


def _leaves(shape: AnyShape) -> list[AnyShape]:
    if not isinstance(shape, TupleShape):
        return [shape]
    return [leaf for element in shape.elements for leaf in _leaves(element)]


def _is_plain(shape: AnyShape) -> bool:
    return isinstance(shape, Shape) and not shape.is_dynamic


def _number(shape: AnyShape, index: Sequence[int]) -> int:
    """The number of an array among all that a shape consists of."""
    if not index or not isinstance(shape, TupleShape):
        return 0
    before = sum(len(_leaves(element)) for element in shape.elements[: index[0]])
    return before + _number(shape.elements[index[0]], index[1:])
