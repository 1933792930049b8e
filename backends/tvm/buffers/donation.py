"""Donated arguments: which result may be written over each argument.

A caller that donates an argument passes the same memory twice, as the argument and as the result
that replaces it. If the last kernel that reads the argument loads each element before it stores
the result's, or runs before the result's kernel, the result is written there directly; if not, it
is computed in a temporary and copied after the last read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracejit.backends.tvm.fusion.kernel import is_given
from tracejit.backends.tvm.ir.reshapes import base_buffer
from tracejit.graph import Instruction, Module
from tracejit.shapes import AnyShape, Shape, TupleShape


def aliases_of(module: Module) -> dict[int, int]:
    """Maps arrays among the parameters (tuples flattened) to the results that may replace them.

    Empty for modules with tokens or dynamic dimensions, whose arrays are numbered differently.
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
    """Maps parameters to the outputs that replace them, where that is possible.

    An output that is the value of another parameter, a constant, or another output again gets its
    own memory.
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
    """The number of an array among all arrays of a shape."""
    if not index or not isinstance(shape, TupleShape):
        return 0
    before = sum(len(_leaves(element)) for element in shape.elements[: index[0]])
    return before + _number(shape.elements[index[0]], index[1:])
