"""Walks over graphs: order, reachability, substitution. All iterative, so depth is no limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tracejit.graph import Computation, Instruction, Module


def in_order(roots: Iterable[Instruction]) -> list[Instruction]:
    """Everything the roots need, operands before users, in the order of creation."""
    seen: dict[int, Instruction] = {}
    stack = list(roots)
    while stack:
        instruction = stack.pop()
        if instruction.serial in seen:
            continue
        seen[instruction.serial] = instruction
        stack.extend(instruction.operands)
    return [seen[serial] for serial in sorted(seen)]


def instructions(computation: Computation) -> list[Instruction]:
    """All parameters (used or not) and what root and effects reach, in order of creation."""
    return in_order((*computation.parameters, *computation.effects, computation.root))


def users_of(order: Iterable[Instruction]) -> dict[Instruction, list[Instruction]]:
    """Those in ``order`` that use each instruction, once for each operand that it is."""
    users: dict[Instruction, list[Instruction]] = {}
    for instruction in order:
        users.setdefault(instruction, [])
        for operand in instruction.operands:
            users.setdefault(operand, []).append(instruction)
    return users


def effects_of(computation: Computation) -> list[Instruction]:
    """Every instruction with a side effect, whether the root needs it or not, in order."""
    if not computation.has_effect:
        return []
    return [i for i in instructions(computation) if i.has_effect]


def unreached(root: Instruction, effects: Iterable[Instruction]) -> tuple[Instruction, ...]:
    """The ``effects`` that a computation with this root must name, in order of creation.

    Left out are those that the root needs, and those that another one needs.
    """
    kept: list[Instruction] = []
    reached: set[Instruction] = set()
    latest_first = sorted(set(effects), key=lambda effect: -effect.serial)
    for start in (root, *latest_first) if latest_first else ():
        if start in reached:
            continue
        if start is not root:
            kept.append(start)
        stack = [start]
        while stack:
            instruction = stack.pop()
            if instruction not in reached:
                reached.add(instruction)
                stack.extend(instruction.operands)
    return tuple(reversed(kept))


def called_computations(module: Module) -> list[Computation]:
    """Every computation of a module once, callees before callers, the entry last."""
    order: list[Computation] = []
    done: set[int] = set()
    stack: list[tuple[Computation, bool]] = [(module.entry, False)]
    while stack:
        computation, expanded = stack.pop()
        if id(computation) in done:
            continue
        if expanded:
            done.add(id(computation))
            order.append(computation)
            continue
        stack.append((computation, True))
        for instruction in reversed(instructions(computation)):
            if instruction.computations:
                stack.extend((c, False) for c in reversed(instruction.computations))
    return order


def instruction_count(module: Module) -> int:
    """How many instructions a module has, those of each computation once."""
    return sum(len(instructions(computation)) for computation in called_computations(module))


def user_counts(roots: Sequence[Instruction]) -> dict[Instruction, int]:
    """How often each instruction is an operand, or a root, below ``roots``."""
    counts: dict[Instruction, int] = {i: 0 for i in in_order(roots)}
    for instruction in list(counts):
        for operand in instruction.operands:
            counts[operand] += 1
    for root in roots:
        counts[root] += 1
    return counts


def rebuild(instruction: Instruction, operands: Sequence[Instruction]) -> Instruction:
    """The same op on other operands of the same shapes, keeping the user's line."""
    return Instruction(
        instruction.op,
        tuple(operands),
        instruction.shape,
        instruction.attributes,
        instruction.source,
    )


def _rebuilt(instruction: Instruction, operands: Sequence[Instruction]) -> Instruction:
    """The same op on other operands; of a Tuple, an element is taken directly."""
    if instruction.op.opcode == "get-tuple-element" and operands[0].op.opcode == "tuple":
        index: int = instruction.attributes["index"]
        return operands[0].operands[index]
    return rebuild(instruction, operands)


def substitute(
    roots: Sequence[Instruction], replacements: Mapping[Instruction, Instruction]
) -> list[Instruction]:
    """``roots`` with every key of ``replacements`` (of equal shape) exchanged for its value.

    Instructions that depend on no key are shared, not copied.
    """
    return transform(roots, lambda instruction, operands: None, replacements)


def transform(
    roots: Sequence[Instruction],
    visit: Callable[[Instruction, tuple[Instruction, ...]], Instruction | None],
    replacements: Mapping[Instruction, Instruction] | None = None,
) -> list[Instruction]:
    """``roots`` rebuilt bottom-up through ``visit(instruction, new_operands)``.

    ``visit`` returns the replacement, or None to keep the op (rebuilt only if an operand changed,
    or if it has a side effect and an earlier one was rebuilt, so that their order stays).
    """
    new: dict[Instruction, Instruction] = dict(replacements or {})
    moved = False
    for instruction in in_order(roots):
        if instruction in new:
            continue
        operands = tuple([new[o] for o in instruction.operands])
        made = visit(instruction, operands)
        if made is None:
            changed = any(a is not b for a, b in zip(operands, instruction.operands, strict=True))
            changed |= moved and instruction.has_effect
            made = _rebuilt(instruction, operands) if changed else instruction
        moved |= instruction.has_effect and made is not instruction
        new[instruction] = made
    return [new[root] for root in roots]


def inline(computation: Computation, arguments: Sequence[Instruction]) -> Instruction:
    """The root of ``computation`` with ``arguments`` in place of its parameters.

    Effects that the root does not need are left behind; see `inline_with_effects`.
    """
    return inline_with_effects(computation, arguments)[0]


def inline_with_effects(
    computation: Computation, arguments: Sequence[Instruction]
) -> tuple[Instruction, tuple[Instruction, ...]]:
    """Root and effects of ``computation`` with ``arguments`` in place of its parameters."""
    assert len(arguments) == len(computation.parameters)
    replacements = dict(zip(computation.parameters, arguments, strict=True))
    root, *effects = substitute([computation.root, *computation.effects], replacements)
    return root, tuple(effects)
