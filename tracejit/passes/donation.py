"""Donated arguments: which results take over their memory.

jit(step, donate_argnums=(0, 1))        step's first two arguments are given away
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from tracejit.attributes import OutputAlias
from tracejit.graph import Instruction, Module
from tracejit.ops.constants import elements_of
from tracejit.ops.custom import CUSTOM_CALL
from tracejit.shapes import TupleShape, part_of
from tracejit.sources import warn
from tracejit.traversal import called_computations, in_order, instructions


def donating(module: Module, donated: Sequence[int], describe: Callable[[int], str]) -> Module:
    """The module with an alias for each of the ``donated`` parameters that a result can replace.

    A result replaces a parameter of its own shape and element type: itself, if it is returned as it
    is, else the first that it is computed from element by element, else the first that is left.
    Warns, naming them, of parameters that none replaces.
    """
    if not donated:
        return module
    root = module.entry.root
    is_tuple = isinstance(root.shape, TupleShape)
    results = list(elements_of(root)) if is_tuple else [root]
    parameters = module.entry.parameters
    chosen: dict[int, int] = {}
    left = list(donated)

    def choose(number: int, among: Sequence[int]) -> None:
        shape = results[number].shape
        for given in among:
            if given in left and parameters[given].shape == shape:
                chosen[number] = given
                left.remove(given)
                return

    numbers = {parameter: number for number, parameter in enumerate(parameters)}
    for number, result in enumerate(results):
        if result in numbers:
            choose(number, [numbers[result]])
    near = _near(results, {parameters[number] for number in donated})
    # Those with little choice first: an Adam step's moments before its weights, which depend on
    # all three.
    for number in sorted(range(len(results)), key=lambda n: len(near[n])):
        if number not in chosen:
            choose(number, sorted(numbers[p] for p in near[number]))
    for number in range(len(results)):
        if number not in chosen:
            choose(number, list(left))
    if left:
        names = ", ".join(f"{describe(n)} ({parameters[n].shape})" for n in left)
        warn(
            f"{module.name}: no result has the shape and element type of what was donated: {names}",
            UserWarning,
        )
    aliases = tuple(
        OutputAlias((number,) if is_tuple else (), chosen[number], (), "may-alias")
        for number in sorted(chosen)
    )
    return replace(module, input_output_alias=aliases)


def written_over(module: Module, mutated: Sequence[int]) -> Module:
    """The module with an alias for each of the parameters whose new values are its last results.

    They stay as they are where running it may fail half-way: in what calls Python.
    """
    root = module.entry.root
    results = len(root.shape.elements) if isinstance(root.shape, TupleShape) else 1
    called = [i for c in called_computations(module) for i in instructions(c)]
    if any(i.op is CUSTOM_CALL or i.has_effect for i in called):
        return module
    places = [(n,) if isinstance(root.shape, TupleShape) else () for n in range(results)]
    taken = places[results - len(mutated) :]
    # Another argument that is given away gets none of these.
    others = [
        alias
        for alias in module.input_output_alias
        if alias.output_index not in taken and alias.operand not in mutated
    ]
    aliases = [
        OutputAlias(place, given, (), "may-alias")
        for place, given in zip(taken, mutated, strict=True)
    ]
    return kept_aliases(replace(module, input_output_alias=(*others, *aliases)))


def kept_aliases(module: Module) -> Module:
    """The module without the aliases whose parameter and result differ in shape."""
    entry = module.entry
    kept = tuple(
        alias
        for alias in module.input_output_alias
        if part_of(entry.root.shape, alias.output_index)
        == part_of(entry.parameters[alias.operand].shape, alias.operand_index)
    )
    return replace(module, input_output_alias=kept)


def _near(
    results: Sequence[Instruction], donated: Collection[Instruction]
) -> list[set[Instruction]]:
    """For each result the donated parameters that it is computed from element by element."""
    reached: dict[Instruction, set[Instruction]] = {}
    for instruction in in_order(results):
        own = reached[instruction] = {instruction} if instruction in donated else set()
        if instruction.op.is_elementwise:
            for operand in instruction.operands:
                if operand.array_shape.dimensions == instruction.array_shape.dimensions:
                    own |= reached[operand]
    return [reached[result] for result in results]
