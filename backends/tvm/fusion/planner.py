"""The fusion planner: which instructions are materialised, and which are computed where used.

    plan = fuse(outputs)       kernels in order; each has results, and a anchor unless pointwise

A kernel's results share one iteration space. An instruction without memory is computed inside
every kernel that needs it, which is worth it when it is cheap or needed in one kernel only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tracejit.backends.tvm.analysis.cost_model import (
    AMPLIFIED_COST,
    COLUMNS_COST,
    EPILOGUE_COST,
    EPILOGUE_SIZE,
    NESTED,
    REPEATED_COST,
    ROWS_COST,
    SHARED_COST,
    SIZE_LIMIT,
    computed_again,
    cost_of,
    longest_chain,
    size_of,
)
from tracejit.backends.tvm.analysis.duplication import growth
from tracejit.backends.tvm.analysis.element_rules import indexed, pointwise
from tracejit.backends.tvm.analysis.in_place_safety import reads_elsewhere
from tracejit.backends.tvm.analysis.sort_keys import counts_places
from tracejit.backends.tvm.codegen.host_calls import is_library_call
from tracejit.backends.tvm.cpu.schedule.scan.cumulative import CUT_FROM
from tracejit.backends.tvm.fusion.code_size import too_large
from tracejit.backends.tvm.fusion.horizontal import (
    MOST_BESIDE,
    are_scalars,
    fuse_horizontally,
    one_pass,
    size_limit,
)
from tracejit.backends.tvm.fusion.kernel import Kernel, Plan, gathered, is_anchor, is_given, made_of
from tracejit.backends.tvm.fusion.row_fusion import LEAST_COLUMNS
from tracejit.backends.tvm.fusion.snapshot_reads import snapshot_reads
from tracejit.backends.tvm.ir.internal_ops import (
    BOUNDED_DOT,
    FIRST_SORTED,
    FOURIER,
    FOURIER_HALVES,
    INDEX_VECTOR,
)
from tracejit.backends.tvm.ir.reshapes import base_buffer
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, TUPLE
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.control import CONDITIONAL, OPTIMIZATION_BARRIER, WHILE
from tracejit.ops.convolution import CONV_GENERAL_DILATED
from tracejit.ops.custom import CUSTOM_CALL
from tracejit.ops.element_types import CONVERT_ELEMENT_TYPE
from tracejit.ops.indexing import GATHER, SCATTER
from tracejit.ops.layout import (
    BROADCAST_IN_DIM,
    CONCATENATE,
    DYNAMIC_UPDATE_SLICE,
    PAD,
    RESHAPE,
)
from tracejit.ops.linalg import CHOLESKY, TRIANGULAR_SOLVE
from tracejit.ops.reduction import REDUCE, SORT, TOP_K
from tracejit.ops.windows import REDUCE_WINDOW, SELECT_AND_SCATTER, running_axis
from tracejit.shapes import Shape, TupleShape
from tracejit.traversal import in_order, users_of

# Ops whose kernels read their operands many times, or as they lie.
_BY_MEMORY = (
    SORT,
    FIRST_SORTED,
    TOP_K,
    CUSTOM_CALL,
    CHOLESKY,
    TRIANGULAR_SOLVE,
    FOURIER,
    FOURIER_HALVES,
)
# Updates of at most such a part of an array that are made of other elements of it are stored first.
SMALL_UPDATE = 4
# At most such a part of an array is computed where it is gathered.
FEW_GATHERED = 3
# How many instructions are asked whether one needs another, and which of how many writers do.
NEAR = 256
FEW_WRITERS = 4
EPILOGUE_ANCHORS = frozenset(
    {REDUCE, REDUCE_WINDOW, DOT_GENERAL, BOUNDED_DOT, CONV_GENERAL_DILATED, CONCATENATE, PAD}
)
# What is made of joined arrays is written once for each, which are at most so many.
MOST_JOINED = 4


def fuse(outputs: Sequence[Instruction], effects: Sequence[Instruction] = ()) -> Plan:
    """The plan for everything that ``outputs`` and ``effects``, instructions with one, need.

    Parameters and non-scalar constants have memory already. Tuple-shaped anchors have memory for
    each GetTupleElement of them.
    """
    stored: set[Instruction] = set()
    while True:
        fusion = _Fusion(outputs, effects, stored)
        kernels = fusion.kernels()
        large = {base_buffer(i) for k in kernels for i in too_large(k, fusion.memory)}
        if large <= fusion.memory:
            return fusion.plan(kernels)
        stored |= large


class _Fusion:
    """What has memory, among it all that is ``stored``, and which kernels make it."""

    def __init__(
        self,
        outputs: Sequence[Instruction],
        effects: Sequence[Instruction],
        stored: set[Instruction],
    ) -> None:
        self.outputs = [base_buffer(output) for output in outputs]
        self.order = in_order([*self.outputs, *effects])
        self.users = users_of(self.order)
        self.writers = _writers(self.order)
        self.memory = {i for i in self.order if is_given(i)}
        self.memory.update(self.outputs)
        self.memory.update(effects)
        self.memory.update(stored)
        self.memory.update(snapshot_reads(self.order, self.users, self.writers))
        self.size: dict[Instruction, int] = {}
        self.chain: dict[Instruction, int] = {}
        self.cost = self._accumulated()
        self.homes: dict[Instruction, frozenset[Instruction]] = {}
        self.anchors: dict[Instruction, list[Instruction]] = {}

    def _accumulated(self) -> dict[Instruction, int]:
        """The cost per element of computing each instruction from what has memory.

        Where more ops would come together than one kernel should hold, the chain is cut; so it
        is where a broadcast, or slices that lie over each other, would have them computed again and
        again.
        """
        inside: dict[Instruction, frozenset[Instruction]] = {}
        cost: dict[Instruction, int] = {}
        nested: dict[Instruction, int] = {}
        sizes: dict[Instruction, int] = {}
        costs: dict[Instruction, int] = {}
        for instruction in self.order:
            if instruction.op is BROADCAST_IN_DIM:
                (operand,) = instruction.operands
                if cost[operand] and _copies(instruction) * cost[operand] >= AMPLIFIED_COST:
                    self.memory.add(operand)
            members: set[Instruction] = set()
            if isinstance(instruction.shape, Shape) and not (
                is_given(instruction) or is_anchor(instruction)
            ):
                for operand in instruction.operands:
                    if operand not in self.memory:
                        members |= inside[operand]
                members.add(instruction)
            below = [o for o in instruction.operands if o in members]
            sizes[instruction] = size_of(instruction) if isinstance(instruction.shape, Shape) else 0
            costs[instruction] = cost_of(instruction)
            size = sum(map(sizes.__getitem__, members))
            chain = max((self.chain[o] for o in below), default=0) + (costs[instruction] > 0)
            nested[instruction] = max((nested[o] for o in below), default=0) + 1
            too_large = size > size_limit(instruction) or nested[instruction] > NESTED
            if too_large or (not are_scalars([instruction]) and chain > longest_chain(size)):
                self.memory.add(instruction)
            inside[instruction] = frozenset(members)
            cost[instruction] = sum(map(costs.__getitem__, members))
            again = computed_again(instruction, self.users[instruction])
            if again * cost[instruction] >= REPEATED_COST:
                self.memory.add(instruction)
            self.size[instruction], self.chain[instruction] = size, chain
        return cost

    def plan(self, kernels: Iterable[Kernel]) -> Plan:
        uses = {i: len(u) + (i in self.outputs) for i, u in self.users.items()}
        return Plan(fuse_horizontally(kernels, self.memory), self.memory, uses)

    def _place(self, instruction: Instruction) -> None:
        """Gives memory or a home to an instruction whose users are placed already."""
        made_whole = isinstance(instruction.shape, TupleShape) and instruction.op is not TUPLE
        if made_whole or gathered(instruction) or instruction.op is GET_TUPLE_ELEMENT:
            self.memory.add(instruction)
        homes: set[Instruction] = set()
        for user in self.users[instruction]:
            homes |= {user} if user in self.memory else self.homes[user]
        if instruction not in self.memory and self._needs_memory(instruction, homes):
            self.memory.add(instruction)
        self.homes[instruction] = frozenset(homes)

    def _needs_memory(self, instruction: Instruction, homes: set[Instruction]) -> bool:
        if instruction.op in (TUPLE, INDEX_VECTOR):
            return False
        if is_anchor(instruction):
            return not self._joins_epilogue(instruction, homes)
        if instruction.op is CONSTANT:
            return False
        if any(self._wants_memory(user, instruction) for user in self.users[instruction]):
            return True
        if are_scalars((instruction, *homes)):
            # They come together in one kernel, which holds what several of them need.
            return False
        return len(homes) > 1 and self.cost[instruction] >= SHARED_COST

    def _wants_memory(self, user: Instruction, operand: Instruction) -> bool:
        """Whether ``user`` would compute ``operand`` many times for each of its elements."""
        cost = self.cost[operand]
        if user.op in (SORT, FIRST_SORTED) and counts_places(user, operand):
            return False
        if user.op in _BY_MEMORY or is_library_call(user.op):
            return True
        if user.op is OPTIMIZATION_BARRIER:
            return cost > 0
        if user.op is DYNAMIC_UPDATE_SLICE and operand is user.operands[1]:
            if not self._is_made_before(user):
                return False
            if operand.op is RESHAPE and cost > 0:
                # What it reshapes lies in memory as the update does.
                self.memory.add(base_buffer(operand))
                return False
            return True
        if user.op is INDEX_VECTOR:
            return cost > EPILOGUE_COST
        if user.op is TUPLE:
            above = self.users[user]
            return any(u.op in (CUSTOM_CALL, TUPLE) and self._wants_memory(u, user) for u in above)
        if user.op is GATHER and operand is not user.operands[0] and _reads_starts_once(user):
            return False
        if user.op is GATHER and self._is_picked(user, operand):
            return False
        if user.op is GATHER and operand.op is RESHAPE and operand is user.operands[0]:
            # What it reshapes lies in memory as the operand would.
            self.memory.add(base_buffer(operand))
            return False
        if user.op in (GATHER, SELECT_AND_SCATTER):
            return cost > 0 or user.operands[0] is operand
        if user.op in (REDUCE, WHILE, CONDITIONAL) or not is_anchor(user):
            return False
        if user.op in (CONCATENATE, PAD) and operand.array_shape.rank:
            # Every part is computed while it is written to its place.
            return not self._fit_together(user)
        if user.op is SCATTER and _is_scattered(user, operand):
            return cost > SHARED_COST
        if user.op is REDUCE_WINDOW and _computes_on_its_way(user, cost):
            return cost == 0 and not _is_view(operand)
        is_product = user.op in (DOT_GENERAL, BOUNDED_DOT)
        if is_product and cost <= EPILOGUE_COST and _reads_once(user, operand):
            return self._grows_long(operand)
        return cost > 0 or not _is_view(operand)

    def _is_picked(self, gather: Instruction, operand: Instruction) -> bool:
        """Whether elements of ``operand`` are computed where they are gathered.

        They are where few of all are gathered, and nobody else wants them: computing neighbours
        takes less time, and so does gathering what is in memory.
        """
        alone = operand is gather.operands[0] and self.users[operand] == [gather]
        return alone and FEW_GATHERED * gather.array_shape.size <= operand.array_shape.size

    def _is_made_before(self, update: Instruction) -> bool:
        """Whether what an update writes has memory of its own."""
        value = update.operands[1]
        cost = self.cost[value]
        # To store it first costs less than to copy all that is not updated.
        small = SMALL_UPDATE * value.array_shape.size <= update.array_shape.size
        is_part = small and not self._is_stored(base_buffer(value))
        if (cost or is_part) and not self._is_made_in_time(update):
            return True
        if not reads_elsewhere(update, self._is_stored):
            return False
        return cost > 0 or small or not _is_view(value)

    def _fit_together(self, joined: Instruction) -> bool:
        """Whether one kernel can hold what computes all operands."""
        return sum(self.size[operand] for operand in joined.operands) <= SIZE_LIMIT

    def _grows_long(self, operand: Instruction) -> bool:
        """Whether one expression for all that computes ``operand`` would be a long one.

        Contractions hold nothing that they compute, neither of operands nor in their epilogue.
        """
        below = [i for i in made_of([operand], self.memory.__contains__) if i not in self.memory]
        return math.prod(growth(i) for i in below if pointwise.get(i.op)) > EPILOGUE_SIZE

    def _is_made_in_time(self, update: Instruction) -> bool:
        """Whether what an update writes may be computed as late as it is written.

        What it is made of must not be kept for it: all that is written over that comes later.
        """
        array = base_buffer(update.operands[0])
        for instruction in made_of([update.operands[1]], self._is_stored):
            if not self._is_stored(instruction) or base_buffer(instruction) is array:
                continue
            writers = self.writers.get(base_buffer(instruction), ())
            if len(writers) > FEW_WRITERS:
                return False
            if not all(self._is_after(writer, update) for writer in writers):
                return False
        return True

    def _is_after(self, late: Instruction, early: Instruction) -> bool:
        """Whether ``late`` is known to need ``early``; few instructions are asked."""
        stack = [late]
        seen: set[Instruction] = set()
        while stack and len(seen) < NEAR:
            instruction = stack.pop()
            if instruction is early:
                return True
            if instruction not in seen and instruction.serial > early.serial:
                seen.add(instruction)
                stack.extend(instruction.operands)
        return False

    def _is_stored(self, instruction: Instruction) -> bool:
        """Whether an instruction has memory or will have, if that is known yet."""
        return instruction in self.memory or is_anchor(instruction)

    def _joins_epilogue(self, instruction: Instruction, homes: set[Instruction]) -> bool:
        """Whether a anchor can stay in registers: one kernel, only pointwise ops to its result.

        Several can that are combined in one pass; what only pointwise ops come after is not needed
        by another.
        """
        if len(homes) != 1 or not isinstance(instruction.shape, Shape):
            return False
        (home,) = homes
        if self._is_joined_again(instruction):
            return True
        if is_anchor(home) or instruction.op not in EPILOGUE_ANCHORS:
            return False
        others = self.anchors.get(home, [])
        if len(others) == MOST_BESIDE or not all(one_pass(instruction, o) for o in others):
            return False
        if not self._pure_path(instruction, home):
            return False
        self.anchors[home] = [instruction, *others]
        return True

    def _is_joined_again(self, instruction: Instruction) -> bool:
        """Whether joined arrays are written to where one larger one is joined of them."""
        users = self.users[instruction]
        return (
            instruction.op is CONCATENATE
            and len(users) == 1
            and users[0].op is CONCATENATE
            and not gathered(users[0])
        )

    def _pure_path(self, instruction: Instruction, home: Instruction) -> bool:
        """Whether all ways from ``instruction`` to ``home`` keep every element in its place."""
        dimensions = instruction.array_shape.dimensions
        stack = list(self.users[instruction])
        seen: set[Instruction] = set()
        while stack:
            user = stack.pop()
            if user in seen:
                continue
            seen.add(user)
            if pointwise.get(user.op) is None or user.array_shape.dimensions != dimensions:
                return False
            if user is not home:
                stack.extend(self.users[user])
        if instruction.op is REDUCE:
            return True
        if instruction.op is REDUCE_WINDOW and _running(instruction) is None:
            return True
        if instruction.op is REDUCE_WINDOW:
            before = self.cost[instruction.operands[0]]
            return _computes_on_its_way(instruction, before + sum(map(cost_of, seen)))
        if instruction.op in (CONCATENATE, PAD):
            few = len(instruction.operands) <= MOST_JOINED
            return few and sum(map(cost_of, seen)) <= EPILOGUE_COST
        # Contractions compute their epilogue as one expression, anew for every use of a value.
        size = math.prod(map(growth, seen))
        return sum(map(cost_of, seen)) <= EPILOGUE_COST and size <= EPILOGUE_SIZE

    def kernels(self) -> list[Kernel]:
        """The kernels, one for each instruction that gets memory, in order."""
        for instruction in reversed(self.order):
            self._place(instruction)
        kernels: list[Kernel] = []
        for instruction in self.order:
            if instruction not in self.memory or is_given(instruction):
                continue
            if instruction.op is GET_TUPLE_ELEMENT:
                continue
            if is_anchor(instruction):
                kernels.append(Kernel([instruction], instruction))
            else:
                anchors = self.anchors.get(instruction, [])
                anchor, beside = next(iter(anchors), None), tuple(anchors[1:])
                size, chains = self.size[instruction], {instruction: self.chain[instruction]}
                kernels.append(Kernel([instruction], anchor, beside, size, chains))
        return kernels


def _writers(order: Iterable[Instruction]) -> dict[Instruction, list[Instruction]]:
    """What may work in the memory of an instruction's array, by instruction."""
    found: dict[Instruction, list[Instruction]] = {}
    for instruction in order:
        if instruction.op is DYNAMIC_UPDATE_SLICE:
            arrays = list(instruction.operands[:1])
        elif instruction.op in (SCATTER, WHILE, CONDITIONAL):
            arrays = list(instruction.operands)
        else:
            continue
        while arrays:
            array = base_buffer(arrays.pop())
            if array.op is TUPLE:
                arrays.extend(array.operands)
            else:
                found.setdefault(array, []).append(instruction)
    return found


def _copies(broadcast: Instruction) -> int:
    """How many elements a broadcast makes of each of its operand's."""
    operand = broadcast.operands[0].array_shape
    return broadcast.array_shape.size // max(operand.size, 1) - 1


def _reads_starts_once(gather: Instruction) -> bool:
    """Whether every start of a gather's slices is needed for one element alone."""
    attributes = gather.attributes
    is_single = len(attributes["start_index_map"]) == 1 or gather.operands[1].op is INDEX_VECTOR
    return is_single and math.prod(attributes["slice_sizes"]) == 1


def _running(window: Instruction) -> int | None:
    """The dimension along which a ReduceWindow of one array is cumulative, if it is."""
    sizes = window.operands[0].array_shape.dimensions
    is_single = isinstance(window.shape, Shape)
    return running_axis(window.attributes["window"], sizes) if is_single else None


def _computes_on_its_way(window: Instruction, cost: int) -> bool:
    """Whether a cumulative ReduceWindow computes what costs so much as it comes to an element.

    It comes to each once. Vectors of columns lose nothing by it, numbers of a row little, if they
    are made of one array; the parts of a long row would wait for each other longer.
    """
    sizes = window.operands[0].array_shape.dimensions
    axis = _running(window)
    if axis is None:
        return False
    columns = next((size for size in reversed(sizes[axis + 1 :]) if size > 1), 1)
    if columns >= LEAST_COLUMNS:
        return cost <= COLUMNS_COST
    operand = window.operands[0]
    if operand.op is CONVERT_ELEMENT_TYPE:
        (given,) = operand.operands
        if given.array_shape.element_type.is_integral:
            # Nothing waits for a conversion of integers, but for what is stored and read again.
            return True
    arrays = {o for o in operand.operands if o.op is not BROADCAST_IN_DIM}
    return cost <= ROWS_COST and sizes[axis] < CUT_FROM and len(arrays) <= 1


def _is_scattered(scatter: Instruction, operand: Instruction) -> bool:
    """Whether an operand is looked at as updates are: indices, or the updates themselves."""
    return operand not in scatter.operands[: len(scatter.operands) // 2]


def _reads_once(dot: Instruction, operand: Instruction) -> bool:
    """Whether a product needs each element of an operand for one sum alone: it is a vector's."""
    lhs, rhs, *bounds = dot.operands
    if operand in bounds:
        return True
    other, side = (rhs, "rhs") if operand is lhs else (lhs, "lhs")
    taken = (*dot.attributes[f"{side}_batch_dims"], *dot.attributes[f"{side}_contracting_dims"])
    sizes = other.array_shape.dimensions
    return lhs is not rhs and all(n == 1 for d, n in enumerate(sizes) if d not in taken)


def _is_view(instruction: Instruction) -> bool:
    """Whether an instruction only says where in memory an element lies."""
    return indexed.get(instruction.op) is not None and instruction.op is not GATHER
