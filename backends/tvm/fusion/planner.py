"""The fusion planner: decides which instructions are materialised, and forms kernels.

    plan = fuse(outputs, effects, limits)    kernels in order; pointwise ones have no anchor

A kernel's results share one iteration space. An instruction without memory is recomputed inside
every kernel that needs it, which pays if it is cheap or needed in one kernel only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tracejit.backends.tvm.analysis.cost_model import (
    NESTED,
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
from tracejit.backends.tvm.fusion.code_size import too_large
from tracejit.backends.tvm.fusion.horizontal import (
    MOST_BESIDE,
    are_scalars,
    fuse_horizontally,
    one_pass,
    size_limit,
)
from tracejit.backends.tvm.fusion.kernel import (
    Fusion,
    FusionPlan,
    backward_slice,
    is_anchor,
    is_given,
    packed_scalars,
)
from tracejit.backends.tvm.fusion.snapshot_reads import snapshot_reads
from tracejit.backends.tvm.ir.internal_ops import (
    BOUNDED_DOT,
    FIRST_SORTED,
    FOURIER,
    FOURIER_HALVES,
    INDEX_VECTOR,
)
from tracejit.backends.tvm.ir.limits import Limits
from tracejit.backends.tvm.ir.reshapes import base_buffer
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, TUPLE
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.control import CONDITIONAL, OPTIMIZATION_BARRIER, WHILE
from tracejit.ops.convolution import CONV_GENERAL_DILATED
from tracejit.ops.custom import CUSTOM_CALL
from tracejit.ops.element_types import CONVERT_ELEMENT_TYPE
from tracejit.ops.grouped import RAGGED_DOT
from tracejit.ops.indexing import GATHER, SCATTER
from tracejit.ops.layout import (
    BROADCAST_IN_DIM,
    CONCATENATE,
    DYNAMIC_UPDATE_SLICE,
    PAD,
    RESHAPE,
)
from tracejit.ops.linalg import CHOLESKY, TRIANGULAR_SOLVE
from tracejit.ops.random import RNG_GET_AND_UPDATE_STATE
from tracejit.ops.reduction import REDUCE, SORT, TOP_K
from tracejit.ops.spectra import FFT
from tracejit.ops.windows import REDUCE_WINDOW, SELECT_AND_SCATTER, running_axis
from tracejit.shapes import Shape, TupleShape
from tracejit.traversal import in_order, users_of

# Ops whose kernels read their operands repeatedly, or need them in memory.
_BY_MEMORY = (
    SORT,
    FIRST_SORTED,
    TOP_K,
    CUSTOM_CALL,
    CHOLESKY,
    TRIANGULAR_SOLVE,
    FFT,
    FOURIER,
    FOURIER_HALVES,
    RAGGED_DOT,
    RNG_GET_AND_UPDATE_STATE,
)
# Limits of the search for dependences: instructions visited, and writers checked.
NEAR = 256
FEW_WRITERS = 4
EPILOGUE_ANCHORS = frozenset(
    {REDUCE, REDUCE_WINDOW, DOT_GENERAL, BOUNDED_DOT, CONV_GENERAL_DILATED, CONCATENATE, PAD}
)
# Users of a concatenation are emitted once per operand; the most operands.
MOST_JOINED = 4


def fuse(
    outputs: Sequence[Instruction], effects: Sequence[Instruction], limits: Limits
) -> FusionPlan:
    """The plan for everything that ``outputs`` and ``effects``, instructions with side effects,
    need.

    Parameters and non-scalar constants have memory already. Tuple-shaped anchors have memory for
    each GetTupleElement of them.
    """
    stored: set[Instruction] = set()
    while True:
        fusion = _Fusion(outputs, effects, stored, limits)
        kernels = fusion.kernels()
        large = {base_buffer(i) for k in kernels for i in too_large(k, fusion.memory)}
        if large <= fusion.memory:
            return fusion.plan(kernels)
        stored |= large


class _Fusion:
    """The state of planning: instructions with memory, those already ``stored``, and kernels."""

    def __init__(
        self,
        outputs: Sequence[Instruction],
        effects: Sequence[Instruction],
        stored: set[Instruction],
        limits: Limits,
    ) -> None:
        self.limits = limits
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
        self.owners: dict[Instruction, frozenset[Instruction]] = {}
        self.anchors: dict[Instruction, list[Instruction]] = {}

    def _accumulated(self) -> dict[Instruction, int]:
        """The cost per element of computing each instruction from instructions with memory.

        A chain is cut where a kernel would have too many ops, and where a broadcast or overlapping
        slices would recompute it many times.
        """
        inside: dict[Instruction, frozenset[Instruction]] = {}
        cost: dict[Instruction, int] = {}
        nested: dict[Instruction, int] = {}
        sizes: dict[Instruction, int] = {}
        costs: dict[Instruction, int] = {}
        for instruction in self.order:
            if instruction.op is BROADCAST_IN_DIM:
                (operand,) = instruction.operands
                if (
                    cost[operand]
                    and _copies(instruction) * cost[operand] >= self.limits.amplified_cost
                ):
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
            if again * cost[instruction] >= self.limits.repeated_cost:
                self.memory.add(instruction)
            self.size[instruction], self.chain[instruction] = size, chain
        return cost

    def plan(self, kernels: Iterable[Fusion]) -> FusionPlan:
        uses = {i: len(u) + (i in self.outputs) for i, u in self.users.items()}
        return FusionPlan(fuse_horizontally(kernels, self.memory), self.memory, uses)

    def _place(self, instruction: Instruction) -> None:
        """Materialises an instruction or assigns it to the kernels of its users, which are done
        already.
        """
        made_whole = isinstance(instruction.shape, TupleShape) and instruction.op is not TUPLE
        if made_whole or packed_scalars(instruction) or instruction.op is GET_TUPLE_ELEMENT:
            self.memory.add(instruction)
        owners: set[Instruction] = set()
        for user in self.users[instruction]:
            owners |= {user} if user in self.memory else self.owners[user]
        if instruction not in self.memory and self._needs_memory(instruction, owners):
            self.memory.add(instruction)
        self.owners[instruction] = frozenset(owners)

    def _needs_memory(self, instruction: Instruction, owners: set[Instruction]) -> bool:
        if instruction.op in (TUPLE, INDEX_VECTOR):
            return False
        if is_anchor(instruction):
            return not self._joins_epilogue(instruction, owners)
        if instruction.op is CONSTANT:
            return False
        if any(self._wants_memory(user, instruction) for user in self.users[instruction]):
            return True
        if are_scalars((instruction, *owners)):
            # They are in one kernel, which computes common operands once.
            return False
        return len(owners) > 1 and self.cost[instruction] >= self.limits.shared_cost

    def _wants_memory(self, user: Instruction, operand: Instruction) -> bool:
        """Whether ``user`` would compute ``operand`` many times for each of its elements."""
        cost = self.cost[operand]
        if user.op in (SORT, FIRST_SORTED) and counts_places(user, operand):
            return False
        if user.op in _BY_MEMORY:
            return True
        if user.op is OPTIMIZATION_BARRIER:
            return cost > 0
        if user.op is DYNAMIC_UPDATE_SLICE and operand is user.operands[1]:
            if not self._is_made_before(user):
                return False
            if operand.op is RESHAPE and cost > 0:
                # The operand of the reshape has the memory layout of the update.
                self.memory.add(base_buffer(operand))
                return False
            return True
        if user.op is INDEX_VECTOR:
            return cost > self.limits.epilogue_cost
        if user.op is TUPLE:
            above = self.users[user]
            return any(u.op in (CUSTOM_CALL, TUPLE) and self._wants_memory(u, user) for u in above)
        if user.op is GATHER and operand is not user.operands[0] and _reads_starts_once(user):
            return False
        if user.op is GATHER and self._is_picked(user, operand):
            return False
        if user.op is GATHER and operand.op is RESHAPE and operand is user.operands[0]:
            # The operand of the reshape has the memory layout of the operand.
            self.memory.add(base_buffer(operand))
            return False
        if user.op in (GATHER, SELECT_AND_SCATTER):
            return cost > 0 or user.operands[0] is operand
        if user.op in (REDUCE, WHILE, CONDITIONAL) or not is_anchor(user):
            return False
        if user.op in (CONCATENATE, PAD) and operand.array_shape.rank:
            # Every operand is computed while it is written to its region.
            return not self._fit_together(user)
        if user.op is SCATTER and _is_scattered(user, operand):
            return cost > self.limits.shared_cost
        if user.op is REDUCE_WINDOW and _computes_on_its_way(user, cost, self.limits):
            return cost == 0 and not _is_view(operand)
        is_product = user.op in (DOT_GENERAL, BOUNDED_DOT)
        if is_product and cost <= self.limits.epilogue_cost and _reads_once(user, operand):
            return self._grows_long(operand)
        return cost > 0 or not _is_view(operand)

    def _is_picked(self, gather: Instruction, operand: Instruction) -> bool:
        """Whether elements of ``operand`` are computed where they are gathered.

        That pays if a small fraction is gathered, and there is no other user: otherwise neighbours
        are cheaper to compute together, and to gather from memory.
        """
        alone = operand is gather.operands[0] and self.users[operand] == [gather]
        return (
            alone
            and self.limits.gathered_part * gather.array_shape.size <= operand.array_shape.size
        )

    def _is_made_before(self, update: Instruction) -> bool:
        """Whether the values of an update are materialised before the update."""
        value = update.operands[1]
        cost = self.cost[value]
        # Storing them first costs less than copying the rest of the array.
        small = self.limits.updated_part * value.array_shape.size <= update.array_shape.size
        is_part = small and not self._is_stored(base_buffer(value))
        if (cost or is_part) and not self._is_made_in_time(update):
            return True
        if not reads_elsewhere(update, self._is_stored):
            return False
        return cost > 0 or small or not _is_view(value)

    def _fit_together(self, joined: Instruction) -> bool:
        """Whether one kernel can hold the computation of all operands."""
        return sum(self.size[operand] for operand in joined.operands) <= SIZE_LIMIT

    def _grows_long(self, operand: Instruction) -> bool:
        """Whether the expression of ``operand`` would be too large.

        Contractions keep no intermediate values, neither of operands nor in their epilogue.
        """
        below = [
            i for i in backward_slice([operand], self.memory.__contains__) if i not in self.memory
        ]
        return (
            math.prod(growth(i) for i in below if pointwise.get(i.op)) > self.limits.epilogue_size
        )

    def _is_made_in_time(self, update: Instruction) -> bool:
        """Whether the values of an update may be computed when the update is written.

        True if every buffer that they read is overwritten only by later kernels.
        """
        array = base_buffer(update.operands[0])
        for instruction in backward_slice([update.operands[1]], self._is_stored):
            if not self._is_stored(instruction) or base_buffer(instruction) is array:
                continue
            writers = self.writers.get(base_buffer(instruction), ())
            if len(writers) > FEW_WRITERS:
                return False
            if not all(self._is_after(writer, update) for writer in writers):
                return False
        return True

    def _is_after(self, late: Instruction, early: Instruction) -> bool:
        """Whether ``late`` depends on ``early``; the search is limited, and may miss it."""
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
        """Whether an instruction has, or will have, memory, as far as is known yet."""
        return instruction in self.memory or is_anchor(instruction)

    def _joins_epilogue(self, instruction: Instruction, owners: set[Instruction]) -> bool:
        """Whether an anchor can stay in registers: one kernel, with only pointwise ops to its
        result.

        Several siblings in one pass can, if none needs the result of another's epilogue.
        """
        if len(owners) != 1 or not isinstance(instruction.shape, Shape):
            return False
        (owner,) = owners
        if self._is_joined_again(instruction):
            return True
        if is_anchor(owner) or instruction.op not in EPILOGUE_ANCHORS:
            return False
        others = self.anchors.get(owner, [])
        if len(others) == MOST_BESIDE or not all(one_pass(instruction, o) for o in others):
            return False
        if not self._pure_path(instruction, owner):
            return False
        self.anchors[owner] = [instruction, *others]
        return True

    def _is_joined_again(self, instruction: Instruction) -> bool:
        """Whether a concatenation is an operand of a larger one, and is written there directly."""
        users = self.users[instruction]
        return (
            instruction.op is CONCATENATE
            and len(users) == 1
            and users[0].op is CONCATENATE
            and not packed_scalars(users[0])
        )

    def _pure_path(self, instruction: Instruction, owner: Instruction) -> bool:
        """Whether all paths from ``instruction`` to ``owner`` are pointwise."""
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
            if user is not owner:
                stack.extend(self.users[user])
        if instruction.op is REDUCE:
            return True
        if instruction.op is REDUCE_WINDOW and _running(instruction) is None:
            return True
        if instruction.op is REDUCE_WINDOW:
            before = self.cost[instruction.operands[0]]
            cost = before + sum(map(cost_of, seen))
            return _computes_on_its_way(instruction, cost, self.limits)
        if instruction.op in (CONCATENATE, PAD):
            few = len(instruction.operands) <= MOST_JOINED
            return few and sum(map(cost_of, seen)) <= self.limits.epilogue_cost
        # The epilogue of a contraction is one expression, expanded for every use of a value.
        size = math.prod(map(growth, seen))
        return (
            sum(map(cost_of, seen)) <= self.limits.epilogue_cost
            and size <= self.limits.epilogue_size
        )

    def kernels(self) -> list[Fusion]:
        """The kernels, one for each instruction that is materialised, in order."""
        for instruction in reversed(self.order):
            self._place(instruction)
        kernels: list[Fusion] = []
        for instruction in self.order:
            if instruction not in self.memory or is_given(instruction):
                continue
            if instruction.op is GET_TUPLE_ELEMENT:
                continue
            if is_anchor(instruction):
                kernels.append(Fusion([instruction], instruction))
            else:
                anchors = self.anchors.get(instruction, [])
                anchor, siblings = next(iter(anchors), None), tuple(anchors[1:])
                size, chains = self.size[instruction], {instruction: self.chain[instruction]}
                kernels.append(Fusion([instruction], anchor, siblings, size, chains))
        return kernels


def _writers(order: Iterable[Instruction]) -> dict[Instruction, list[Instruction]]:
    """For each array, the instructions that may write to its buffer."""
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
    """The number of copies of each operand element in a broadcast."""
    operand = broadcast.operands[0].array_shape
    return broadcast.array_shape.size // max(operand.size, 1) - 1


def _reads_starts_once(gather: Instruction) -> bool:
    """Whether every start index of a gather is used for one element only."""
    attributes = gather.attributes
    is_single = len(attributes["start_index_map"]) == 1 or gather.operands[1].op is INDEX_VECTOR
    return is_single and math.prod(attributes["slice_sizes"]) == 1


def _running(window: Instruction) -> int | None:
    """The dimension along which a ReduceWindow of one array is cumulative, if it is."""
    sizes = window.operands[0].array_shape.dimensions
    is_single = isinstance(window.shape, Shape)
    return running_axis(window.attributes["window"], sizes) if is_single else None


def _computes_on_its_way(window: Instruction, cost: int, limits: Limits) -> bool:
    """Whether a cumulative ReduceWindow computes an operand of this cost during the scan.

    Each element is computed once. Vectors of columns lose nothing by it, scalars of a row little
    if they depend on one array; the parts of a long row would add to the latency.
    """
    sizes = window.operands[0].array_shape.dimensions
    axis = _running(window)
    if axis is None:
        return False
    columns = next((size for size in reversed(sizes[axis + 1 :]) if size > 1), 1)
    if limits.are_columns(columns):
        return cost <= limits.columns_cost
    operand = window.operands[0]
    if operand.op is CONVERT_ELEMENT_TYPE:
        (given,) = operand.operands
        if given.array_shape.element_type.is_integral:
            # A conversion of integers adds no latency, but a store and a load do.
            return True
    arrays = {o for o in operand.operands if o.op is not BROADCAST_IN_DIM}
    return cost <= limits.rows_cost and sizes[axis] < limits.cut_cumulative and len(arrays) <= 1


def _is_scattered(scatter: Instruction, operand: Instruction) -> bool:
    """Whether an operand holds the indices or the updates of a scatter."""
    return operand not in scatter.operands[: len(scatter.operands) // 2]


def _reads_once(dot: Instruction, operand: Instruction) -> bool:
    """Whether a product reads each element of an operand for a single sum: the other
    is a vector.
    """
    lhs, rhs, *bounds = dot.operands
    if operand in bounds:
        return True
    other, side = (rhs, "rhs") if operand is lhs else (lhs, "lhs")
    taken = (*dot.attributes[f"{side}_batch_dims"], *dot.attributes[f"{side}_contracting_dims"])
    sizes = other.array_shape.dimensions
    return lhs is not rhs and all(n == 1 for d, n in enumerate(sizes) if d not in taken)


def _is_view(instruction: Instruction) -> bool:
    """Whether an instruction only changes the index of elements in memory."""
    return indexed.get(instruction.op) is not None and instruction.op is not GATHER
