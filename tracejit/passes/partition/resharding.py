"""Arrays brought from one tiling into another, by collectives across partitions.

same parts elsewhere              collective-permute
one dimension instead of another  all-to-all
otherwise                         all-gather along the other splits, then a slice

A dimension that does not divide is padded with zeros before it is split, and cut after it is
gathered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from tracejit.attributes import PaddingDimension
from tracejit.graph import Instruction
from tracejit.ops.constants import constant
from tracejit.ops.layout import dynamic_slice, pad, reshape, slice_in_dim
from tracejit.ops.permutes import collective_permute
from tracejit.ops.replicas import all_gather, all_to_all, partition_id
from tracejit.passes.partition.tiling import Split, Tiling, count, groups, length
from tracejit.shapes import ElementType


class Resharding:
    """``channel`` is that of the last collective op; each has a channel of its own."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.channel = 0

    def next_channel(self) -> int:
        self.channel += 1
        return self.channel

    def moved(
        self, local: Instruction, given: Tiling, wanted: Tiling, sizes: Sequence[int]
    ) -> Instruction:
        """A partition's part by ``wanted`` of an array whose part by ``given`` is ``local``.

        ``sizes`` are those of the whole array.
        """
        different = [d for d, (a, b) in enumerate(zip(given, wanted, strict=True)) if a != b]
        if not different:
            return local
        if all(count(given[d]) == count(wanted[d]) for d in different):
            return collective_permute(local, self._pairs(given, wanted), self.next_channel())
        if len(different) == 2:
            for i, j in (different, different[::-1]):
                is_swap = given[i] == wanted[j] and count(given[j]) == count(wanted[i]) == 1
                if is_swap:
                    return self._exchanged(local, given, i, j, sizes)
        splits = list(given)
        for d in different:
            if count(splits[d]) > 1:
                local = self._gathered(local, splits, d, sizes)
                splits[d] = (0,) * self.partitions
        for d in different:
            if count(wanted[d]) > 1:
                local = self._part(local, d, wanted[d])
        return local

    def _pairs(self, given: Tiling, wanted: Tiling) -> list[tuple[int, int]]:
        """Who sends to whom: each partition to as many as it gets from, itself where it can."""
        sources: dict[object, list[int]] = defaultdict(list)
        for number in range(self.partitions):
            sources[tuple(split[number] for split in given)].append(number)
        pairs, left = [], []
        for number in range(self.partitions):
            having = sources[tuple(split[number] for split in wanted)]
            if number in having:
                having.remove(number)
                pairs.append((number, number))
            else:
                left.append(number)
        for number in left:
            having = sources[tuple(split[number] for split in wanted)]
            pairs.append((having.pop(0), number))
        return pairs

    def _exchanged(
        self, local: Instruction, given: Tiling, i: int, j: int, sizes: Sequence[int]
    ) -> Instruction:
        """Split along ``j`` instead of ``i`` in the same way."""
        times = count(given[i])
        padded = _resized(local, j, length(sizes[j], given[i]) * times)
        among = self._groups(given, i)
        made = all_to_all(padded, j, i, times, among, channel_id=self.next_channel())
        return _resized(made, i, sizes[i])

    def _groups(self, splits: Sequence[Split], d: int) -> list[list[int]]:
        others = [split for other, split in enumerate(splits) if other != d]
        return groups([splits[d]], others, self.partitions)

    def _gathered(
        self, local: Instruction, splits: Sequence[Split], d: int, sizes: Sequence[int]
    ) -> Instruction:
        made = all_gather(
            local,
            d,
            count(splits[d]),
            self._groups(splits, d),
            self.next_channel(),
            use_global_device_ids=True,
        )
        return _resized(made, d, sizes[d])

    def _part(self, local: Instruction, d: int, split: Split) -> Instruction:
        sizes = list(local.array_shape.dimensions)
        sizes[d] = length(sizes[d], split)
        start = self.begin(split, sizes[d])
        zero = constant(0, ElementType.S32)
        at = [start if dimension == d else zero for dimension in range(len(sizes))]
        return dynamic_slice(_resized(local, d, sizes[d] * count(split)), at, sizes)

    def begin(self, split: Split, each: int) -> Instruction:
        """Where a partition's part of a dimension begins, s32[], of parts of this size."""
        starts = constant(np.array(split, np.int32) * np.int32(each))
        return reshape(dynamic_slice(starts, (partition_id(),), (1,)), ())


def _resized(x: Instruction, d: int, size: int) -> Instruction:
    """Cut at ``size``, or padded with zeros up to it, along a dimension."""
    shape = x.array_shape
    more = size - shape.dimensions[d]
    if more < 0:
        return slice_in_dim(x, 0, size, 1, d)
    if more == 0:
        return x
    padding = [PaddingDimension(0, more if n == d else 0) for n in range(shape.rank)]
    return pad(x, constant(0, shape.element_type), padding)
