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
from tracejit.ops.constants import GET_TUPLE_ELEMENT, PARAMETER, TUPLE, elements_of, tuple_
from tracejit.ops.control import CALL
from tracejit.ops.custom import CUSTOM_CALL
from tracejit.ops.layout import SLICE
from tracejit.ops.replicas import all_reduce
from tracejit.passes.host_collectives import COLLECTIVES
from tracejit.passes.partition import tiling as tilings
from tracejit.passes.partition.labels import Labelling, labelling, pairs
from tracejit.passes.partition.resharding import Resharding
from tracejit.passes.partition.tiling import Split, Tiling, count
from tracejit.shapes import AnyShape, Shape, TupleShape
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
                np.ascontiguousarray(array[tilings.part(tiling, array.shape, number)])
                for array, (_, tiling) in zip(given, self.parameters, strict=True)
            ]
            for number in range(self.module.num_partitions)
        ]

    def assembled(self, parts: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
        """The whole results, of every partition's."""
        found = []
        for position, (shape, tiling) in enumerate(self.results):
            made = np.empty(shape.dimensions, shape.dtype)
            for number in reversed(range(len(parts))):
                made[tilings.part(tiling, shape.dimensions, number)] = parts[number][position]
            found.append(made)
        return found


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

    # --- Shardings ----------------------------------------------------------------------------

    def _tiling(self, instruction: Instruction, text: str, shape: AnyShape) -> Tiling | None:
        """What an annotation says of one array; checked against its sizes."""
        rank = shape.rank if isinstance(shape, Shape) else 0
        try:
            found = tilings.tiling(text, rank, self.partitions)
        except TracejitError as error:
            message = f"{instruction.op.function}: {error.message}"
            raise type(error)(message, instruction.source) from error
        for d, split in enumerate(found or ()):
            assert isinstance(shape, Shape)
            if shape.dimensions[d] % count(split):
                raise AttributeValueError(
                    f"{instruction.op.function}: dimension {d} of {shape} must be divisible by "
                    f"{count(split)}, as its sharding {{{text}}} says",
                    instruction.source,
                )
        return found

    def _annotations(self, instruction: Instruction) -> list[str]:
        """The shardings of an instruction's arrays; "" for those that have none."""
        shapes = instruction.element_shapes
        given = tilings.texts(instruction.sharding)
        if given is None:
            return [instruction.sharding] * len(shapes)
        if len(given) != len(shapes):
            raise AttributeValueError(
                f"{instruction.op.function}: its sharding has {len(given)} elements for "
                f"{len(shapes)} arrays",
                instruction.source,
            )
        return given

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
        local = self._resharding.moved(array.local, array.tiling, wanted)
        return _Array(local, wanted, array.shape)

    # --- Computations -------------------------------------------------------------------------

    def computation(self, computation: Computation, arguments: Sequence[_Value]) -> _Value:
        found: dict[Instruction, _Value] = dict(zip(computation.parameters, arguments, strict=True))
        for instruction in in_order([computation.root]):
            if instruction not in found:
                operands = [found[operand] for operand in instruction.operands]
                made = self._instruction(instruction, operands)
                found[instruction] = self._annotated(instruction, made)
        return found[computation.root]

    def _annotated(self, instruction: Instruction, made: _Value) -> _Value:
        """The value as the instruction's annotation says that it lies."""
        if not instruction.sharding:
            return made
        if isinstance(made, _Array):
            return self._placed(instruction, instruction.sharding, made)
        texts = self._annotations(instruction)
        return tuple(
            self._placed(instruction, text, element) if isinstance(element, _Array) else element
            for text, element in zip(texts, made, strict=True)
        )

    def _placed(self, instruction: Instruction, text: str, array: _Array) -> _Array:
        if not text or array.tiling is None:
            return array
        wanted = self._tiling(instruction, text, array.shape)
        return array if wanted is None else self._moved(array, wanted)

    def _instruction(self, instruction: Instruction, operands: list[_Value]) -> _Value:
        op = instruction.op
        if op is TUPLE:
            return tuple(operands)
        if op is GET_TUPLE_ELEMENT:
            (given,) = operands
            assert not isinstance(given, _Array)
            element: _Value = given[instruction.attributes["index"]]
            return element
        if op is CALL:
            return self.computation(instruction.attributes["to_apply"], operands)
        if op is CUSTOM_CALL:
            edge = self._edge(instruction, operands)
            if edge is not None:
                return edge
        arrays = [leaf for operand in operands for leaf in _leaves(operand)]
        if any(array.tiling is None for array in arrays) or instruction.sharding == "manual":
            return self._by_hand(instruction, operands)
        if op in COLLECTIVES or instruction.has_effect:
            raise _refused(instruction, "what it does depends on the partition that does it")
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
        if target == _ENTER:
            if array.local.shape != instruction.shape:
                raise _refused(
                    instruction, f"a part is {array.local.shape}, not {instruction.shape}"
                )
            return _Array(array.local, None, instruction.shape)
        tiling = self._tiling(instruction, instruction.sharding, instruction.shape)
        assert isinstance(instruction.shape, Shape)
        if tiling is None or array.local.shape != _local(instruction.shape, tiling):
            raise _refused(
                instruction, f"parts of {array.local.shape} do not make {instruction.shape}"
            )
        return _Array(array.local, tiling, instruction.shape)

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
        wanted = tiling(labels.results)
        attributes = dict(instruction.attributes)
        first = instruction.element_shapes[0]
        assert isinstance(first, Shape)
        if isinstance(attributes.get("shape"), Shape):
            attributes["shape"] = _local(first, wanted)
        if instruction.op is SLICE:
            sizes = moved[0].local.array_shape.dimensions
            attributes["slice"] = tuple(
                replace(each, limit=size) if count(split) > 1 else each
                for each, size, split in zip(attributes["slice"], sizes, wanted, strict=True)
            )
        operands = [array.local for array in moved]
        local = _sourced(make(instruction.op, *operands, **attributes), instruction)
        local = self._combined(local, labels, chosen)
        if not isinstance(instruction.shape, TupleShape):
            return _Array(local, wanted, instruction.shape)
        pairs_ = zip(elements_of(local), instruction.shape.elements, strict=True)
        return tuple(_Array(part, wanted, shape) for part, shape in pairs_)

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
        wished = self._annotations(instruction)[0]
        target = self._tiling(instruction, wished, first) if wished else None
        asked = []
        for d, name in enumerate(labels.results):
            if name is not None:
                sizes.setdefault(name, []).append(first.dimensions[d])
                if target is not None and count(target[d]) > 1:
                    asked.append((name, target[d]))
        chosen: dict[Hashable, Split] = {}
        for name, split in [*asked, *[pair for pair, _ in votes.most_common()]]:
            if name in chosen or any(size % count(split) for size in sizes[name]):
                continue
            if tilings.is_product([*chosen.values(), split], self.partitions):
                chosen[name] = split
        return chosen


def _local(shape: Shape, tiling: Tiling) -> Shape:
    sizes = [n // count(split) for n, split in zip(shape.dimensions, tiling, strict=True)]
    return shape.with_dimensions(sizes)


def _joined(value: _Value) -> Instruction:
    return value.local if isinstance(value, _Array) else tuple_([_joined(v) for v in value])


def _copied(instruction: Instruction, operands: Sequence[Instruction]) -> Instruction:
    op, attributes = instruction.op, instruction.attributes
    return Instruction(op, tuple(operands), instruction.shape, attributes, instruction.source)


def _sourced(made: Instruction, instruction: Instruction) -> Instruction:
    """``made`` with the user's line of another instruction."""
    return Instruction(made.op, made.operands, made.shape, made.attributes, instruction.source)
