"""Checks that a graph keeps the rules of its own ops.

verify(module)        returns the module, or raises VerificationError
"""

from __future__ import annotations

from tracejit.errors import TracejitError, VerificationError
from tracejit.graph import INTERNAL_OPS, OPS, Computation, Instruction, Module
from tracejit.ops.base import operand_counts
from tracejit.ops.constants import PARAMETER
from tracejit.ops.groups import mode_of, require_devices
from tracejit.shapes import part_of
from tracejit.traversal import called_computations, instructions


def verify(module: Module) -> Module:
    """``module``, after every rule has been checked over all of its computations.

    Each op is of the op table, or internal to a compiler, and has exactly its attributes; its shape
    rule, run again, accepts the operands, the attributes and the called computations and gives the
    shape the instruction has; operands come before their users; a computation's parameters are
    numbered from 0 in order, and no instruction of it belongs to another computation's parameters;
    ops between devices name those that the module has, where it has several; what is kept for its
    effect has one; a result takes over the memory of one parameter of its own shape. Raises
    `VerificationError` that names the instruction and the user's line.
    """
    for computation in called_computations(module):
        _verify_parameters(computation)
        for effect in computation.effects:
            if not effect.has_effect:
                raise _error(effect, computation, "is among its effects but has none")
        for instruction in instructions(computation):
            _verify_instruction(instruction, computation)
            if "channel_id" in instruction.attributes:
                _verify_devices(instruction, computation, module)
    _verify_aliases(module)
    return module


def _verify_aliases(module: Module) -> None:
    entry = module.entry
    taken: set[tuple[str, int, tuple[int, ...]]] = set()
    for alias in module.input_output_alias:
        ends = {("result", 0, alias.output_index), ("", alias.operand, alias.operand_index)}
        if taken & ends:
            raise _error(entry.root, entry, f"has an alias twice: {alias}")
        taken |= ends
        if not 0 <= alias.operand < len(entry.parameters):
            raise _error(entry.root, entry, f"has an alias of no parameter: {alias}")
        parameter = part_of(entry.parameters[alias.operand].shape, alias.operand_index)
        result = part_of(entry.root.shape, alias.output_index)
        if parameter is None or parameter != result:
            raise _error(entry.root, entry, f"has an alias of another shape: {alias}")


def _verify_parameters(computation: Computation) -> None:
    for number, parameter in enumerate(computation.parameters):
        if parameter.op is not PARAMETER:
            raise _error(parameter, computation, f"stands in place of parameter {number}")
        found = parameter.attributes["parameter_number"]
        if found != number:
            raise _error(parameter, computation, f"is parameter {number} but numbered {found}")


def _verify_instruction(instruction: Instruction, computation: Computation) -> None:
    op = instruction.op
    if op is not OPS.get(op.name) and op is not INTERNAL_OPS.get(op.name):
        raise _error(instruction, computation, "is of an op that the op table lacks")
    names = [attribute.name for attribute in op.attributes]
    if sorted(instruction.attributes) != sorted(names):
        raise _error(
            instruction,
            computation,
            f"has the attributes {sorted(instruction.attributes)}, not {sorted(names)}",
        )
    if op is PARAMETER and instruction not in computation.parameters:
        raise _error(instruction, computation, "is not among the computation's parameters")
    fewest, most = operand_counts(op)
    if not fewest <= len(instruction.operands) <= most:
        count = len(instruction.operands)
        raise _error(instruction, computation, f"does not take {count} operands")
    for operand in instruction.operands:
        if operand.serial >= instruction.serial:
            raise _error(instruction, computation, f"was made before its operand {operand}")
    try:
        shape = op.shape_rule(*[o.shape for o in instruction.operands], **instruction.attributes)
    except TracejitError as error:
        raise _error(instruction, computation, f"breaks its rule: {error.message}") from error
    if shape != instruction.shape:
        raise _error(instruction, computation, f"should have the shape {shape}")


def _verify_devices(instruction: Instruction, computation: Computation, module: Module) -> None:
    groups = {"replica_groups", "source_target_pairs"} & instruction.attributes.keys()
    counts = module.replica_count, module.num_partitions
    # As in XLA, a number of 1 may mean that nothing was said.
    if not groups or mode_of(instruction).count(*counts) == 1:
        return
    try:
        require_devices(instruction, *counts)
    except TracejitError as error:
        raise _error(instruction, computation, f"breaks its rule: {error.message}") from error


def _error(instruction: Instruction, computation: Computation, fault: str) -> VerificationError:
    return VerificationError(
        f"verify: {instruction} in computation {computation.name} {fault}", instruction.source
    )
