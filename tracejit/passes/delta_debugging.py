"""Delta debugging of graphs: the smallest part of a module for which a test still holds.

reduced(module, is_interesting)          a smaller module with is_interesting(it)

Runs by hand, on modules that show a fault. Before: a program of a thousand instructions whose
compiled code is wrong. After: the three of them that are enough, with parameters for what they
took from the others.

Source: Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input (ddmin).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from operator import itemgetter

from tracejit.errors import TracejitError
from tracejit.graph import Computation, Instruction, Module
from tracejit.hlo import parse, to_text
from tracejit.ops.constants import CONSTANT, PARAMETER, parameter, tuple_
from tracejit.ops.control import CALL, CONDITIONAL, WHILE
from tracejit.shapes import Shape, TupleShape
from tracejit.traversal import inline_with_effects, instructions, transform, unreached
from tracejit.verifier import verify

Test = Callable[[Module], bool]
Stand = Callable[[Instruction, Instruction], None]


def reduced(module: Module, is_interesting: Test, stands_for: Stand | None = None) -> Module:
    """A part of ``module`` that is interesting, and no smaller part was found that is.

    Instructions are left out, their values becoming parameters; calls, loops and branches are
    replaced by what they call; instructions by an operand; sizes of dimensions by smaller ones.
    ``stands_for`` is told of each new parameter and of the instruction whose value it has.
    """
    judge = _Judge(is_interesting, stands_for or (lambda new, old: None))
    while True:
        before = _size(module)
        module = _with_fewer_instructions(module, judge)
        for candidates in (_inlined, _bypassed, _with_smaller_sizes):
            module = _first_that_holds(module, candidates, judge)
        if _size(module) >= before:
            return module


def of_entry(
    module: Module, kept: Collection[Instruction], stands_for: Stand = lambda new, old: None
) -> Module:
    """The module that computes ``kept`` instructions of the entry, all others being parameters.

    It returns every kept instruction that no other one reads. Single numbers stay constants.
    """
    body = instructions(module.entry)
    new: dict[Instruction, Instruction] = {}
    parameters: list[Instruction] = []

    def value_of(operand: Instruction) -> Instruction:
        if operand not in new:
            if _is_number(operand):
                new[operand] = operand
            else:
                new[operand] = parameter(len(parameters), operand.shape)
                parameters.append(new[operand])
                stands_for(new[operand], operand)
        return new[operand]

    for instruction in body:
        if instruction in kept:
            operands = tuple([value_of(o) for o in instruction.operands])
            new[instruction] = Instruction(
                instruction.op, operands, instruction.shape, instruction.attributes,
                instruction.source,
            )  # fmt: skip
    read = {operand for i in body if i in kept for operand in i.operands}
    results = [new[i] for i in body if i in kept and i not in read]
    root = results[0] if len(results) == 1 else tuple_(results)
    effects = unreached(root, [new[i] for i in body if i in kept and i.has_effect])
    entry = Computation(module.entry.name, tuple(parameters), root, effects)
    return Module(module.name, entry, module.replica_count, module.num_partitions)


def cuttable(module: Module) -> list[Instruction]:
    """The instructions of the entry that can be left out, in order."""
    body = instructions(module.entry)
    return [i for i in body if i.op is not PARAMETER and not _is_number(i)]


class _Judge:
    """Asks of each module once; one that breaks a rule of the graph is not interesting."""

    def __init__(self, is_interesting: Test, stands_for: Stand) -> None:
        self._ask = is_interesting
        self.stands_for = stands_for
        self._known: dict[str, bool] = {}

    def __call__(self, module: Module) -> bool:
        try:
            text = to_text(verify(module))
        except TracejitError:
            return False
        if text not in self._known:
            self._known[text] = self._ask(module)
        return self._known[text]


def _with_fewer_instructions(module: Module, judge: _Judge) -> Module:
    def part(kept: Sequence[Instruction]) -> Module:
        return of_entry(module, {*kept}, judge.stands_for)

    kept = minimal(cuttable(module), lambda each: bool(each) and judge(part(each)))
    return made if judge(made := part(kept)) else module


def minimal(
    items: Sequence[Instruction], holds: Callable[[Sequence[Instruction]], bool]
) -> list[Instruction]:
    """A part of ``items`` that holds, and no longer does without any one of them (ddmin)."""
    kept, parts = list(items), 2
    while len(kept) > 1:
        size = -(-len(kept) // parts)
        chunks = [kept[n : n + size] for n in range(0, len(kept), size)]
        alone = next((c for c in chunks if holds(c)), None) if parts == 2 or size > 1 else None
        if alone is not None:
            kept, parts = list(alone), 2
            continue
        rest = next(
            (left for chunk in chunks if holds(left := [i for i in kept if i not in {*chunk}])),
            None,
        )
        if rest is not None:
            kept, parts = rest, max(parts - 1, 2)
        elif size == 1:
            break
        else:
            parts = min(2 * parts, len(kept))
    return kept


def _first_that_holds(
    module: Module, candidates: Callable[[Module, Stand], Iterator[Module]], judge: _Judge
) -> Module:
    """``module`` after every candidate that is interesting, each made from the one before."""
    tried = 0
    while True:
        found = None
        for number, made in enumerate(candidates(module, judge.stands_for)):
            if number >= tried and judge(made):
                found, tried = made, number
                break
        if found is None:
            return module
        module = found


def _inlined(module: Module, stands_for: Stand) -> Iterator[Module]:
    """A call, a loop or a branch replaced by a computation that it calls."""
    for instruction in instructions(module.entry):
        if instruction.op in (CALL, WHILE):
            called = instruction.attributes["to_apply" if instruction.op is CALL else "body"]
            yield from _replaced(
                module,
                instruction,
                lambda own, c=called: inline_with_effects(c, own)[0],
                stands_for,
            )
        elif instruction.op is CONDITIONAL:
            for number, branch in enumerate(instruction.computations):
                yield from _replaced(
                    module,
                    instruction,
                    lambda own, c=branch, n=number: inline_with_effects(c, [own[n + 1]])[0],
                    stands_for,
                )


def _bypassed(module: Module, stands_for: Stand) -> Iterator[Module]:
    """An instruction replaced by an operand of its shape."""
    for instruction in cuttable(module):
        for number, operand in enumerate(instruction.operands):
            if operand.shape == instruction.shape:
                yield from _replaced(module, instruction, itemgetter(number), stands_for)


def _replaced(
    module: Module,
    replaced: Instruction,
    by: Callable[..., Instruction],
    stands_for: Stand,
) -> Iterator[Module]:
    entry = module.entry
    made = transform(
        [entry.root, *entry.effects],
        lambda i, operands: by(operands) if i is replaced else None,
    )
    root, *effects = made
    if root.shape != entry.root.shape:
        return
    used = {i for i in instructions(Computation("", (), root, tuple(effects)))}
    parameters = [p for p in entry.parameters if p in used]
    renumbered = dict(
        zip(parameters, (parameter(n, p.shape) for n, p in enumerate(parameters)), strict=True)
    )
    for old, new in renumbered.items():
        stands_for(new, old)
    root, *effects = transform([root, *effects], lambda *_: None, renumbered)
    changed = Computation(entry.name, tuple(renumbered.values()), root, unreached(root, effects))
    yield Module(module.name, changed, module.replica_count, module.num_partitions)


_NUMBER = re.compile(r"(?<![\w.%-])(\d+)(?![\w.])")


def _with_smaller_sizes(module: Module, _: Stand) -> Iterator[Module]:
    """Every number that is the size of a dimension made smaller, wherever it is written.

    A text that is no module then is left out.
    """
    text = to_text(module)
    sizes = sorted(
        {
            size
            for instruction in instructions(module.entry)
            for shape in instruction.element_shapes
            if isinstance(shape, Shape)
            for size in shape.dimensions
            if size > 1
        },
        reverse=True,
    )
    for size in sizes:
        for smaller in dict.fromkeys((1, 2, 3, size // 2)):
            if smaller >= size or smaller < 1:
                continue
            words = _NUMBER.split(text)
            changed = [str(smaller) if word == str(size) else word for word in words]
            try:
                made = verify(parse("".join(changed)))
            except TracejitError:
                continue
            yield made


def _size(module: Module) -> tuple[int, int]:
    """The numbers that shall become smaller: instructions that compute, and elements."""
    body = instructions(module.entry)
    elements = sum(
        s.size for i in body for s in i.element_shapes if isinstance(s, Shape) and s.size
    )
    return len(body), elements


def _is_number(instruction: Instruction) -> bool:
    if instruction.op is not CONSTANT or isinstance(instruction.shape, TupleShape):
        return False
    return instruction.array_shape.rank == 0
