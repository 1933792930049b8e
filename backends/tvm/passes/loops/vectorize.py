"""Loop vectorisation: a loop with independent iterations becomes one iteration over vectors.

    vectorize_loops(graph, context)

    for j in range(n): b[i, j] += a[:, i] @ b[:, j]         b[i, :] += a[:, i] @ b

The body is batched over the counter, as `vmap` batches a function. An array that iterations write
to must be written along one dimension at the counter's index; reads of it must be at the same
index, or of elements that no earlier iteration has written (`dependence`). Sums, minima and maxima
over the iterations become reductions, which may be reordered. If the trip count is unknown, the
most possible iterations are computed, and the others masked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from tracejit.affine import Affine
from tracejit.backends.tvm.analysis.contiguous_access import IterationBatch, RefusedError
from tracejit.backends.tvm.analysis.induction import CountedLoop, counted_loop
from tracejit.backends.tvm.analysis.monoids import is_sum
from tracejit.backends.tvm.ir.graph import Graph
from tracejit.backends.tvm.ir.limits import Limits
from tracejit.backends.tvm.passes.canonicalize.canonicalize import canonicalize
from tracejit.backends.tvm.passes.loops.dependence import OwnSlices
from tracejit.backends.tvm.passes.loops.hoist_contractions import hoist_contractions
from tracejit.backends.tvm.passes.loops.if_conversion import convert_cheap_if
from tracejit.backends.tvm.passes.loops.scalar_promotion import promote_scalars
from tracejit.backends.tvm.passes.manager import Context
from tracejit.batching.batch import Batched, applied, uniform
from tracejit.errors import UnsupportedError
from tracejit.graph import Computation, Instruction
from tracejit.ops import elementwise as binary
from tracejit.ops.comparison import ge, lt
from tracejit.ops.computations import identity_value, scalar_computation
from tracejit.ops.constants import constant, iota, tuple_
from tracejit.ops.control import CONDITIONAL, WHILE
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.layout import broadcast_in_dim, dynamic_slice, full, reshape
from tracejit.ops.reduction import reduce
from tracejit.shapes import ElementType, Shape
from tracejit.trace.affine_bounds import least
from tracejit.traversal import in_order, rebuild, substitute, transform, user_counts


def vectorize_loops(graph: Graph, context: Context) -> Graph:
    """An equal graph, up to the order of sums, with loops vectorised where possible.

    Branches that cost less than a jump are converted to selects as well. The passes of the list
    "loops" run over each loop, or over its body, by name.
    """
    return graph.with_roots(_Loops(graph.parameters, context).visited(graph.roots))


class _Loops:
    """Vectorises the loops of one computation, with its ``parameters``."""

    def __init__(self, parameters: Sequence[Instruction], context: Context) -> None:
        self._parameters = parameters
        self._context = context

    def visited(self, roots: Sequence[Instruction]) -> list[Instruction]:
        """The roots with all loops in them processed."""
        if not any(instruction.op in (CONDITIONAL, WHILE) for instruction in in_order(roots)):
            return list(roots)
        return transform(roots, self._visit)

    def _visit(
        self, instruction: Instruction, operands: tuple[Instruction, ...]
    ) -> Instruction | None:
        if instruction.op not in (CONDITIONAL, WHILE):
            return None
        if instruction.has_effect:
            made = self._with_computations(instruction, operands)
            return None if made is instruction else made
        if instruction.op is CONDITIONAL:
            made = self._with_computations(instruction, operands)
            return convert_cheap_if(made, operands) or made
        names = ("condition", "body")
        roots = [canonicalize([instruction.attributes[name].root]) for name in names]
        simple = _with_roots(instruction, operands, roots)
        loop = counted_loop(simple, operands)
        if loop is None:
            return self._with_computations(simple, operands)
        promoted = self._over_loop("scalar-promotion", simple)
        if promoted is not simple:
            shorter = max(
                (i for i in in_order([promoted]) if i.op is WHILE), key=lambda i: i.serial
            )
            made = self._visit(shorter, shorter.operands) or shorter
            # A loop that stays is faster with its array in memory. Loops with others inside are
            # not looked at twice, which would double with each level.
            if _has_loop_inside(simple) or not _has_loop_since(made, shorter):
                return substitute([promoted], {shorter: made})[0]
        inside = _Loops(loop.body.parameters, self._context)
        with loop.known():
            inner = inside.visited([loop.body.root])
            chosen = inside.over_body("if-conversion", inner)
        bodies = (inside.over_body("predicate-reductions", body) for body in (chosen, inner))
        batched, simple = (
            _with_roots(simple, operands, [roots[0], canonicalize(body)]) for body in bodies
        )
        vectors = self._over_loop("vectorize", batched)
        if vectors is not batched:
            return vectors
        return self._over_loop("hoist-contractions", simple)

    def _over_loop(self, name: str, loop: Instruction) -> Instruction:
        (made,) = self.over_body(name, [loop])
        return made

    def over_body(self, name: str, roots: Sequence[Instruction]) -> list[Instruction]:
        """The roots after the pass of that name."""
        return self._context.run_one("loops", name, Graph(self._parameters, roots)).roots

    def _with_computations(
        self, instruction: Instruction, operands: tuple[Instruction, ...]
    ) -> Instruction:
        """A loop or branch with the loops inside its computations processed."""
        called = instruction.computations
        old = [[c.root, *c.effects] for c in called]
        new = [
            _Loops(c.parameters, self._context).visited(roots)
            for c, roots in zip(called, old, strict=True)
        ]
        if old == new and operands == instruction.operands:
            return instruction
        return _with_roots(instruction, operands, new)


Loop = Callable[[CountedLoop, Instruction, Limits], Instruction | None]


def over_loop(rewrite: Loop) -> Callable[[Graph, Context], Graph]:
    """A pass's ``run`` over a graph whose root is one loop, if it is a counted one."""

    @functools.wraps(rewrite)
    def run(graph: Graph, context: Context) -> Graph:
        (loop,) = graph.outputs
        found = counted_loop(loop, loop.operands)
        made = None if found is None else rewrite(found, loop, context.limits)
        return graph if made is None else graph.with_roots([made])

    return run


def with_promoted_scalars(
    loop: CountedLoop, instruction: Instruction, limits: Limits
) -> Instruction | None:
    """The loop's final state, with elements that all iterations write promoted to scalars."""
    held = promote_scalars(loop, instruction)
    return None if held is None else tuple_(held[1])


def as_vectors(loop: CountedLoop, instruction: Instruction, limits: Limits) -> Instruction | None:
    """The final state of a loop, vectorised; None if its iterations are not independent."""
    for lanes in _lanes(loop, limits):
        with suppress(RefusedError, UnsupportedError):
            return _Steps(loop, lanes, limits).results()
    return None


def with_hoisted_contractions(
    loop: CountedLoop, instruction: Instruction, limits: Limits
) -> Instruction | None:
    """The loop, with products that do not depend on earlier iterations hoisted."""
    for lanes in _lanes(loop, limits):
        return hoist_contractions(loop, instruction, lanes, limits)
    return None


def _with_roots(
    instruction: Instruction,
    operands: tuple[Instruction, ...],
    roots: Sequence[Sequence[Instruction]],
) -> Instruction:
    """A loop or branch whose computations have other roots, each followed by its effects."""
    made = iter(roots)

    def with_root(computation: Computation) -> Computation:
        root, *effects = next(made)
        return Computation(computation.name, computation.parameters, root, tuple(effects))

    attributes = {
        name: with_root(value)
        if isinstance(value, Computation)
        else tuple(map(with_root, value))
        if isinstance(value, tuple) and value and isinstance(value[0], Computation)
        else value
        for name, value in instruction.attributes.items()
    }
    op, shape = instruction.op, instruction.shape
    return Instruction(op, operands, shape, attributes, instruction.source)


def _lanes(loop: CountedLoop, limits: Limits) -> Iterator[IterationBatch]:
    """Batches of all iterations; none for few iterations, or if the trip count has no bound.

    If the first iteration is unknown, a lane is identified by its counter or by its distance to
    it.
    """
    room = loop.high - loop.low
    if not room.terms:
        if limits.batches(room.constant + 1):
            yield IterationBatch(loop.low, room.constant + 1)
        return
    low, below = least(loop.low), least(-loop.high)
    if low is not None and below is not None and limits.batches(1 - below - low):
        yield _masked(loop, Affine(low), 1 - below - low)
    below = least(-room)
    if loop.low.terms and below is not None and limits.batches(1 - below):
        yield _masked(loop, loop.low, 1 - below)


def _masked(loop: CountedLoop, first: Affine, count: int) -> IterationBatch:
    numbers = iota(Shape(ElementType.S32, (count,)), 0)

    def beside(value: Affine) -> Instruction:
        number = convert_element_type(loop.outside(value - first), ElementType.S32)
        return broadcast_in_dim(number, (count,), ())

    # In this form, masks become bounds where products are compiled.
    steps = ge(numbers, beside(loop.low)), lt(numbers, beside(loop.high + 1))
    return IterationBatch(first, count, binary.and_(*steps))


class _Steps:
    """All iterations of a loop, batched."""

    def __init__(self, loop: CountedLoop, lanes: IterationBatch, limits: Limits) -> None:
        root = loop.body.root
        self._loop, self._lanes, self._limits = loop, lanes, limits
        self._order = [i for i in in_order([root]) if i is not root]
        if any(_has_loop(instruction) for instruction in self._order):
            # Masked iterations might never end.
            raise RefusedError("a loop inside")
        shapes = [shape for i in self._order for shape in i.element_shapes]
        if any(isinstance(shape, Shape) and shape.is_dynamic for shape in shapes):
            raise RefusedError("arrays of unknown size")
        self._uses = user_counts([root])
        self._own = OwnSlices(loop, lanes, in_order([root]))
        self._sums = {
            number: found
            for number in range(len(loop.init))
            if number != loop.counter and (found := self._sum(number)) is not None
        }
        self._values: dict[Instruction, Batched] = {}

    def results(self) -> Instruction:
        """The tuple of the final state."""
        loop = self._loop
        for number, part in enumerate(loop.parts):
            self._values[part] = self._given(number)
        skipped = {loop.body.parameters[0], *(loop.made[number] for number in self._sums)}
        for instruction in self._order:
            if instruction in self._values or instruction in skipped:
                continue
            operands = [self._values[operand] for operand in instruction.operands]
            made = self._own.made(instruction, operands)
            if made is None:
                made = applied(instruction, operands, self._lanes.count)
            if made.is_batched:
                self._require_small(instruction)
            self._values[instruction] = made
        return tuple_([self._final(number) for number in range(len(loop.init))])

    def _require_small(self, instruction: Instruction) -> None:
        for shape in instruction.element_shapes:
            count = self._lanes.count
            if not isinstance(shape, Shape) or not self._limits.batches(count, shape.size):
                raise RefusedError("the steps are large enough")

    def _given(self, number: int) -> Batched:
        """A state element at the beginning of every iteration."""
        loop, count = self._loop, self._lanes.count
        part = loop.parts[number]
        if number == loop.counter:
            numbers = iota(Shape(ElementType.S64, (count,)), 0)
            first = broadcast_in_dim(loop.outside(self._lanes.first), (count,), ())
            return Batched(binary.add(numbers, first), True)
        kept = loop.is_kept(number) or number in self._own.arrays
        if not kept and self._uses.get(part, 0) and number not in self._sums:
            raise RefusedError("a step needs what the one before it has made")
        return Batched(loop.init[number], uniform(part.shape, False))

    def _sum(self, number: int) -> Instruction | None:
        """The term that each iteration adds to a state element, or compares with it."""
        part, made = self._loop.parts[number], self._loop.made[number]
        if not is_sum(made.op) or self._uses.get(part) != 1 or self._uses[made] != 1:
            return None
        left, right = made.operands
        if made.array_shape.element_type is ElementType.PRED and made.op is binary.ADD:
            return None
        if left is part:
            return right
        return left if right is part and made.op is not binary.SUB else None

    def _final(self, number: int) -> Instruction:
        """A state element after the last iteration."""
        loop, init = self._loop, self._loop.init[number]
        if number == loop.counter:
            return self._counter()
        if loop.is_kept(number):
            return init
        if number in self._own.arrays:
            return self._values[loop.made[number]].value
        if number in self._sums:
            return self._total(number)
        return self._last(self._values[loop.made[number]], init)

    def _counter(self) -> Instruction:
        """The counter after the last iteration; its initial value if there is none."""
        loop = self._loop
        if loop.step > 0:
            end = loop.outside(loop.high + 1)
            return end if self._lanes.mask is None else binary.max(end, loop.outside(loop.low))
        end = loop.outside(loop.low - 1)
        return end if self._lanes.mask is None else binary.min(end, loop.outside(loop.high))

    def _total(self, number: int) -> Instruction:
        made, init = self._loop.made[number], self._loop.init[number]
        element_type = made.array_shape.element_type
        name = "add" if made.op is binary.SUB else made.op.function
        value = self._values[self._sums[number]].stretched(self._lanes.count)
        # -0.0, not 0.0, is the identity of float addition.
        nothing = -0.0 if element_type.is_inexact else 0
        identity = nothing if name == "add" else identity_value(name, element_type)
        if self._lanes.mask is not None:
            mask = broadcast_in_dim(self._lanes.mask, value.array_shape.dimensions, (0,))
            value = binary.select(mask, value, full(value.array_shape, identity))
        start = constant(identity, element_type)
        total = reduce(value, start, scalar_computation(name, element_type), [0])
        return rebuild(made, [init, total])

    def _last(self, value: Batched, init: Instruction) -> Instruction:
        """The last iteration's value, from values that do not depend on earlier iterations."""
        loop, mask, is_up = self._loop, self._lanes.mask, self._loop.step > 0
        if not isinstance(value.value.shape, Shape):
            raise RefusedError("a tuple")
        made = value.value
        if value.is_batched:
            sizes = made.array_shape.dimensions
            end = loop.high if is_up else loop.low
            place = loop.outside(end - self._lanes.first)
            zero = constant(0, ElementType.S64)
            starts = [place, *[zero] * (len(sizes) - 1)]
            made = reshape(dynamic_slice(made, starts, (1, *sizes[1:])), sizes[1:])
        if mask is None:
            return made
        some = ge(loop.outside(loop.high), loop.outside(loop.low))
        return binary.select(broadcast_in_dim(some, init.array_shape.dimensions, ()), made, init)


def _has_loop(instruction: Instruction) -> bool:
    """Whether an instruction is a loop of unknown length, or calls a computation with one."""
    return instruction.op is WHILE or any(
        _has_loop(inner)
        for computation in instruction.computations
        for inner in in_order([computation.root])
    )


def _has_loop_inside(loop: Instruction) -> bool:
    return any(map(_has_loop, in_order([loop.attributes["body"].root])))


def _has_loop_since(made: Instruction, first: Instruction) -> bool:
    """Whether anything that a value needs is a loop no older than ``first``."""
    return any(i.op is WHILE and i.serial >= first.serial for i in in_order([made]))
