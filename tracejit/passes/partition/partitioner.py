"""The partitioner: what each partition runs of a module whose arrays are annotated.

    p0 = f32[8,4] parameter(0), sharding={devices=[2,1]<=[2]}       p0 = f32[4,4] parameter(0)
    r = f32[] reduce(p0, zero), dimensions={0,1}, to_apply=add      s = f32[] reduce(p0, zero), …
                                                                    r = f32[] all-reduce(s), …

Shardings are carried from operands to results; where an annotation says another one, the array is
resharded. An op is done in parts along the dimensions for which `labels` has a rule; an op without
a rule is done by every partition, where its operands are whole, and refused by name otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tracejit.errors import ArgumentError, AttributeValueError, TracejitError, UnsupportedError
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.base import make
from tracejit.ops.comparison import eq, lt
from tracejit.ops.computations import identity_value, monoid
from tracejit.ops.constants import (
    GET_TUPLE_ELEMENT,
    PARAMETER,
    TUPLE,
    constant,
    elements_of,
    iota,
    parameter,
    tuple_,
)
from tracejit.ops.control import CALL, CONDITIONAL, OPTIMIZATION_BARRIER, WHILE
from tracejit.ops.custom import CUSTOM_CALL
from tracejit.ops.dumps import FUSION
from tracejit.ops.elementwise import add, select
from tracejit.ops.indexing import SCATTER
from tracejit.ops.layout import broadcast
from tracejit.ops.replicas import all_reduce
from tracejit.passes.host_collectives import COLLECTIVES
from tracejit.passes.partition import tiling as tilings
from tracejit.passes.partition.labels import Labelling, labelling, local_attributes, pairs
from tracejit.passes.partition.resharding import Resharding
from tracejit.passes.partition.tiling import Split, Tiling, count
from tracejit.shapes import AnyShape, ElementType, Shape, TupleShape
from tracejit.traversal import in_order, unreached

_ENTER, _LEAVE = "SPMDFullToShardShape", "SPMDShardToFullShape"


class _Array(NamedTuple):
    """An array of ``shape``; each partition has its ``local`` part, by hand where not tiled."""

    local: Instruction
    tiling: Tiling | None
    shape: AnyShape


_Value = _Array | tuple[Any, ...]


@dataclass(frozen=True)
class Partitioned:
    """The ``module`` that each partition runs, on parts of the whole module's arguments.

    ``parameters`` and ``results`` say which parts: the tilings of all arrays, with the whole
    arrays' shapes, in order.
    """

    module: Module
    parameters: tuple[tuple[Shape, Tiling], ...]
    results: tuple[tuple[Shape, Tiling], ...]

    def spread(self, arrays: Sequence[Any]) -> list[list[np.ndarray]]:
        """Every partition's arguments. Raises `ArgumentError` for another number or shape."""
        if len(arrays) != len(self.parameters):
            raise ArgumentError(
                f"compiled for {len(self.parameters)} arguments, called with {len(arrays)}"
            )
        given = [np.asarray(array) for array in arrays]
        for number, (array, (shape, _)) in enumerate(zip(given, self.parameters, strict=True)):
            if array.shape != shape.dimensions or array.dtype != shape.dtype:
                raise ArgumentError(
                    f"argument {number} must be {shape}; it is {array.dtype}{list(array.shape)}"
                )
        return [
            [
                _padded(array[tilings.part(tiling, array.shape, number)], _local(shape, tiling))
                for array, (shape, tiling) in zip(given, self.parameters, strict=True)
            ]
            for number in range(self.module.num_partitions)
        ]

    def assembled(self, parts: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
        """The whole results, of every partition's."""
        found = []
        for position, (shape, tiling) in enumerate(self.results):
            made = np.empty(shape.dimensions, shape.dtype)
            for number in reversed(range(len(parts))):
                at = tilings.part(tiling, shape.dimensions, number)
                within = tuple(slice(0, each.stop - each.start) for each in at)
                made[at] = parts[number][position][within]
            found.append(made)
        return found


def _padded(array: np.ndarray, shape: Shape) -> np.ndarray:
    """A contiguous array of this shape, with zeros behind what is given."""
    missing = [(0, n - m) for n, m in zip(shape.dimensions, array.shape, strict=True)]
    return np.pad(array, missing) if any(map(sum, missing)) else np.ascontiguousarray(array)


def is_annotated(module: Module) -> bool:
    """Whether shardings say how the module runs on several partitions."""
    entry = module.entry
    reached = in_order([*entry.parameters, entry.root, *entry.effects])
    return module.num_partitions > 1 and any(i.sharding for i in reached)


def partition(module: Module) -> Partitioned:
    """What each partition runs.

    Raises `UnsupportedError` for an op that has no rule and whose operands are split, for effects,
    replicas and tuples as parameters, and `AttributeValueError` for a sharding that does not go
    with its array.
    """
    entry = module.entry
    if module.replica_count != 1:
        raise UnsupportedError(
            f"partition: {module.name} has {module.replica_count} replicas besides partitions"
        )
    if entry.effects:
        raise _refused(entry.effects[0], "it has an effect")
    work = _Partitioning(module.num_partitions)
    parameters = [work.parameter(p) for p in entry.parameters]
    made = work.computation(entry, parameters)
    results = [work.tiled(entry.root, array) for array in _leaves(made)]
    locals_ = [array.local for array in results]
    root = tuple_(locals_) if isinstance(entry.root.shape, TupleShape) else locals_[0]
    if isinstance(entry.root.shape, TupleShape) and any(
        isinstance(e, TupleShape) for e in entry.root.shape.elements
    ):
        raise _refused(entry.root, "it has tuples inside of a tuple")
    order = in_order([*[p.local for p in parameters], root])
    effects = [i for i in order if i.has_effect]
    computation = Computation(
        entry.name, tuple(p.local for p in parameters), root, unreached(root, effects)
    )
    return Partitioned(
        replace(module, entry=computation, input_output_alias=()),
        tuple(_place(array) for array in parameters),
        tuple(_place(array) for array in results),
    )


def _place(array: _Array) -> tuple[Shape, Tiling]:
    assert array.tiling is not None
    assert isinstance(array.shape, Shape)
    return array.shape, array.tiling


def _leaves(value: _Value) -> list[_Array]:
    if isinstance(value, _Array):
        return [value]
    return [leaf for element in value for leaf in _leaves(element)]


def _refused(instruction: Instruction, why: str) -> UnsupportedError:
    return UnsupportedError(
        f"{instruction.op.function}: the partitioner cannot split it: {why}", instruction.source
    )


class _Partitioning:
    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self._resharding = Resharding(partitions)
        self._is_by_hand = False

    # --- Shardings ----------------------------------------------------------------------------

    def _tiling(self, instruction: Instruction, text: str, shape: AnyShape) -> Tiling | None:
        """What an annotation says of one array."""
        rank = shape.rank if isinstance(shape, Shape) else 0
        try:
            found = tilings.tiling(text, rank, self.partitions)
        except TracejitError as error:
            message = f"{instruction.op.function}: {error.message}"
            raise type(error)(message, instruction.source) from error
        return found

    def _annotations(self, instruction: Instruction, count: int) -> list[str]:
        """The shardings of an instruction's arrays; "" for those that have none."""
        given = tilings.texts(instruction.sharding)
        if given is None:
            return [instruction.sharding] * count
        if len(given) != count:
            raise AttributeValueError(
                f"{instruction.op.function}: its sharding has {len(given)} elements for "
                f"{count} arrays",
                instruction.source,
            )
        return given

    def _wanted(self, instruction: Instruction, value: _Value) -> list[Tiling | None]:
        """The tilings that an instruction's annotation gives its arrays, where it does."""
        arrays = _leaves(value)
        if not instruction.sharding:
            return [None] * len(arrays)
        texts = self._annotations(instruction, len(arrays))
        return [
            self._tiling(instruction, text, array.shape) if text and array.tiling else None
            for text, array in zip(texts, arrays, strict=True)
        ]

    def parameter(self, instruction: Instruction) -> _Array:
        shape = instruction.shape
        if not isinstance(shape, Shape):
            raise _refused(instruction, f"it is {shape}")
        tiling = self._tiling(instruction, instruction.sharding or "replicated", shape)
        if tiling is None:
            raise _refused(instruction, "a parameter cannot be manual")
        local = _local(shape, tiling)
        attributes = {**instruction.attributes, "shape": local}
        made = Instruction(PARAMETER, (), local, attributes, instruction.source)
        return _Array(made, tiling, shape)

    def _whole(self, array: _Array) -> Tiling:
        rank = array.shape.rank if isinstance(array.shape, Shape) else 0
        return tilings.whole(rank, self.partitions)

    def tiled(self, instruction: Instruction, array: _Array) -> _Array:
        """The array, which must not be by hand."""
        if array.tiling is None:
            raise _refused(instruction, "a manual value is a result")
        return array

    def _moved(self, array: _Array, wanted: Tiling) -> _Array:
        assert array.tiling is not None
        if array.tiling == wanted:
            return array
        assert isinstance(array.shape, Shape)
        sizes = array.shape.dimensions
        local = self._resharding.moved(array.local, array.tiling, wanted, sizes)
        return _Array(local, wanted, array.shape)

    # --- Computations -------------------------------------------------------------------------

    def computation(self, computation: Computation, arguments: Sequence[_Value]) -> _Value:
        if computation.effects:
            raise _refused(computation.effects[0], "it has an effect")
        before = self._is_by_hand
        self._is_by_hand |= any(a.tiling is None for each in arguments for a in _leaves(each))
        found: dict[Instruction, _Value] = dict(zip(computation.parameters, arguments, strict=True))
        for instruction in in_order([computation.root]):
            if instruction not in found:
                operands = [found[operand] for operand in instruction.operands]
                made = self._instruction(instruction, operands)
                found[instruction] = self._as(made, self._wanted(instruction, made))
        self._is_by_hand = before
        return found[computation.root]

    def _instruction(self, instruction: Instruction, operands: list[_Value]) -> _Value:
        op = instruction.op
        if op is TUPLE:
            return tuple(operands)
        if op is GET_TUPLE_ELEMENT:
            (given,) = operands
            assert not isinstance(given, _Array)
            element: _Value = given[instruction.attributes["index"]]
            return element
        if op in (CALL, FUSION):
            (called,) = instruction.computations
            return self.computation(called, operands)
        if op is OPTIMIZATION_BARRIER:
            return operands[0]
        if op is CUSTOM_CALL:
            edge = self._edge(instruction, operands)
            if edge is not None:
                return edge
        arrays = [leaf for operand in operands for leaf in _leaves(operand)]
        is_of_devices = op in COLLECTIVES and self._is_by_hand
        if any(a.tiling is None for a in arrays) or _is_manual(instruction) or is_of_devices:
            return self._by_hand(instruction, operands)
        if op is WHILE:
            return self._loop(instruction, operands[0])
        if op is CONDITIONAL:
            return self._branches(instruction, operands)
        if op in COLLECTIVES or instruction.has_effect:
            raise _refused(
                instruction,
                "what it does depends on the partition that does it; a module that is partitioned "
                "already has no shardings",
            )
        labels = labelling(instruction)
        if labels is not None:
            return self._in_parts(instruction, labels, arrays)
        if any(array.tiling != self._whole(array) for array in arrays):
            raise _refused(
                instruction, "there is no rule for it; annotate its operands {replicated}"
            )
        return self._everywhere(instruction, operands)

    def _edge(self, instruction: Instruction, operands: list[_Value]) -> _Value | None:
        """An edge of a region that is partitioned by hand."""
        target = instruction.attributes["custom_call_target"]
        if target not in (_ENTER, _LEAVE):
            return None
        (array,) = operands
        assert isinstance(array, _Array)
        given, made = array.local.array_shape, instruction.shape
        assert isinstance(made, Shape)
        if target == _ENTER:
            # Along axes that are not manual every partition has the whole.
            assert isinstance(array.shape, Shape)
            if array.tiling is None:
                raise _refused(instruction, "its operand is manual already")
            pairs_ = zip(array.shape.dimensions, made.dimensions, array.tiling, strict=True)
            whole = (0,) * self.partitions
            inner = tuple(whole if size == part else split for size, part, split in pairs_)
            array = self._moved(array, inner)
            if array.local.shape != made:
                raise _refused(instruction, f"a part is {array.local.shape}, not {made}")
            return _Array(array.local, None, made)
        tiling = self._tiling(instruction, instruction.sharding, made)
        if tiling is None:
            raise _refused(instruction, "its result is manual")
        whole = (0,) * self.partitions
        pairs_ = zip(made.dimensions, given.dimensions, tiling, strict=True)
        outer = tuple(whole if size == part else split for size, part, split in pairs_)
        if given != _local(made, outer):
            raise _refused(instruction, f"parts of {given} do not make {made}")
        return _Array(array.local, outer, made)

    # --- Loops and branches -------------------------------------------------------------------

    def _loop(self, instruction: Instruction, init: _Value) -> _Value:
        """A loop over parts: the state lies as it is annotated, else as it comes, else as it goes.

        What every partition has whole before the loop, and the body makes in parts, is in parts.
        """
        body, condition = (instruction.attributes[name] for name in ("body", "condition"))
        annotated = self._wanted(instruction, init)
        tilings_ = [w or a.tiling for w, a in zip(annotated, _leaves(init), strict=True)]
        while True:
            begin = self._as(init, tilings_)
            given, inside = self._parameter_like(begin)
            made = self.computation(body, [inside])
            split = [self.tiled(body.root, array).tiling for array in _leaves(made)]
            later = [
                new if wished is None and old == self._whole(array) else old
                for wished, old, new, array in zip(
                    annotated, tilings_, split, _leaves(init), strict=True
                )
            ]
            if later == tilings_:
                break
            tilings_ = later
        root = _joined(self._as(made, tilings_))
        state, tested = self._parameter_like(begin)
        goes_on = self._as(self.computation(condition, [tested]), [()])
        loop = make(
            WHILE,
            _joined(begin),
            condition=Computation(condition.name, (state,), _joined(goes_on)),
            body=Computation(body.name, (given,), root),
        )
        return _like(begin, _sourced(loop, instruction))

    def _branches(self, instruction: Instruction, operands: list[_Value]) -> _Value:
        """Branches on parts; what they make lies as it is annotated, else as in the first one."""
        selector = self._as(operands[0], [()])
        inside = [self._parameter_like(operand) for operand in operands[1:]]
        made = [
            self.computation(branch, [argument])
            for branch, (_, argument) in zip(instruction.computations, inside, strict=True)
        ]
        annotated = self._wanted(instruction, made[0])
        tilings_ = [
            wished or self.tiled(instruction, array).tiling
            for wished, array in zip(annotated, _leaves(made[0]), strict=True)
        ]
        placed = [self._as(value, tilings_) for value in made]
        branches = [
            Computation(branch.name, (given,), _joined(value))
            for branch, (given, _), value in zip(
                instruction.computations, inside, placed, strict=True
            )
        ]
        named = ("true_computation", "false_computation")
        if instruction.attributes["branch_computations"]:
            attributes: dict[str, Any] = {"branch_computations": tuple(branches)}
        else:
            attributes = dict(zip(named, branches, strict=True))
        joined = [_joined(value) for value in (selector, *operands[1:])]
        chosen = make(CONDITIONAL, *joined, **attributes)
        return _like(placed[0], _sourced(chosen, instruction))

    def _as(self, value: _Value, wanted: Sequence[Tiling | None]) -> _Value:
        """A value whose arrays lie as ``wanted``."""
        each = iter(wanted)

        def placed(value: _Value) -> _Value:
            if not isinstance(value, _Array):
                return tuple(placed(element) for element in value)
            tiling = next(each)
            return self._moved(value, tiling) if tiling and value.tiling else value

        return placed(value)

    def _parameter_like(self, value: _Value) -> tuple[Instruction, _Value]:
        """The one parameter of a computation that takes such a value, and what it is."""
        made = parameter(0, _joined_shape(value))
        return made, _like(value, made)

    def _by_hand(self, instruction: Instruction, operands: list[_Value]) -> _Value:
        """The instruction as it is, on what each partition has."""
        for array in (leaf for operand in operands for leaf in _leaves(operand)):
            if array.tiling not in (None, self._whole(array)):
                raise _refused(instruction, "some operands are manual and others split")
        return self._everywhere(instruction, operands, by_hand=True)

    def _everywhere(
        self, instruction: Instruction, operands: list[_Value], by_hand: bool = False
    ) -> _Value:
        made = _copied(instruction, [_joined(operand) for operand in operands])

        def value(part: Instruction) -> _Value:
            if isinstance(part.shape, TupleShape):
                return tuple(value(element) for element in elements_of(part))
            array = _Array(part, None, part.shape)
            return array if by_hand else array._replace(tiling=self._whole(array))

        return value(made)

    # --- Ops in parts -------------------------------------------------------------------------

    def _in_parts(
        self, instruction: Instruction, labels: Labelling, arrays: list[_Array]
    ) -> _Value:
        chosen = self._chosen(instruction, labels, arrays)
        none = (0,) * self.partitions

        def tiling(names: Sequence[Hashable]) -> Tiling:
            return tuple(chosen.get(name, none) for name in names)

        moved = [
            self._moved(array, tiling(names))
            for array, names in zip(arrays, labels.operands, strict=True)
        ]
        moved = self._masked(moved, labels)
        wanted = tiling(labels.results)
        first = instruction.element_shapes[0]
        assert isinstance(first, Shape)
        assert moved[0].tiling is not None
        attributes = local_attributes(
            instruction,
            moved[0].local.array_shape,
            _local(first, wanted),
            [count(split) > 1 for split in moved[0].tiling],
        )
        operands = [array.local for array in moved]
        if instruction.op is SCATTER:
            # What is padding has indices, too.
            attributes |= {"unique_indices": False, "indices_are_sorted": False}
            operands[0] = self._held_by_first(instruction, operands[0], labels, chosen)
        local = _sourced(make(instruction.op, *operands, **attributes), instruction)
        local = self._combined(local, labels, chosen)
        if not isinstance(instruction.shape, TupleShape):
            return _Array(local, wanted, instruction.shape)
        pairs_ = zip(elements_of(local), instruction.shape.elements, strict=True)
        return tuple(_Array(part, wanted, shape) for part, shape in pairs_)

    def _masked(self, arrays: list[_Array], labels: Labelling) -> list[_Array]:
        """The arrays with an identity in the padding of dimensions that are reduced."""
        masked = []
        for array, names in zip(arrays, labels.operands, strict=True):
            local = array.local
            for d, name in enumerate(names):
                computation = labels.reduced.get(name)
                assert array.tiling is not None
                assert isinstance(array.shape, Shape)
                split, size = array.tiling[d], array.shape.dimensions[d]
                shape = local.array_shape
                op = None if computation is None else monoid(computation)
                if op is None or size % count(split) == 0:
                    continue
                inside = Shape(ElementType.S32, shape.dimensions)
                begin = self._resharding.begin(split, shape.dimensions[d])
                place = add(iota(inside, d), broadcast(begin, shape.dimensions))
                held = constant(identity_value(op.function, shape.element_type), shape.element_type)
                padding = broadcast(held, shape.dimensions)
                limit = broadcast(constant(size, ElementType.S32), shape.dimensions)
                local = select(lt(place, limit), local, padding)
            masked.append(array._replace(local=local))
        return masked

    def _held_by_first(
        self,
        instruction: Instruction,
        operand: Instruction,
        labels: Labelling,
        chosen: dict[Hashable, Split],
    ) -> Instruction:
        """The operand on the first partition of those that are combined, else an identity."""
        along = [chosen[name] for name in labels.reduced if name in chosen]
        op = monoid(instruction.attributes["to_apply"])
        if not along or op is None:
            return operand
        shape = operand.array_shape
        number = tuple(int(any(places)) for places in zip(*along, strict=True))
        is_first = eq(self._resharding.begin(number, 1), constant(0, ElementType.S32))
        held = constant(identity_value(op.function, shape.element_type), shape.element_type)
        return select(is_first, operand, broadcast(held, shape.dimensions))

    def _combined(
        self, local: Instruction, labels: Labelling, chosen: dict[Hashable, Split]
    ) -> Instruction:
        """The partial results of a reduction, put together."""
        along = [name for name in labels.reduced if name in chosen]
        if not along:
            return local
        others = [split for name, split in chosen.items() if name not in along]
        return all_reduce(
            local,
            labels.reduced[along[0]],
            tilings.groups([chosen[name] for name in along], others, self.partitions),
            self._resharding.next_channel(),
            use_global_device_ids=True,
        )

    def _chosen(
        self, instruction: Instruction, labels: Labelling, arrays: list[_Array]
    ) -> dict[Hashable, Split]:
        """How each label is split: as wanted, else as most of the operands are."""
        places = pairs(labels.operands)
        sizes: dict[Hashable, list[int]] = {}
        votes: Counter[tuple[Hashable, Split]] = Counter()
        for n, d, name in places:
            array = arrays[n]
            assert isinstance(array.shape, Shape)
            assert array.tiling is not None
            sizes.setdefault(name, []).append(array.shape.dimensions[d])
            if count(array.tiling[d]) > 1:
                votes[name, array.tiling[d]] += 1
        first = instruction.element_shapes[0]
        assert isinstance(first, Shape)
        wished = self._annotations(instruction, len(instruction.element_shapes))[0]
        target = self._tiling(instruction, wished, first) if wished else None
        asked = []
        for d, name in enumerate(labels.results):
            if name is not None:
                sizes.setdefault(name, []).append(first.dimensions[d])
                if target is not None and count(target[d]) > 1:
                    asked.append((name, target[d]))
        chosen: dict[Hashable, Split] = {}
        for name, split in [*asked, *[pair for pair, _ in votes.most_common()]]:
            # Dimensions of several sizes run together where all parts are full.
            unequal = len(set(sizes[name])) > 1
            if name in chosen or (unequal and any(size % count(split) for size in sizes[name])):
                continue
            if tilings.is_product([*chosen.values(), split], self.partitions):
                chosen[name] = split
        return chosen


def _local(shape: Shape, tiling: Tiling) -> Shape:
    sizes = [tilings.length(n, split) for n, split in zip(shape.dimensions, tiling, strict=True)]
    return shape.with_dimensions(sizes)


def _joined_shape(value: _Value) -> AnyShape:
    if isinstance(value, _Array):
        return value.local.shape
    return TupleShape(tuple(_joined_shape(element) for element in value))


def _like(value: _Value, made: Instruction) -> _Value:
    """``made`` as a value whose arrays lie as those of ``value``."""
    if isinstance(value, _Array):
        return value._replace(local=made)
    pairs_ = zip(value, elements_of(made), strict=True)
    return tuple(_like(element, part) for element, part in pairs_)


def _is_manual(instruction: Instruction) -> bool:
    return "manual" in instruction.sharding and instruction.op is not CUSTOM_CALL


def _joined(value: _Value) -> Instruction:
    return value.local if isinstance(value, _Array) else tuple_([_joined(v) for v in value])


def _copied(instruction: Instruction, operands: Sequence[Instruction]) -> Instruction:
    op, attributes = instruction.op, instruction.attributes
    return Instruction(op, tuple(operands), instruction.shape, attributes, instruction.source)


def _sourced(made: Instruction, instruction: Instruction) -> Instruction:
    """``made`` with the user's line of another instruction."""
    return Instruction(made.op, made.operands, made.shape, made.attributes, instruction.source)
