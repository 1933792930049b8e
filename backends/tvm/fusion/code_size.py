"""Bounds the code size of kernels: linear in the size of the graph.

    too_large(kernel, memory)     instructions that have to be materialised; mostly none

An instruction without memory is emitted once for each index at which a kernel needs it: a chain `x
= f(x[i:], x[j:])` doubles with every link. Contractions keep no intermediate values in registers:
their epilogue is one expression, a tree, in which each use of a value is expanded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tracejit.backends.tvm.analysis.duplication import growth
from tracejit.backends.tvm.analysis.element_rules import Value, indexed
from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.codegen.loop_nest import Space
from tracejit.backends.tvm.fusion.kernel import Fusion, backward_slice, read_by
from tracejit.backends.tvm.ir.affine import Index
from tracejit.backends.tvm.ir.internal_ops import BOUNDED_DOT, INDEX_VECTOR
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT, TUPLE
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.convolution import CONV_GENERAL_DILATED

# The most elements that a kernel may compute for one of its own: per instruction, and in addition.
FOR_EACH, MORE = 4, 64
# The most ops in the expression of a contraction's epilogue.
LARGEST_EPILOGUE = 512

_AS_EXPRESSIONS = (DOT_GENERAL, BOUNDED_DOT, CONV_GENERAL_DILATED)

_NEVER_STORED = (CONSTANT, INDEX_VECTOR)

IsEnd = Callable[[Instruction], bool]


def too_large(kernel: Fusion, memory: set[Instruction]) -> list[Instruction]:
    """The instructions to materialise, so that the code of ``kernel`` is bounded."""

    def is_end(instruction: Instruction) -> bool:
        is_known = instruction in memory and instruction not in kernel.results
        return is_known or instruction in kernel.anchors

    roots = [*_arrays(o for i in (*kernel.results, *kernel.anchors) for o in read_by(i))]
    roots = [root for root in roots if not is_end(root)]
    if kernel.anchor is not None and kernel.anchor.op in _AS_EXPRESSIONS:
        if _tree_size(kernel.results, is_end) > LARGEST_EPILOGUE:
            return [*kernel.anchors]
    estimate = _Estimate(is_end)
    if sum(map(estimate.of, roots)) <= MORE:
        return []
    limit = MORE + FOR_EACH * len(_members(roots, is_end))
    if sum(map(estimate.of, roots)) <= limit or _is_within(roots, is_end, limit):
        return []
    cutting = _Estimate(is_end, limit)
    for root in roots:
        cutting.of(root)
    return list(cutting.cuts)


def _arrays(values: Iterable[Instruction]) -> Iterator[Instruction]:
    """The arrays of values, whose tuples are Tuple instructions or have memory."""
    for value in values:
        if value.op is TUPLE:
            yield from _arrays(value.operands)
        else:
            yield value


def _members(roots: Iterable[Instruction], is_end: IsEnd) -> list[Instruction]:
    """All instructions that are computed for ``roots``, operands before users."""
    found = {i for i in backward_slice(roots, is_end) if not is_end(i)}
    return sorted(found, key=lambda i: i.serial)


def _tree_size(roots: Sequence[Instruction], is_end: IsEnd) -> int:
    """The number of ops in the expressions of ``roots``, with each use expanded."""
    sizes: dict[Instruction, int] = {}
    for instruction in _members(roots, is_end):
        below = sum(sizes.get(o, 1) for o in instruction.operands)
        sizes[instruction] = 1 + below * growth(instruction)
    return sum(sizes.get(root, 1) for root in roots)


class _Estimate:
    """An upper bound of the elements that are computed for one element of an instruction.

    Elements at the same index are computed once. Beyond ``limit``, if given, operands at other
    indices are cut off, to be materialised.
    """

    def __init__(self, is_end: IsEnd, limit: int = 0) -> None:
        self._is_end = is_end
        self._limit = limit
        self._known: dict[Instruction, int] = {}
        self.cuts: dict[Instruction, None] = {}

    def of(self, root: Instruction) -> int:
        """The bound for ``root``; operands are visited iteratively, without recursion."""
        stack = [root]
        while stack:
            instruction = stack[-1]
            if instruction in self._known:
                stack.pop()
                continue
            own, elsewhere = self._at_one_index(instruction)
            waiting = [o for o in elsewhere if o not in self._known]
            stack.extend(waiting)
            if not waiting:
                self._known[instruction] = self._counted(own, elsewhere)
                stack.pop()
        return self._known[root]

    def _counted(self, own: int, elsewhere: Sequence[Instruction]) -> int:
        total = own + sum(1 if o in self.cuts else self._known[o] for o in elsewhere)
        if not self._limit:
            return total
        shares: dict[Instruction, int] = {}
        for each in elsewhere:
            if each.op not in _NEVER_STORED:
                shares[each] = shares.get(each, 0) + self._known[each] - 1
        for each in sorted(shares, key=lambda o: shares[o], reverse=True):
            if total <= self._limit or not shares[each]:
                break
            if each not in self.cuts:
                self.cuts[each] = None
                total -= shares[each]
        return total

    def _at_one_index(self, root: Instruction) -> tuple[int, list[Instruction]]:
        """The number of instructions at the index of ``root``, and the operands at
        other indices.
        """
        seen: set[Instruction] = set()
        elsewhere: list[Instruction] = []
        stack = [root]
        while stack:
            instruction = stack.pop()
            if instruction in seen:
                continue
            seen.add(instruction)
            if self._is_end(instruction):
                continue
            if indexed.get(instruction.op) is None:
                stack.extend(read_by(instruction))
            else:
                elsewhere.extend(o for o in instruction.operands if not self._is_end(o))
        return len(seen), elsewhere


class _OverError(Exception):
    """A kernel computes more elements than allowed."""


class _Counting(Accesses):
    """Counts the elements that are computed, and stops beyond ``limit``."""

    def __init__(self, is_input: IsEnd, limit: int) -> None:
        super().__init__(is_input)
        self._left = limit

    def compute(self, instruction: Instruction, indices: Sequence[Index]) -> Value:
        self._left -= 1
        if self._left < 0:
            raise _OverError
        return super().compute(instruction, indices)


def _is_within(roots: Iterable[Instruction], is_end: IsEnd, limit: int) -> bool:
    """Whether an element of each root takes at most ``limit`` elements, at different indices."""
    counting = _Counting(is_end, limit)
    try:
        for root in roots:
            counting.result(root, Space(root.array_shape.dimensions).indices)
    except _OverError:
        return False
    return True
